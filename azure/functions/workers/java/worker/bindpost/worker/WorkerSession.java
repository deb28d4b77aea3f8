package bindpost.worker;

import bindpost.worker.app.AppClasses;
import bindpost.worker.app.LoadedFunction;
import bindpost.worker.call.InvocationTask;
import bindpost.worker.failure.FailureReport;
import bindpost.worker.failure.LoadError;
import bindpost.worker.wire.FunctionMetadata;
import bindpost.worker.wire.HostChannel;
import bindpost.worker.wire.JsonReader;
import bindpost.worker.wire.JsonWriter;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The conversation with the host. The thread that reads calls {@link #receive} and runs no code of the app, so the
 * worker answers while functions block. One thread loads functions. Each invocation has a thread of a pool.
 */
public final class WorkerSession implements HostChannel.FrameHandler {
    static final String WORKER_VERSION = "0.1.0";

    private static final int EXIT_HOOKS_MS = 4000;
    private static final String[] CAPABILITIES = {
        "TypedDataCollection",
        "WorkerStatus",
        "HandlesWorkerTerminateMessage",
        "HandlesInvocationCancelMessage",
        "SupportsLoadResponseCollection",
        "RpcHttpBodyOnly",
        "RpcHttpTriggerMetadataRemoved",
    };

    private final HostChannel channel;
    private final ExecutorService loading = Executors.newSingleThreadExecutor(new WorkerThreads("bindpost loader"));
    private final ExecutorService pool = Executors.newCachedThreadPool(new WorkerThreads("function"));
    /** Functions by id, and for those that could not be loaded the reason. */
    private final Map<String, LoadedFunction> functions = new ConcurrentHashMap<>();
    private final Map<String, InvocationTask> running = new ConcurrentHashMap<>();
    private AppClasses classes;
    private volatile boolean isTerminating;

    WorkerSession(HostChannel channel) {
        this.channel = channel;
    }

    boolean isTerminating() {
        return isTerminating;
    }

    void start(String workerId, String requestId) {
        send(message(requestId, "startStream").raw("{\"workerId\":").string(workerId).raw("}}"));
    }

    public void send(JsonWriter message) {
        channel.send(message);
    }

    void flush() {
        channel.flush();
    }

    @Override
    public void receive(byte[] frame) {
        JsonReader reader = new JsonReader(frame);
        String requestId = "";
        String kind = null;
        int content = 0;
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            if (name.equals("invocationRequest")) {
                invoke(frame, reader.position());
                return;
            }
            if (name.equals("requestId")) {
                requestId = reader.readString();
            } else {
                kind = name;
                content = reader.position();
                reader.skipValue();
            }
        }
        reader.end();
        if (kind != null) dispatch(kind, requestId, new JsonReader(frame, content));
    }

    private void dispatch(String kind, String requestId, JsonReader content) {
        switch (kind) {
            case "workerInitRequest":
                channel.sendAtOnce(initResponse(requestId));
                return;
            case "functionsMetadataRequest":
                // The host reads the function.json files.
                channel.sendAtOnce(message(requestId, "functionMetadataResponse")
                        .raw("{\"useDefaultMetadataIndexing\":true,\"result\":{\"status\":1}}}"));
                return;
            case "functionLoadRequest":
                load(requestId, List.of(FunctionMetadata.readRequest(content)), false);
                return;
            case "functionLoadRequestCollection":
                load(requestId, FunctionMetadata.readCollection(content), true);
                return;
            case "invocationCancel":
                cancel(content);
                return;
            case "workerStatusRequest":
                channel.sendAtOnce(message(requestId, "workerStatusResponse").raw("{}}"));
                return;
            case "workerTerminate":
                terminate();
                return;
            default:
                // Newer hosts may send more.
        }
    }

    /** Begins a message: its id, and the name of its content. */
    private static JsonWriter message(String requestId, String kind) {
        JsonWriter writer = new JsonWriter(256).raw("{");
        if (!requestId.isEmpty()) writer.raw("\"requestId\":").string(requestId).raw(",");
        return writer.raw("\"").raw(kind).raw("\":");
    }

    private static JsonWriter initResponse(String requestId) {
        JsonWriter writer = message(requestId, "workerInitResponse").raw("{\"capabilities\":{");
        for (int i = 0; i < CAPABILITIES.length; i++) {
            writer.raw(i == 0 ? "\"" : ",\"").raw(CAPABILITIES[i]).raw("\":\"true\"");
        }
        writer.raw("},\"workerMetadata\":{\"runtimeName\":\"java\"");
        writer.member("runtimeVersion").string(System.getProperty("java.version", ""));
        writer.member("workerVersion").string(WORKER_VERSION);
        writer.member("workerBitness").string(System.getProperty("os.arch", ""));
        return writer.raw(",\"customProperties\":{}},\"result\":{\"status\":1}}}");
    }

    // Loading.

    private void load(String requestId, List<FunctionMetadata> requests, boolean isCollection) {
        loading.execute(() -> {
            String kind = isCollection ? "functionLoadResponseCollection" : "functionLoadResponse";
            JsonWriter writer = message(requestId, kind);
            if (isCollection) writer.raw("{\"functionLoadResponses\":[");
            AppClasses opened = null;
            Throwable notOpened = null;
            try {
                opened = openClasses(requests);
            } catch (Throwable error) {
                notOpened = error;
            }
            String separator = "";
            for (FunctionMetadata request : requests) {
                writer.raw(separator).raw("{\"functionId\":").string(request.id).raw(",");
                separator = ",";
                Throwable failure = notOpened;
                if (failure == null) failure = loadFunction(opened, request);
                if (failure == null) writer.raw("\"result\":{\"status\":1}");
                else FailureReport.writeResult(writer, failure);
                writer.raw("}");
            }
            send(writer.raw(isCollection ? "]}}" : "}"));
        });
    }

    /** Opens the app's jars before the first load. A jar that a later request names is added. */
    private AppClasses openClasses(List<FunctionMetadata> requests) throws LoadError {
        List<String> jars = new ArrayList<>();
        for (FunctionMetadata request : requests) {
            if (!request.scriptFile.isEmpty() && !jars.contains(request.scriptFile)) jars.add(request.scriptFile);
        }
        if (classes == null) {
            classes = new AppClasses(jars, folderOf("BINDPOST_JAVA_API"), folderOf("BINDPOST_JAVA_GSON"));
        } else {
            classes.addJars(jars);
        }
        return classes;
    }

    private static File folderOf(String variable) throws LoadError {
        String path = System.getenv(variable);
        if (path == null || path.isEmpty()) {
            throw new LoadError("the variable " + variable
                    + " is not set: it must name the folder of the worker's declarations");
        }
        return new File(path);
    }

    /** Loads a function and returns why that failed, or null. */
    private Throwable loadFunction(AppClasses opened, FunctionMetadata request) {
        Thread.currentThread().setContextClassLoader(opened.loader());
        try {
            functions.put(request.id, LoadedFunction.load(opened, request));
            return null;
        } catch (Throwable error) {
            return error;
        }
    }

    // Invocations.

    public LoadedFunction function(String id) {
        return functions.get(id);
    }

    private void invoke(byte[] frame, int content) {
        InvocationTask task = new InvocationTask(this, frame, content);
        running.put(task.id(), task);
        pool.execute(task);
    }

    /** Sends the response of an invocation. */
    public void finish(InvocationTask task, JsonWriter response) {
        running.remove(task.id());
        channel.send(response);
    }

    private void cancel(JsonReader content) {
        content.enterObject();
        for (String name; (name = content.nextMember()) != null; ) {
            if (name.equals("invocationId")) {
                InvocationTask task = running.get(content.readString());
                if (task != null) task.cancel();
            } else {
                content.skipValue();
            }
        }
    }

    /** Exits, so that the app's shutdown hooks run. They have limited time. */
    private void terminate() {
        isTerminating = true;
        Thread limit = new Thread("bindpost exit limit") {
            @Override
            public void run() {
                try {
                    Thread.sleep(EXIT_HOOKS_MS);
                } catch (InterruptedException error) {
                    // Exit now.
                }
                Runtime.getRuntime().halt(0);
            }
        };
        limit.setDaemon(true);
        limit.start();
        new Thread("bindpost terminate") {
            @Override
            public void run() {
                System.exit(0);
            }
        }.start();
    }
}
