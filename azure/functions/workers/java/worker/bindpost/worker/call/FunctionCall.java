package bindpost.worker.call;

import bindpost.worker.WorkerSession;
import bindpost.worker.app.LoadedFunction;
import bindpost.worker.proxy.ContextHandler;
import bindpost.worker.proxy.OutputHolder;
import java.util.HashMap;
import java.util.Map;

/** The state of one invocation that parameters, middlewares and the context share. */
public final class FunctionCall {
    public final WorkerSession session;
    public final String id;
    public final InvocationRequest request;
    /** The values that a middleware set for parameters, by the names of their bindings. */
    public Map<String, Object> overrides;
    /** Holders of the `out` parameters, by the names of their bindings. */
    public Map<String, OutputHolder> outputs;
    public Object returned;
    /** Whether there is a value to return: the function is not void, or a middleware set one. */
    public boolean hasReturned;
    private Object context;

    FunctionCall(WorkerSession session, String id, InvocationRequest request) {
        this.session = session;
        this.id = id;
        this.request = request;
    }

    public LoadedFunction function() {
        return request.function;
    }

    /** Returns the object for parameters of type ExecutionContext and for middlewares. */
    public Object context() {
        if (context == null) context = function().classes().types().context(new ContextHandler(this));
        return context;
    }

    public OutputHolder output(String name) {
        if (outputs == null) outputs = new HashMap<>();
        return outputs.computeIfAbsent(name, key -> new OutputHolder());
    }

    public void override(String name, Object value) {
        if (overrides == null) overrides = new HashMap<>();
        overrides.put(name, value);
    }
}
