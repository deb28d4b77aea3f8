package com.microsoft.azure.functions;

import java.net.URI;
import java.util.Map;

/** A request of an HTTP trigger. */
public interface HttpRequestMessage<T> {
    URI getUri();

    HttpMethod getHttpMethod();

    Map<String, String> getHeaders();

    Map<String, String> getQueryParameters();

    T getBody();

    HttpResponseMessage.Builder createResponseBuilder(HttpStatus status);

    HttpResponseMessage.Builder createResponseBuilder(HttpStatusType status);
}
