package com.microsoft.azure.functions;

/** Takes the value of an output. */
public interface OutputBinding<T> {
    T getValue();

    void setValue(T value);
}
