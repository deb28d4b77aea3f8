"""Functions with timer triggers, and no others, in a custom handler. It needs only Python."""

import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def note(name, timer=None, **more):
    """Adds a line to the file of a function. Tests read these files."""
    if timer is not None:
        more |= {"pastDue": timer["IsPastDue"], "schedule": timer["Schedule"], "status": timer["ScheduleStatus"]}
    with open(f"{name}.jsonl", "a") as file:
        file.write(json.dumps({"process": os.getpid(), **more}) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(404, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name, timer = self.path[1:], body["Data"]["timer"]
        answer = {"Outputs": {}, "ReturnValue": None}
        if name == "Slow":
            note(name, step="begin")
            time.sleep(1.5)
            note(name, step="end")
        else:
            note(name, timer)
        if name == "Startup":
            answer["Outputs"]["file"] = "started"
        self.answer(500 if name == "Failing" else 200, answer)

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
