package bindpost.worker.call;

import bindpost.worker.WorkerSession;
import bindpost.worker.failure.FailureReport;
import bindpost.worker.wire.JsonError;
import bindpost.worker.wire.JsonReader;
import bindpost.worker.wire.JsonWriter;

/** One invocation: reads its request, calls the function on a thread of the pool and sends the response. */
public final class InvocationTask implements Runnable {
    private final WorkerSession session;
    private final int content;
    private final String id;
    private byte[] frame;
    // This object's lock guards these.
    private Thread thread;
    private boolean isCancelled;

    public InvocationTask(WorkerSession session, byte[] frame, int content) {
        this.session = session;
        this.frame = frame;
        this.content = content;
        this.id = readId(new JsonReader(frame, content));
    }

    /** The host writes the id first, so this does not read the rest. */
    private static String readId(JsonReader reader) {
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            if (name.equals("invocationId")) return reader.readString();
            reader.skipValue();
        }
        return "";
    }

    public String id() {
        return id;
    }

    /** Drops the invocation if no thread has begun it, else interrupts its thread. */
    public synchronized void cancel() {
        isCancelled = true;
        if (thread != null) thread.interrupt();
    }

    @Override
    public void run() {
        JsonWriter response = null;
        Throwable failure = null;
        if (begin()) {
            try {
                InvocationRequest request = new InvocationRequest(session, frame, content);
                // The function may run for long, and the request may be large.
                frame = null;
                response = request.function.invoke(new FunctionCall(session, id, request), newResponse());
            } catch (Throwable error) {
                failure = error;
            }
        }
        boolean wasCancelled = end();
        try {
            if (wasCancelled) response = newResponse().raw(",\"result\":{\"status\":2}");
            else if (failure != null) response = failureResponse(failure);
            session.finish(this, response.raw("}}"));
        } catch (JsonError error) {
            // The response is too large for a message.
            session.finish(this, failureResponse(error).raw("}}"));
        } catch (OutOfMemoryError error) {
            FailureReport.endWithoutMemory(error);
        }
        if (failure instanceof OutOfMemoryError) FailureReport.endWithoutMemory(failure);
    }

    private JsonWriter newResponse() {
        return new JsonWriter(512).raw("{\"invocationResponse\":{\"invocationId\":").string(id);
    }

    private JsonWriter failureResponse(Throwable failure) {
        JsonWriter writer = newResponse().raw(",");
        FailureReport.writeResult(writer, failure);
        return writer;
    }

    private synchronized boolean begin() {
        if (isCancelled) return false;
        thread = Thread.currentThread();
        return true;
    }

    /** Returns whether the invocation was cancelled. After that the thread may run another invocation. */
    private synchronized boolean end() {
        thread = null;
        Thread.interrupted();
        return isCancelled;
    }
}
