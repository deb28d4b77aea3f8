"""Loaded functions. How parameters and results are converted is decided once, when a function is loaded."""

import base64
import collections
import contextlib
import email.utils
import inspect
import json
import typing

from .failures import LoadError

SAME_SITE = {"lax": 1, "strict": 2, "none": 3}
Binding = collections.namedtuple("Binding", "name type is_out is_trigger")


class Function:
    """A loaded function, with the converters of its parameters and of its result."""

    def __init__(self, library, name, directory, function, bindings):
        self.library = library
        self.name = name
        self.directory = directory
        self.call = function
        signature = inspect.signature(function)
        try:
            hints = typing.get_type_hints(function)
        except Exception:
            hints = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}

        returned = bindings.pop("$return", None)
        self.check(signature, bindings)
        self.wants_context = "context" in signature.parameters and "context" not in bindings
        self.inputs = [(b.name, self.reader(b, hints.get(b.name))) for b in bindings.values() if not b.is_out]
        self.outputs = [(b.name, self.writer(b, hints.get(b.name))) for b in bindings.values() if b.is_out]
        trigger = next((b for b in bindings.values() if b.is_trigger), None)
        if returned is not None:
            write = self.writer(returned, None)
            self.write_result = lambda value: None if value is None else write(value)
        else:
            self.write_result = self.writer(trigger, None)

        self.is_coroutine = inspect.iscoroutinefunction(function)
        if self.is_coroutine and hides_ordinary_function(function):
            # The library's wrapper is a coroutine function that calls the user's ordinary function. On the event loop,
            # a blocking function would delay all others.
            self.is_coroutine = False
            self.call = lambda **arguments: finish_without_loop(function(**arguments))

    def check(self, signature, bindings):
        """Rejects a function that would fail on every invocation."""
        users = self.call.__wrapped__ if is_librarys(self.call) and hasattr(self.call, "__wrapped__") else self.call
        if inspect.isgeneratorfunction(users) or inspect.isasyncgenfunction(users):
            raise LoadError(f"Function '{self.name}' is a generator; it must return its result, not yield it.")
        parameters = signature.parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            extra = [name for name in bindings if name not in signature.parameters]
            if extra:
                raise LoadError(f"Function '{self.name}' has no parameter for the binding {quoted(extra)}.")
        optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        needed = [p.name for p in parameters if p.default is p.empty and p.kind not in optional]
        unbound = [name for name in needed if name not in bindings and name != "context"]
        if unbound:
            raise LoadError(f"Function '{self.name}' has no binding for the parameter {quoted(unbound)}.")

    def reader(self, binding, hint):
        """Returns a function that converts typed data and the invocation request to an argument."""
        converter = self.library.get_binding_registry().get(binding.type)
        datum_of, hint = self.datum_of, plain_type(hint)
        if not binding.is_trigger and hint in (str, bytes):
            return lambda data, request: convert(datum_of(data), hint)
        if converter is None or not hasattr(converter, "decode"):
            return lambda data, request: datum_of(data).value
        decode = converter.decode
        if not binding.is_trigger or binding.type.startswith("mcp"):
            return lambda data, request: decode(datum_of(data), trigger_metadata=None)

        def read(data, request):
            metadata = {name: datum_of(value) for name, value in request.get("triggerMetadata", {}).items()}
            return decode(datum_of(data), trigger_metadata=metadata)

        return read

    def writer(self, binding, hint):
        """Returns a function that converts a value to typed data: a pair of kind and text, or None for no value."""
        converter = self.library.get_binding_registry().get(binding.type) if binding else None
        if converter is None or not hasattr(converter, "encode"):
            return typed_data
        encode, expected = converter.encode, (typing.get_args(hint) or (None,))[0]
        if expected in (str, bytes):
            # Like the public worker, which also writes numbers and JSON if the type hint is plain.
            return typed_data

        def write(value):
            try:
                datum = encode(value, expected_type=expected)
            except NotImplementedError:
                kind = f"the {binding.type} binding '{binding.name}'"
                raise TypeError(f"{kind} does not support a value of type {type(value).__name__}") from None
            return None if datum is None else typed_data_of(datum)

        return write

    def datum_of(self, data):
        """Converts typed data to the library's Datum. Empty typed data means no value."""
        for kind, value in data.items():
            if kind in ("bytes", "stream"):
                return self.library.meta.Datum(base64.b64decode(value), "bytes")
            if kind == "http":
                return self.library.meta.Datum(self.http_request(value), kind)
            if kind == "int":
                value = int(value)
            return self.library.meta.Datum(value, kind)
        return self.library.meta.Datum(None, None)

    def http_request(self, request):
        """Converts a request to the Datums that the library's converter reads."""
        datum = self.library.meta.Datum
        texts = {name: datum(request.get(name, ""), "string") for name in ("method", "url")}
        for name in ("headers", "query", "params"):
            texts[name] = {key: datum(text, "string") for key, text in request.get(name, {}).items()}
        body = request.get("body")
        return {**texts, "body": self.datum_of(body) if body else datum(b"", "bytes")}


def quoted(names):
    return ", ".join(f"'{name}'" for name in names)


def is_librarys(function):
    return getattr(function, "__globals__", {}).get("__name__", "").startswith("azure.functions")


def hides_ordinary_function(function):
    inner = getattr(function, "__wrapped__", None)
    if inner is None or not is_librarys(function):
        return False
    while inner is not None:
        if inspect.iscoroutinefunction(inner):
            return False
        inner = getattr(inner, "__wrapped__", None)
    return True


def finish_without_loop(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("an ordinary function returned an awaitable; declare it with async def")


def plain_type(hint):
    """Returns `str` for `Optional[str]` and for 'str', and the same for `bytes`. Other hints are unchanged."""
    arguments = set(typing.get_args(hint))
    for kind in (str, bytes):
        if arguments == {kind, type(None)} or hint == kind.__name__:
            return kind
    return hint


def convert(datum, kind):
    value = datum.value
    if kind is str and isinstance(value, bytes):
        return value.decode("utf-8")
    if kind is bytes and isinstance(value, str):
        return value.encode("utf-8")
    return value


def typed_data(value):
    """Converts a value of a binding that the library does not support."""
    if value is None:
        return None
    if isinstance(value, str):
        return "string", value
    if isinstance(value, (bytes, bytearray)):
        return "bytes", base64.b64encode(value).decode("ascii")
    try:
        return "json", json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        pass
    return "string", str(value)


def typed_data_of(datum):
    kind, value = datum.type, datum.value
    if kind == "http":
        return kind, http_response(value)
    if kind in ("string", "json") and isinstance(value, str):
        return kind, value
    if kind is None or value is None:
        return None
    if kind in ("string", "bytes", "json", "dict", "list", "bool", "int", "double"):
        return typed_data(value)
    raise TypeError(f"a value of kind '{kind}' cannot be sent to the host")


def http_response(response):
    """Converts the library's response to the members of a response in the worker protocol."""
    cookies = [cookie for jar in response.get("cookies") or () for cookie in jar.values()]
    body = typed_data_of(response["body"])
    return {
        "statusCode": response["status_code"].value,
        "headers": {name: header.value for name, header in response["headers"].items()},
        "cookies": [http_cookie(cookie) for cookie in cookies],
        "body": {body[0]: body[1]} if body else {},
    }


def http_cookie(cookie):
    """Converts a cookie. The protocol has an object for each attribute that may be missing."""
    attributes = {"name": cookie.key, "value": cookie.coded_value}
    for name in ("domain", "path"):
        if cookie[name]:
            attributes[name] = {"value": cookie[name]}
    # Browsers ignore a time that they cannot read, too.
    with contextlib.suppress(ValueError, TypeError):
        expires = email.utils.parsedate_to_datetime(cookie["expires"])
        attributes["expires"] = {"value": {"seconds": int(expires.timestamp())}}
    with contextlib.suppress(ValueError, TypeError):
        attributes["maxAge"] = {"value": float(cookie["max-age"])}
    attributes["secure"] = {"value": bool(cookie["secure"])}
    attributes["httpOnly"] = {"value": bool(cookie["httponly"])}
    attributes["sameSite"] = SAME_SITE.get(str(cookie["samesite"]).lower(), 0)
    return attributes
