package bindpost.worker.json;

import bindpost.worker.wire.JsonError;
import java.lang.reflect.Array;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Converts what {@link LooseParser} read to the types of users. Generic types are used in full. */
final class ValueBinder {
    /** Where in the JSON the value is, for messages. */
    private final StringBuilder path = new StringBuilder("$");

    private ValueBinder() {}

    static Object bind(Object json, Type type) {
        return new ValueBinder().value(json, type);
    }

    private Object value(Object json, Type type) {
        Class<?> raw = TypeResolver.rawClass(type);
        if (raw == Optional.class) {
            return Optional.ofNullable(json == null ? null : value(json, TypeResolver.argument(type, raw, 0)));
        }
        if (json == null) return null;
        if (raw == Object.class) return plain(json);
        if (raw == String.class || raw == CharSequence.class) return text(json);
        if (raw == boolean.class || raw == Boolean.class) return bool(json);
        if (raw.isPrimitive() && raw != char.class || Number.class.isAssignableFrom(raw)) return number(json, raw);
        if (raw == char.class || raw == Character.class) return character(json);
        if (raw.isEnum()) return constant(text(json), raw);
        if (TextTypes.canParse(raw)) return parsed(text(json), raw);
        if (raw.isArray()) return array(json, type, raw);
        if (Collection.class.isAssignableFrom(raw) || raw == Iterable.class) return collection(json, type, raw);
        if (Map.class.isAssignableFrom(raw)) return map(json, type, raw);
        return object(json, type, raw);
    }

    /** Converts to maps, lists, texts, booleans and doubles. */
    private static Object plain(Object json) {
        if (json instanceof LooseParser.NumberText) return Double.valueOf(json.toString());
        if (json instanceof List) {
            List<Object> items = new ArrayList<>();
            for (Object item : (List<?>) json) items.add(plain(item));
            return items;
        }
        if (json instanceof Map) {
            Map<String, Object> members = new LinkedHashMap<>();
            for (Map.Entry<?, ?> member : ((Map<?, ?>) json).entrySet()) {
                members.put((String) member.getKey(), plain(member.getValue()));
            }
            return members;
        }
        return json;
    }

    private String text(Object json) {
        if (json instanceof Map || json instanceof List) throw mismatch("a string", json);
        return json.toString();
    }

    private Object bool(Object json) {
        if (json instanceof Boolean) return json;
        String text = json instanceof String ? (String) json : "";
        if (text.equalsIgnoreCase("true")) return true;
        if (text.equalsIgnoreCase("false")) return false;
        throw mismatch("a boolean", json);
    }

    private Object character(Object json) {
        String text = text(json);
        if (text.length() != 1) throw mismatch("one character", json);
        return text.charAt(0);
    }

    private Object number(Object json, Class<?> raw) {
        if (!(json instanceof LooseParser.NumberText) && !(json instanceof String)) throw mismatch("a number", json);
        String text = json.toString().trim();
        try {
            NumberKind kind = NumberKind.of(raw);
            if (kind != null) return kind.parse(text);
            if (raw == BigDecimal.class) return NumberKind.decimal(text);
            if (raw == BigInteger.class) return NumberKind.bigInteger(text);
            if (raw == Number.class) return Double.valueOf(text);
        } catch (NumberFormatException error) {
            throw mismatch("a number of type " + raw.getSimpleName(), json);
        }
        throw new JsonError("the class " + raw.getName() + " at " + path + " is not supported");
    }

    private static Object constant(String name, Class<?> raw) {
        for (Object constant : raw.getEnumConstants()) {
            if (((Enum<?>) constant).name().equals(name)) return constant;
        }
        return null;
    }

    private Object parsed(String text, Class<?> raw) {
        try {
            return TextTypes.parse(text, raw);
        } catch (JsonError error) {
            throw new JsonError(error.getMessage() + ", at " + path);
        }
    }

    private Object array(Object json, Type type, Class<?> raw) {
        List<?> items = list(json);
        Type item = type instanceof GenericArrayType
                ? ((GenericArrayType) type).getGenericComponentType() : raw.getComponentType();
        Object array = Array.newInstance(raw.getComponentType(), items.size());
        for (int i = 0; i < items.size(); i++) {
            Object value = at("[" + i + "]", items.get(i), item);
            if (value == null && raw.getComponentType().isPrimitive()) {
                throw new JsonError("expected a value at " + path + "[" + i + "], but found null");
            }
            Array.set(array, i, value);
        }
        return array;
    }

    private List<?> list(Object json) {
        if (!(json instanceof List)) throw mismatch("an array", json);
        return (List<?>) json;
    }

    @SuppressWarnings("unchecked")
    private Object collection(Object json, Type type, Class<?> raw) {
        Type item = TypeResolver.argument(type, Iterable.class, 0);
        Collection<Object> items;
        if (raw.isAssignableFrom(ArrayList.class)) items = new ArrayList<>();
        else if (raw.isAssignableFrom(LinkedHashSet.class)) items = new LinkedHashSet<>();
        else if (raw.isAssignableFrom(TreeSet.class)) items = new TreeSet<>();
        else if (raw.isAssignableFrom(ArrayDeque.class)) items = new ArrayDeque<>();
        else if (raw == EnumSet.class) items = (Collection<Object>) emptyEnumSet(item);
        else items = (Collection<Object>) ClassShape.creator(raw).create();
        int index = 0;
        for (Object element : list(json)) items.add(at("[" + index++ + "]", element, item));
        return items;
    }

    @SuppressWarnings("unchecked")
    private Object map(Object json, Type type, Class<?> raw) {
        if (!(json instanceof Map)) throw mismatch("an object", json);
        Type keyType = TypeResolver.argument(type, Map.class, 0);
        Type valueType = TypeResolver.argument(type, Map.class, 1);
        Map<Object, Object> map;
        if (raw.isAssignableFrom(LinkedHashMap.class)) map = new LinkedHashMap<>();
        else if (raw.isAssignableFrom(TreeMap.class)) map = new TreeMap<>();
        else if (raw == ConcurrentMap.class) map = new ConcurrentHashMap<>();
        else if (raw == EnumMap.class) map = (Map<Object, Object>) emptyEnumMap(keyType);
        else map = (Map<Object, Object>) ClassShape.creator(raw).create();
        for (Map.Entry<?, ?> member : ((Map<?, ?>) json).entrySet()) {
            String name = (String) member.getKey();
            map.put(at("." + name, name, keyType), at("." + name, member.getValue(), valueType));
        }
        return map;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object emptyEnumSet(Type item) {
        return EnumSet.noneOf((Class) TypeResolver.rawClass(item));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object emptyEnumMap(Type key) {
        return new EnumMap((Class) TypeResolver.rawClass(key));
    }

    private Object object(Object json, Type type, Class<?> raw) {
        if (!(json instanceof Map)) throw mismatch("an object", json);
        Map<?, ?> members = (Map<?, ?>) json;
        ClassShape shape = ClassShape.of(raw);
        Map<TypeVariable<?>, Type> arguments = TypeResolver.arguments(type);
        if (shape.isRecord) return record(members, shape, arguments);
        Object object = shape.create();
        for (ClassShape.FieldSlot field : shape.fields) {
            if (!members.containsKey(field.name)) continue;
            Object value = at("." + field.name, members.get(field.name), TypeResolver.resolve(field.type, arguments));
            // A null leaves a number or boolean as it is.
            if (value != null || !field.raw.isPrimitive()) field.set(object, value);
        }
        return object;
    }

    private Object record(Map<?, ?> members, ClassShape shape, Map<TypeVariable<?>, Type> arguments) {
        Object[] components = new Object[shape.fields.size()];
        for (int i = 0; i < components.length; i++) {
            ClassShape.FieldSlot field = shape.fields.get(i);
            components[i] = at("." + field.name, members.get(field.name), TypeResolver.resolve(field.type, arguments));
            if (components[i] == null && field.raw.isPrimitive()) {
                components[i] = Array.get(Array.newInstance(field.raw, 1), 0);
            }
        }
        return shape.create(components);
    }

    /** Converts a value within this one. */
    private Object at(String step, Object json, Type type) {
        int length = path.length();
        path.append(step);
        Object value = value(json, type);
        path.setLength(length);
        return value;
    }

    private JsonError mismatch(String expected, Object found) {
        String what;
        if (found instanceof Map) what = "an object";
        else if (found instanceof List) what = "an array";
        else what = found instanceof String ? "\"" + found + "\"" : found.toString();
        if (what.length() > 100) what = what.substring(0, 100) + "…";
        return new JsonError("expected " + expected + " at " + path + ", but found " + what);
    }
}
