package bindpost.worker.failure;

import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Words for errors that Java throws when classes do not fit together, with what to change. */
final class LinkageWords {
    private static final String NOT_INITIALISED = "Could not initialize class ";
    private static final Pattern CLASS_FILE = Pattern.compile("class file version (\\d+)\\.");
    /** Class files of Java 1.0 have version 45 - 1. */
    private static final int VERSION_OFFSET = 44;

    private LinkageWords() {}

    /**
     * Returns what an error means, or null if it is not one of those. `initialisers` keeps why the initialisers of
     * classes failed: Java tells it once, and then only that the class cannot be used.
     */
    static String describe(Throwable error, Map<String, String> initialisers) {
        if (error instanceof ExceptionInInitializerError) {
            return initialiserFailed((ExceptionInInitializerError) error, initialisers);
        }
        if (error instanceof UnsupportedClassVersionError) return newerJava(error);
        if (error instanceof NoClassDefFoundError && String.valueOf(error.getMessage()).startsWith(NOT_INITIALISED)) {
            String name = error.getMessage().substring(NOT_INITIALISED.length());
            String cause = initialisers.get(name);
            // Newer versions of Java repeat it.
            if (cause == null && error.getCause() != null) cause = error.getCause().getMessage();
            String reason = cause == null ? " in an earlier call" : ": " + cause;
            return "The static initialiser of " + name + " failed" + reason;
        }
        if (error instanceof NoClassDefFoundError || error instanceof ClassNotFoundException) {
            return classMissing(error.getMessage());
        }
        if (error instanceof TypeNotPresentException) return classMissing(((TypeNotPresentException) error).typeName());
        if (error instanceof NoSuchMethodError || error instanceof NoSuchFieldError
                || error instanceof AbstractMethodError) {
            return FailureReport.summary(error)
                    + ". The jars in lib do not fit together: two libraries need different versions of this class.";
        }
        return null;
    }

    private static String initialiserFailed(ExceptionInInitializerError error, Map<String, String> initialisers) {
        Throwable cause = error.getCause() == null ? error : error.getCause();
        String name = initialisedClass(cause);
        Throwable root = cause;
        for (int i = 0; i < 20 && root.getCause() != null; i++) root = root.getCause();
        String summary = FailureReport.summary(root);
        if (name == null) return "A static initialiser failed: " + summary;
        initialisers.putIfAbsent(name, summary);
        return "The static initialiser of " + name + " failed: " + summary;
    }

    /** Returns the class whose initialiser is on the stack. */
    private static String initialisedClass(Throwable error) {
        for (StackTraceElement frame : error.getStackTrace()) {
            if (frame.getMethodName().equals("<clinit>")) return frame.getClassName();
        }
        return null;
    }

    private static String classMissing(String name) {
        return "The class " + String.valueOf(name).replace('/', '.')
                + " is missing: the jar that contains it must be in lib. Add its library to the dependencies of "
                + "the app, not with the scope `provided` or `test`, and build the app again.";
    }

    private static String newerJava(Throwable error) {
        Matcher version = CLASS_FILE.matcher(String.valueOf(error.getMessage()));
        String running = System.getProperty("java.specification.version", "");
        if (!version.find()) return FailureReport.summary(error);
        int needed = Integer.parseInt(version.group(1)) - VERSION_OFFSET;
        String name = error.getMessage().split(" ")[0].replace('/', '.');
        return "The class " + name + " needs Java " + needed + ", but the app runs on Java " + running
                + ". Set JAVA_HOME to a JDK of version " + needed + " or newer.";
    }
}
