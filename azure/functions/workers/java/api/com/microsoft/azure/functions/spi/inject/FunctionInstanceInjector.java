package com.microsoft.azure.functions.spi.inject;

/** Creates the objects that functions are called on. */
public interface FunctionInstanceInjector {
    <T> T getInstance(Class<T> type) throws Exception;
}
