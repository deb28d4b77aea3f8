"""Threads for ordinary functions, and for what coroutine functions hand to an executor."""

import collections
import concurrent.futures
import contextvars
import os
import threading
import traceback

# Waiting functions cost little more than their stack, and a tool that sleeps must not hold up another one, so the
# limit only guards against a runaway client. Threads are made when all others are busy.
DEFAULT_THREADS = 1000


def thread_limit():
    try:
        return max(1, int(os.environ["PYTHON_THREADPOOL_THREAD_COUNT"]))
    except (KeyError, ValueError):
        return DEFAULT_THREADS


class ThreadPool:
    """Threads for ordinary functions, made when all others are busy.

    Wakes one thread at a time, the one that ran last, and a thread that takes work with more behind it wakes the next.
    So functions that wait get a thread each, while short ones stay with the few threads that are awake. A thread woken
    for every function would only fight the others for the interpreter lock.
    """

    def __init__(self, limit, run):
        self.limit = limit
        self.run = run
        self.work = collections.deque()
        self.idle = []           # one held lock per sleeping thread; releasing it wakes the thread
        self.threads = 0
        self.is_waking = False   # a thread was woken or made and has not looked for work yet
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
                # The system gives no more threads; with at least one, work only waits longer.
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
    """The event loop's executor; takes the context along, so that logs from its threads find their invocation."""

    def submit(self, function, *arguments, **named):
        return super().submit(contextvars.copy_context().run, function, *arguments, **named)
