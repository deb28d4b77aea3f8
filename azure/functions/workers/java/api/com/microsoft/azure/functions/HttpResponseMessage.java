package com.microsoft.azure.functions;

/** The response to a request of an HTTP trigger. */
public interface HttpResponseMessage {
    HttpStatusType getStatus();

    default int getStatusCode() {
        return getStatus().value();
    }

    String getHeader(String name);

    Object getBody();

    /** Collects the parts of a response. */
    interface Builder {
        Builder status(HttpStatusType status);

        Builder header(String name, String value);

        Builder body(Object body);

        HttpResponseMessage build();
    }
}
