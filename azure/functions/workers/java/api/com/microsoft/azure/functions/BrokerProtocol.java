package com.microsoft.azure.functions;

/** The protocol of a Kafka annotation. */
public enum BrokerProtocol {
    NOTSET(-1),
    PLAINTEXT(0),
    SSL(1),
    SASLPLAINTEXT(2),
    SASLSSL(3);

    private final int value;

    BrokerProtocol(int value) {
        this.value = value;
    }

    public int getValue() {
        return value;
    }
}
