package bindpost.worker.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Reads the JSON of a frame, value by value, without a tree. It accepts only valid JSON.
 *
 * <pre>
 * reader.enterObject();
 * for (String name; (name = reader.nextMember()) != null; ) {
 *     if (name.equals("id")) id = reader.readString(); else reader.skipValue();
 * }
 * </pre>
 */
public final class JsonReader {
    /** The messages of the protocol have about ten levels. Deeper values would overflow the stack at some point. */
    static final int MAX_DEPTH = 100;

    private final byte[] text;
    private int at;
    private int depth;
    /** Whether an object or array was entered and nothing of it was read. */
    private boolean isFresh;

    public JsonReader(byte[] text) {
        this(text, 0);
    }

    public JsonReader(byte[] text, int at) {
        this.text = text;
        this.at = at;
    }

    /** Returns where the next value begins, for a reader that reads it later. */
    public int position() {
        skipBlanks();
        return at;
    }

    public void enterObject() {
        enter('{', "an object");
    }

    public void enterArray() {
        enter('[', "an array");
    }

    /** Returns the name of the next member, or null after the last one. */
    public String nextMember() {
        if (!next('}')) return null;
        String name = readString();
        expect(':');
        return name;
    }

    /** Returns whether the array has another element. */
    public boolean nextElement() {
        return next(']');
    }

    public boolean isNull() {
        return peek() == 'n';
    }

    public String readString() {
        if (peek() != '"') throw unexpected("a string");
        int start = ++at;
        boolean isAscii = true;
        while (at < text.length) {
            byte next = text[at];
            if (next == '"') return decode(start, at++, isAscii);
            if (next == '\\') return unescape(start);
            if (next < 0) isAscii = false;
            else if (next < ' ') throw unexpected("a string without control characters");
            at++;
        }
        throw unexpected("the end of a string");
    }

    boolean readBoolean() {
        if (peek() == 't') return literal("true");
        literal("false");
        return false;
    }

    /** Reads a number as it is written. Numbers may be texts too, because some parsers support only doubles. */
    public String readNumber() {
        if (peek() == '"') return readString();
        int start = at;
        skipNumber();
        return decode(start, at, true);
    }

    /** Skips a value. The value is checked. */
    public void skipValue() {
        switch (peek()) {
            case '{':
                enterObject();
                while (next('}')) {
                    skipString();
                    expect(':');
                    skipValue();
                }
                return;
            case '[':
                enterArray();
                while (next(']')) skipValue();
                return;
            case '"':
                skipString();
                return;
            case 't':
                literal("true");
                return;
            case 'f':
                literal("false");
                return;
            case 'n':
                literal("null");
                return;
            default:
                skipNumber();
        }
    }

    /** Checks that nothing follows. */
    public void end() {
        skipBlanks();
        if (at < text.length) throw unexpected("the end");
    }

    private void enter(char open, String what) {
        if (peek() != open) throw unexpected(what);
        at++;
        if (++depth > MAX_DEPTH) throw new JsonError("it is nested more than " + MAX_DEPTH + " levels deep");
        isFresh = true;
    }

    /** Moves to the next member or element. Returns false, and leaves the object or array, after the last one. */
    private boolean next(char close) {
        int found = peek();
        if (found == close) {
            at++;
            depth--;
            isFresh = false;
            return false;
        }
        if (isFresh) {
            isFresh = false;
        } else {
            expect(',');
            if (peek() == close) throw unexpected("a value");
        }
        return true;
    }

    private void skipString() {
        if (peek() != '"') throw unexpected("a string");
        for (at++; at < text.length; at++) {
            byte next = text[at];
            if (next == '"') {
                at++;
                isFresh = false;
                return;
            }
            if (next == '\\') at++;
            else if (next >= 0 && next < ' ') throw unexpected("a string without control characters");
        }
        throw unexpected("the end of a string");
    }

    private void skipNumber() {
        isFresh = false;
        if (peek() == '-') at++;
        if (byteAt(at) == '0') at++;
        else skipDigits();
        if (byteAt(at) == '.') {
            at++;
            skipDigits();
        }
        if (byteAt(at) == 'e' || byteAt(at) == 'E') {
            at++;
            if (byteAt(at) == '+' || byteAt(at) == '-') at++;
            skipDigits();
        }
    }

    private void skipDigits() {
        int start = at;
        while (byteAt(at) >= '0' && byteAt(at) <= '9') at++;
        if (at == start) throw unexpected("a value");
    }

    private boolean literal(String word) {
        isFresh = false;
        skipBlanks();
        for (int i = 0; i < word.length(); i++) {
            if (byteAt(at + i) != word.charAt(i)) throw unexpected("a value");
        }
        at += word.length();
        return true;
    }

    private void expect(char mark) {
        if (peek() != mark) throw unexpected("'" + mark + "'");
        at++;
    }

    private int peek() {
        skipBlanks();
        return byteAt(at);
    }

    private void skipBlanks() {
        while (at < text.length) {
            byte next = text[at];
            if (next != ' ' && next != '\n' && next != '\r' && next != '\t') return;
            at++;
        }
    }

    private int byteAt(int place) {
        return place < text.length ? text[place] : -1;
    }

    private String decode(int from, int to, boolean isAscii) {
        isFresh = false;
        return new String(text, from, to - from, isAscii ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8);
    }

    /** Decodes a string with escapes. Its bytes are never more than those of the escaped form. */
    private String unescape(int start) {
        int length = at - start;
        byte[] plain = new byte[Math.max(64, 2 * length)];
        System.arraycopy(text, start, plain, 0, length);
        boolean isAscii = false;
        while (true) {
            if (at >= text.length) throw unexpected("the end of a string");
            if (length + 4 > plain.length) plain = Arrays.copyOf(plain, 2 * plain.length);
            byte next = text[at++];
            if (next == '"') break;
            if (next != '\\') {
                if (next >= 0 && next < ' ') throw unexpected("a string without control characters");
                plain[length++] = next;
                continue;
            }
            int escape = byteAt(at++);
            if (escape == 'u') length = putUtf8(plain, length, readEscapedCharacter());
            else plain[length++] = unescaped(escape);
        }
        isFresh = false;
        return new String(plain, 0, length, StandardCharsets.UTF_8);
    }

    private byte unescaped(int escape) {
        switch (escape) {
            case '"':
            case '\\':
            case '/':
                return (byte) escape;
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
            default:
                throw unexpected("an escape");
        }
    }

    /** Reads the digits of an escape, and the second escape of a surrogate pair. A lone surrogate becomes U+FFFD. */
    private int readEscapedCharacter() {
        int unit = readHexDigits();
        if (unit < 0xD800 || unit > 0xDFFF) return unit;
        if (unit > 0xDBFF || byteAt(at) != '\\' || byteAt(at + 1) != 'u') return 0xFFFD;
        int before = at;
        at += 2;
        int second = readHexDigits();
        if (second >= 0xDC00 && second <= 0xDFFF) return Character.toCodePoint((char) unit, (char) second);
        at = before;
        return 0xFFFD;
    }

    private int readHexDigits() {
        int value = 0;
        for (int i = 0; i < 4; i++) {
            int digit = Character.digit(byteAt(at++), 16);
            if (digit < 0) throw unexpected("four hexadecimal digits");
            value = value << 4 | digit;
        }
        return value;
    }

    private static int putUtf8(byte[] bytes, int at, int point) {
        if (point < 0x80) {
            bytes[at++] = (byte) point;
        } else if (point < 0x800) {
            bytes[at++] = (byte) (0xC0 | point >> 6);
            bytes[at++] = (byte) (0x80 | point & 0x3F);
        } else if (point < 0x10000) {
            bytes[at++] = (byte) (0xE0 | point >> 12);
            bytes[at++] = (byte) (0x80 | point >> 6 & 0x3F);
            bytes[at++] = (byte) (0x80 | point & 0x3F);
        } else {
            bytes[at++] = (byte) (0xF0 | point >> 18);
            bytes[at++] = (byte) (0x80 | point >> 12 & 0x3F);
            bytes[at++] = (byte) (0x80 | point >> 6 & 0x3F);
            bytes[at++] = (byte) (0x80 | point & 0x3F);
        }
        return at;
    }

    private JsonError unexpected(String expected) {
        return new JsonError("expected " + expected + " at byte " + Math.min(at, text.length));
    }
}
