"""The Python language worker: loads a function app and runs its functions for the host.

There are three kinds of threads. The reader thread reads messages from the host and never runs user code. It therefore
responds, and detects the exit of the host, even if functions block. The main thread has the event loop. It imports the
app and runs coroutine functions. Pool threads run ordinary functions and send their responses.

The worker uses only the standard library. All other modules, including `azure.functions`, are the app's.
"""

import argparse
import asyncio
import collections
import contextvars
import os
import platform
import signal
import sys
import threading
import traceback
import types

from .app import App
from .channel import BadFrame, Channel, connect, end
from .failures import CANCELLED, SUCCESS, LoadError, failure, load_failure, summary, user_trace
from .function import Function
from .invocation import Invocation
from .logs import current_invocation, set_up_logging
from .threads import ContextExecutor, ThreadPool, thread_limit

WORKER_VERSION = "0.1.0"
CAPABILITIES = (
    "TypedDataCollection",
    "WorkerStatus",
    "HandlesWorkerTerminateMessage",
    "HandlesInvocationCancelMessage",
    "RawHttpBodyBytes",
    "RpcHttpBodyOnly",
    "RpcHttpTriggerMetadataRemoved",
)


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--worker-id", default="")
    parser.add_argument("--request-id", default="")
    options, _ = parser.parse_known_args()

    # Ctrl-C reaches the whole process group, but the host decides when a worker exits. Unlike SIG_IGN, an empty handler
    # is not inherited by the programs that functions start.
    signal.signal(signal.SIGINT, lambda *_: None)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    set_import_path(os.getcwd())
    # An invocation passes through two or three threads, and each may wait this long for a function that only computes.
    # Python's default is five times as long.
    sys.setswitchinterval(0.001)

    try:
        channel = Channel(connect(options.socket))
    except OSError as error:
        end(1, f"Cannot connect to the host at {options.socket}: {error}")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=channel.leave_to_parent)
    set_up_logging(channel)

    threads = thread_limit()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_default_executor(ContextExecutor(threads, "executor"))
    worker = Worker(channel, loop, threads)
    channel.send({"requestId": options.request_id, "startStream": {"workerId": options.worker_id}})
    threading.Thread(target=worker.serve, name="reader", daemon=True).start()
    while True:
        try:
            loop.run_forever()
        except BaseException:
            # A task of user code raised SystemExit or a similar exception. Nothing else ends the loop.
            traceback.print_exc()


def set_import_path(root):
    """Puts the app and its packages first in the import path, as Azure does, and removes the worker's folder."""
    own = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = os.path.join(root, ".python_packages", "lib")
    first = [root, os.path.join(packages, "site-packages"), os.path.join(packages, version, "site-packages")]
    first = [folder for folder in first if os.path.isdir(folder)]
    rest = [folder for folder in sys.path if folder not in first and os.path.realpath(folder) != own]
    sys.path[:] = first + rest


class Worker:
    def __init__(self, channel, loop, threads):
        self.channel = channel
        self.loop = loop
        self.pool = ThreadPool(threads, self.run_in_thread)
        self.app = App(os.getcwd())
        self.functions = {}      # function id → Function, or the StatusResult of the load that failed
        self.waiting = {}        # invocation id → Invocation that no thread has started
        self.running = {}        # invocation id → Invocation on the event loop
        self.loop_calls = collections.deque()
        self.loop_is_woken = False
        self.requests = {
            "workerInitRequest": self.init,
            "functionsMetadataRequest": self.describe,
            "functionLoadRequest": self.load,
        }

    def serve(self):
        """Runs the reader thread. The process exits when it ends, because there is no host any more."""
        try:
            for message in self.channel.messages():
                try:
                    self.dispatch(message)
                except Exception as error:
                    print(f"The worker cannot handle a message from the host: {summary(error)}", file=sys.stderr)
        except BadFrame as error:
            end(1, str(error))
        except OSError:
            pass
        except BaseException as error:
            end(1, f"The worker failed: {user_trace(error)}")
        os._exit(1)

    def dispatch(self, message):
        request_id = message.get("requestId", "")
        request = message.get("invocationRequest")
        if request is not None:
            self.invoke(request_id, request)
        elif "workerStatusRequest" in message:
            self.channel.send({"requestId": request_id, "workerStatusResponse": {}})
        elif "invocationCancel" in message:
            self.call_on_loop(self.cancel, message["invocationCancel"].get("invocationId", ""))
        elif "workerTerminate" in message:
            end(0)
        else:
            for name, handler in self.requests.items():
                if name in message:
                    self.call_on_loop(self.respond, request_id, handler, message[name])

    def call_on_loop(self, function, *arguments):
        """Runs a function on the event loop, in order. One wake-up is enough for all queued calls."""
        self.loop_calls.append((function, arguments))
        if not self.loop_is_woken:
            self.loop_is_woken = True
            self.loop.call_soon_threadsafe(self.run_loop_calls)

    def run_loop_calls(self):
        # Reset first, so that a call that is added from now on wakes the loop again, possibly without need.
        self.loop_is_woken = False
        while self.loop_calls:
            function, arguments = self.loop_calls.popleft()
            try:
                function(*arguments)
            except Exception as error:
                print(f"The worker cannot handle a message from the host: {summary(error)}", file=sys.stderr)

    def respond(self, request_id, handler, request):
        self.channel.send({"requestId": request_id, **handler(request)})

    # Requests about the app run on the event loop, as in Azure, because modules may require a running loop.

    def init(self, request):
        properties = {}
        self.app.root = os.path.abspath(request.get("functionAppDirectory") or os.getcwd())
        try:
            library = self.app.import_library()
            properties = {"modelName": "azure-functions", "modelVersion": getattr(library, "__version__", "")}
            result = {"status": SUCCESS}
        except LoadError as error:
            result = load_failure(error)
        return {"workerInitResponse": {
            "capabilities": dict.fromkeys(CAPABILITIES, "true"),
            "workerMetadata": {
                "runtimeName": "python",
                "runtimeVersion": platform.python_version(),
                "workerVersion": WORKER_VERSION,
                "workerBitness": platform.machine(),
                "customProperties": properties,
            },
            "result": result,
        }}

    def describe(self, request):
        response = {"result": {"status": SUCCESS}}
        try:
            if self.app.has_script():
                response["functionMetadataResults"] = self.app.describe_functions()
            else:
                response["useDefaultMetadataIndexing"] = True
        except BaseException as error:
            response["result"] = load_failure(error)
        return {"functionMetadataResponse": response}

    def load(self, request):
        key = request.get("functionId", "")
        try:
            self.functions[key] = self.app.load(key, request.get("metadata") or {})
            result = {"status": SUCCESS}
        except BaseException as error:
            self.functions[key] = result = load_failure(error)
        return {"functionLoadResponse": {"functionId": key, "result": result}}

    # Invocations.

    def invoke(self, request_id, request):
        function = self.functions.get(request.get("functionId"))
        if not isinstance(function, Function):
            # The load request may still be queued for the event loop.
            self.call_on_loop(self.invoke_late, request_id, request)
            return
        invocation = Invocation(request_id, request, function)
        if function.is_coroutine:
            self.call_on_loop(self.start, invocation, None)
        else:
            self.waiting[invocation.id] = invocation
            self.pool.submit(invocation)

    def invoke_late(self, request_id, request):
        key = request.get("functionId")
        function = self.functions.get(key)
        if isinstance(function, Function):
            self.invoke(request_id, request)
        else:
            result = function or failure(f"The worker has not loaded a function with the id '{key}'.")
            self.channel.send_text(Invocation(request_id, request, None).ended(result))

    def run_in_thread(self, invocation):
        if self.waiting.pop(invocation.id, None) is not None:
            # Run in a copy of the context, so that changes do not affect the next invocation on this thread.
            contextvars.copy_context().run(self.run, invocation)

    def run(self, invocation):
        try:
            current_invocation.set(invocation.id)
            value = invocation.function.call(**invocation.arguments())
            if isinstance(value, types.CoroutineType):
                # An ordinary function, such as a decorator, that wraps a coroutine function.
                self.call_on_loop(self.start, invocation, value)
                return
            self.channel.send_text(invocation.succeeded(value))
        except BaseException as error:
            self.channel.send_text(invocation.failed(error))

    def start(self, invocation, coroutine):
        self.running[invocation.id] = invocation
        invocation.task = self.loop.create_task(self.run_on_loop(invocation, coroutine))

    async def run_on_loop(self, invocation, coroutine):
        invocation.is_started = True
        current_invocation.set(invocation.id)
        try:
            if coroutine is None:
                coroutine = invocation.function.call(**invocation.arguments())
            self.channel.send_text(invocation.succeeded(await coroutine))
        except BaseException as error:
            if invocation.is_cancelled and isinstance(error, asyncio.CancelledError):
                self.channel.send_text(invocation.ended({"status": CANCELLED}))
            else:
                self.channel.send_text(invocation.failed(error))
        finally:
            self.running.pop(invocation.id, None)

    def cancel(self, key):
        """Cancels a coroutine, or a function that no thread has started. Running functions cannot be cancelled."""
        invocation = self.waiting.pop(key, None)
        if invocation is None:
            invocation = self.running.get(key)
            if invocation is None:
                return
            invocation.is_cancelled = True
            invocation.task.cancel()
            if invocation.is_started:
                return
            # The task ends before its first step, so the response is sent here.
            del self.running[key]
        self.channel.send_text(invocation.ended({"status": CANCELLED}))
