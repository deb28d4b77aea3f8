package com.microsoft.azure.functions.cache;

import java.util.function.Supplier;

/** Keeps objects between invocations. Bindpost offers none: MiddlewareContext.getCache returns null. */
public interface ObjectCache<K extends CacheKey, V> {
    V computeIfAbsent(Class<?> type, K key, Supplier<V> create);

    default V get(Class<?> type, K key) {
        throw new UnsupportedOperationException();
    }

    default V remove(Class<?> type, K key) {
        throw new UnsupportedOperationException();
    }
}
