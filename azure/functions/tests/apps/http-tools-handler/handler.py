"""Functions with HTTP triggers in a custom handler, some of which are tools. It needs only Python."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLIES = {
    "text": {"statusCode": 200, "body": "plain"},
    "object": {"statusCode": 200, "body": {"a": 1}},
    "missing": {"statusCode": 404, "body": "no such thing"},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(404, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name, request = self.path[1:], body["Data"]["req"]
        if name == "GetOrder":
            value = {"id": request["Params"]["id"], "url": request["Url"], "query": request["Query"], "headers": request["Headers"]}
            reply = {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(value)}
        elif name == "Parts":
            reply = {"statusCode": 200, "body": json.dumps(request["Params"])}
        elif name == "Reply":
            reply = REPLIES[request["Params"]["kind"]]
        else:
            reply = {"statusCode": 200, "body": name.lower()}
        self.answer(200, {"Outputs": {"res": reply}})

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
