package com.microsoft.azure.functions;

/** Why the last try of an invocation failed. */
public interface RpcException {
    String getSource();

    String getStacktrace();

    String getMessage();
}
