package bindpost.worker;

import java.util.Map;

/** Tells why the process exits when the app ends it, and sends the messages that are still queued. */
final class ExitNotice extends Thread {
    private final WorkerSession session;

    private ExitNotice(WorkerSession session) {
        super("bindpost exit");
        this.session = session;
    }

    static void install(WorkerSession session) {
        Runtime.getRuntime().addShutdownHook(new ExitNotice(session));
    }

    @Override
    public void run() {
        if (!session.isTerminating()) {
            StackTraceElement caller = exitCaller();
            if (caller != null) {
                String file = caller.getFileName();
                String place = file == null ? caller.getClassName() : file + ":" + caller.getLineNumber();
                System.err.println("The app called System.exit at " + place + ", so its worker exits.");
            }
        }
        session.flush();
    }

    /** Returns where the app called System.exit, or null if a signal ends the process. */
    private static StackTraceElement exitCaller() {
        for (Map.Entry<Thread, StackTraceElement[]> thread : Thread.getAllStackTraces().entrySet()) {
            boolean isExit = false;
            for (StackTraceElement frame : thread.getValue()) {
                String name = frame.getClassName();
                if (name.equals("java.lang.Runtime") && frame.getMethodName().equals("exit")) isExit = true;
                if (isExit && !name.startsWith("java.")) return frame;
            }
        }
        return null;
    }
}
