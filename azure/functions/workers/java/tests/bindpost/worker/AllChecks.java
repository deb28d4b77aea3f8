package bindpost.worker;

import bindpost.worker.json.BinderChecks;
import bindpost.worker.wire.JsonChecks;

/**
 * Runs the checks of single classes, without a host. It exits with 1 if one fails.
 *
 * <pre>
 * javac --release 11 -d OUT $(find worker tests -name '*.java')
 * java -cp OUT bindpost.worker.AllChecks
 * </pre>
 */
public final class AllChecks {
    private static int run;
    private static int failed;

    private AllChecks() {}

    public static void main(String[] words) {
        JsonChecks.run();
        BinderChecks.run();
        System.out.println(run + " checks, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    /** A piece of code that may fail. */
    public interface CheckedCode {
        Object call() throws Exception;
    }

    public static void equal(String what, Object expected, CheckedCode code) {
        Object found;
        try {
            found = code.call();
        } catch (Exception error) {
            found = error;
        }
        report(what, String.valueOf(expected).equals(String.valueOf(found)), "expected " + expected + ", but found "
                + found);
    }

    /** Checks that code fails with a message that contains a text. */
    public static void fails(String what, String message, CheckedCode code) {
        try {
            Object found = code.call();
            report(what, false, "expected a failure, but found " + found);
        } catch (Exception error) {
            report(what, String.valueOf(error.getMessage()).contains(message), "expected \"" + message
                    + "\", but found " + error);
        }
    }

    private static void report(String what, boolean isGood, String difference) {
        run++;
        if (isGood) return;
        failed++;
        System.out.println("FAILED " + what + ": " + difference);
    }
}
