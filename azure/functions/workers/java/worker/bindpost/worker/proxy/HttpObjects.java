package bindpost.worker.proxy;

import bindpost.worker.app.AppClasses;
import bindpost.worker.app.ResultWriter;
import bindpost.worker.wire.HttpRequestData;
import bindpost.worker.wire.JsonWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/** The objects of HTTP functions: the request, the builder of a response, and the response. */
public final class HttpObjects {
    private HttpObjects() {}

    /** Returns an HttpRequestMessage. */
    public static Object request(HttpRequestData data, Object body, AppClasses classes) {
        return classes.types().proxy(classes.types().httpRequest, new RequestHandler(data, body, classes));
    }

    /** Writes an HttpResponseMessage. One that the app implements itself can tell only its content type. */
    public static void writeResponse(JsonWriter writer, Object response, AppClasses classes) throws Exception {
        ResponseHandler handler = ResponseHandler.behind(response);
        if (handler == null) {
            Class<?> type = classes.types().httpResponse;
            handler = new ResponseHandler(classes);
            handler.status = call(type.getMethod("getStatus"), response);
            handler.body = call(type.getMethod("getBody"), response);
            Object contentType = call(type.getMethod("getHeader", String.class), response, "Content-Type");
            if (contentType != null) handler.headers.put("Content-Type", contentType.toString());
        }
        handler.write(writer);
    }

    private static Object call(Method method, Object target, Object... arguments) throws Exception {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Exception) throw (Exception) error.getCause();
            throw error;
        }
    }

    /** The object of HttpRequestMessage. */
    private static final class RequestHandler extends ProxyHandler {
        private final HttpRequestData data;
        private final Object body;
        private final AppClasses classes;

        RequestHandler(HttpRequestData data, Object body, AppClasses classes) {
            this.data = data;
            this.body = body;
            this.classes = classes;
        }

        @Override
        Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
            switch (method.getName()) {
                case "getUri":
                    return data.address();
                case "getHttpMethod":
                    Class<?> type = method.getReturnType();
                    return HttpObjects.call(type.getMethod("value", String.class), null, data.method);
                case "getHeaders":
                    return Collections.unmodifiableMap(data.headers);
                case "getQueryParameters":
                    return Collections.unmodifiableMap(data.query);
                case "getBody":
                    return body;
                case "createResponseBuilder":
                    ResponseHandler response = new ResponseHandler(classes);
                    response.status = arguments[0];
                    return classes.types().proxy(method.getReturnType(), new BuilderHandler(response));
                default:
                    return callDefault(proxy, method, arguments);
            }
        }

        @Override
        String describe() {
            return "HttpRequestMessage[" + data.method + " " + data.url + "]";
        }
    }

    /** The object of HttpResponseMessage.Builder. */
    private static final class BuilderHandler extends ProxyHandler {
        private ResponseHandler response;

        BuilderHandler(ResponseHandler response) {
            this.response = response;
        }

        @Override
        Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
            switch (method.getName()) {
                case "status":
                    response.status = arguments[0];
                    return proxy;
                case "header":
                    response.setHeader((String) arguments[0], (String) arguments[1]);
                    return proxy;
                case "body":
                    response.body = arguments[0];
                    return proxy;
                case "build":
                    ResponseHandler built = response;
                    // A builder that is used again must not change what it built.
                    response = new ResponseHandler(built);
                    return built.classes.types().proxy(built.classes.types().httpResponse, built);
                default:
                    return callDefault(proxy, method, arguments);
            }
        }

        @Override
        String describe() {
            return "HttpResponseMessage.Builder";
        }
    }

    /** The object of HttpResponseMessage. */
    private static final class ResponseHandler extends ProxyHandler {
        private final AppClasses classes;
        private final Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        private Object status;
        private Object body;

        ResponseHandler(AppClasses classes) {
            this.classes = classes;
        }

        ResponseHandler(ResponseHandler other) {
            this(other.classes);
            headers.putAll(other.headers);
            status = other.status;
            body = other.body;
        }

        /** Returns the handler of a response that we made, else null. */
        static ResponseHandler behind(Object response) {
            if (!Proxy.isProxyClass(response.getClass())) return null;
            Object handler = Proxy.getInvocationHandler(response);
            return handler instanceof ResponseHandler ? (ResponseHandler) handler : null;
        }

        void setHeader(String name, String value) {
            if (name == null) return;
            headers.remove(name);
            if (value != null) headers.put(name, value);
        }

        @Override
        Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
            switch (method.getName()) {
                case "getStatus":
                    return status;
                case "getStatusCode":
                    return statusCode();
                case "getHeader":
                    return arguments[0] == null ? null : headers.get((String) arguments[0]);
                case "getBody":
                    return body;
                default:
                    return callDefault(proxy, method, arguments);
            }
        }

        @Override
        String describe() {
            return "HttpResponseMessage[" + status + "]";
        }

        private int statusCode() throws Exception {
            if (status == null) return 200;
            Class<?> type = classes.types().find("HttpStatusType");
            return (Integer) HttpObjects.call(type.getMethod("value"), status);
        }

        void write(JsonWriter writer) throws Exception {
            writer.raw("{\"http\":{\"statusCode\":\"").number(statusCode()).raw("\",\"headers\":{");
            boolean isFirst = true;
            for (Map.Entry<String, String> header : new LinkedHashMap<>(headers).entrySet()) {
                writer.raw(isFirst ? "" : ",").string(header.getKey()).raw(":").string(header.getValue());
                isFirst = false;
            }
            writer.raw("}");
            if (body != null) ResultWriter.write(writer.raw(",\"body\":"), body, classes);
            writer.raw("}}");
        }
    }
}
