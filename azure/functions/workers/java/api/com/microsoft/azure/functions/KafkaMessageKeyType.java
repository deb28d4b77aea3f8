package com.microsoft.azure.functions;

/** The type of keys of a Kafka annotation. */
public enum KafkaMessageKeyType {
    Int(0),
    Long(1),
    String(2),
    Binary(3);

    private final int value;

    KafkaMessageKeyType(int value) {
        this.value = value;
    }

    public int getValue() {
        return value;
    }
}
