package bindpost.worker.json;

import bindpost.worker.AllChecks;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;

/** Checks of the binder. What is expected is what Gson 2.12 does, but where a check says otherwise. */
public final class BinderChecks {
    private BinderChecks() {}

    // The types that are bound.

    enum Color { RED, GREEN }

    static class Base {
        private int hidden = 1;
        static int shared = 5;
        transient int passing = 6;
    }

    static class Sample extends Base {
        int x = 9;
        Integer boxed;
        boolean flag = true;
        String text = "init";
        Color color = Color.RED;
        List<String> list;
        Map<Integer, Sample> byId;
        Object any;
    }

    static class NoEmptyConstructor {
        int a = 7;

        NoEmptyConstructor(int a) {
            this.a = a;
        }
    }

    static class Page<T> {
        List<T> items;
        T first;
    }

    static class IntPage extends Page<Integer> {}

    static class Types {
        List<Integer> numbers;
        Map<String, List<Long>> longs;
        Set<Integer> set;
        EnumMap<Color, Integer> colors;
        Page<BigInteger> page;
        Optional<Integer> maybe;
        int[][] grid;
    }

    public static void run() {
        reads();
        fails();
        generics();
        writes();
    }

    private static void reads() {
        sample("{}", "{\"x\":9,\"flag\":true,\"text\":\"init\",\"color\":\"RED\",\"hidden\":1}");
        sample("{\"x\":\"12\",\"boxed\":12.0,\"hidden\":2,\"shared\":8,\"passing\":8,\"unknown\":[{}],\"X\":1}",
                "{\"x\":12,\"boxed\":12,\"flag\":true,\"text\":\"init\",\"color\":\"RED\",\"hidden\":2}");
        sample("{\"x\":null,\"flag\":null,\"text\":null,\"color\":null}", "{\"x\":9,\"flag\":true,\"hidden\":1}");
        sample("{\"text\":1.50,\"color\":\"no\",\"flag\":False}",
                "{\"x\":9,\"flag\":false,\"text\":\"1.50\",\"hidden\":1}");
        sample("{x:1,'text':word,x:2}", "{\"x\":2,\"flag\":true,\"text\":\"word\",\"color\":\"RED\",\"hidden\":1}");
        sample("{\"list\":[1,\"a\",true,null],\"byId\":{\"5\":{\"x\":0}},\"color\":\"GREEN\"}",
                "{\"x\":9,\"flag\":true,\"text\":\"init\",\"color\":\"GREEN\",\"list\":[\"1\",\"a\",\"true\",null],"
                        + "\"byId\":{\"5\":{\"x\":0,\"flag\":true,\"text\":\"init\",\"color\":\"RED\",\"hidden\":1}},"
                        + "\"hidden\":1}");
        AllChecks.equal("objects", "{a=[1.0, x, {b=null}, true]}",
                () -> PlainJson.read("{\"a\":[1,\"x\",{\"b\":null},TRUE]}", Object.class));
        AllChecks.equal("a raw map", "{z=1.0, a=2.0}", () -> PlainJson.read("{\"z\":1,\"a\":2}", Map.class));
        AllChecks.equal("empty text", null, () -> PlainJson.read(" ", Sample.class));
        AllChecks.equal("no constructor", 0, () -> ((NoEmptyConstructor) PlainJson.read("{}",
                NoEmptyConstructor.class)).a);
        AllChecks.equal("an array", "[1, 2]", () -> Arrays.toString((int[]) PlainJson.read("[1,2]", int[].class)));
        AllChecks.equal("a big integer", "123456789012345678901234567890",
                () -> PlainJson.read("123456789012345678901234567890", BigInteger.class));
        AllChecks.equal("a decimal", "1.10", () -> PlainJson.read("1.10", BigDecimal.class));
        AllChecks.equal("a date, unlike Gson", "2026-01-31", () -> PlainJson.read("\"2026-01-31\"", LocalDate.class));
    }

    private static void fails() {
        AllChecks.fails("a fraction", "type int at $.x, but found 12.5", () -> PlainJson.read("{\"x\":12.5}",
                Sample.class));
        AllChecks.fails("a number that is too big", "type int", () -> PlainJson.read("{\"x\":99999999999}",
                Sample.class));
        AllChecks.fails("digits without end", "type int", () -> PlainJson.read("{\"x\":1e999999999}", Sample.class));
        AllChecks.fails("an object for a text", "$.text", () -> PlainJson.read("{\"text\":{}}", Sample.class));
        AllChecks.fails("within a list", "$.byId.5.x", () -> PlainJson.read("{\"byId\":{\"5\":{\"x\":\"y\"}}}",
                Sample.class));
        AllChecks.fails("two values", "the end", () -> PlainJson.read("{} {}", Sample.class));
        AllChecks.fails("an open object", "',' or '}'", () -> PlainJson.read("{\"x\":1", Sample.class));
        AllChecks.fails("depth", "levels", () -> PlainJson.read("[".repeat(100_000), Object.class));
        AllChecks.fails("an interface", "abstract", () -> PlainJson.read("{}", Runnable.class));
        AllChecks.fails("a class of Java", "fields are closed", () -> PlainJson.print(new Thread()));
        AllChecks.fails("NaN", "not a number", () -> PlainJson.print(Double.NaN));
        List<Object> itself = new ArrayList<>();
        itself.add(itself);
        AllChecks.fails("a list in itself", "contains itself", () -> PlainJson.print(itself));
    }

    private static void generics() {
        type("numbers", "[1,2.0]", "[1, 2]");
        type("longs", "{\"a\":[1]}", "{a=[1]}");
        type("set", "[3,1,3]", "[3, 1]");
        type("colors", "{\"RED\":1}", "{RED=1}");
        type("maybe", "5", "Optional[5]");
        type("maybe", "null", "Optional.empty");
        AllChecks.equal("an argument of a type", BigInteger.class, () -> {
            Page<?> page = (Page<?>) PlainJson.read("{\"items\":[1]}", fieldType("page"));
            return page.items.get(0).getClass();
        });
        AllChecks.equal("an argument of a base", "[1] 2", () -> {
            IntPage page = (IntPage) PlainJson.read("{\"items\":[1],\"first\":2}", IntPage.class);
            return page.items + " " + (page.first + 0);
        });
        AllChecks.equal("an array of arrays", 2, () -> ((int[][]) PlainJson.read("[[1],[2]]",
                fieldType("grid")))[1][0]);
    }

    private static void writes() {
        AllChecks.equal("marks of HTML", "\"\\u003ca\\u003e\\u0026\\u003d\\u0027\\\"\\\\/\\u2028\\u0001\\t\"",
                () -> PlainJson.print("<a>&='\"\\/\u2028\u0001\t"));
        AllChecks.equal("numbers", "[1,1.0,1.5,1.0E10,10.50]",
                () -> PlainJson.print(Arrays.asList(1, 1.0, 1.5f, 1e10, new BigDecimal("10.50"))));
        AllChecks.equal("nulls", "[null,{}]", () -> PlainJson.print(Arrays.asList(null, Collections.singletonMap("a",
                null))));
        AllChecks.equal("bytes", "[1,-2]", () -> PlainJson.print(new byte[] {1, -2}));
        AllChecks.equal("keys", "{\"RED\":[true,\"c\"]}",
                () -> PlainJson.print(new TreeMap<>(Map.of(Color.RED, Arrays.asList(true, 'c')))));
        AllChecks.equal("an id", "\"00000000-0000-0001-0000-000000000002\"", () -> PlainJson.print(new UUID(1, 2)));
        AllChecks.equal("a date, unlike Gson", "[\"2026-01-31\",3]",
                () -> PlainJson.print(List.of(LocalDate.of(2026, 1, 31), Optional.of(3))));
    }

    private static void sample(String json, String expected) {
        AllChecks.equal(json, expected, () -> PlainJson.print(PlainJson.read(json, Sample.class)));
    }

    private static void type(String field, String json, String expected) {
        AllChecks.equal(field + " " + json, expected, () -> PlainJson.read(json, fieldType(field)));
    }

    private static Type fieldType(String field) throws NoSuchFieldException {
        return Types.class.getDeclaredField(field).getGenericType();
    }
}
