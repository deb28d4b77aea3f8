package com.microsoft.azure.functions.internal.spi.middleware;

import com.microsoft.azure.functions.ExecutionContext;
import com.microsoft.azure.functions.cache.CacheKey;
import com.microsoft.azure.functions.cache.ObjectCache;

/** The context of an invocation for middlewares. */
public interface MiddlewareContext extends ExecutionContext {
    String getParameterName(String annotationSimpleName);

    Object getParameterValue(String name);

    void updateParameterValue(String name, Object value);

    Object getReturnValue();

    void updateReturnValue(Object value);

    default <K extends CacheKey, V> ObjectCache<K, V> getCache() {
        return null;
    }
}
