package com.microsoft.azure.functions;

/** What a function may ask about its invocation. */
public interface ExecutionContext {
    java.util.logging.Logger getLogger();

    String getInvocationId();

    String getFunctionName();

    default TraceContext getTraceContext() {
        return null;
    }

    default RetryContext getRetryContext() {
        return null;
    }
}
