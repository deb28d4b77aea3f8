package bindpost.worker.wire;

import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** A value of the protocol: its kind and its content. */
public final class TypedValue {
    /** What a value is. `NONE` is a missing blob or a missing body. */
    public enum ValueKind {
        NONE,
        /** The content is a String. */
        STRING,
        /** The content is a String with JSON. */
        JSON,
        /** The content is a byte[]. */
        BYTES,
        /** The content is a Long. */
        INT,
        /** The content is a Double. */
        DOUBLE,
        /** The content is an {@link HttpRequestData}. */
        HTTP,
        /** The content is a List of String, byte[], Long or Double. */
        LIST
    }

    public static final TypedValue NONE = new TypedValue(ValueKind.NONE, null);

    public final ValueKind kind;
    public final Object content;

    TypedValue(ValueKind kind, Object content) {
        this.kind = kind;
        this.content = content;
    }

    public String text() {
        return (String) content;
    }

    public static TypedValue read(JsonReader reader) {
        TypedValue value = NONE;
        if (reader.isNull()) {
            reader.skipValue();
            return value;
        }
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            if (reader.isNull()) reader.skipValue();
            else value = readContent(name, reader, value);
        }
        return value;
    }

    private static TypedValue readContent(String name, JsonReader reader, TypedValue before) {
        switch (name) {
            case "string":
                return new TypedValue(ValueKind.STRING, reader.readString());
            case "json":
                return new TypedValue(ValueKind.JSON, reader.readString());
            case "bytes":
            case "stream":
                return new TypedValue(ValueKind.BYTES, readBytes(reader));
            case "int":
                return new TypedValue(ValueKind.INT, readLong(reader));
            case "double":
                return new TypedValue(ValueKind.DOUBLE, Double.valueOf(reader.readNumber()));
            case "http":
                return new TypedValue(ValueKind.HTTP, HttpRequestData.read(reader));
            case "collectionString":
            case "collectionBytes":
            case "collectionDouble":
            case "collectionSint64":
                return new TypedValue(ValueKind.LIST, readCollection(name, reader));
            default:
                reader.skipValue();
                return before;
        }
    }

    private static List<Object> readCollection(String kind, JsonReader reader) {
        List<Object> items = new ArrayList<>();
        reader.enterObject();
        while (reader.nextMember() != null) {
            reader.enterArray();
            while (reader.nextElement()) {
                switch (kind) {
                    case "collectionString":
                        items.add(reader.readString());
                        break;
                    case "collectionBytes":
                        items.add(readBytes(reader));
                        break;
                    case "collectionDouble":
                        items.add(Double.valueOf(reader.readNumber()));
                        break;
                    default:
                        items.add(readLong(reader));
                }
            }
        }
        return items;
    }

    private static byte[] readBytes(JsonReader reader) {
        try {
            return Base64.getDecoder().decode(reader.readString());
        } catch (IllegalArgumentException error) {
            throw new JsonError("expected base64: " + error.getMessage());
        }
    }

    private static Long readLong(JsonReader reader) {
        String number = reader.readNumber();
        try {
            return Long.valueOf(number);
        } catch (NumberFormatException error) {
            throw new JsonError("expected an integer of 64 bits, not " + number);
        }
    }
}
