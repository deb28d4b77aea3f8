package bindpost.worker.json;

import bindpost.worker.wire.JsonError;
import java.lang.reflect.InvocationTargetException;
import java.net.URI;
import java.net.URL;
import java.util.Currency;
import java.util.Date;
import java.util.Locale;
import java.util.UUID;

/** Classes of the JDK whose JSON is a string, such as dates and ids. */
public final class TextTypes {
    private TextTypes() {}

    static boolean isText(Class<?> type) {
        return type == UUID.class || type == URI.class || type == URL.class || type == Locale.class
                || type == Currency.class
                || isTime(type);
    }

    private static boolean isTime(Class<?> type) {
        return type.getName().startsWith("java.time.") && !type.isEnum();
    }

    /** Returns whether the JSON of a type is a string that a user writes without quotes as an argument. */
    public static boolean isWrittenAsText(Class<?> type) {
        return type.isEnum() || type == Character.class || type == char.class || type == Date.class || isText(type);
    }

    /** Converts a text to one of these classes. Times are written as in ISO 8601. */
    static Object parse(String text, Class<?> type) {
        try {
            if (type == UUID.class) return UUID.fromString(text);
            if (type == URI.class) return URI.create(text);
            if (type == URL.class) return URI.create(text).toURL();
            if (type == Locale.class) return Locale.forLanguageTag(text.replace('_', '-'));
            if (type == Currency.class) return Currency.getInstance(text);
            if (type == Date.class) return Date.from(java.time.OffsetDateTime.parse(text).toInstant());
            // Zones have `of`, and other classes of java.time have `parse`.
            if (java.time.ZoneId.class.isAssignableFrom(type)) {
                return type.getMethod("of", String.class).invoke(null, text);
            }
            if (isTime(type)) {
                return type.getMethod("parse", CharSequence.class).invoke(null, text);
            }
        } catch (InvocationTargetException error) {
            throw new JsonError("\"" + text + "\" is not a valid " + type.getSimpleName() + ": "
                    + error.getCause().getMessage());
        } catch (ReflectiveOperationException | java.net.MalformedURLException | RuntimeException error) {
            throw new JsonError("\"" + text + "\" is not a valid " + type.getSimpleName() + ": " + error.getMessage());
        }
        throw new JsonError("a text cannot be converted to " + type.getName());
    }

    /** Returns whether {@link #parse} knows a class. */
    static boolean canParse(Class<?> type) {
        return isText(type) || type == Date.class;
    }
}
