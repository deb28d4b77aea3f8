package bindpost.worker.json;

import bindpost.worker.failure.FailureReport;
import bindpost.worker.wire.JsonError;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/** The fields of a class that are members of its JSON, and how its objects are created. */
final class ClassShape {
    private static final Map<Class<?>, ClassShape> KNOWN = new WeakHashMap<>();

    /** Own fields, then inherited ones. */
    final List<FieldSlot> fields = new ArrayList<>();
    final boolean isRecord;
    private final Class<?> type;
    private final Constructor<?> constructor;

    /** One field. */
    static final class FieldSlot {
        final String name;
        final Type type;
        final Class<?> raw;
        private final Field field;

        FieldSlot(Field field) {
            this.field = field;
            this.name = field.getName();
            this.type = field.getGenericType();
            this.raw = field.getType();
            // Java 11 would allow it and print a warning. Newer versions refuse it.
            if (field.getDeclaringClass().getModule().isNamed()) {
                String owner = field.getDeclaringClass().getName();
                throw new JsonError("the class " + owner
                        + " has no JSON form: its fields are closed. Use a class of the app, or add Gson to it");
            }
            field.setAccessible(true);
        }

        Object get(Object target) {
            try {
                return field.get(target);
            } catch (IllegalAccessException error) {
                throw new JsonError("the field " + name + " cannot be read: " + error.getMessage());
            }
        }

        void set(Object target, Object value) {
            try {
                field.set(target, value);
            } catch (IllegalAccessException error) {
                throw new JsonError("the field " + name + " cannot be set: " + error.getMessage());
            }
        }
    }

    private ClassShape(Class<?> type, boolean hasFields) {
        this.type = type;
        for (Class<?> next = type; hasFields && next != null && next != Object.class; next = next.getSuperclass()) {
            for (Field field : next.getDeclaredFields()) {
                int modifiers = field.getModifiers();
                boolean isMember = !Modifier.isStatic(modifiers) && !Modifier.isTransient(modifiers)
                        && !field.isSynthetic();
                if (isMember && find(field.getName()) == null) fields.add(new FieldSlot(field));
            }
        }
        // Records came with Java 16, and this code is compiled for version 11.
        Class<?> parent = type.getSuperclass();
        isRecord = parent != null && parent.getName().equals("java.lang.Record");
        constructor = isRecord ? recordConstructor() : emptyConstructor();
    }

    static ClassShape of(Class<?> type) {
        synchronized (KNOWN) {
            ClassShape shape = KNOWN.get(type);
            if (shape == null) {
                shape = new ClassShape(type, true);
                KNOWN.put(type, shape);
            }
            return shape;
        }
    }

    /** Returns how objects of a collection or map are created. Their fields do not matter. */
    static ClassShape creator(Class<?> type) {
        return new ClassShape(type, false);
    }

    FieldSlot find(String name) {
        for (FieldSlot field : fields) {
            if (field.name.equals(name)) return field;
        }
        return null;
    }

    /**
     * Creates an object: by the constructor without parameters, or without a constructor, and then all fields are zero.
     */
    Object create() {
        if (constructor != null) return create(new Object[0]);
        if (type.isInterface() || Modifier.isAbstract(type.getModifiers())) {
            throw new JsonError("an object of " + type.getName() + " cannot be created, because it is abstract");
        }
        try {
            Class<?> unsafe = Class.forName("sun.misc.Unsafe");
            Field instance = unsafe.getDeclaredField("theUnsafe");
            instance.setAccessible(true);
            Method allocate = unsafe.getMethod("allocateInstance", Class.class);
            return allocate.invoke(instance.get(null), type);
        } catch (ReflectiveOperationException error) {
            throw new JsonError("the class " + type.getName() + " needs a constructor without parameters");
        }
    }

    /** Creates an object with arguments for the constructor, which are the components of a record. */
    Object create(Object[] arguments) {
        try {
            return constructor.newInstance(arguments);
        } catch (InvocationTargetException error) {
            throw new JsonError("the constructor of " + type.getName() + " failed: "
                    + FailureReport.summary(error.getCause()));
        } catch (ReflectiveOperationException error) {
            throw new JsonError("an object of " + type.getName() + " cannot be created: " + error.getMessage());
        }
    }

    private Constructor<?> emptyConstructor() {
        if (type.isInterface() || Modifier.isAbstract(type.getModifiers())) return null;
        try {
            Constructor<?> found = type.getDeclaredConstructor();
            found.setAccessible(true);
            return found;
        } catch (NoSuchMethodException | RuntimeException error) {
            return null;
        }
    }

    /** The fields of a record are its components, in the order of its constructor. */
    private Constructor<?> recordConstructor() {
        Class<?>[] types = new Class<?>[fields.size()];
        for (int i = 0; i < types.length; i++) types[i] = fields.get(i).raw;
        try {
            Constructor<?> found = type.getDeclaredConstructor(types);
            found.setAccessible(true);
            return found;
        } catch (NoSuchMethodException error) {
            throw new JsonError("the record " + type.getName() + " has no canonical constructor");
        }
    }
}
