package com.microsoft.azure.functions;

import java.util.Map;

/** The W3C trace context of an invocation. */
public interface TraceContext {
    String getTraceparent();

    String getTracestate();

    Map<String, String> getAttributes();
}
