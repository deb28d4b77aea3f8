"""The channel to the host. A frame has four bytes of length and one JSON message."""

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
    """The host sent an invalid frame. The rest of the stream cannot be read."""


class Channel:
    """The stream of messages to and from the host. Any thread may send."""

    def __init__(self, connection):
        self.connection = connection
        # Messages are queued here while another thread sends. A system call for each small message would pass the
        # interpreter lock between threads.
        self.outbox = collections.deque()
        # Reentrant, because a finalizer may log while its thread sends.
        self.sending = threading.RLock()

    def send(self, message):
        self.send_text(encode_json(message))

    def send_text(self, message):
        """Queues a message that is already JSON, and sends the queue unless another thread is sending."""
        try:
            payload = message.encode()
        except UnicodeEncodeError:
            # User code returned a lone surrogate, which UTF-8 cannot encode.
            payload = message.encode("utf-8", "replace")
        if len(payload) > MAX_FRAME:
            raise ValueError(f"the message has {len(payload)} bytes, but the limit is {MAX_FRAME}")
        self.outbox.append(len(payload).to_bytes(4, "big") + payload)
        while self.outbox:
            # The sending thread checks the queue again afterwards. Block only if the host reads slowly.
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
        """Yields messages until the host closes the connection."""
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
                    raise BadFrame(f"The host sent a frame of {length} bytes, but the limit is {MAX_FRAME}.")
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
        """Closes the socket in a forked child. Frames of two processes would be mixed on a shared socket."""
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
        raise BadFrame("The host sent a frame that is nested too deeply.") from None
    if not isinstance(message, dict):
        raise BadFrame("The host sent a frame that is not a JSON object.")
    return message


def end(code, reason=None):
    """Exits immediately, without waiting for other threads. Does not flush: a thread may be blocked in print."""
    if reason:
        print(reason, file=sys.stderr)
    os._exit(code)
