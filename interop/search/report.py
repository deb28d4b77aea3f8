"""One line per check on stdout: `ok`, `skip` or `FAIL`. `cargo xtask search-tour` reads these lines."""

import asyncio
import os
import threading
import traceback

TOTAL_SECONDS = 240
CHECK_SECONDS = 60

_checks = []


class Skip(Exception):
    """This generation of the package does not support the feature."""


def check(body):
    """Registers a function as a check. Its name describes the expected behavior. Checks run in the order of the source."""
    _checks.append((body.__name__.replace("_", " "), body))
    return body


async def run(*args):
    """Runs all checks. A check that raises or hangs fails. Later checks still run."""
    # A thread, because a client without async that hangs would also hang a timeout of the event loop.
    late = threading.Timer(TOTAL_SECONDS, _end, [f"FAIL total: not done after {TOTAL_SECONDS} s"])
    late.daemon = True
    late.start()
    failed = False
    for name, body in _checks:
        try:
            await asyncio.wait_for(body(*args), CHECK_SECONDS)
            line = f"ok {name}"
        except Skip as why:
            line = f"skip {name}: {why}"
        except Exception as error:
            failed = True
            line = f"FAIL {name}: {_reason(error)}"
        print(line, flush=True)
    return failed


def same(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{seen!r} is not {wanted!r}")


def has(seen, wanted):
    if wanted not in seen:
        raise AssertionError(f"{wanted!r} is not in {seen!r}")


async def refused(status, calling):
    """Checks that the call fails with this HTTP status, and returns the text of the error."""
    try:
        await calling
    except Exception as error:
        if getattr(error, "status_code", None) != status:
            raise
        return str(error)
    raise AssertionError(f"this should have been refused with {status}")


def _reason(error):
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if _in_a_check(frame)]
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else "the start"
    return " ".join(f"{type(error).__name__} at {place}: {error}".split())


def _in_a_check(frame):
    return os.path.dirname(frame.filename) == os.path.dirname(__file__) and frame.filename != __file__


def _end(line):
    print(line, flush=True)
    os._exit(1)
