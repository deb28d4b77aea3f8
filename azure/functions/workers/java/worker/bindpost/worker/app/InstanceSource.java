package bindpost.worker.app;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Creates the object that a function is called on: one for each invocation, or what the app's injector returns. */
final class InstanceSource {
    private final Constructor<?> constructor;
    private final Object injector;
    private final Method getInstance;
    private final Class<?> type;

    InstanceSource(Constructor<?> constructor, Object injector, Method getInstance, Class<?> type) {
        this.constructor = constructor;
        this.injector = injector;
        this.getInstance = getInstance;
        this.type = type;
        // The class of a public method may be private to its package.
        if (constructor != null) constructor.setAccessible(true);
    }

    Object get() throws Throwable {
        try {
            return injector == null ? constructor.newInstance() : getInstance.invoke(injector, type);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
