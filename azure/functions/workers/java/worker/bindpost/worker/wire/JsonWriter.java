package bindpost.worker.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

/** Writes the JSON of a frame as UTF-8. The first four bytes are kept free for the length. */
public final class JsonWriter {
    private static final int HEADER_BYTES = 4;
    private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.ISO_8859_1);

    private byte[] bytes;
    private int length = HEADER_BYTES;

    public JsonWriter(int likelySize) {
        bytes = new byte[likelySize + HEADER_BYTES];
    }

    /** Appends JSON that is written by hand and has only ASCII characters. */
    @SuppressWarnings("deprecation")
    public JsonWriter raw(String json) {
        int size = json.length();
        reserve(size);
        json.getBytes(0, size, bytes, length);
        length += size;
        return this;
    }

    public JsonWriter string(String value) {
        int size = value.length();
        reserve(size + 2);
        bytes[length++] = '"';
        for (int i = 0; i < size; i++) {
            char next = value.charAt(i);
            // Room for the rest, and for the longest form of this character.
            if (length + size - i + 6 > bytes.length) reserve(size - i + 6);
            if (next >= 0x80) i = putUtf8(value, i);
            else if (next < ' ' || next == '"' || next == '\\' || next == 0x7F) putEscape(next);
            else bytes[length++] = (byte) next;
        }
        reserve(1);
        bytes[length++] = '"';
        return this;
    }

    /** Appends `"name":` for a member that is not the first one. */
    public JsonWriter member(String name) {
        return raw(",\"").raw(name).raw("\":");
    }

    public JsonWriter number(long value) {
        return raw(Long.toString(value));
    }

    public JsonWriter base64(byte[] value) {
        byte[] encoded = Base64.getEncoder().encode(value);
        reserve(encoded.length + 2);
        bytes[length++] = '"';
        System.arraycopy(encoded, 0, bytes, length, encoded.length);
        length += encoded.length;
        bytes[length++] = '"';
        return this;
    }

    /** Returns the number of bytes of JSON. */
    int size() {
        return length - HEADER_BYTES;
    }

    /** Writes the length before the JSON and returns the frame. The writer must not be used after that. */
    OutgoingFrame frame() {
        int size = size();
        bytes[0] = (byte) (size >> 24);
        bytes[1] = (byte) (size >> 16);
        bytes[2] = (byte) (size >> 8);
        bytes[3] = (byte) size;
        return new OutgoingFrame(bytes, length);
    }

    private void putEscape(char next) {
        bytes[length++] = '\\';
        switch (next) {
            case '"':
            case '\\':
                bytes[length++] = (byte) next;
                return;
            case '\n':
                bytes[length++] = 'n';
                return;
            case '\r':
                bytes[length++] = 'r';
                return;
            case '\t':
                bytes[length++] = 't';
                return;
            default:
                bytes[length++] = 'u';
                bytes[length++] = '0';
                bytes[length++] = '0';
                bytes[length++] = HEX[next >> 4];
                bytes[length++] = HEX[next & 0xF];
        }
    }

    /** Appends the character at `i` and returns the index of its last unit. A lone surrogate becomes U+FFFD. */
    private int putUtf8(String value, int i) {
        int point = value.codePointAt(i);
        if (point >= 0x10000) {
            i++;
            bytes[length++] = (byte) (0xF0 | point >> 18);
            bytes[length++] = (byte) (0x80 | point >> 12 & 0x3F);
            bytes[length++] = (byte) (0x80 | point >> 6 & 0x3F);
        } else {
            if (point >= 0xD800 && point <= 0xDFFF) point = 0xFFFD;
            if (point < 0x800) {
                bytes[length++] = (byte) (0xC0 | point >> 6);
            } else {
                bytes[length++] = (byte) (0xE0 | point >> 12);
                bytes[length++] = (byte) (0x80 | point >> 6 & 0x3F);
            }
        }
        bytes[length++] = (byte) (0x80 | point & 0x3F);
        return i;
    }

    private void reserve(int more) {
        if (more > bytes.length - length) {
            long wanted = Math.max((long) length + more, 2L * bytes.length);
            if (wanted > Integer.MAX_VALUE - 8 && (long) length + more <= Integer.MAX_VALUE - 8) {
                wanted = Integer.MAX_VALUE - 8;
            }
            if (wanted > Integer.MAX_VALUE - 8) throw new JsonError("the message has more than 2 GiB");
            bytes = Arrays.copyOf(bytes, (int) wanted);
        }
    }
}
