"""The channel to the host: one JSON message per frame, four bytes of length before it."""

import collections
import json
import os
import socket
import sys
import threading

MAX_FRAME = 256 * 1024 * 1024
OUTBOX_LIMIT = 256

encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
quote = json.encoder.encode_basestring


def connect(address):
    kind, _, place = address.partition(":")
    if kind == "unix":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(place)
        return connection
    name, _, port = place.rpartition(":")
    connection = socket.create_connection((name, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class BadFrame(Exception):
    """The host sent something that cannot be a message; what follows cannot be trusted either."""


class Channel:
    """The stream of messages to and from the host. Any thread may send."""

    def __init__(self, connection):
        self.connection = connection
        # A system call for each of many small messages would pass the interpreter lock around between threads; so
        # messages gather here while another thread sends.
        self.outbox = collections.deque()
        # Reentrant, because a finalizer may log while its thread is about to send.
        self.sending = threading.RLock()

    def send(self, message):
        self.send_text(encode_json(message))

    def send_text(self, message):
        """Sends a message that is JSON already, or leaves it to the thread that is sending."""
        try:
            payload = message.encode()
        except UnicodeEncodeError:
            # Half a surrogate pair from user code; there is no way to say it in UTF-8.
            payload = message.encode("utf-8", "replace")
        if len(payload) > MAX_FRAME:
            raise ValueError(f"a message of {len(payload)} bytes is above the limit of {MAX_FRAME}")
        self.outbox.append(len(payload).to_bytes(4, "big") + payload)
        while self.outbox:
            # Whoever sends looks again afterwards, so nothing stays behind. Wait only if the host is slow to read.
            if not self.sending.acquire(blocking=len(self.outbox) > OUTBOX_LIMIT):
                return
            try:
                self.send_outbox()
            finally:
                self.sending.release()

    def send_outbox(self):
        frames = []
        while self.outbox:
            frames.append(self.outbox.popleft())
        try:
            if frames and self.connection is not None:
                self.connection.sendall(frames[0] if len(frames) == 1 else b"".join(frames))
        except OSError:
            os._exit(1)

    def messages(self):
        """Decodes one message after the other until the host closes its side."""
        received = b""
        while True:
            more = self.connection.recv(65536)
            if not more:
                return
            received = received + more if received else more
            start, size = 0, len(received)
            while size - start >= 4:
                body = start + 4
                length = int.from_bytes(received[start:body], "big")
                if length > MAX_FRAME:
                    raise BadFrame(f"The host sent a frame of {length} bytes; the limit is {MAX_FRAME}.")
                start = body + length
                if start <= size:
                    yield decode_message(received[body:start])
                else:
                    frame = self.read_rest(received[body:], length)
                    if frame is None:
                        return
                    yield decode_message(frame)
                    start = size
            received = received[start:]

    def read_rest(self, beginning, length):
        frame = bytearray(length)
        frame[: len(beginning)] = beginning
        view, filled = memoryview(frame), len(beginning)
        while filled < length:
            count = self.connection.recv_into(view[filled:])
            if not count:
                return None
            filled += count
        return frame

    def leave_to_parent(self):
        """A forked child shares the socket, and two processes writing to it would mix their frames."""
        self.sending = threading.RLock()
        self.outbox.clear()
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


def decode_message(frame):
    try:
        message = json.loads(str(frame, "utf-8"))
    except ValueError as error:
        raise BadFrame(f"The host sent a frame that is not JSON: {error}") from None
    except RecursionError:
        raise BadFrame("The host sent a frame that nests too deeply.") from None
    if not isinstance(message, dict):
        raise BadFrame("The host sent a frame that is not a JSON object.")
    return message


def end(code, reason=None):
    """Ends the process at once, whatever other threads do. No flush: a thread may be stuck in a print."""
    if reason:
        print(reason, file=sys.stderr)
    os._exit(code)
