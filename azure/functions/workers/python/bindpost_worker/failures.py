"""Error messages that name the place in the user's own code."""

import importlib
import inspect
import os
import traceback

FAILURE, SUCCESS, CANCELLED = 0, 1, 2
OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))


def failure(message, trace=""):
    return {"status": FAILURE, "exception": {"message": message, "stackTrace": trace}}


def summary(error):
    text = describe(error)
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def describe(thing):
    try:
        return str(thing)
    except Exception:
        return f"<{type(thing).__name__}>"


def failure_of(error):
    return failure(summary(error), user_trace(error))


def user_trace(error):
    """Formats the traceback without the frames of this worker and of Python's import system."""
    try:
        trace = traceback.TracebackException(type(error), error, error.__traceback__)
        parts = [trace]
        while parts:
            part = parts.pop()
            part.stack[:] = [frame for frame in part.stack if not is_machinery(frame.filename)]
            parts += [p for p in (part.__cause__, part.__context__) if p is not None]
            parts += getattr(part, "exceptions", None) or []
        return "".join(trace.format())
    except Exception:
        return summary(error)


def is_machinery(filename):
    return filename == importlib.__file__ or filename.startswith((OWN_FOLDER, "<frozen importlib"))


class LoadError(Exception):
    """The app or one of its functions cannot be loaded. The message is for the user. The cause has the traceback."""


def load_failure(error):
    if isinstance(error, LoadError):
        return failure(str(error), user_trace(error.__cause__) if error.__cause__ else str(error))
    return failure_of(error)


def import_error(root, script, error):
    """Returns the error of a failed import, with its place in the app."""
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{relative(error.filename, root)}, line {error.lineno}"
        return LoadError(f"{type(error).__name__} in {place}: {error.msg}")
    place = script
    for frame, line in traceback.walk_tb(error.__traceback__):
        if is_users(frame.f_code.co_filename, root):
            place = f"{relative(frame.f_code.co_filename, root)}, line {line}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        if is_apps_own(error.name, root):
            return LoadError(f"{error} ({place})")
        advice = "add its package to requirements.txt and install that"
        return LoadError(f"No module named '{error.name}': {advice} ({place})")
    text = describe(error)
    return LoadError(f"{type(error).__name__} in {place}" + (f": {text}" if text else ""))


def place_of(function, root):
    """Returns where in the app a function is defined, including its decorators."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{relative(code.co_filename, root)}, line {code.co_firstlineno}" if code else repr(function)


def is_users(filename, root):
    inside = os.path.realpath(filename).startswith(os.path.realpath(root) + os.sep)
    return inside and "site-packages" not in filename and not is_machinery(filename)


def is_apps_own(module, root):
    top = os.path.join(root, module.split(".")[0])
    return module.startswith("__app__") or os.path.exists(top) or os.path.exists(top + ".py")


def relative(path, root):
    return os.path.relpath(os.path.realpath(path), os.path.realpath(root)) if is_users(path, root) else path
