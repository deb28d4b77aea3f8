//! A function with an HTTP trigger as a tool: in the line of JSON, over HTTP and over stdio.

use serde_json::{Value, json};

use super::app::App;
use super::host::Host;
use super::stdio::{answer, converse, handshake};

/// Returns an app with a function that is a tool, and with one that is not.
fn app() -> App {
    let function = |route: &str| {
        let trigger = json!({"type": "httpTrigger", "direction": "in", "name": "req", "route": route, "methods": ["get"]});
        let response = json!({"type": "http", "direction": "out", "name": "$return"});
        json!({"bindings": [trigger, response]}).to_string()
    };
    App::handler(&[], "", "")
        .host(json!({"extensions": {"mcp": {"httpTools": ["GetOrder"]}}}))
        .with("handler.py", HANDLER)
        .with("GetOrder/function.json", &function("orders/{id:int}"))
        .with("Other/function.json", &function("other/{id}"))
}

/// Answers with what a function was given.
const HANDLER: &str = r#"
import json, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))["Data"]["req"]
        seen = {"id": request["Params"]["id"], "url": request["Url"]}
        self.answer({"ReturnValue": json.dumps({"body": seen})})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
"#;

fn order() -> Value {
    json!({"id": "7", "url": "http://localhost/api/orders/7"})
}

#[test]
fn the_line_of_json_lists_them_as_such() {
    let host = Host::start(&app(), &[]);
    let tools = host.ready["tools"].as_array().expect("a list");
    assert_eq!(tools.len(), 1, "{tools:?}");
    let id = json!({"name": "id", "type": "integer", "required": true});
    assert_eq!((&tools[0]["name"], &tools[0]["function"]), (&json!("GetOrder"), &json!("GetOrder")));
    assert_eq!((&tools[0]["http"], &tools[0]["arguments"][0]), (&json!("GET /api/orders/{id}"), &id));
    let text = host.call("GetOrder", json!({"id": 7})).expect("a result");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), order());
}

#[test]
fn they_are_served_over_stdio() {
    let mut messages = handshake();
    let call = json!({"name": "GetOrder", "arguments": {"id": 7}});
    messages.push(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}));
    let lines = converse(&app(), &messages);
    assert_eq!(answer(&lines, 2)["result"]["tools"][0]["name"], "GetOrder");
    assert_eq!(answer(&lines, 3)["result"]["structuredContent"], order());
}
