package bindpost.worker.call;

import bindpost.worker.WorkerSession;
import bindpost.worker.app.LoadedFunction;
import bindpost.worker.failure.LoadError;
import bindpost.worker.wire.HttpRequestData;
import bindpost.worker.wire.JsonReader;
import bindpost.worker.wire.TypedValue;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;

/** The request of an invocation. Only what the function needs is decoded: the rest is skipped. */
public final class InvocationRequest {
    private static final int ABSENT = -1;

    final LoadedFunction function;
    private final byte[] frame;
    private final Map<String, TypedValue> inputs = new HashMap<>();
    private int metadataAt = ABSENT;
    private int traceAt = ABSENT;
    private int retryAt = ABSENT;
    private Map<String, TypedValue> metadata;

    /** Reads the request that begins at a byte of a frame. */
    InvocationRequest(WorkerSession session, byte[] frame, int at) throws LoadError {
        this.frame = frame;
        LoadedFunction found = null;
        String functionId = null;
        int inputsAt = ABSENT;
        JsonReader reader = new JsonReader(frame, at);
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            switch (name) {
                case "functionId":
                    functionId = reader.readString();
                    found = session.function(functionId);
                    break;
                case "inputData":
                    if (found != null) {
                        readInputs(reader, found);
                    } else {
                        inputsAt = reader.position();
                        reader.skipValue();
                    }
                    break;
                case "triggerMetadata":
                    metadataAt = skipToLater(reader);
                    break;
                case "traceContext":
                    traceAt = skipToLater(reader);
                    break;
                case "retryContext":
                    retryAt = skipToLater(reader);
                    break;
                default:
                    reader.skipValue();
            }
        }
        if (found == null) {
            throw new LoadError("the worker has not loaded a function with the id \"" + functionId + "\"");
        }
        if (inputsAt != ABSENT) readInputs(new JsonReader(frame, inputsAt), found);
        function = found;
    }

    private static int skipToLater(JsonReader reader) {
        int position = reader.isNull() ? ABSENT : reader.position();
        reader.skipValue();
        return position;
    }

    private void readInputs(JsonReader reader, LoadedFunction target) {
        reader.enterArray();
        while (reader.nextElement()) {
            String name = null;
            int dataAt = ABSENT;
            reader.enterObject();
            for (String member; (member = reader.nextMember()) != null; ) {
                if (member.equals("name")) {
                    name = reader.readString();
                } else if (member.equals("data") && name != null && target.needsInput(name)) {
                    inputs.put(name, TypedValue.read(reader));
                } else {
                    if (member.equals("data")) dataAt = reader.position();
                    reader.skipValue();
                }
            }
            // The host writes the name first.
            boolean isRead = dataAt == ABSENT || name == null || !target.needsInput(name);
            if (!isRead) inputs.put(name, TypedValue.read(new JsonReader(frame, dataAt)));
        }
    }

    /** Returns an input, or no value if the host did not send it. */
    public TypedValue input(String name) {
        return inputs.getOrDefault(name, TypedValue.NONE);
    }

    /** Returns a value of the trigger metadata, or null. */
    public TypedValue metadata(String name) {
        if (metadata == null) metadata = readMetadata();
        return metadata.get(name);
    }

    private Map<String, TypedValue> readMetadata() {
        if (metadataAt == ABSENT) return Collections.emptyMap();
        Map<String, TypedValue> values = new HashMap<>();
        JsonReader reader = new JsonReader(frame, metadataAt);
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) values.put(name, TypedValue.read(reader));
        return values;
    }

    public TraceData trace() {
        return traceAt == ABSENT ? new TraceData() : TraceData.read(new JsonReader(frame, traceAt));
    }

    public RetryData retry() {
        return retryAt == ABSENT ? new RetryData() : RetryData.read(new JsonReader(frame, retryAt));
    }

    /** The W3C trace context of an invocation. */
    public static final class TraceData {
        public String parent = "";
        public String state = "";
        public Map<String, String> attributes = Collections.emptyMap();

        static TraceData read(JsonReader reader) {
            TraceData trace = new TraceData();
            reader.enterObject();
            for (String name; (name = reader.nextMember()) != null; ) {
                if (name.equals("traceParent")) trace.parent = reader.readString();
                else if (name.equals("traceState")) trace.state = reader.readString();
                else if (name.equals("attributes")) trace.attributes = HttpRequestData.readTexts(reader);
                else reader.skipValue();
            }
            return trace;
        }
    }

    /** How often an invocation was tried, and why the last try failed. */
    public static final class RetryData {
        public int count;
        public int maximum;
        public Map<String, String> exception = Collections.emptyMap();

        static RetryData read(JsonReader reader) {
            RetryData retry = new RetryData();
            reader.enterObject();
            for (String name; (name = reader.nextMember()) != null; ) {
                if (name.equals("retryCount")) retry.count = Integer.parseInt(reader.readNumber());
                else if (name.equals("maxRetryCount")) retry.maximum = Integer.parseInt(reader.readNumber());
                else if (name.equals("exception") && !reader.isNull()) retry.exception = readException(reader);
                else reader.skipValue();
            }
            return retry;
        }

        private static Map<String, String> readException(JsonReader reader) {
            Map<String, String> members = new HashMap<>();
            reader.enterObject();
            for (String name; (name = reader.nextMember()) != null; ) {
                if (name.equals("source") || name.equals("stackTrace") || name.equals("message")) {
                    members.put(name, reader.readString());
                } else {
                    reader.skipValue();
                }
            }
            return members;
        }
    }
}
