"""The app on disk: finds its functions, by decorators (v2) or by function.json (v1)."""

import importlib
import importlib.util
import inspect
import logging
import os
import sys
import types
import uuid

from .failures import LoadError, describe, import_error, place_of, relative, summary
from .function import Binding, Function
from .invocation import InvocationContext, Output

DIRECTION_OUT = (1, "out", "OUT")
# The maximum length of a docstring in the metadata of a function.
MOST_DOCSTRING = 16000


class App:
    """The function app on disk. It is indexed at most once. A failure is stored and raised again."""

    def __init__(self, root):
        self.root = root
        self.script = os.environ.get("PYTHON_SCRIPT_FILE_NAME") or "function_app.py"
        self.library = None
        self.indexed = None
        self.failure = None

    def import_library(self):
        if self.library is None:
            try:
                library = importlib.import_module("azure.functions")
            except BaseException as error:
                raise LoadError(
                    f"Cannot import azure.functions ({summary(error)}). Add azure-functions to requirements.txt and "
                    f"install it for this Python: {sys.executable} -m pip install -r requirements.txt"
                ) from error
            if importlib.util.find_spec("azure.functions.mcp"):
                # Version 1.24 has the converters of the MCP triggers but does not register them.
                importlib.import_module("azure.functions.mcp")
            library.Out.register(Output)
            library.Context.register(InvocationContext)
            self.library = library
        return self.library

    def has_script(self):
        return os.path.isfile(os.path.join(self.root, self.script))

    def index(self):
        """Returns the functions of the v2 model: function id → function object of the library."""
        if self.failure is None and self.indexed is None:
            try:
                self.indexed = self.read_functions()
            except LoadError as error:
                self.failure = error
        if self.failure is not None:
            raise self.failure
        return self.indexed

    def read_functions(self):
        library = self.import_library()
        try:
            module = importlib.import_module(os.path.splitext(self.script)[0].replace("/", "."))
        except BaseException as error:
            raise import_error(self.root, self.script, error) from error
        register = library.decorators.function_app.FunctionRegister
        apps = {id(value): value for value in vars(module).values() if isinstance(value, register)}
        if not apps:
            raise LoadError(f"{self.script} has no function app: add `app = func.FunctionApp()` at the top level.")
        if len(apps) > 1:
            names = ", ".join(name for name, value in vars(module).items() if id(value) in apps)
            raise LoadError(f"{self.script} has more than one function app ({names}): make all but one blueprints.")
        (app,) = apps.values()
        with without_auth_level_warning():
            try:
                functions = app.get_functions()
            except BaseException as error:
                raise LoadError(f"{self.blame(app, error)}: {summary(error)}") from error
        return {function_id(function.get_function_name()): function for function in functions}

    def blame(self, app, error):
        """Returns the place of the function that could not be built: the last one whose name is in the error."""
        place, words = self.script, describe(error).split()
        for builder in getattr(app, "_function_builders", ()):
            function = getattr(builder, "_function", None)
            if function is not None and function.get_function_name() in words:
                place = place_of(function.get_user_function(), self.root)
        return place

    def describe_functions(self):
        results = []
        for key, function in self.index().items():
            bindings = {}
            for binding in function.get_bindings():
                info = {"type": binding.type, "direction": binding.direction, "dataType": binding.data_type}
                bindings[binding.name] = {name: value for name, value in info.items() if value}
            results.append({
                "name": function.get_function_name(),
                "functionId": key,
                "directory": self.root,
                "scriptFile": self.script,
                "entryPoint": function.get_user_function().__name__,
                "rawBindings": function.get_raw_bindings(),
                "bindings": bindings,
                "language": "python",
                "properties": {"worker_indexed": "True", **docstring_of(function)},
            })
        return results

    def load(self, key, metadata):
        name = metadata.get("name", "")
        if "worker_indexed" in (metadata.get("properties") or {}):
            indexed = self.index()
            function = indexed.get(key) or indexed.get(function_id(name))
            if function is None:
                raise LoadError(f"{self.script} has no function named '{name}'.")
            trigger = function.get_trigger()
            bindings = [Binding(b.name, b.type, b.direction == 1, b is trigger) for b in function.get_bindings()]
            return self.bind(name, self.root, function.get_user_function(), bindings)
        bindings = []
        for parameter, info in (metadata.get("bindings") or {}).items():
            kind = info.get("type", "")
            is_out = info.get("direction") in DIRECTION_OUT
            bindings.append(Binding(parameter, kind, is_out, kind.lower().endswith("trigger")))
        directory = os.path.join(self.root, metadata.get("directory") or name)
        return self.bind(name, directory, self.import_entry_point(name, directory, metadata), bindings)

    def bind(self, name, directory, function, bindings):
        try:
            return Function(self.import_library(), name, directory, function, {b.name: b for b in bindings})
        except LoadError as error:
            raise LoadError(f"{place_of(function, self.root)}: {error}") from None

    def import_entry_point(self, name, directory, metadata):
        """Imports a v1 function. The app folder is the package `__app__`, so `from ..shared import x` works."""
        path = os.path.realpath(os.path.join(directory, metadata.get("scriptFile") or "__init__.py"))
        shown = relative(path, self.root)
        if not os.path.isfile(path):
            raise LoadError(f"Function '{name}': {shown} does not exist.")
        if "__app__" not in sys.modules:
            package = types.ModuleType("__app__")
            package.__path__ = [self.root]
            sys.modules["__app__"] = package
        try:
            module = import_file(path, os.path.realpath(self.root))
        except BaseException as error:
            raise import_error(self.root, shown, error) from error
        entry_point = metadata.get("entryPoint") or "main"
        function = getattr(module, entry_point, None)
        if not callable(function):
            raise LoadError(f"Function '{name}': {shown} has no function '{entry_point}'.")
        return function


def import_file(path, root):
    parts = os.path.splitext(os.path.relpath(path, root))[0].split(os.sep)
    if parts[-1] == "__init__":
        parts.pop()
    if parts and not any("." in part for part in parts):
        return importlib.import_module(".".join(["__app__"] + parts))
    name = "__app__" + uuid.uuid5(uuid.NAMESPACE_OID, path).hex
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def docstring_of(function):
    """Returns the property with the docstring of a function with an HTTP trigger. It describes the function as a tool."""
    trigger, user_function = function.get_trigger(), function.get_user_function()
    if trigger is None or trigger.type != "httpTrigger" or not inspect.isfunction(user_function):
        return {}
    text = inspect.getdoc(user_function)
    return {"docstring": text[:MOST_DOCSTRING]} if text else {}


def function_id(name):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


class without_auth_level_warning:
    """Suppresses the library's warning that its own default level does not apply to functions without an HTTP trigger."""

    def __enter__(self):
        logging.getLogger().addFilter(self)

    def __exit__(self, *_):
        logging.getLogger().removeFilter(self)

    def filter(self, record):
        return not str(record.msg).startswith("Auth level is not applied")
