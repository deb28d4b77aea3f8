"""One invocation of a function: its arguments, its outputs and its response."""

import types

from .channel import encode_json, quote
from .failures import failure_of, summary
from .logs import thread_local_storage


class Invocation:
    """One invocation of a function."""

    __slots__ = ("id", "request_id", "request", "function", "outputs", "task", "is_started", "is_cancelled")

    def __init__(self, request_id, request, function):
        self.id = request.get("invocationId", "")
        self.request_id = request_id
        self.request = request
        self.function = function
        self.outputs = ()
        self.task = None
        self.is_started = self.is_cancelled = False

    def arguments(self):
        function, request = self.function, self.request
        given = {item["name"]: item.get("data") for item in request.get("inputData", ())}
        arguments = {}
        for name, read in function.inputs:
            try:
                arguments[name] = read(given.get(name) or {}, request)
            except Exception as error:
                raise ValueError(f"the input for '{name}' cannot be read: {summary(error)}") from error
        if function.outputs:
            self.outputs = [(name, write, Output()) for name, write in function.outputs]
            for name, _, output in self.outputs:
                arguments[name] = output
        if function.wants_context:
            arguments["context"] = InvocationContext(self)
        return arguments

    def succeeded(self, value):
        if isinstance(value, (types.GeneratorType, types.AsyncGeneratorType)):
            raise TypeError(f"the function returned a {type(value).__name__}; a result must be a complete value")
        members = '"result":{"status":1}'
        returned = self.function.write_result(value)
        if returned is not None:
            members += f',"returnValue":{encode_typed(returned)}'
        if self.outputs:
            written = [(name, write(output.value)) for name, write, output in self.outputs if output.value is not None]
            written = [f'{{"name":{quote(name)},"data":{encode_typed(data)}}}' for name, data in written if data]
            members += f',"outputData":[{",".join(written)}]'
        return self.answer(members)

    def failed(self, error):
        return self.ended(failure_of(error))

    def ended(self, result):
        return self.answer(f'"result":{encode_json(result)}')

    def answer(self, members):
        """Returns the response as JSON. It is built by hand, because an encoder is slower than a small invocation."""
        head = f'{{"requestId":{quote(self.request_id)},' if self.request_id else "{"
        return f'{head}"invocationResponse":{{"invocationId":{quote(self.id)},{members}}}}}'


def encode_typed(data):
    kind, value = data
    return f'{{"{kind}":{quote(value) if isinstance(value, str) else encode_json(value)}}}'


class Output:
    """The argument for an `out` binding. It is registered as a subclass of `azure.functions.Out`."""

    __slots__ = ("value",)

    def __init__(self):
        self.value = None

    def set(self, value):
        self.value = value

    def get(self):
        return self.value


class InvocationContext:
    """The argument for a parameter named `context`. It is registered as a subclass of `azure.functions.Context`."""

    thread_local_storage = thread_local_storage

    def __init__(self, invocation):
        self.invocation_id = invocation.id
        self.function_name = invocation.function.name
        self.function_directory = invocation.function.directory
        self.trace_context = TraceContext(invocation.request.get("traceContext") or {})
        self.retry_context = RetryContext(invocation.request.get("retryContext") or {})


class TraceContext:
    def __init__(self, trace):
        self.trace_parent = trace.get("traceParent", "")
        self.trace_state = trace.get("traceState", "")
        self.attributes = trace.get("attributes", {})

    # Azure's documentation also uses these spellings.
    Traceparent = property(lambda self: self.trace_parent)
    Tracestate = property(lambda self: self.trace_state)
    Attributes = property(lambda self: self.attributes)


class RetryContext:
    def __init__(self, retry):
        error = retry.get("exception") or {}
        self.retry_count = retry.get("retryCount", 0)
        self.max_retry_count = retry.get("maxRetryCount", 0)
        self.exception = types.SimpleNamespace(
            source=error.get("source", ""), stack_trace=error.get("stackTrace", ""), message=error.get("message", "")
        )
