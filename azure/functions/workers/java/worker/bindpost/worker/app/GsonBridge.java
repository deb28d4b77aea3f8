package bindpost.worker.app;

import bindpost.worker.json.PlainJson;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;

/** The app's Gson, which the platform also uses. Apps may therefore use its annotations and its types. */
final class GsonBridge implements JsonBinding {
    private final Object gson;
    private final Method read;
    private final Method write;

    private GsonBridge(Object gson) throws ReflectiveOperationException {
        this.gson = gson;
        read = gson.getClass().getMethod("fromJson", String.class, Type.class);
        write = gson.getClass().getMethod("toJson", Object.class);
    }

    static JsonBinding open(AppLoader loader) {
        try {
            return new GsonBridge(loader.loadClass(GSON).getConstructor().newInstance());
        } catch (ReflectiveOperationException | LinkageError error) {
            // A part of Gson is missing. Our own binder needs nothing of it.
            return new PlainJson();
        }
    }

    @Override
    public Object fromJson(String json, Type type) throws Exception {
        return call(read, json, type);
    }

    @Override
    public String toJson(Object value) throws Exception {
        return (String) call(write, value);
    }

    private Object call(Method method, Object... arguments) throws Exception {
        try {
            return method.invoke(gson, arguments);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Error) throw (Error) error.getCause();
            throw (Exception) error.getCause();
        }
    }
}
