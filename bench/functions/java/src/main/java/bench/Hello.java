package bench;

import com.microsoft.azure.functions.annotation.CustomBinding;
import com.microsoft.azure.functions.annotation.FunctionName;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The tool of the benchmark. */
public class Hello {
    private static final String WHO =
        "[{\"propertyName\":\"who\",\"propertyType\":\"string\",\"description\":\"Whom.\",\"isRequired\":true}]";

    /** The trigger of a tool. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.PARAMETER)
    @CustomBinding(direction = "in", name = "", type = "mcpToolTrigger")
    public @interface Tool {
        String name();

        String toolName();

        String description();

        String toolProperties();
    }

    /** An argument of a tool. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.PARAMETER)
    @CustomBinding(direction = "in", name = "", type = "mcpToolProperty")
    public @interface Property {
        String name();

        String propertyName();
    }

    @FunctionName("hello")
    public String hello(
        @Tool(name = "context", toolName = "hello", description = "Says hello.", toolProperties = WHO) String context,
        @Property(name = "who", propertyName = "who") String who) {
        return "Hello, " + who + "!";
    }
}
