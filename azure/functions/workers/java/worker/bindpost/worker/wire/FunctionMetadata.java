package bindpost.worker.wire;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What the host tells about a function when it is loaded: the contents of its function.json. */
public final class FunctionMetadata {
    private static final int DIRECTION_OUT = 1;

    public String id = "";
    public String name = "";
    /** The path of the jar. */
    public String scriptFile = "";
    /** `package.Class.method`. */
    public String entryPoint = "";
    public final Map<String, BindingMetadata> bindings = new LinkedHashMap<>();

    /** One binding. A binding of direction `inout` is both an input and an output. */
    public static final class BindingMetadata {
        String type = "";
        int direction;

        public boolean isOutput() {
            return direction >= DIRECTION_OUT;
        }

        public boolean isInput() {
            return direction != DIRECTION_OUT;
        }
    }

    private FunctionMetadata() {}

    public static List<FunctionMetadata> readCollection(JsonReader reader) {
        List<FunctionMetadata> requests = new ArrayList<>();
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            if (name.equals("functionLoadRequests")) {
                reader.enterArray();
                while (reader.nextElement()) requests.add(readRequest(reader));
            } else {
                reader.skipValue();
            }
        }
        return requests;
    }

    public static FunctionMetadata readRequest(JsonReader reader) {
        FunctionMetadata function = new FunctionMetadata();
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            if (reader.isNull()) reader.skipValue();
            else if (name.equals("functionId")) function.id = reader.readString();
            else if (name.equals("metadata")) function.readMembers(reader);
            else reader.skipValue();
        }
        return function;
    }

    private void readMembers(JsonReader reader) {
        reader.enterObject();
        for (String member; (member = reader.nextMember()) != null; ) {
            switch (member) {
                case "name":
                    name = reader.readString();
                    break;
                case "scriptFile":
                    scriptFile = reader.readString();
                    break;
                case "entryPoint":
                    entryPoint = reader.readString();
                    break;
                case "bindings":
                    readBindings(reader);
                    break;
                default:
                    reader.skipValue();
            }
        }
    }

    private void readBindings(JsonReader reader) {
        reader.enterObject();
        for (String bindingName; (bindingName = reader.nextMember()) != null; ) {
            BindingMetadata binding = new BindingMetadata();
            reader.enterObject();
            for (String member; (member = reader.nextMember()) != null; ) {
                if (member.equals("type")) binding.type = reader.readString();
                else if (member.equals("direction")) binding.direction = Integer.parseInt(reader.readNumber());
                else reader.skipValue();
            }
            bindings.put(bindingName, binding);
        }
    }
}
