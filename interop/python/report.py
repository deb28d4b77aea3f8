"""One line per check on stdout: `ok`, `skip` or `FAIL`. `cargo xtask interop` reads these lines."""

import os
import sys
import threading

import anyio

TOTAL_SECONDS = 60
CHECK_SECONDS = 20

_failed = False


def run(body):
    """Runs `body`, which runs the checks, and exits with the result."""
    # A thread, because a client that hangs while it closes would also hang a timeout of the event loop.
    late = threading.Timer(TOTAL_SECONDS, _end, ["total", f"not done after {TOTAL_SECONDS} s"])
    late.daemon = True
    late.start()
    try:
        anyio.run(body)
    except BaseException as error:
        _end("run", reason(error))
    sys.exit(1 if _failed else 0)


async def check(name, body):
    """Runs a check. A check that raises or hangs fails. Later checks still run."""
    try:
        with anyio.fail_after(CHECK_SECONDS):
            await body()
        print(f"ok {name}", flush=True)
    except Exception as error:
        _fail(name, reason(error))


def _fail(name, why):
    global _failed
    _failed = True
    print(f"FAIL {name}: {why}", flush=True)


def _end(name, why):
    _fail(name, why)
    os._exit(1)


def reason(error):
    """Returns the innermost error, because task groups wrap an error in a group of one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())
