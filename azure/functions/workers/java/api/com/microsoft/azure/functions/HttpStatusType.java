package com.microsoft.azure.functions;

/** A status code of HTTP. {@link HttpStatus} has the usual ones. */
public interface HttpStatusType {
    int value();

    static HttpStatusType custom(int code) {
        if (code <= 0) throw new IllegalArgumentException("a status code must be positive, not " + code);
        return new HttpStatusType() {
            @Override
            public int value() {
                return code;
            }
        };
    }
}
