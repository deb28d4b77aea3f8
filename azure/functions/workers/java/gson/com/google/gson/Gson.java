package com.google.gson;

import java.lang.reflect.Type;
import java.util.function.BiFunction;
import java.util.function.Function;

/**
 * Stands in for Gson in apps that bring Microsoft's middleware for rich results, which uses it, but not Gson. It has
 * only what that middleware calls.
 */
public final class Gson {
    /** The worker sets these to its binder. */
    static volatile BiFunction<String, Type, Object> reader;
    static volatile Function<Object, String> writer;

    public String toJson(Object value) {
        return writer.apply(value);
    }

    public String toJson(Object value, Type type) {
        return writer.apply(value);
    }

    public <T> T fromJson(String json, Class<T> type) {
        return fromJson(json, (Type) type);
    }

    @SuppressWarnings("unchecked")
    public <T> T fromJson(String json, Type type) {
        return json == null ? null : (T) reader.apply(json, type);
    }
}
