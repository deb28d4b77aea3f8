package bindpost.worker.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;

/**
 * The messages to the host. The thread that adds one writes the queue, unless another thread writes already. That one
 * finds the new message when it looks again. Messages of several threads therefore leave in few writes, and no message
 * waits for another thread to wake up.
 *
 * <p>When the socket is full, a thread of its own writes the rest, because only that thread may wait for the host.
 */
final class FrameOutbox {
    private static final int WRITE_BUFFER_BYTES = 64 * 1024;
    /** Above this, threads wait until the host has read. Otherwise a loop that logs would fill the memory. */
    private static final long MAX_QUEUED_BYTES = 32 * 1024 * 1024;

    private final SocketChannel socket;
    private final Object lock = new Object();
    // The lock guards these.
    private final ArrayDeque<OutgoingFrame> queue = new ArrayDeque<>();
    private long queuedBytes;
    private boolean isWriting;
    private boolean hasRest;
    private Thread rests;

    // The thread that is writing owns these.
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(WRITE_BUFFER_BYTES);
    /** A frame that does not fit into the buffer as a whole, and how much of it was copied there. */
    private OutgoingFrame current;
    private int copied;

    FrameOutbox(SocketChannel socket) {
        this.socket = socket;
        buffer.limit(0);
    }

    void add(OutgoingFrame frame, boolean mayWait) {
        synchronized (lock) {
            if (mayWait && queuedBytes > MAX_QUEUED_BYTES) waitForSpace();
            queue.add(frame);
            queuedBytes += frame.length;
            if (isWriting) return;
            isWriting = true;
        }
        writeQueue();
    }

    /** Waits until everything is written, or for the given time. */
    void flush(long milliseconds) {
        long deadline = System.currentTimeMillis() + milliseconds;
        synchronized (lock) {
            while (isWriting && System.currentTimeMillis() < deadline) {
                try {
                    lock.wait(10);
                } catch (InterruptedException error) {
                    return;
                }
            }
        }
    }

    private void waitForSpace() {
        boolean isInterrupted = false;
        while (queuedBytes > MAX_QUEUED_BYTES) {
            try {
                lock.wait();
            } catch (InterruptedException error) {
                isInterrupted = true;
            }
        }
        if (isInterrupted) Thread.currentThread().interrupt();
    }

    private void writeQueue() {
        try {
            while (fill()) {
                socket.write(buffer);
                if (buffer.hasRemaining()) {
                    leaveRest();
                    return;
                }
            }
        } catch (IOException error) {
            // There is no host any more. The reader sees it too and may be the one to report it.
            Runtime.getRuntime().halt(1);
        }
    }

    /** Fills the buffer with queued bytes. Returns false, and ends writing, if there are none. */
    private boolean fill() {
        buffer.clear();
        synchronized (lock) {
            long before = queuedBytes;
            while (buffer.hasRemaining()) {
                if (current == null) {
                    current = queue.poll();
                    copied = 0;
                    if (current == null) break;
                }
                int count = Math.min(buffer.remaining(), current.length - copied);
                buffer.put(current.bytes, copied, count);
                copied += count;
                queuedBytes -= count;
                if (copied == current.length) current = null;
            }
            if (before > MAX_QUEUED_BYTES) lock.notifyAll();
            if (buffer.position() == 0) {
                isWriting = false;
                lock.notifyAll();
                return false;
            }
        }
        buffer.flip();
        return true;
    }

    private void leaveRest() {
        synchronized (lock) {
            hasRest = true;
            if (rests == null) {
                rests = new Thread(this::writeRests, "bindpost writer");
                rests.setDaemon(true);
                rests.start();
            }
            lock.notifyAll();
        }
    }

    /** Runs the thread that waits for a host which reads slowly. */
    private void writeRests() {
        try (Selector selector = Selector.open()) {
            socket.register(selector, SelectionKey.OP_WRITE);
            while (true) {
                synchronized (lock) {
                    while (!hasRest) {
                        try {
                            lock.wait();
                        } catch (InterruptedException error) {
                            // No thread has a reason to interrupt this one.
                        }
                    }
                    hasRest = false;
                }
                while (buffer.hasRemaining()) {
                    selector.select();
                    selector.selectedKeys().clear();
                    Thread.interrupted();
                    socket.write(buffer);
                }
                writeQueue();
            }
        } catch (IOException error) {
            Runtime.getRuntime().halt(1);
        }
    }
}
