package bindpost.worker.proxy;

import bindpost.worker.app.ApiTypes;
import bindpost.worker.call.FunctionCall;
import java.lang.reflect.Method;
import java.util.List;

/** The chain of middlewares of one invocation, with the function at its end. Each decides whether the next one runs. */
public final class MiddlewareRun extends ProxyHandler {
    private final FunctionCall call;
    private final List<Object> middlewares;
    private int next;

    public MiddlewareRun(FunctionCall call, List<Object> middlewares) {
        this.call = call;
        this.middlewares = middlewares;
    }

    public void start() throws Throwable {
        ApiTypes types = call.function().classes().types();
        runNext(call.context(), types.proxy(types.middlewareChain, this));
    }

    @Override
    Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
        if (!method.getName().equals("doNext")) return callDefault(proxy, method, arguments);
        runNext(arguments[0], proxy);
        return null;
    }

    private void runNext(Object context, Object chain) throws Throwable {
        if (next == middlewares.size()) {
            call.function().callMethod(call);
        } else {
            Object middleware = middlewares.get(next++);
            call.function().classes().services().invokeMiddleware(middleware, context, chain);
        }
    }

    @Override
    String describe() {
        return "MiddlewareChain[" + call.id + "]";
    }
}
