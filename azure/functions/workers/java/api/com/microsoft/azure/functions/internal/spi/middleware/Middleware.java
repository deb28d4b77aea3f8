package com.microsoft.azure.functions.internal.spi.middleware;

/** Runs around every invocation. Apps and libraries name theirs in META-INF/services. */
public interface Middleware {
    void invoke(MiddlewareContext context, MiddlewareChain chain) throws Exception;
}
