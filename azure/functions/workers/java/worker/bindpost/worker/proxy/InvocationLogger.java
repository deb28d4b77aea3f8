package bindpost.worker.proxy;

import bindpost.worker.WorkerSession;
import bindpost.worker.failure.FailureReport;
import bindpost.worker.wire.JsonError;
import bindpost.worker.wire.JsonWriter;
import java.util.logging.Formatter;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The logger of one invocation. Its records are sent to the host with the id of the invocation. */
final class InvocationLogger extends Logger {
    private static final Formatter FORMATTER = new Formatter() {
        @Override
        public String format(LogRecord record) {
            return formatMessage(record);
        }
    };

    private final WorkerSession session;
    private final String invocationId;
    private final String category;

    InvocationLogger(WorkerSession session, String invocationId, String function) {
        super(null, null);
        this.session = session;
        this.invocationId = invocationId;
        this.category = "Function." + function;
        setLevel(Level.ALL);
        setUseParentHandlers(false);
    }

    @Override
    public void log(LogRecord record) {
        if (!isLoggable(record.getLevel())) return;
        if (getFilter() != null && !getFilter().isLoggable(record)) return;
        send(record);
        // For handlers that the app added.
        super.log(record);
    }

    private void send(LogRecord record) {
        String text = record.getMessage();
        boolean isPlain = record.getParameters() == null && record.getResourceBundle() == null;
        if (text == null) text = String.valueOf(text);
        else if (!isPlain) text = FORMATTER.format(record);
        JsonWriter writer = new JsonWriter(text.length() + 160);
        writer.raw("{\"rpcLog\":{\"invocationId\":").string(invocationId);
        writer.member("category").string(category);
        writer.member("level").number(severity(record.getLevel().intValue()));
        writer.member("message").string(text);
        if (record.getThrown() != null) FailureReport.writeException(writer.raw(","), record.getThrown());
        writer.raw("}}");
        try {
            session.send(writer);
        } catch (JsonError error) {
            System.err.println("A log record was dropped: " + error.getMessage());
        }
    }

    /** Converts a level to the host's: 0 is trace, 4 is error. */
    private static int severity(int level) {
        if (level <= Level.FINE.intValue()) return 0;
        if (level < Level.INFO.intValue()) return 1;
        if (level < Level.WARNING.intValue()) return 2;
        return level < Level.SEVERE.intValue() ? 3 : 4;
    }
}
