package bindpost.worker.failure;

import bindpost.worker.wire.JsonError;
import bindpost.worker.wire.JsonWriter;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Converts a thrown object for the host: a message for users, and the stack without our own frames for logs. */
public final class FailureReport {
    private static final String OWN_PACKAGE = "bindpost.worker.";
    private static final int MAX_CAUSES = 20;
    /** Why the static initialiser of a class failed. Java tells it only once. */
    private static final Map<String, String> INITIALISERS = new ConcurrentHashMap<>();

    private FailureReport() {}

    /** Writes the member `result` of a function that could not be loaded, or of a failed invocation. */
    public static void writeResult(JsonWriter writer, Throwable error) {
        String message = messageOf(error);
        Throwable shown = error instanceof LoadError ? error.getCause() : error;
        writer.raw("\"result\":{\"status\":0,\"result\":").string(message);
        writer.raw(",\"exception\":{\"message\":").string(message);
        writer.member("stackTrace").string(shown == null ? message : traceOf(shown)).raw("}}");
    }

    /** Writes the member `exception` of a log record. */
    public static void writeException(JsonWriter writer, Throwable error) {
        writer.raw("\"exception\":{\"message\":").string(summary(error));
        writer.member("stackTrace").string(traceOf(error)).raw("}");
    }

    /** Returns the message for users: of our own errors the text, else the innermost cause with its type. */
    public static String messageOf(Throwable error) {
        if (error instanceof LoadError || error instanceof JsonError) return error.getMessage();
        Throwable root = error;
        for (int i = 0; i < MAX_CAUSES; i++) {
            String worded = LinkageWords.describe(root, INITIALISERS);
            if (worded != null) return worded;
            if (root.getCause() == null) break;
            root = root.getCause();
        }
        return summary(root);
    }

    /** Returns the type and the message of an error. */
    public static String summary(Throwable error) {
        if (error instanceof JsonError) return error.getMessage();
        String name = error.getClass().getSimpleName();
        if (name.isEmpty()) name = error.getClass().getName();
        String message = textOf(error);
        return message == null || message.isEmpty() ? name : name + ": " + message;
    }

    private static String textOf(Throwable error) {
        try {
            return error.getMessage();
        } catch (Throwable thrown) {
            return "its message cannot be read, because getMessage failed";
        }
    }

    /** Returns the stack and the causes, up to the frames of this worker. */
    public static String traceOf(Throwable error) {
        StringBuilder text = new StringBuilder();
        Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        appendTrace(text, error, "", seen);
        return text.toString();
    }

    private static void appendTrace(StringBuilder text, Throwable error, String before, Set<Throwable> seen) {
        if (error == null || seen.size() >= MAX_CAUSES || !seen.add(error)) return;
        String message = textOf(error);
        text.append(before).append(error.getClass().getName());
        if (message != null) text.append(": ").append(message);
        text.append('\n');
        StackTraceElement[] frames = error.getStackTrace();
        int end = error instanceof JsonError ? 0 : usersFrames(frames);
        for (int i = 0; i < end; i++) text.append("\tat ").append(frames[i]).append('\n');
        for (Throwable suppressed : error.getSuppressed()) appendTrace(text, suppressed, "Suppressed: ", seen);
        appendTrace(text, error.getCause(), "Caused by: ", seen);
    }

    /** Returns how many frames come before the worker called the app by reflection. */
    private static int usersFrames(StackTraceElement[] frames) {
        int end = 0;
        // The app's class loader is the worker's, and may be what threw.
        while (end < frames.length && isOwn(frames[end])) end++;
        while (end < frames.length && !isOwn(frames[end])) end++;
        // An error of the worker itself, or of a thread of the app.
        if (end == frames.length) return end;
        while (end > 0 && isReflection(frames[end - 1].getClassName())) end--;
        return end;
    }

    private static boolean isOwn(StackTraceElement frame) {
        return frame.getClassName().startsWith(OWN_PACKAGE);
    }

    private static boolean isReflection(String name) {
        return name.startsWith("java.lang.reflect.") || name.startsWith("jdk.internal.")
                || name.startsWith("java.lang.invoke.") || name.startsWith("jdk.proxy")
                || name.startsWith("com.sun.proxy.");
    }

    /** Ends the process after an invocation ran out of memory: other threads may have lost objects at any place. */
    public static void endWithoutMemory(Throwable error) {
        try {
            System.err.println("The worker exits, because it has no more memory (" + error.getMessage()
                    + "). -Xmx in JAVA_OPTS sets the limit.");
            Thread.sleep(200);
        } catch (Throwable ignored) {
            // The line cannot be written without memory.
        }
        Runtime.getRuntime().halt(1);
    }
}
