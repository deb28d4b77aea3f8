package bindpost.worker.json;

import java.math.BigDecimal;
import java.math.BigInteger;

/** The types of numbers that have a primitive, and how their texts are read. */
public enum NumberKind {
    BYTE("byte", byte.class, Byte.class),
    SHORT("short", short.class, Short.class),
    INT("int", int.class, Integer.class),
    LONG("long", long.class, Long.class),
    FLOAT("float", float.class, Float.class),
    DOUBLE("double", double.class, Double.class);

    private static final int MAX_DIGITS = 10_000;

    public final String label;
    private final Class<?> primitive;
    private final Class<?> wrapper;

    NumberKind(String label, Class<?> primitive, Class<?> wrapper) {
        this.label = label;
        this.primitive = primitive;
        this.wrapper = wrapper;
    }

    public static NumberKind of(Class<?> type) {
        for (NumberKind kind : values()) {
            if (type == kind.primitive || type == kind.wrapper) return kind;
        }
        return null;
    }

    public Object parse(String text) {
        switch (this) {
            case FLOAT:
                return Float.valueOf(text);
            case DOUBLE:
                return Double.valueOf(text);
            default:
                return integer(parseLong(text));
        }
    }

    private Object integer(long value) {
        switch (this) {
            case BYTE:
                if (value == (byte) value) return (byte) value;
                break;
            case SHORT:
                if (value == (short) value) return (short) value;
                break;
            case INT:
                if (value == (int) value) return (int) value;
                break;
            default:
                return value;
        }
        throw new NumberFormatException("out of range");
    }

    private static long parseLong(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException error) {
            try {
                return bigInteger(text).longValueExact();
            } catch (ArithmeticException tooLarge) {
                throw new NumberFormatException("out of range");
            }
        }
    }

    /** Reads a number of any size, but not one whose digits would take seconds. */
    static BigDecimal decimal(String text) {
        if (text.length() > MAX_DIGITS) throw new NumberFormatException("too long");
        return new BigDecimal(text);
    }

    /** Reads an integer of any size. Accepts `12.0` too, because JSON does not distinguish it from `12`. */
    static BigInteger bigInteger(String text) {
        BigDecimal exact = decimal(text);
        // The exact conversion of 1e1000000000 would need as many digits.
        if (exact.precision() - (long) exact.scale() > MAX_DIGITS) throw new NumberFormatException("too large");
        try {
            return exact.toBigIntegerExact();
        } catch (ArithmeticException error) {
            throw new NumberFormatException(error.getMessage());
        }
    }
}
