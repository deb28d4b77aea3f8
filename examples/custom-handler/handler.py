"""A custom handler: functions in your own program, called over HTTP. This one needs only Python.

Run it with `cargo run -- run examples/custom-handler`. The host starts this program, posts each
invocation to `/<function>` as `{"Data": {…}, "Metadata": {…}}`, and reads `{"Outputs": {…}, "ReturnValue":
…, "Logs": […]}` from the response.
"""

import base64
import html
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def save_snippet(call, data):
    arguments = call["arguments"]
    # A text that looks like base64 would be stored decoded, so it is sent encoded.
    text = base64.b64encode(arguments["snippet"].encode()).decode()
    return {
        "Outputs": {"file": text},
        "ReturnValue": f"Saved {arguments['snippetname']}.",
        "Logs": [f"saved snippet {arguments['snippetname']}"],
    }


def get_snippet(call, data):
    missing = f"There is no snippet {call['arguments']['snippetname']}."
    return {"ReturnValue": decoded(data["file"]) if data.get("file") is not None else missing}


def count_words(call, data):
    arguments = call["arguments"]
    ignores_case = arguments.get("ignore_case", False)
    letters = str.lower if ignores_case else str
    found = letters(arguments["text"]).split()
    counts = {word: found.count(letters(word)) for word in arguments["words"]}
    return {"ReturnValue": json.dumps(counts)}


def badge(call, data):
    label, value = call["arguments"]["label"], call["arguments"]["value"]
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="20">'
        f'<text x="8" y="14" font-size="11">{html.escape(label)}: {html.escape(value)}</text></svg>'
    )
    blocks = [
        {"type": "text", "text": f"{label}: {value}"},
        {"type": "image", "data": base64.b64encode(svg.encode()).decode(), "mimeType": "image/svg+xml"},
    ]
    return {"ReturnValue": json.dumps({"type": "multi_content_result", "content": json.dumps(blocks)})}


def sign_snippet(call, data):
    if "inputResponses" not in call:
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        params = {"message": "Who signs this snippet?", "requestedSchema": form}
        requests = {"author": {"method": "elicitation/create", "params": params}}
        return {"ReturnValue": json.dumps({"type": "input_required", "content": {"inputRequests": requests}})}
    answer = call["inputResponses"]["author"]
    if answer["action"] != "accept":
        return {"ReturnValue": "It was not signed."}
    return {"ReturnValue": f"{call['arguments']['snippet']}\n-- {answer['content']['name']}"}


def about(call, data):
    return {"ReturnValue": "# Snippets\n\nText that is kept by name.\n"}


def snippet(call, data):
    return {"ReturnValue": decoded(data["file"]) if data.get("file") is not None else ""}


def code_review(call, data):
    arguments = call["arguments"]
    return {"ReturnValue": f"Please review this {arguments.get('language', '')} code:\n\n{arguments['code']}"}


FUNCTIONS = {
    function.__name__: function
    for function in [save_snippet, get_snippet, count_words, badge, sign_snippet, about, snippet, code_review]
}


def decoded(value):
    """Decodes a text, which is JSON inside JSON: `"\\"text\\""`."""
    try:
        return json.loads(value)
    except ValueError:
        return value


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, {})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        function = FUNCTIONS.get(self.path.lstrip("/"))
        if function is None:
            return self.answer(404, {"error": f"unknown function {self.path}"})
        call = request["Data"]["call"]
        while isinstance(call, str):
            call = json.loads(call)
        self.answer(200, function(call, request["Data"]))

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
