package bindpost.worker.wire;

import bindpost.worker.AllChecks;
import java.nio.charset.StandardCharsets;

/** Checks of the JSON of frames. */
public final class JsonChecks {
    private static final String[] VALID = {
        "{}", "[]", "\"\"", "0", "-0", "12", "-1.5e+10", "1E5", "0.1", "true", "false", "null",
                " [ 1 , { \"a\" : [ ] } ] ",
        "{\"a\":{},\"b\":[[],{}],\"a\":null}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", "\"\u007f é \uD83D\uDE00\"",
    };
    private static final String[] INVALID = {
        "", " ", "{", "}", "[", "]", "{]", "[}", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}",
                "{a:1}",
        "{\"a\" 1}", "{\"a\":1 \"b\":2}", "\"", "\"\\", "\"a\nb\"", "01", "1.", ".5", "-", "+1", "1e", "1e+", "tru",
                "nul",
        "True", "NaN", "'a'", "1 2", "{} {}", "[1]]", "\u00a01",
    };
    private static final String[] TEXTS = {
        "", "plain", "\"\\/\b\f\n\r\t\0\u001f\u007f", "é\u07ff\u0800\uffff\u2028", "\uD83D\uDE00 pair",
                "x".repeat(100_000),
        "é\"".repeat(50_000), "end \uDBFF\uDFFF",
    };

    private JsonChecks() {}

    public static void run() {
        for (String json : VALID) AllChecks.equal("valid " + json, "read", () -> skip(json));
        for (String json : INVALID) AllChecks.fails("invalid " + json, "expected ", () -> skip(json));
        for (String text : TEXTS) AllChecks.equal("text of " + text.length(), text, () -> read(write(text)));
        AllChecks.equal("escapes", "\"\\/\b\f\n\r\té\uD83D\uDE00",
                () -> read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\uD83D\\ude00\""));
        AllChecks.equal("a lone escape", "a\uFFFDb\uFFFD\uFFFDA", () -> read("\"a\\uD83Db\\uDE00\\uD83D\\u0041\""));
        AllChecks.equal("a lone surrogate", "a\uFFFDb", () -> read(write("a\uD83Db")));
        AllChecks.fails("an unknown escape", "an escape", () -> read("\"\\x\""));
        AllChecks.fails("a short escape", "hexadecimal", () -> read("\"\\u12G4\""));
        AllChecks.fails("control characters after an escape", "control", () -> read("\"\\n\u0001\""));
        AllChecks.equal("a big number", "123456789012345678901234567890.5e-7",
                () -> new JsonReader(bytes("123456789012345678901234567890.5e-7")).readNumber());
        int limit = JsonReader.MAX_DEPTH;
        AllChecks.equal("depth", "read", () -> skip("[".repeat(limit) + "]".repeat(limit)));
        AllChecks.fails("too deep", "levels", () -> skip("[".repeat(limit + 1) + "]".repeat(limit + 1)));
        AllChecks.equal("members", "a=1 b=[] c=x ", JsonChecks::members);
        AllChecks.equal("an unknown kind of value", "NONE",
                () -> TypedValue.read(new JsonReader(bytes("{\"modelBindingData\":{\"version\":\"1.0\"}}"))).kind);
        AllChecks.fails("base64", "base64", () -> TypedValue.read(new JsonReader(bytes("{\"bytes\":\"?\"}"))));
        AllChecks.fails("an integer of 65 bits", "64 bits",
                () -> TypedValue.read(new JsonReader(bytes("{\"int\":\"9223372036854775808\"}"))));
    }

    private static String members() {
        JsonReader reader = new JsonReader(bytes(" {\"a\" : 1, \"skipped\":{\"x\":[1,{}]},\"b\":[ ],\"c\":\"x\"} "));
        StringBuilder found = new StringBuilder();
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            if (name.equals("a")) {
                found.append("a=").append(reader.readNumber()).append(' ');
            } else if (name.equals("b")) {
                reader.enterArray();
                found.append("b=[").append(reader.nextElement() ? "?" : "").append("] ");
            } else if (name.equals("c")) {
                found.append("c=").append(reader.readString()).append(' ');
            } else {
                reader.skipValue();
            }
        }
        reader.end();
        return found.toString();
    }

    private static String skip(String json) {
        JsonReader reader = new JsonReader(bytes(json));
        reader.skipValue();
        reader.end();
        return "read";
    }

    private static String read(String json) {
        JsonReader reader = new JsonReader(bytes(json));
        String text = reader.readString();
        reader.end();
        return text;
    }

    private static String write(String text) {
        OutgoingFrame frame = new JsonWriter(1).string(text).frame();
        return new String(frame.bytes, 4, frame.length - 4, StandardCharsets.UTF_8);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
