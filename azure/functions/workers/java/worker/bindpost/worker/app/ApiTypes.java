package bindpost.worker.app;

import bindpost.worker.failure.LoadError;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;

/**
 * The types of the platform as the app's loader gives them. Their objects are proxies, because the app may bring a
 * newer or older version of an interface than the one that is declared here.
 */
public final class ApiTypes {
    public static final String PACKAGE = "com.microsoft.azure.functions.";

    final Class<?> executionContext;
    final Class<?> middlewareContext;
    public final Class<?> middlewareChain;
    final Class<?> middleware;
    final Class<?> instanceInjector;
    final Class<?> outputBinding;
    public final Class<?> httpRequest;
    public final Class<?> httpResponse;
    final Class<?> traceContext;
    private final AppLoader loader;

    ApiTypes(AppLoader loader) throws LoadError {
        this.loader = loader;
        executionContext = find("ExecutionContext");
        middlewareContext = find("internal.spi.middleware.MiddlewareContext");
        middlewareChain = find("internal.spi.middleware.MiddlewareChain");
        middleware = find("internal.spi.middleware.Middleware");
        instanceInjector = find("spi.inject.FunctionInstanceInjector");
        outputBinding = find("OutputBinding");
        httpRequest = find("HttpRequestMessage");
        httpResponse = find("HttpResponseMessage");
        traceContext = find("TraceContext");
    }

    /** Returns a type of the library by its name within the package of the library. */
    public Class<?> find(String name) throws LoadError {
        try {
            return Class.forName(PACKAGE + name, false, loader);
        } catch (ClassNotFoundException | LinkageError error) {
            throw new LoadError("the class " + PACKAGE + name + " cannot be loaded: " + error.getMessage(), error);
        }
    }

    public Object proxy(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(loader, new Class<?>[] {type}, handler);
    }

    public Object context(InvocationHandler handler) {
        return proxy(middlewareContext, handler);
    }
}
