//! Functions and workers that do not answer.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::app::{App, HANDLER_TOOLS, HANG, PID};
use super::client::{MCP, call};
use super::host::{Host, must_end_within, signal};
use super::side_by_side;

/// The timeout of these apps, and what the call may take more on a busy machine. The promise is 5 %.
const TIMEOUT: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(2);
/// The grace after a timeout is five seconds, then another worker is started.
const REPLACED: Duration = Duration::from_secs(15);
/// The old one is asked to end, then told, then killed.
const GONE: Duration = Duration::from_secs(20);

fn with_timeout(app: App) -> App {
    app.host(json!({"functionTimeout": "00:00:02"}))
}

/// Calls something that does not answer, and gives the text of the error.
fn times_out(host: &Host, tool: &str) -> String {
    let begin = Instant::now();
    let text = host.call(tool, json!({})).expect_err("it never ends");
    let took = begin.elapsed();
    assert!(took >= TIMEOUT && took < TIMEOUT + SLACK, "{took:?}");
    text
}

fn replaces_the_worker_of_a_function_that_hangs(app: App) {
    let app = with_timeout(app);
    let host = Host::start(&app, &["--detailed-errors"]);
    let worker = host.worker().expect("it serves");
    let text = times_out(&host, "hang");
    assert!(text.contains("'hang'") && text.contains("did not answer within 2 s"), "{text}");
    // Until the grace is over the worker serves on: the function may still come to its end.
    assert_eq!(host.worker(), Some(worker));
    host.worker_besides(&[worker], REPLACED);
    must_end_within(worker, GONE);
    assert_eq!(app.begun(), 1, "a call that timed out is not made again");
}

#[test]
fn a_function_that_hangs_fails_at_its_timeout_and_its_process_is_replaced() {
    side_by_side([
        &|| replaces_the_worker_of_a_function_that_hangs(App::node().tool("pid", PID).tool("hang", HANG)),
        &|| replaces_the_worker_of_a_function_that_hangs(App::handler(&["pid", "hang"], HANDLER_TOOLS, "")),
    ]);
}

/// A client that hangs up cancels its call (2026-07-28). What cannot be cancelled must not hold the worker for longer.
#[test]
fn a_function_that_nobody_waits_for_does_not_hold_its_process_for_ever() {
    let app = with_timeout(App::node().tool("pid", PID).tool("hang", HANG));
    let host = Host::start(&app, &[]);
    let worker = host.worker().expect("it serves");
    let mut message = call("hang", json!({}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "hang")];
    let socket = host.send_message(MCP, &headers, &message).expect("connects");
    while app.begun() == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(socket);
    host.worker_besides(&[worker], REPLACED);
    must_end_within(worker, GONE);
}

fn replaces_a_worker_that_stands_still(app: App) {
    let app = with_timeout(app);
    let host = Host::start(&app, &[]);
    let worker = host.worker().expect("it serves");
    signal(worker, Signal::STOP);
    times_out(&host, "pid");
    host.worker_besides(&[worker], REPLACED);
    must_end_within(worker, GONE);
}

#[test]
fn a_process_that_stands_still_is_replaced() {
    side_by_side([&|| replaces_a_worker_that_stands_still(App::node().tool("pid", PID)), &|| {
        replaces_a_worker_that_stands_still(App::handler(&["pid"], HANDLER_TOOLS, ""))
    }]);
}

/// What a client sent, its headers among it, is for the handler and for nobody the handler names.
#[test]
fn an_invocation_does_not_follow_a_redirect_of_its_handler() {
    let handler = r#"
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        if self.path == "/elsewhere":
            open("begun.txt", "a").write(".")
        self.send_response(307)
        self.send_header("location", "/elsewhere")
        self.end_headers()

ThreadingHTTPServer(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
"#;
    let app = App::handler(&["away"], "", "").with("handler.py", handler);
    let host = Host::start(&app, &["--detailed-errors"]);
    let text = host.call("away", json!({})).expect_err("it is no answer");
    assert!(text.contains("answered 307"), "{text}");
    assert_eq!(app.begun(), 0);
}
