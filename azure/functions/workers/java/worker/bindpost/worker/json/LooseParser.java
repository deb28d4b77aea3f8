package bindpost.worker.json;

import bindpost.worker.wire.JsonError;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * Reads JSON of users as Gson does: words may have no quotes or single ones, and `True` is a boolean. Objects become
 * maps, arrays lists, and numbers {@link NumberText}.
 */
final class LooseParser {
    static final int MAX_DEPTH = 255;

    private static final Pattern NUMBER =
            Pattern.compile("-?(?:(?:0|[1-9][0-9]*+)(?:\\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|Infinity)|NaN");

    private final String text;
    private int at;
    private int depth;

    private LooseParser(String text) {
        this.text = text;
    }

    /** A number as it is written, so that no digit is lost. */
    static final class NumberText {
        final String text;

        NumberText(String text) {
            this.text = text;
        }

        @Override
        public String toString() {
            return text;
        }
    }

    static Object parse(String text) {
        LooseParser parser = new LooseParser(text);
        Object value = parser.value();
        parser.skipBlanks();
        if (parser.at < text.length()) throw parser.unexpected("the end");
        return value;
    }

    private Object value() {
        skipBlanks();
        if (at >= text.length()) throw unexpected("a value");
        switch (text.charAt(at)) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
            case '\'':
                return string();
            default:
                return word();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> members = new LinkedHashMap<>();
        enter();
        if (leaves('}')) return members;
        do {
            skipBlanks();
            Object name = at < text.length() && isQuote(text.charAt(at)) ? string() : unquoted();
            skipBlanks();
            if (at >= text.length() || text.charAt(at) != ':') throw unexpected("':'");
            at++;
            members.put((String) name, value());
        } while (continues('}'));
        return members;
    }

    private List<Object> array() {
        List<Object> items = new ArrayList<>();
        enter();
        if (leaves(']')) return items;
        do items.add(value());
        while (continues(']'));
        return items;
    }

    private void enter() {
        at++;
        if (++depth > MAX_DEPTH) throw new JsonError("it is nested more than " + MAX_DEPTH + " levels deep");
    }

    private boolean leaves(char close) {
        skipBlanks();
        if (at >= text.length() || text.charAt(at) != close) return false;
        at++;
        depth--;
        return true;
    }

    /** Returns whether another element follows, and reads the mark before it or the end. */
    private boolean continues(char close) {
        if (leaves(close)) return false;
        if (at >= text.length() || text.charAt(at) != ',') throw unexpected("',' or '" + close + "'");
        at++;
        return true;
    }

    private String string() {
        char quote = text.charAt(at++);
        int end = at;
        while (end < text.length() && text.charAt(end) != quote && text.charAt(end) != '\\') end++;
        StringBuilder value = new StringBuilder().append(text, at, end);
        at = end;
        while (at < text.length()) {
            char next = text.charAt(at++);
            if (next == quote) return value.toString();
            value.append(next == '\\' ? escaped() : next);
        }
        throw unexpected("the end of a string");
    }

    private char escaped() {
        if (at >= text.length()) throw unexpected("an escape");
        char escape = text.charAt(at++);
        switch (escape) {
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                return unicode();
            default:
                return escape;
        }
    }

    private char unicode() {
        int value = 0;
        for (int i = 0; i < 4; i++) {
            int digit = at < text.length() ? Character.digit(text.charAt(at++), 16) : -1;
            if (digit < 0) throw unexpected("four hexadecimal digits");
            value = value << 4 | digit;
        }
        return (char) value;
    }

    private Object word() {
        String word = unquoted();
        if (word.equalsIgnoreCase("null")) return null;
        if (word.equalsIgnoreCase("true")) return true;
        if (word.equalsIgnoreCase("false")) return false;
        return isNumber(word) ? new NumberText(word) : word;
    }

    private String unquoted() {
        int start = at;
        while (at < text.length() && !isBlank(text.charAt(at)) && "{}[]:,;=#\\/".indexOf(text.charAt(at)) < 0) at++;
        if (at == start) throw unexpected("a value");
        return text.substring(start, at);
    }

    /** Whether a word is a number of JSON, or NaN or Infinity. */
    private static boolean isNumber(String word) {
        return NUMBER.matcher(word).matches();
    }

    private void skipBlanks() {
        while (at < text.length() && isBlank(text.charAt(at))) at++;
    }

    private static boolean isBlank(char next) {
        return next == ' ' || next == '\n' || next == '\r' || next == '\t' || next == '\uFEFF';
    }

    private static boolean isQuote(char next) {
        return next == '"' || next == '\'';
    }

    private JsonError unexpected(String expected) {
        String found = at < text.length() ? "'" + text.charAt(at) + "'" : "the end";
        return new JsonError("it is not valid JSON: expected " + expected + ", but found " + found + " at character "
                + (at + 1));
    }
}
