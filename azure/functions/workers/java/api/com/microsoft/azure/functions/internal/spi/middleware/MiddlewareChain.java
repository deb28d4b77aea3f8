package com.microsoft.azure.functions.internal.spi.middleware;

/** Runs the next middleware, or the function after the last one. */
public interface MiddlewareChain {
    void doNext(MiddlewareContext context) throws Exception;
}
