package bindpost.worker;

import bindpost.worker.failure.FailureReport;
import bindpost.worker.wire.HostChannel;
import bindpost.worker.wire.JsonError;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The Java language worker. It connects to the host, loads the app and runs its functions. {@link WorkerSession}
 * handles the messages: start reading there.
 *
 * <pre>java -cp WORKER bindpost.worker.Main --socket unix:/path|tcp:host:port --worker-id ID --request-id ID</pre>
 *
 * <p>The variables BINDPOST_JAVA_API and BINDPOST_JAVA_GSON name the folders of the declarations. stdout is for the
 * app. The worker writes its own errors to stderr. It uses only the JDK: all other classes are the app's.
 */
public final class Main {
    private Main() {}

    public static void main(String[] words) {
        Map<String, String> options = parseOptions(words);
        String address = options.get("--socket");
        if (address == null) {
            String arguments = "--socket unix:/path|tcp:host:port --worker-id ID --request-id ID";
            System.err.println("usage: java -cp WORKER bindpost.worker.Main " + arguments);
            Runtime.getRuntime().halt(2);
        }
        System.setOut(console(FileDescriptor.out));
        System.setErr(console(FileDescriptor.err));
        WorkerSession session = null;
        try {
            HostChannel channel = HostChannel.connect(address);
            session = new WorkerSession(channel);
            ExitNotice.install(session);
            ignoreInterruptSignal();
            session.start(options.getOrDefault("--worker-id", ""), options.getOrDefault("--request-id", ""));
            channel.read(session);
        } catch (IOException error) {
            if (session == null) end("Cannot connect to the host at " + address + ": " + error.getMessage());
            if (!session.isTerminating()) end("The connection to the host failed: " + error.getMessage());
        } catch (JsonError error) {
            end("The host sent a message that cannot be read: " + error.getMessage());
        } catch (Throwable error) {
            end("The worker failed: " + FailureReport.traceOf(error));
        }
        // Threads of the app must not keep a process without a host alive.
        if (session == null || !session.isTerminating()) Runtime.getRuntime().halt(1);
    }

    /** The host reads lines in UTF-8. Java would use the charset of the locale. */
    private static PrintStream console(FileDescriptor descriptor) {
        OutputStream file = new BufferedOutputStream(new FileOutputStream(descriptor));
        return new PrintStream(file, true, StandardCharsets.UTF_8);
    }

    private static void end(String sentence) {
        System.err.println(sentence);
        Runtime.getRuntime().halt(1);
    }

    private static Map<String, String> parseOptions(String[] words) {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i + 1 < words.length; i += 2) options.put(words[i], words[i + 1]);
        return options;
    }

    /**
     * Ctrl-C reaches every process of the terminal, but the host decides when a worker exits. The handler is set by
     * reflection, because the class is not part of the platform that this code is compiled for.
     */
    private static void ignoreInterruptSignal() {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            InvocationHandler nothing = new InvocationHandler() {
                @Override
                public Object invoke(Object proxy, Method method, Object[] arguments) {
                    return null;
                }
            };
            Object ignore = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler}, nothing);
            Object interrupt = signal.getConstructor(String.class).newInstance("INT");
            signal.getMethod("handle", signal, handler).invoke(null, interrupt, ignore);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError error) {
            // The worker then exits with the host, on Ctrl-C.
        }
    }
}
