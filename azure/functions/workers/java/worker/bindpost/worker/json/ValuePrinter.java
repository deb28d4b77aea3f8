package bindpost.worker.json;

import bindpost.worker.wire.JsonError;
import java.lang.reflect.Array;
import java.util.Calendar;
import java.util.Collection;
import java.util.Date;
import java.util.Map;
import java.util.Optional;

/** Writes objects of users as JSON: their fields, as Gson does. Members that are null are left out. */
final class ValuePrinter {
    private static final int MAX_DEPTH = 255;
    private static final String HEX = "0123456789abcdef";

    private final StringBuilder out = new StringBuilder();
    private int depth;

    String print(Object value) {
        write(value);
        return out.toString();
    }

    private void write(Object value) {
        if (value == null) out.append("null");
        else if (value instanceof Number) writeNumber((Number) value);
        else if (value instanceof Boolean) out.append(value);
        else if (value instanceof Enum) writeText(((Enum<?>) value).name());
        else if (isText(value)) writeText(value.toString());
        else if (value instanceof Date) writeText(((Date) value).toInstant().toString());
        else if (value instanceof Calendar) writeText(((Calendar) value).toInstant().toString());
        else if (value instanceof Optional) write(((Optional<?>) value).orElse(null));
        else writeNested(value);
    }

    private static boolean isText(Object value) {
        return value instanceof CharSequence || value instanceof Character || TextTypes.isText(value.getClass());
    }

    private void writeNumber(Number value) {
        if (value instanceof Double || value instanceof Float) {
            double number = value.doubleValue();
            if (Double.isNaN(number) || Double.isInfinite(number)) {
                throw new JsonError(value + " is not a number of JSON");
            }
        }
        // Numbers of libraries may print anything.
        String text = value.toString();
        if (value.getClass().getName().startsWith("java.")) out.append(text);
        else out.append(new java.math.BigDecimal(text));
    }

    private void writeNested(Object value) {
        if (++depth > MAX_DEPTH) {
            throw new JsonError("it is nested more than " + MAX_DEPTH + " levels deep, or contains itself");
        }
        if (value instanceof Map) writeMap((Map<?, ?>) value);
        else if (value instanceof Collection) writeItems(((Collection<?>) value).toArray());
        else if (value.getClass().isArray()) writeItems(value);
        else writeFields(value);
        depth--;
    }

    private void writeMap(Map<?, ?> map) {
        out.append('{');
        boolean isFirst = true;
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            isFirst = writeMember(String.valueOf(entry.getKey()), entry.getValue(), isFirst);
        }
        out.append('}');
    }

    private void writeFields(Object value) {
        out.append('{');
        boolean isFirst = true;
        for (ClassShape.FieldSlot field : ClassShape.of(value.getClass()).fields) {
            isFirst = writeMember(field.name, field.get(value), isFirst);
        }
        out.append('}');
    }

    /** Writes a member unless it is null. Returns whether the next one is the first. */
    private boolean writeMember(String name, Object value, boolean isFirst) {
        if (value == null || value instanceof Optional && ((Optional<?>) value).isEmpty()) return isFirst;
        if (!isFirst) out.append(',');
        writeText(name);
        out.append(':');
        write(value);
        return false;
    }

    private void writeItems(Object array) {
        out.append('[');
        int length = Array.getLength(array);
        for (int i = 0; i < length; i++) {
            if (i > 0) out.append(',');
            write(Array.get(array, i));
        }
        out.append(']');
    }

    /** Writes a string. Marks of HTML are escaped, so that the JSON may stand in a page. */
    private void writeText(String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char next = text.charAt(i);
            switch (next) {
                case '"':
                case '\\':
                    out.append('\\').append(next);
                    break;
                case '\n':
                    out.append("\\n");
                    break;
                case '\r':
                    out.append("\\r");
                    break;
                case '\t':
                    out.append("\\t");
                    break;
                case '\b':
                    out.append("\\b");
                    break;
                case '\f':
                    out.append("\\f");
                    break;
                default:
                    if (next < ' ' || "<>&='\u2028\u2029".indexOf(next) >= 0) writeEscape(next);
                    else out.append(next);
            }
        }
        out.append('"');
    }

    private void writeEscape(char next) {
        out.append("\\u");
        for (int shift = 12; shift >= 0; shift -= 4) out.append(HEX.charAt(next >> shift & 0xF));
    }
}
