package bindpost.worker.failure;

/** The app or one of its functions cannot be loaded or called. The message is for the user and names what to change. */
public final class LoadError extends Exception {
    private static final long serialVersionUID = 1;

    public LoadError(String message) {
        super(message);
    }

    public LoadError(String message, Throwable cause) {
        super(message, cause);
    }
}
