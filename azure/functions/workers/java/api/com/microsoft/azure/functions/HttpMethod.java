package com.microsoft.azure.functions;

/** The methods of HTTP. */
public enum HttpMethod {
    GET,
    HEAD,
    POST,
    PUT,
    DELETE,
    CONNECT,
    OPTIONS,
    TRACE,
    PATCH;

    /** Returns the method with a name in any case. */
    public static HttpMethod value(String name) {
        return valueOf(name.toUpperCase(java.util.Locale.ROOT));
    }
}
