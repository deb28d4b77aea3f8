package bindpost.worker.app;

import bindpost.worker.failure.LoadError;
import bindpost.worker.json.PlainJson;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The classes of the app: its jars, the jars in `lib` beside them, and last the declarations of the types that the
 * platform provides and `lib` therefore lacks. If the app brings such a type, the app's is used.
 */
public final class AppClasses {
    private static final String RESULT_MIDDLEWARE = "com.microsoft.azure.functions.mcp.McpToolResultMiddleware";

    private final AppLoader loader = new AppLoader();
    private final Set<File> opened = new LinkedHashSet<>();
    private final ApiTypes types;
    private final AppServices services;
    /** Whether the app brings Gson. */
    private final boolean hasGson;
    private volatile JsonBinding json;

    public AppClasses(List<String> jars, File declarations, File gson) throws LoadError {
        addJars(jars);
        add(declarations);
        hasGson = loader.hasClass(JsonBinding.GSON);
        boolean needsGson = !hasGson && loader.hasClass(RESULT_MIDDLEWARE);
        if (needsGson) add(gson);
        Thread.currentThread().setContextClassLoader(loader);
        types = new ApiTypes(loader);
        if (needsGson) PlainJson.connectGson(loader);
        services = new AppServices(this);
    }

    /** Adds jars, and the jars of the `lib` folders beside them, sorted by name. */
    public void addJars(List<String> jars) throws LoadError {
        List<File> libraries = new ArrayList<>();
        for (String path : jars) {
            File jar = new File(path);
            if (!jar.exists()) {
                throw new LoadError("the jar " + jar.getName() + " does not exist: build the app with `mvn package`");
            }
            add(jar);
            File[] found = new File(jar.getAbsoluteFile().getParentFile(), "lib").listFiles();
            if (found == null) continue;
            Arrays.sort(found);
            for (File file : found) {
                if (file.getName().endsWith(".jar")) libraries.add(file);
            }
        }
        for (File library : libraries) add(library);
    }

    /** Adds a jar and those that its manifest names. */
    private void add(File file) throws LoadError {
        if (!opened.add(file.getAbsoluteFile())) return;
        try {
            for (File named : loader.add(file).classPath()) {
                if (named.exists()) add(named);
            }
        } catch (IOException error) {
            String fix = "build the app again with `mvn clean package`";
            throw new LoadError("the jar " + file.getName() + " cannot be read (" + error.getMessage() + "): "
                    + fix, error);
        }
    }

    public AppLoader loader() {
        return loader;
    }

    public ApiTypes types() {
        return types;
    }

    public AppServices services() {
        return services;
    }

    /** Returns the JSON library of the app, or our own binder. It is loaded when the first value needs it. */
    JsonBinding json() {
        JsonBinding opened = json;
        return opened != null ? opened : openJson();
    }

    private synchronized JsonBinding openJson() {
        if (json == null) json = hasGson ? GsonBridge.open(loader) : new PlainJson();
        return json;
    }
}
