package bindpost.worker.app;

import java.lang.reflect.Type;

/** Converts between JSON and the objects of the app. */
public interface JsonBinding {
    String GSON = "com.google.gson.Gson";

    /** Converts JSON to a type. Empty text is null. */
    Object fromJson(String json, Type type) throws Exception;

    String toJson(Object value) throws Exception;
}
