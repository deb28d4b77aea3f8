package bindpost.worker.app;

import bindpost.worker.call.FunctionCall;
import bindpost.worker.failure.LoadError;
import bindpost.worker.proxy.MiddlewareRun;
import bindpost.worker.proxy.OutputHolder;
import bindpost.worker.wire.FunctionMetadata;
import bindpost.worker.wire.JsonWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A function with everything that is decided when it is loaded: its method, how each parameter gets its value, and how
 * the result is sent. Nothing is looked up during an invocation.
 */
public final class LoadedFunction {
    private final AppClasses classes;
    private final FunctionMetadata metadata;
    private final Method method;
    /** Null for a static method. */
    private final InstanceSource instances;
    private final ParameterReader[] parameters;
    private final boolean isVoid;
    private final List<Object> middlewares;

    private LoadedFunction(AppClasses classes, FunctionMetadata metadata, Method method) throws LoadError {
        this.classes = classes;
        this.metadata = metadata;
        this.method = method;
        method.setAccessible(true);
        boolean isStatic = Modifier.isStatic(method.getModifiers());
        instances = isStatic ? null : classes.services().instances(method.getDeclaringClass());
        parameters = ParameterRules.readers(method, metadata, classes);
        isVoid = method.getReturnType() == void.class || method.getReturnType() == Void.class;
        middlewares = classes.services().middlewares();
    }

    public static LoadedFunction load(AppClasses classes, FunctionMetadata metadata) throws LoadError {
        int dot = metadata.entryPoint.lastIndexOf('.');
        if (dot <= 0) {
            throw new LoadError("the entryPoint \"" + metadata.entryPoint
                    + "\" must be written as package.Class.method");
        }
        Class<?> type = findClass(classes.loader(), metadata.entryPoint.substring(0, dot));
        return new LoadedFunction(classes, metadata, findMethod(type, metadata.entryPoint.substring(dot + 1)));
    }

    /** Finds a class by its canonical name, in which nested classes have dots. Its initialisers do not run yet. */
    private static Class<?> findClass(ClassLoader loader, String canonicalName) throws LoadError {
        String name = canonicalName;
        while (true) {
            try {
                return Class.forName(name, false, loader);
            } catch (ClassNotFoundException error) {
                int dot = name.lastIndexOf('.');
                if (dot < 0) {
                    String fix = "build the app again, so that its jar and its function.json files match";
                    throw new LoadError("the class " + canonicalName + " is not in the app's jar: " + fix);
                }
                name = name.substring(0, dot) + '$' + name.substring(dot + 1);
            }
        }
    }

    private static Method findMethod(Class<?> type, String name) throws LoadError {
        List<Method> found = new ArrayList<>();
        for (Method method : type.getDeclaredMethods()) {
            boolean isWritten = !method.isBridge() && !method.isSynthetic();
            if (isWritten && Modifier.isPublic(method.getModifiers()) && method.getName().equals(name)) {
                found.add(method);
            }
        }
        String place = "\"" + name + "\" in class \"" + type.getName() + "\"";
        if (found.isEmpty()) {
            throw new LoadError("There are no methods named " + place
                    + ". The method must be public and declared in that class.");
        }
        if (found.size() > 1) {
            throw new LoadError("Found more than one function with method name " + place + ". Rename the others.");
        }
        return found.get(0);
    }

    public String name() {
        return metadata.name;
    }

    public AppClasses classes() {
        return classes;
    }

    /** Returns whether an input is to be decoded. A middleware may ask for any. */
    public boolean needsInput(String input) {
        if (!middlewares.isEmpty()) return true;
        for (ParameterReader parameter : parameters) {
            if (input.equals(parameter.inputName())) return true;
        }
        return false;
    }

    /** Returns the name of the input of the parameter with an annotation, or null. */
    public String parameterName(String annotation) {
        for (ParameterReader parameter : parameters) {
            if (parameter.hasAnnotation(annotation)) return parameter.inputName();
        }
        return null;
    }

    /** Runs the middlewares and the function, and writes the response but for its last two brackets. */
    public JsonWriter invoke(FunctionCall call, JsonWriter response) throws Throwable {
        Thread thread = Thread.currentThread();
        if (thread.getContextClassLoader() != classes.loader()) thread.setContextClassLoader(classes.loader());
        if (middlewares.isEmpty()) callMethod(call);
        else new MiddlewareRun(call, middlewares).start();
        writeOutputs(call, response);
        if (call.hasReturned) {
            ResultWriter.write(response.raw(",\"returnValue\":"), call.returned, classes);
        }
        return response.raw(",\"result\":{\"status\":1}");
    }

    /** Calls the method itself. */
    public void callMethod(FunctionCall call) throws Throwable {
        Object[] arguments = new Object[parameters.length];
        for (int i = 0; i < arguments.length; i++) arguments[i] = parameters[i].read(call);
        Object target = instances == null ? null : instances.get();
        Object returned;
        try {
            returned = method.invoke(target, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
        if (isVoid) return;
        call.returned = returned;
        call.hasReturned = true;
    }

    /** Writes the outputs that the function set. An output that was not set is not sent. */
    private void writeOutputs(FunctionCall call, JsonWriter response) throws Exception {
        if (call.outputs == null) return;
        boolean isFirst = true;
        for (Map.Entry<String, OutputHolder> output : call.outputs.entrySet()) {
            if (!output.getValue().isSet()) continue;
            response.raw(isFirst ? ",\"outputData\":[" : ",");
            response.raw("{\"name\":").string(output.getKey()).raw(",\"data\":");
            ResultWriter.write(response, output.getValue().value(), classes);
            response.raw("}");
            isFirst = false;
        }
        if (!isFirst) response.raw("]");
    }
}
