package bindpost.worker.json;

import bindpost.worker.app.AppLoader;
import bindpost.worker.app.JsonBinding;
import bindpost.worker.failure.FailureReport;
import bindpost.worker.failure.LoadError;
import java.lang.reflect.Field;
import java.lang.reflect.Type;
import java.util.function.BiFunction;
import java.util.function.Function;

/** Our own binder, for apps without Gson. It reads and writes the same JSON as Gson. */
public final class PlainJson implements JsonBinding {
    @Override
    public Object fromJson(String json, Type type) {
        return read(json, type);
    }

    @Override
    public String toJson(Object value) {
        return print(value);
    }

    static Object read(String json, Type type) {
        return json.trim().isEmpty() ? null : ValueBinder.bind(LooseParser.parse(json), type);
    }

    public static String print(Object value) {
        return new ValuePrinter().print(value);
    }

    /** Connects the declared Gson, which Microsoft's middleware for results uses, with this binder. */
    public static void connectGson(AppLoader loader) throws LoadError {
        try {
            Class<?> gson = loader.loadClass(GSON);
            BiFunction<String, Type, Object> reader = PlainJson::read;
            Function<Object, String> writer = PlainJson::print;
            set(gson.getDeclaredField("reader"), reader);
            set(gson.getDeclaredField("writer"), writer);
        } catch (ReflectiveOperationException error) {
            throw new LoadError("the declaration of Gson cannot be used: " + FailureReport.summary(error), error);
        }
    }

    private static void set(Field field, Object value) throws IllegalAccessException {
        field.setAccessible(true);
        field.set(null, value);
    }
}
