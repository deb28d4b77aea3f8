package bindpost.worker.wire;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * The stream to the host. A frame has 4 bytes of length (big-endian) and that many bytes of JSON: one message.
 *
 * <p>The socket does not block. A blocking one would be closed by Java when the thread that uses it is interrupted, and
 * user code may interrupt any thread. One thread reads. Any thread writes, see {@link FrameOutbox}.
 */
public final class HostChannel {
    static final int MAX_FRAME_BYTES = 256 * 1024 * 1024;

    private static final int HEADER_BYTES = 4;
    private static final int READ_BUFFER_BYTES = 256 * 1024;

    private final SocketChannel socket;
    private final FrameOutbox outbox;

    /** What handles the messages. */
    public interface FrameHandler {
        void receive(byte[] frame);
    }

    private HostChannel(SocketChannel socket) {
        this.socket = socket;
        this.outbox = new FrameOutbox(socket);
    }

    /** Connects to `unix:/path` or `tcp:host:port`. */
    public static HostChannel connect(String address) throws IOException {
        SocketChannel socket;
        if (address.startsWith("unix:")) {
            socket = connectUnix(address.substring("unix:".length()));
        } else if (address.startsWith("tcp:") && address.lastIndexOf(':') > 4) {
            int colon = address.lastIndexOf(':');
            socket = SocketChannel.open();
            int port = Integer.parseInt(address.substring(colon + 1));
            socket.connect(new InetSocketAddress(address.substring(4, colon), port));
            socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
        } else {
            throw new IOException("\"" + address + "\" is not a valid address: expected unix:/path or tcp:host:port");
        }
        socket.configureBlocking(false);
        return new HostChannel(socket);
    }

    /** Java has unix sockets from version 16 on, and this code is compiled for version 11. */
    private static SocketChannel connectUnix(String path) throws IOException {
        try {
            Class<?> type = Class.forName("java.net.UnixDomainSocketAddress");
            SocketAddress address = (SocketAddress) type.getMethod("of", String.class).invoke(null, path);
            return SocketChannel.open(address);
        } catch (ReflectiveOperationException error) {
            throw new IOException("Java " + System.getProperty("java.version")
                    + " has no unix sockets: use tcp:host:port");
        }
    }

    /** Queues a message. It waits only if the host reads slowly. */
    public void send(JsonWriter message) {
        checkSize(message);
        outbox.add(message.frame(), true);
    }

    /** Queues a small message of the reader thread, which must not wait. */
    public void sendAtOnce(JsonWriter message) {
        checkSize(message);
        outbox.add(message.frame(), false);
    }

    private static void checkSize(JsonWriter message) {
        if (message.size() > MAX_FRAME_BYTES) {
            String text = "the message has " + message.size() + " bytes, but the limit is " + MAX_FRAME_BYTES
                    + " bytes";
            throw new JsonError(text);
        }
    }

    /** Writes what is queued, for at most about a second. For the end of the process. */
    public void flush() {
        outbox.flush(1000);
    }

    /** Reads messages until the host closes the connection. An error means that the stream cannot be read further. */
    public void read(FrameHandler handler) throws IOException {
        try (Selector selector = Selector.open()) {
            socket.register(selector, SelectionKey.OP_READ);
            ByteBuffer buffer = ByteBuffer.allocateDirect(READ_BUFFER_BYTES);
            while (true) {
                int count = socket.read(buffer);
                if (count < 0) {
                    if (buffer.position() > 0) {
                        throw new IOException("The host closed the connection in the middle of a message.");
                    }
                    return;
                }
                if (count == 0) {
                    selector.select();
                    selector.selectedKeys().clear();
                    // Another thread may have interrupted this one. The selector would not wait any more.
                    Thread.interrupted();
                    continue;
                }
                buffer.flip();
                while (buffer.remaining() >= HEADER_BYTES) {
                    int length = buffer.getInt(buffer.position());
                    if (length < 0 || length > MAX_FRAME_BYTES) {
                        long size = Integer.toUnsignedLong(length);
                        throw new IOException("The host sent a message of " + size + " bytes, but the limit is "
                                + MAX_FRAME_BYTES + ".");
                    }
                    if (buffer.remaining() >= HEADER_BYTES + length) {
                        byte[] frame = new byte[length];
                        buffer.position(buffer.position() + HEADER_BYTES);
                        buffer.get(frame);
                        handler.receive(frame);
                    } else if (HEADER_BYTES + length > buffer.capacity()) {
                        byte[] frame = readLong(selector, buffer, length);
                        handler.receive(frame);
                    } else {
                        break;
                    }
                }
                buffer.compact();
            }
        }
    }

    /** Reads a message that is longer than the buffer. */
    private byte[] readLong(Selector selector, ByteBuffer buffer, int length) throws IOException {
        byte[] frame = new byte[length];
        buffer.position(buffer.position() + HEADER_BYTES);
        int filled = buffer.remaining();
        buffer.get(frame, 0, filled);
        while (filled < length) {
            buffer.clear().limit(Math.min(buffer.capacity(), length - filled));
            int count = socket.read(buffer);
            if (count < 0) throw new IOException("The host closed the connection in the middle of a message.");
            if (count == 0) {
                selector.select();
                selector.selectedKeys().clear();
                Thread.interrupted();
                continue;
            }
            buffer.flip();
            buffer.get(frame, filled, count);
            filled += count;
        }
        buffer.clear().limit(0);
        return frame;
    }
}
