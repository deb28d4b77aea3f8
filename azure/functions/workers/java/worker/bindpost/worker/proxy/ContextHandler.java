package bindpost.worker.proxy;

import bindpost.worker.app.ApiTypes;
import bindpost.worker.call.FunctionCall;
import bindpost.worker.call.InvocationRequest;
import bindpost.worker.wire.TypedValue;
import java.lang.reflect.Method;
import java.util.Map;

/** The object of ExecutionContext parameters and of middlewares. */
public final class ContextHandler extends ProxyHandler {
    private final FunctionCall call;
    private InvocationLogger logger;

    public ContextHandler(FunctionCall call) {
        this.call = call;
    }

    @Override
    Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "getLogger":
                return logger();
            case "getInvocationId":
                return call.id;
            case "getFunctionName":
                return call.function().name();
            case "getTraceContext":
                return proxy(ApiTypes.PACKAGE + "TraceContext", new TraceHandler(call.request.trace()));
            case "getRetryContext":
                return proxy(ApiTypes.PACKAGE + "RetryContext", new RetryHandler(call));
            case "getParameterName":
                return call.function().parameterName((String) arguments[0]);
            case "getParameterValue":
                return parameterValue((String) arguments[0]);
            case "updateParameterValue":
                call.override((String) arguments[0], arguments[1]);
                return null;
            case "getReturnValue":
                return call.returned;
            case "updateReturnValue":
                call.returned = arguments[0];
                call.hasReturned = true;
                return null;
            default:
                return callDefault(proxy, method, arguments);
        }
    }

    @Override
    String describe() {
        return "ExecutionContext[" + call.function().name() + " " + call.id + "]";
    }

    private synchronized InvocationLogger logger() {
        if (logger == null) logger = new InvocationLogger(call.session, call.id, call.function().name());
        return logger;
    }

    /** Returns the text of an input, as the public worker does for inputs of kind string only. */
    private Object parameterValue(String name) {
        if (call.overrides != null && call.overrides.containsKey(name)) return call.overrides.get(name);
        TypedValue value = call.request.input(name);
        return value.kind == TypedValue.ValueKind.STRING ? value.content : null;
    }

    private Object proxy(String type, ProxyHandler handler) throws ClassNotFoundException {
        ApiTypes types = call.function().classes().types();
        return types.proxy(Class.forName(type, false, call.function().classes().loader()), handler);
    }

    /** The object of TraceContext. */
    private static final class TraceHandler extends ProxyHandler {
        private final InvocationRequest.TraceData trace;

        TraceHandler(InvocationRequest.TraceData trace) {
            this.trace = trace;
        }

        @Override
        Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
            switch (method.getName()) {
                case "getTraceparent":
                    return trace.parent;
                case "getTracestate":
                    return trace.state;
                case "getAttributes":
                    return trace.attributes;
                default:
                    return callDefault(proxy, method, arguments);
            }
        }

        @Override
        String describe() {
            return "TraceContext[" + trace.parent + "]";
        }
    }

    /** The object of RetryContext. */
    private static final class RetryHandler extends ProxyHandler {
        private final FunctionCall call;
        private final InvocationRequest.RetryData retry;

        RetryHandler(FunctionCall call) {
            this.call = call;
            this.retry = call.request.retry();
        }

        @Override
        Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
            switch (method.getName()) {
                case "getRetrycount":
                    return retry.count;
                case "getMaxretrycount":
                    return retry.maximum;
                case "getException":
                    if (retry.exception.isEmpty()) return null;
                    ApiTypes types = call.function().classes().types();
                    return types.proxy(types.find("RpcException"), new ExceptionHandler(retry.exception));
                default:
                    return callDefault(proxy, method, arguments);
            }
        }

        @Override
        String describe() {
            return "RetryContext[" + retry.count + " of " + retry.maximum + "]";
        }
    }

    /** The object of RpcException. */
    private static final class ExceptionHandler extends ProxyHandler {
        private final Map<String, String> exception;

        ExceptionHandler(Map<String, String> exception) {
            this.exception = exception;
        }

        @Override
        Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
            switch (method.getName()) {
                case "getSource":
                    return exception.getOrDefault("source", "");
                case "getStacktrace":
                    return exception.getOrDefault("stackTrace", "");
                case "getMessage":
                    return exception.getOrDefault("message", "");
                default:
                    return callDefault(proxy, method, arguments);
            }
        }

        @Override
        String describe() {
            return "RpcException[" + exception.get("message") + "]";
        }
    }
}
