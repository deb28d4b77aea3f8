package bindpost.worker.app;

import bindpost.worker.failure.LoadError;
import bindpost.worker.json.TypeResolver;
import bindpost.worker.wire.FunctionMetadata;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;

/** Decides what each parameter of a function is. The first rule that fits is used. */
final class ParameterRules {
    private static final String ANNOTATIONS = ApiTypes.PACKAGE + "annotation.";

    private final FunctionMetadata metadata;
    private final AppClasses classes;

    private ParameterRules(FunctionMetadata metadata, AppClasses classes) {
        this.metadata = metadata;
        this.classes = classes;
    }

    static ParameterReader[] readers(Method method, FunctionMetadata metadata, AppClasses classes) throws LoadError {
        ParameterRules rules = new ParameterRules(metadata, classes);
        Parameter[] parameters = method.getParameters();
        Type[] types = method.getGenericParameterTypes();
        Annotation[][] annotations = method.getParameterAnnotations();
        ParameterReader[] readers = new ParameterReader[parameters.length];
        for (int i = 0; i < readers.length; i++) {
            String place = "parameter " + (i + 1) + " (" + types[i].getTypeName() + " " + parameters[i].getName() + ")";
            readers[i] = rules.reader(parameters[i].getType(), types[i], annotations[i], place);
        }
        return readers;
    }

    private ParameterReader reader(Class<?> raw, Type type, Annotation[] annotations, String place) throws LoadError {
        ApiTypes types = classes.types();
        refuseClients(raw, place);
        String name = bindingName(annotations);
        if (types.outputBinding.isAssignableFrom(raw)) return output(type, name, place);
        if (name != null) return input(name, type, annotations, place);
        String metadataName = text(annotations, "BindingName", "value");
        if (metadataName != null) {
            return new ParameterReader.MetadataParameter(metadataName, ValueConverter.of(type, classes));
        }
        if (raw == types.executionContext || raw == types.middlewareContext) {
            return new ParameterReader.ContextParameter();
        }
        String fix = "it needs an annotation of a binding, such as @McpToolProperty, or the type ExecutionContext";
        throw new LoadError(place + " has no binding: " + fix);
    }

    private ParameterReader output(Type type, String name, String place) throws LoadError {
        if (type instanceof ParameterizedType) {
            Class<?> inner = TypeResolver.rawClass(((ParameterizedType) type).getActualTypeArguments()[0]);
            if (classes.types().outputBinding.isAssignableFrom(inner)) {
                throw new LoadError(place + " is an OutputBinding of an OutputBinding, which is not supported");
            }
        }
        FunctionMetadata.BindingMetadata binding = name == null ? null : metadata.bindings.get(name);
        if (binding == null || !binding.isOutput()) {
            if (name == null) throw new LoadError(place + " has no annotation of an output binding");
            throw new LoadError(place + " is the output \"" + name + "\", which is not in function.json");
        }
        return new ParameterReader.OutputParameter(name);
    }

    private ParameterReader input(String name, Type type, Annotation[] annotations, String place) throws LoadError {
        FunctionMetadata.BindingMetadata binding = metadata.bindings.get(name);
        if (binding == null || !binding.isInput()) {
            String fix = "build the app again, so that its jar and its function.json files match";
            throw new LoadError("Cannot find matched parameter name of customer function: " + place
                    + " is the input \"" + name + "\", which is not in function.json. Please " + fix + ".");
        }
        String[] names = new String[annotations.length];
        for (int i = 0; i < names.length; i++) names[i] = annotations[i].annotationType().getSimpleName();
        return new ParameterReader.InputParameter(name, ValueConverter.of(type, classes), names);
    }

    private static void refuseClients(Class<?> raw, String place) throws LoadError {
        if (!raw.getName().startsWith("com.azure.storage.blob.")) return;
        String fix = "use String or byte[] with @BlobInput, or OutputBinding with @BlobOutput";
        throw new LoadError(place + " is a client of Azure Storage, which bindpost does not create: " + fix);
    }

    /** Returns the `name` of the last annotation of a binding. One that function.json lists is preferred. */
    private String bindingName(Annotation[] annotations) {
        String last = null;
        for (Annotation annotation : annotations) {
            if (!isBinding(annotation.annotationType())) continue;
            String name = text(annotation, "name");
            if (name == null) continue;
            if (last == null || metadata.bindings.containsKey(name) || !metadata.bindings.containsKey(last)) {
                last = name;
            }
        }
        return last;
    }

    private static boolean isBinding(Class<? extends Annotation> type) {
        if (type.getName().startsWith(ANNOTATIONS)) return true;
        for (Annotation own : type.getAnnotations()) {
            if (own.annotationType().getName().equals(ANNOTATIONS + "CustomBinding")) return true;
        }
        return false;
    }

    private static String text(Annotation[] annotations, String simpleName, String member) {
        for (Annotation annotation : annotations) {
            if (annotation.annotationType().getName().equals(ANNOTATIONS + simpleName)) return text(annotation, member);
        }
        return null;
    }

    /** Returns a member of an annotation if it is a text, else null. */
    private static String text(Annotation annotation, String member) {
        try {
            Method method = annotation.annotationType().getMethod(member);
            method.setAccessible(true);
            Object value = method.invoke(annotation);
            return value instanceof String ? (String) value : null;
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }
}
