package bindpost.worker.wire;

/** A text is not the JSON that was expected. The message says what is wrong and where. */
public final class JsonError extends RuntimeException {
    private static final long serialVersionUID = 1;

    public JsonError(String message) {
        super(message);
    }
}
