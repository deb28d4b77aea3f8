package bindpost.worker.proxy;

import java.lang.reflect.Method;

/** The object of a parameter of type OutputBinding. */
public final class OutputHolder extends ProxyHandler {
    private Object value;
    private boolean isSet;

    @Override
    Object call(Object proxy, Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "getValue":
                return value;
            case "setValue":
                value = arguments[0];
                isSet = true;
                return null;
            default:
                return callDefault(proxy, method, arguments);
        }
    }

    @Override
    String describe() {
        return "OutputBinding[" + value + "]";
    }

    public boolean isSet() {
        return isSet;
    }

    public Object value() {
        return value;
    }
}
