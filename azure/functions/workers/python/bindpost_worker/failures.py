"""Error messages that name the place in the user's own code."""

import importlib
import importlib.metadata
import inspect
import os
import re
import traceback

FAILURE, SUCCESS, CANCELLED = 0, 1, 2

# What versions of azure-functions have added for MCP: the first release with it of 1.x and of 2.x.
ADDED = {
    "mcp_tool_trigger": ("1.24.0", "2.0.0"),
    "mcp_tool": ("1.25.0", "2.0.0"),
    "mcp_tool_property": ("1.25.0", "2.0.0"),
    "mcp_resource_trigger": ("1.25.0", "2.0.0"),
    "McpPropertyType": ("1.25.0", "2.0.0"),
    "MCPToolContext": ("1.25.0", "2.0.0"),
    "mcp_prompt_trigger": ("1.26.0b3", "2.2.0"),
    "mcp_content": ("1.26.0b3", "2.2.0"),
    "PromptArgument": ("1.26.0b3", "2.2.0"),
    "PromptInvocationContext": ("1.26.0b3", "2.2.0"),
}
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
    missing = missing_feature(error)
    if missing:
        return LoadError(f"{place}: {advise_upgrade(missing, root)}")
    text = describe(error)
    return LoadError(f"{type(error).__name__} in {place}" + (f": {text}" if text else ""))


def missing_feature(error):
    """Returns the name that the installed azure-functions does not have, if a later version has it."""
    if not isinstance(error, (AttributeError, ImportError)):
        return None
    # The attribute `name` of the error exists from Python 3.10 on only, and is the module's name for imports.
    quoted = re.findall(r"'([^']*)'", describe(error))
    return next((name for name in quoted if name in ADDED), None)


def advise_upgrade(name, root):
    installed = library_version()
    needed = ADDED[name][1 if installed.startswith("2.") else 0]
    has_file = os.path.isfile(os.path.join(root, "pyproject.toml")) and not os.path.isfile(
        os.path.join(root, "requirements.txt")
    )
    file = "pyproject.toml" if has_file else "requirements.txt"
    text = f"{name} needs azure-functions {needed} or newer, but {installed or 'an older version'} is installed. "
    text += f"Require azure-functions>={needed} in {file}"
    if name in ("mcp_prompt_trigger", "mcp_resource_trigger"):
        kind, members = {
            "mcp_prompt_trigger": ("mcpPromptTrigger", 'promptName="…"'),
            "mcp_resource_trigger": ("mcpResourceTrigger", 'uri="…", resourceName="…"'),
        }[name]
        text += f', or use @app.generic_trigger(arg_name="context", type="{kind}", {members})'
    return text


def library_version():
    """Returns the version of azure-functions that the app imports."""
    try:
        return importlib.import_module("azure.functions").__version__
    except Exception:
        pass
    try:
        return importlib.metadata.version("azure-functions")
    except importlib.metadata.PackageNotFoundError:
        return ""


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
