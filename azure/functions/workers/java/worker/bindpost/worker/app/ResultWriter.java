package bindpost.worker.app;

import bindpost.worker.failure.FailureReport;
import bindpost.worker.failure.LoadError;
import bindpost.worker.proxy.HttpObjects;
import bindpost.worker.wire.JsonWriter;

/** Writes what a function returned as a value of the protocol. The class of the value decides its kind. */
public final class ResultWriter {
    private static final String JSON_NULL = "{\"json\":\"null\"}";

    private ResultWriter() {}

    public static void write(JsonWriter writer, Object value, AppClasses classes) throws Exception {
        if (value == null) {
            writer.raw(JSON_NULL);
        } else if (value instanceof String) {
            writer.raw("{\"string\":").string((String) value).raw("}");
        } else if (value instanceof Integer || value instanceof Long || value instanceof Short
                || value instanceof Byte) {
            writer.raw("{\"int\":\"").number(((Number) value).longValue()).raw("\"}");
        } else if (value instanceof Double || value instanceof Float) {
            writeDouble(writer, ((Number) value).doubleValue(), value.toString());
        } else if (value instanceof byte[]) {
            writer.raw("{\"bytes\":").base64((byte[]) value).raw("}");
        } else if (classes.types().httpResponse.isInstance(value)) {
            HttpObjects.writeResponse(writer, value, classes);
        } else {
            writer.raw("{\"json\":").string(json(value, classes)).raw("}");
        }
    }

    private static void writeDouble(JsonWriter writer, double value, String text) {
        // JSON has no NaN and no infinity. The text of a float is shorter than that of the same double.
        if (Double.isNaN(value) || Double.isInfinite(value)) writer.raw("{\"string\":").string(text).raw("}");
        else writer.raw("{\"double\":").raw(text).raw("}");
    }

    private static String json(Object value, AppClasses classes) throws LoadError {
        try {
            return classes.json().toJson(value);
        } catch (Exception | StackOverflowError error) {
            String reason = error instanceof StackOverflowError ? "it contains itself" : FailureReport.summary(error);
            throw new LoadError("the result of type " + value.getClass().getName() + " cannot be written as JSON: "
                    + reason, error);
        }
    }
}
