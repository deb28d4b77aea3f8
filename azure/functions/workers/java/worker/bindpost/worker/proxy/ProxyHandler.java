package bindpost.worker.proxy;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;

/**
 * The base of the proxies: the methods of every object, and default methods of interfaces that are newer than this
 * code.
 */
public abstract class ProxyHandler implements InvocationHandler {
    static final Object[] NO_ARGUMENTS = {};

    @Override
    public final Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        if (method.getDeclaringClass() != Object.class) {
            return call(proxy, method, arguments == null ? NO_ARGUMENTS : arguments);
        }
        switch (method.getName()) {
            case "equals":
                return proxy == arguments[0];
            case "hashCode":
                return System.identityHashCode(proxy);
            default:
                return describe();
        }
    }

    /** Handles a method of the interface. */
    abstract Object call(Object proxy, Method method, Object[] arguments) throws Throwable;

    /** Returns what `toString` returns. */
    abstract String describe();

    /** Handles a method that is not known: calls its default body. */
    static Object callDefault(Object proxy, Method method, Object[] arguments) throws Throwable {
        Class<?> type = method.getDeclaringClass();
        if (!method.isDefault()) {
            String text = type.getSimpleName() + "." + method.getName()
                    + " is not supported by this version of bindpost";
            throw new UnsupportedOperationException(text);
        }
        return MethodHandles.privateLookupIn(type, MethodHandles.lookup())
                .unreflectSpecial(method, type)
                .bindTo(proxy)
                .invokeWithArguments(arguments);
    }
}
