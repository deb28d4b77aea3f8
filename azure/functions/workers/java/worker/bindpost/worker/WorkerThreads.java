package bindpost.worker;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** Makes daemon threads with numbered names. */
final class WorkerThreads implements ThreadFactory {
    private final String name;
    private final AtomicInteger made = new AtomicInteger();

    WorkerThreads(String name) {
        this.name = name;
    }

    @Override
    public Thread newThread(Runnable task) {
        Thread thread = new Thread(task, name + " " + made.incrementAndGet());
        thread.setDaemon(true);
        return thread;
    }
}
