package bindpost.worker.app;

import bindpost.worker.failure.FailureReport;
import bindpost.worker.failure.LoadError;
import bindpost.worker.json.NumberKind;
import bindpost.worker.json.PlainJson;
import bindpost.worker.json.TextTypes;
import bindpost.worker.json.TypeResolver;
import bindpost.worker.proxy.HttpObjects;
import bindpost.worker.wire.HttpRequestData;
import bindpost.worker.wire.TypedValue;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

/** Converts the values of the protocol to the type of a parameter. What to do for the type is decided once. */
abstract class ValueConverter {
    /** Converts a value. `source` says in messages where it comes from, such as `"count"`. */
    final Object convert(TypedValue value, String source) throws LoadError {
        try {
            return value(value);
        } catch (MissingValue error) {
            throw new LoadError("the input " + source + " has no value, but its parameter has the type "
                    + error.getMessage()
                    + ". Use Optional or the class of that type if it may be absent.");
        } catch (LoadError error) {
            throw new LoadError("the input " + source + " " + error.getMessage(), error.getCause());
        } catch (Exception error) {
            throw new LoadError("the input " + source + " cannot be converted: " + FailureReport.summary(error), error);
        }
    }

    /** Returns the converted value. */
    abstract Object value(TypedValue value) throws Exception;

    /** Whether bytes are passed on as they are, so that no charset matters. */
    boolean takesBytes() {
        return false;
    }

    static ValueConverter of(Type type, AppClasses classes) throws LoadError {
        Class<?> raw = TypeResolver.rawClass(type);
        if (raw == String.class) return new TextConverter();
        if (raw == Optional.class) {
            return new OptionalConverter(of(TypeResolver.argument(type, Optional.class, 0), classes));
        }
        if (raw == boolean.class || raw == Boolean.class) return new BooleanConverter(raw.isPrimitive());
        NumberKind number = NumberKind.of(raw);
        if (number != null) return new NumberConverter(number, raw.isPrimitive());
        if (raw == byte[].class) return new BytesConverter();
        if (raw == classes.types().httpRequest) {
            Type body = TypeResolver.argument(type, raw, 0);
            return new RequestConverter(of(body, classes), classes);
        }
        return new JsonConverter(type, raw, classes);
    }

    /** A value is absent, but a primitive cannot be. The message names its type. */
    private static final class MissingValue extends Exception {
        private static final long serialVersionUID = 1;

        MissingValue(String type) {
            super(type);
        }
    }

    /** Returns a value as text. JSON stays JSON. */
    static String textOf(TypedValue value) throws LoadError {
        switch (value.kind) {
            case STRING:
            case JSON:
                return value.text();
            case BYTES:
                return new String((byte[]) value.content, StandardCharsets.UTF_8);
            case INT:
            case DOUBLE:
                return value.content.toString();
            case LIST:
                return listText((List<?>) value.content);
            case HTTP:
                throw new LoadError("is an HTTP request: its parameter must have the type HttpRequestMessage");
            default:
                return null;
        }
    }

    private static String listText(List<?> items) {
        return PlainJson.print(items);
    }

    /** Returns text, or null if there is none: a JSON null, or empty text for a type that is not text. */
    private static String scalarText(TypedValue value) throws LoadError {
        String text = textOf(value);
        if (text == null) return null;
        text = text.trim();
        if (value.kind == TypedValue.ValueKind.JSON) {
            if (text.equals("null")) return null;
            if (text.length() > 1 && text.startsWith("\"") && text.endsWith("\"")) {
                text = text.substring(1, text.length() - 1);
            }
        }
        return text.isEmpty() ? null : text;
    }

    private static String quote(String text) {
        return text.length() <= 80 ? "\"" + text + "\"" : "\"" + text.substring(0, 80) + "…\"";
    }

    /** To String. */
    private static final class TextConverter extends ValueConverter {
        @Override
        Object value(TypedValue value) throws LoadError {
            return value.kind == TypedValue.ValueKind.STRING ? value.content : textOf(value);
        }
    }

    /** To Optional. */
    private static final class OptionalConverter extends ValueConverter {
        private final ValueConverter inner;

        OptionalConverter(ValueConverter inner) {
            this.inner = inner;
        }

        @Override
        Object value(TypedValue value) throws Exception {
            return value.kind == TypedValue.ValueKind.NONE ? Optional.empty() : Optional.ofNullable(inner.value(value));
        }

        @Override
        boolean takesBytes() {
            return inner.takesBytes();
        }
    }

    /** To boolean and Boolean. The host writes `True`, as .NET does. */
    private static final class BooleanConverter extends ValueConverter {
        private final boolean isPrimitive;

        BooleanConverter(boolean isPrimitive) {
            this.isPrimitive = isPrimitive;
        }

        @Override
        Object value(TypedValue value) throws Exception {
            String text = scalarText(value);
            if (text == null) {
                if (isPrimitive) throw new MissingValue("boolean");
                return null;
            }
            if (text.equalsIgnoreCase("true")) return true;
            if (text.equalsIgnoreCase("false")) return false;
            throw new LoadError("cannot be converted to boolean: " + quote(text) + " is neither true nor false");
        }
    }

    /** To numbers. */
    private static final class NumberConverter extends ValueConverter {
        private final NumberKind kind;
        private final boolean isPrimitive;

        NumberConverter(NumberKind kind, boolean isPrimitive) {
            this.kind = kind;
            this.isPrimitive = isPrimitive;
        }

        @Override
        Object value(TypedValue value) throws Exception {
            String text = scalarText(value);
            if (text == null) {
                if (isPrimitive) throw new MissingValue(kind.label);
                return null;
            }
            try {
                return kind.parse(text);
            } catch (NumberFormatException error) {
                throw new LoadError("cannot be converted to " + kind.label + ": " + quote(text));
            }
        }
    }

    /** To byte[]. */
    private static final class BytesConverter extends ValueConverter {
        @Override
        Object value(TypedValue value) throws LoadError {
            if (value.kind == TypedValue.ValueKind.BYTES) return value.content;
            String text = textOf(value);
            return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        boolean takesBytes() {
            return true;
        }
    }

    /** To HttpRequestMessage. */
    private static final class RequestConverter extends ValueConverter {
        private final ValueConverter body;
        private final AppClasses classes;

        RequestConverter(ValueConverter body, AppClasses classes) {
            this.body = body;
            this.classes = classes;
        }

        @Override
        Object value(TypedValue value) throws Exception {
            if (value.kind == TypedValue.ValueKind.NONE) return null;
            if (value.kind != TypedValue.ValueKind.HTTP) {
                throw new LoadError("is not an HTTP request, so its parameter cannot have the type HttpRequestMessage");
            }
            HttpRequestData request = (HttpRequestData) value.content;
            TypedValue content = body.takesBytes() ? request.body : request.decodedBody();
            return HttpObjects.request(request, body.value(content), classes);
        }
    }

    /** To everything else: by the app's JSON library. */
    private static final class JsonConverter extends ValueConverter {
        private final Type type;
        private final Class<?> raw;
        private final AppClasses classes;

        JsonConverter(Type type, Class<?> raw, AppClasses classes) {
            this.type = type;
            this.raw = raw;
            this.classes = classes;
        }

        @Override
        Object value(TypedValue value) throws Exception {
            if (value.kind == TypedValue.ValueKind.BYTES && raw == Byte[].class) return boxed((byte[]) value.content);
            String text = textOf(value);
            if (text == null || text.trim().isEmpty()) return null;
            boolean isPlainText = value.kind != TypedValue.ValueKind.JSON;
            if (isPlainText && TextTypes.isWrittenAsText(raw) && !text.startsWith("\"")) text = PlainJson.print(text);
            try {
                return classes.json().fromJson(text, type);
            } catch (Exception error) {
                // A text that is not JSON is still an object.
                if (isPlainText && raw == Object.class) return text;
                throw new LoadError("cannot be converted to " + type.getTypeName() + ": "
                        + FailureReport.summary(error), error);
            }
        }

        private static Byte[] boxed(byte[] bytes) {
            Byte[] boxed = new Byte[bytes.length];
            for (int i = 0; i < bytes.length; i++) boxed[i] = bytes[i];
            return boxed;
        }
    }
}
