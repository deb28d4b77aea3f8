package com.microsoft.azure.functions;

/** How often an invocation was tried. */
public interface RetryContext {
    int getRetrycount();

    int getMaxretrycount();

    RpcException getException();
}
