"""A server without MCP that tells what it gets. It uses the standard library only."""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/events":
            return self.events()
        if self.path == "/mcp" or self.path == "/":
            return self.answer(404, {})
        headers = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        self.answer(200, {"method": self.command, "path": self.path, "headers": headers})

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_GET

    def do_POST(self):
        if self.path == "/mcp":
            self.drop_body()
            return self.answer(404, {})
        if self.path == "/duplex":
            return self.duplex()
        if self.path == "/double":
            body = self.rfile.read(int(self.headers["content-length"]))
            self.start(200, "application/octet-stream", len(body) * 2)
            self.wfile.write(body)
            return self.wfile.write(body)
        length = sum(len(chunk) for chunk in self.chunks())
        self.answer(200, {"length": length})

    def drop_body(self):
        for _ in self.chunks():
            pass

    def chunks(self):
        """Returns the parts of the body as they arrive."""
        left = int(self.headers.get("content-length", 0))
        while left:
            chunk = self.rfile.read1(min(left, 65536))
            if not chunk:
                raise ConnectionError("the body is incomplete")
            left -= len(chunk)
            yield chunk
        while self.headers.get("transfer-encoding") == "chunked":
            size = int(self.rfile.readline(), 16)
            chunk = self.rfile.read(size)
            self.rfile.readline()
            if not size:
                return
            yield chunk

    def duplex(self):
        self.start(200, "text/plain", None)
        for chunk in self.chunks():
            self.write_chunk(chunk.upper())
        self.write_chunk(b"")

    def events(self):
        self.start(200, "text/event-stream", None)
        try:
            for number in range(10**6):
                self.write_chunk(f"data: {number}\n\n".encode())
                time.sleep(0.05)
        except OSError:
            with open("disconnected.txt", "w") as file:
                file.write("yes")
            self.close_connection = True

    def write_chunk(self, chunk):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    def start(self, status, kind, length):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "x-private")
        self.send_header("x-private", "for this connection")
        self.send_header("x-public", "for the client")
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.start(status, "application/json", len(body))
        self.wfile.write(body)

    def log_message(self, *_):
        pass


address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
ThreadingHTTPServer((address, int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
