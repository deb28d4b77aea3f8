package bindpost.worker.app;

import bindpost.worker.call.FunctionCall;
import bindpost.worker.failure.LoadError;
import bindpost.worker.wire.TypedValue;

/** How one parameter of a function gets its value. {@link ParameterRules} chooses the kind. */
abstract class ParameterReader {
    /** The simple names of the parameter's annotations. */
    private final String[] annotations;
    /** Null if the value is not an input. */
    private final String inputName;

    ParameterReader(String inputName, String... annotations) {
        this.inputName = inputName;
        this.annotations = annotations;
    }

    abstract Object read(FunctionCall call) throws Throwable;

    String inputName() {
        return inputName;
    }

    boolean hasAnnotation(String simpleName) {
        for (String annotation : annotations) {
            if (annotation.equals(simpleName)) return true;
        }
        return false;
    }

    /** The context of the invocation. */
    static final class ContextParameter extends ParameterReader {
        ContextParameter() {
            super(null);
        }

        @Override
        Object read(FunctionCall call) {
            return call.context();
        }
    }

    /** A holder for an output. */
    static final class OutputParameter extends ParameterReader {
        private final String name;

        OutputParameter(String name) {
            super(null);
            this.name = name;
        }

        @Override
        Object read(FunctionCall call) {
            ApiTypes types = call.function().classes().types();
            return types.proxy(types.outputBinding, call.output(name));
        }
    }

    /** A value of the trigger metadata. */
    static final class MetadataParameter extends ParameterReader {
        private final String name;
        private final ValueConverter converter;

        MetadataParameter(String name, ValueConverter converter) {
            super(null, "BindingName");
            this.name = name;
            this.converter = converter;
        }

        @Override
        Object read(FunctionCall call) throws LoadError {
            TypedValue value = call.request.metadata(name);
            if (value == null) {
                throw new LoadError("Cannot find matched @BindingName of customer function: the trigger has no value "
                        + "named \"" + name + "\".");
            }
            return converter.convert(value, "@BindingName(\"" + name + "\")");
        }
    }

    /** An input, or what a middleware set instead of it. */
    static final class InputParameter extends ParameterReader {
        private final ValueConverter converter;

        InputParameter(String name, ValueConverter converter, String... annotations) {
            super(name, annotations);
            this.converter = converter;
        }

        @Override
        Object read(FunctionCall call) throws LoadError {
            String name = inputName();
            if (call.overrides != null && call.overrides.containsKey(name)) return call.overrides.get(name);
            return converter.convert(call.request.input(name), "\"" + name + "\"");
        }
    }
}
