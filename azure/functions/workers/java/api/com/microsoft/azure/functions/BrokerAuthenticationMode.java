package com.microsoft.azure.functions;

/** How a Kafka annotation authenticates. */
public enum BrokerAuthenticationMode {
    NOTSET(-1),
    GSSAPI(0),
    PLAIN(1),
    SCRAMSHA256(2),
    SCRAMSHA512(3);

    private final int value;

    BrokerAuthenticationMode(int value) {
        this.value = value;
    }

    public int getValue() {
        return value;
    }
}
