"""Threads for ordinary functions, and for calls that coroutine functions pass to an executor."""

import collections
import concurrent.futures
import contextvars
import os
import threading
import traceback

# A blocked function costs little more than its stack, and it must not delay others. The limit only protects against a
# client that sends too many requests. Threads are created when all others are busy.
DEFAULT_THREADS = 1000


def thread_limit():
    try:
        return max(1, int(os.environ["PYTHON_THREADPOOL_THREAD_COUNT"]))
    except (KeyError, ValueError):
        return DEFAULT_THREADS


class ThreadPool:
    """Threads for ordinary functions, created when all others are busy.

    Only one thread is woken at a time: the one that ran last. A thread that takes an item while more are queued wakes
    the next thread. Functions that block therefore get a thread each, while short functions share the few threads that
    are awake. Waking a thread for every function would only cause contention for the interpreter lock.
    """

    def __init__(self, limit, run):
        self.limit = limit
        self.run = run
        self.work = collections.deque()
        self.idle = []           # one locked lock per sleeping thread; releasing it wakes the thread
        self.threads = 0
        self.is_waking = False   # a thread was woken or created and has not checked the queue yet
        self.lock = threading.Lock()

    def submit(self, item):
        with self.lock:
            self.work.append(item)
            self.wake()

    def wake(self):
        if self.is_waking or not self.work:
            return
        if self.idle:
            self.is_waking = True
            self.idle.pop().release()
        elif self.threads < self.limit:
            try:
                threading.Thread(target=self.serve, name=f"function-{self.threads + 1}", daemon=True).start()
            except RuntimeError as error:
                # The system cannot create more threads. With at least one thread, the work is only delayed.
                if not self.threads:
                    self.work.clear()
                    raise error
                return
            self.threads += 1
            self.is_waking = True

    def serve(self):
        bell = threading.Lock()
        bell.acquire()
        is_awake = False
        while True:
            with self.lock:
                if not is_awake:
                    is_awake, self.is_waking = True, False
                if self.work:
                    item = self.work.popleft()
                    self.wake()
                else:
                    item, is_awake = None, False
                    self.idle.append(bell)
            if item is None:
                bell.acquire()
                continue
            try:
                self.run(item)
            except BaseException:
                traceback.print_exc()


class ContextExecutor(concurrent.futures.ThreadPoolExecutor):
    """The event loop's executor. It copies the context, so that logs from its threads have their invocation id."""

    def submit(self, function, *arguments, **named):
        return super().submit(contextvars.copy_context().run, function, *arguments, **named)
