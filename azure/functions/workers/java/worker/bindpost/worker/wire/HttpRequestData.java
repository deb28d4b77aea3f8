package bindpost.worker.wire;

import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.Charset;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/** A request of an HTTP trigger. Names of headers are compared without case. */
public final class HttpRequestData {
    private static final String NOT_IN_ADDRESSES = "\"<>[]\\^`{|}%#";

    public String method = "";
    public String url = "";
    public final Map<String, String> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    public final Map<String, String> query = new LinkedHashMap<>();
    public TypedValue body = TypedValue.NONE;

    static HttpRequestData read(JsonReader reader) {
        HttpRequestData request = new HttpRequestData();
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) {
            switch (name) {
                case "method":
                    request.method = reader.readString();
                    break;
                case "url":
                    request.url = reader.readString();
                    break;
                case "headers":
                    readTexts(reader, request.headers);
                    break;
                case "query":
                    readTexts(reader, request.query);
                    break;
                case "body":
                    request.body = TypedValue.read(reader);
                    break;
                default:
                    reader.skipValue();
            }
        }
        return request;
    }

    /**
     * Returns the body. The host sends text as bytes if it is not UTF-8. Its content type then tells the charset,
     * unless the content is not text at all.
     */
    public TypedValue decodedBody() {
        if (body.kind != TypedValue.ValueKind.BYTES) return body;
        String[] parts = headers.getOrDefault("content-type", "").split(";");
        for (int i = 1; i < parts.length; i++) {
            String parameter = parts[i].trim();
            if (!parameter.regionMatches(true, 0, "charset=", 0, 8)) continue;
            try {
                Charset charset = Charset.forName(parameter.substring(8).replace("\"", "").trim());
                return new TypedValue(TypedValue.ValueKind.STRING, new String((byte[]) body.content, charset));
            } catch (IllegalArgumentException error) {
                return body;
            }
        }
        return body;
    }

    /**
     * Returns the address. Clients also send marks that Java's class does not accept, such as `|`. They are escaped.
     */
    public URI address() {
        try {
            return new URI(url);
        } catch (URISyntaxException error) {
            int path = Math.max(0, url.indexOf('/', url.indexOf("://") + 3));
            StringBuilder escaped = new StringBuilder(url.substring(0, path));
            for (int i = path; i < url.length(); i++) {
                char next = url.charAt(i);
                if (next > ' ' && NOT_IN_ADDRESSES.indexOf(next) < 0 || isEscape(i)) escaped.append(next);
                else escaped.append(String.format("%%%02X", (int) next));
            }
            return URI.create(escaped.toString());
        }
    }

    private boolean isEscape(int at) {
        return url.charAt(at) == '%' && at + 2 < url.length()
                && Character.digit(url.charAt(at + 1), 16) >= 0 && Character.digit(url.charAt(at + 2), 16) >= 0;
    }

    public static Map<String, String> readTexts(JsonReader reader) {
        Map<String, String> texts = new LinkedHashMap<>();
        readTexts(reader, texts);
        return Collections.unmodifiableMap(texts);
    }

    private static void readTexts(JsonReader reader, Map<String, String> texts) {
        reader.enterObject();
        for (String name; (name = reader.nextMember()) != null; ) texts.put(name, reader.readString());
    }
}
