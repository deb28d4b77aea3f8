package bindpost.worker.json;

import java.lang.reflect.Array;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.util.HashMap;
import java.util.Map;

/** Answers questions about generic types. */
public final class TypeResolver {
    private TypeResolver() {}

    /** Returns the class of a type without its arguments. A variable counts as its bound. */
    public static Class<?> rawClass(Type type) {
        if (type instanceof Class) return (Class<?>) type;
        if (type instanceof ParameterizedType) return (Class<?>) ((ParameterizedType) type).getRawType();
        if (type instanceof GenericArrayType) {
            return Array.newInstance(rawClass(((GenericArrayType) type).getGenericComponentType()), 0).getClass();
        }
        if (type instanceof WildcardType) return rawClass(((WildcardType) type).getUpperBounds()[0]);
        if (type instanceof TypeVariable) return rawClass(((TypeVariable<?>) type).getBounds()[0]);
        return Object.class;
    }

    /**
     * Returns the argument of a type for a parameter of one of its base types, such as the T of List&lt;T&gt;, or
     * Object.
     */
    public static Type argument(Type type, Class<?> base, int index) {
        Map<TypeVariable<?>, Type> known = new HashMap<>();
        Type found = find(type, base, known);
        if (!(found instanceof ParameterizedType)) return Object.class;
        return resolve(((ParameterizedType) found).getActualTypeArguments()[index], known);
    }

    /** Returns the type arguments of a type and of all its base classes. */
    static Map<TypeVariable<?>, Type> arguments(Type type) {
        Map<TypeVariable<?>, Type> known = new HashMap<>();
        Type next = type;
        while (next != null && rawClass(next) != Object.class) {
            addArguments(next, known);
            next = rawClass(next).getGenericSuperclass();
        }
        return known;
    }

    /** Replaces a variable by what is known of it. Arguments within other types are replaced when those are read. */
    static Type resolve(Type type, Map<TypeVariable<?>, Type> known) {
        Type resolved = type;
        for (int steps = 0; resolved instanceof TypeVariable && known.containsKey(resolved) && steps < 100; steps++) {
            resolved = known.get(resolved);
        }
        if (resolved instanceof WildcardType) return resolve(((WildcardType) resolved).getUpperBounds()[0], known);
        if (resolved instanceof ParameterizedType) return new ResolvedType((ParameterizedType) resolved, known);
        if (resolved instanceof GenericArrayType) {
            Type component = resolve(((GenericArrayType) resolved).getGenericComponentType(), known);
            if (component instanceof Class) return Array.newInstance((Class<?>) component, 0).getClass();
            return (GenericArrayType) () -> component;
        }
        return resolved;
    }

    private static Type find(Type type, Class<?> base, Map<TypeVariable<?>, Type> known) {
        if (type == null) return null;
        Class<?> raw = rawClass(type);
        if (!base.isAssignableFrom(raw)) return null;
        addArguments(type, known);
        if (raw == base) return type;
        for (Type next : raw.getGenericInterfaces()) {
            Type found = find(next, base, known);
            if (found != null) return found;
        }
        return find(raw.getGenericSuperclass(), base, known);
    }

    private static void addArguments(Type type, Map<TypeVariable<?>, Type> known) {
        if (!(type instanceof ParameterizedType)) return;
        Type[] arguments = ((ParameterizedType) type).getActualTypeArguments();
        TypeVariable<?>[] variables = rawClass(type).getTypeParameters();
        for (int i = 0; i < variables.length; i++) {
            if (arguments[i] != variables[i]) known.put(variables[i], arguments[i]);
        }
    }

    /** A parameterized type whose arguments have no variables. */
    private static final class ResolvedType implements ParameterizedType {
        private final ParameterizedType written;
        private final Type[] arguments;

        ResolvedType(ParameterizedType written, Map<TypeVariable<?>, Type> known) {
            this.written = written;
            arguments = written.getActualTypeArguments();
            for (int i = 0; i < arguments.length; i++) arguments[i] = resolve(arguments[i], known);
        }

        @Override
        public Type[] getActualTypeArguments() {
            return arguments.clone();
        }

        @Override
        public Type getRawType() {
            return written.getRawType();
        }

        @Override
        public Type getOwnerType() {
            return written.getOwnerType();
        }

        @Override
        public String toString() {
            StringBuilder text = new StringBuilder(written.getRawType().getTypeName()).append('<');
            for (int i = 0; i < arguments.length; i++) {
                text.append(i == 0 ? "" : ", ").append(arguments[i].getTypeName());
            }
            return text.append('>').toString();
        }
    }
}
