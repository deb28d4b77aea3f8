"""Logging: sends log records to the host, with the id of their invocation."""

import contextvars
import logging
import sys
import threading

from .failures import describe, summary

# The id of the current invocation. The thread-local variable is for threads that user code starts. They do not inherit
# context variables, but may set `context.thread_local_storage.invocation_id`.
current_invocation = contextvars.ContextVar("current_invocation", default="")
thread_local_storage = threading.local()


class HostHandler(logging.Handler):
    def __init__(self, channel):
        super().__init__()
        self.channel = channel
        self.exceptions = logging.Formatter()

    def emit(self, record):
        try:
            text = record.getMessage()
            if record.exc_info and not record.exc_text:
                record.exc_text = self.exceptions.formatException(record.exc_info)
            for part in (record.exc_text, record.stack_info):
                if part:
                    text = f"{text}\n{part}"
        except Exception as error:
            text = f"{describe(record.msg)} (this record cannot be formatted: {summary(error)})"
        if self.channel.connection is None:
            print(text, file=sys.stderr)
            return
        invocation = current_invocation.get() or getattr(thread_local_storage, "invocation_id", "") or ""
        log = {"invocationId": str(invocation), "category": str(record.name), "message": text}
        try:
            self.channel.send({"rpcLog": {**log, "level": level(record.levelno)}})
        except ValueError as error:
            print(f"A log record was dropped: {error}", file=sys.stderr)


def level(number):
    if not isinstance(number, (int, float)):
        return 2
    return 0 if number < 10 else min(5, int(number) // 10)


def set_up_logging(channel):
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(HostHandler(channel))
    for chatty in ("asyncio", "azure"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
