package bindpost.worker.app;

import bindpost.worker.failure.FailureReport;
import bindpost.worker.failure.LoadError;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** The extensions that the app and its libraries name in META-INF/services: middlewares, and what creates instances. */
public final class AppServices {
    private final List<Object> middlewares;
    private final Method invokeMiddleware;
    private final Object injector;
    private final Method getInstance;

    AppServices(AppClasses classes) throws LoadError {
        ApiTypes types = classes.types();
        middlewares = load(types.middleware, classes.loader());
        List<Object> injectors = load(types.instanceInjector, classes.loader());
        if (injectors.size() > 1) {
            StringBuilder names = new StringBuilder();
            for (Object found : injectors) {
                names.append(names.length() == 0 ? "" : ", ").append(found.getClass().getName());
            }
            throw new LoadError("the app has more than one FunctionInstanceInjector, but only one is supported: "
                    + names);
        }
        injector = injectors.isEmpty() ? null : injectors.get(0);
        try {
            invokeMiddleware = types.middleware.getMethod("invoke", types.middlewareContext, types.middlewareChain);
            getInstance = types.instanceInjector.getMethod("getInstance", Class.class);
        } catch (NoSuchMethodException error) {
            throw new LoadError("the app's azure-functions-java-spi is not supported: " + error.getMessage(), error);
        }
    }

    /** Creates the services of a type, in the order of the class path. */
    private static List<Object> load(Class<?> type, AppLoader loader) throws LoadError {
        Set<String> names = new LinkedHashSet<>();
        String file = "META-INF/services/" + type.getName();
        try {
            for (byte[] content : loader.readAll(file)) {
                for (String line : new String(content, StandardCharsets.UTF_8).split("[\\r\\n]+")) {
                    String name = line.split("#", 2)[0].trim();
                    if (!name.isEmpty()) names.add(name);
                }
            }
        } catch (IOException error) {
            throw new LoadError(file + " cannot be read: " + error.getMessage(), error);
        }
        List<Object> services = new ArrayList<>();
        for (String name : names) services.add(create(name, type, loader));
        return services;
    }

    private static Object create(String name, Class<?> type, AppLoader loader) throws LoadError {
        try {
            return type.cast(Class.forName(name, true, loader).getConstructor().newInstance());
        } catch (Throwable error) {
            Throwable shown = error instanceof InvocationTargetException ? error.getCause() : error;
            throw new LoadError("the " + type.getSimpleName() + " " + name + " cannot be created: "
                    + FailureReport.messageOf(shown), shown);
        }
    }

    List<Object> middlewares() {
        return middlewares;
    }

    public void invokeMiddleware(Object middleware, Object context, Object chain) throws Throwable {
        try {
            invokeMiddleware.invoke(middleware, context, chain);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    /** Returns what creates the object that a function of a class is called on. */
    InstanceSource instances(Class<?> type) throws LoadError {
        if (injector != null) return new InstanceSource(null, injector, getInstance, type);
        try {
            if (Modifier.isAbstract(type.getModifiers())) {
                throw new LoadError("the class " + type.getName() + " is abstract, so no object of it can be created");
            }
            return new InstanceSource(type.getConstructor(), null, null, type);
        } catch (NoSuchMethodException error) {
            String fix = "add one, or make the method of the function static";
            throw new LoadError("the class " + type.getName() + " has no public constructor without parameters: "
                    + fix);
        }
    }
}
