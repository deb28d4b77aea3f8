package com.microsoft.azure.functions;

/** The kind of tokens of a Kafka annotation. */
public enum OAuthBearerMethod {
    Default(0),
    Oidc(1);

    private final int value;

    OAuthBearerMethod(int value) {
        this.value = value;
    }

    public int getValue() {
        return value;
    }
}
