//! Functions and workers that do not respond.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::app::{App, HANDLER_TOOLS, HANG, PID};
use super::client::{MCP, call};
use super::host::{Host, must_end_within, signal};
use super::side_by_side;

/// The function timeout of these apps, and the tolerance for a busy machine. The requirement is 5 %.
const TIMEOUT: Duration = Duration::from_secs(2);
const SLACK: Duration = Duration::from_secs(2);
/// Five seconds after a timeout another worker is started.
const REPLACED: Duration = Duration::from_secs(15);
/// The old worker is asked to end, then terminated, then killed.
const GONE: Duration = Duration::from_secs(20);

fn with_timeout(app: App) -> App {
    app.host(json!({"functionTimeout": "00:00:02"}))
}

/// Calls a tool that never ends and returns the error text.
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
    // The worker keeps serving during the grace period, because the function may still end.
    assert_eq!(host.worker(), Some(worker));
    host.worker_besides(&[worker], REPLACED);
    must_end_within(worker, GONE);
    assert_eq!(app.begun(), 1, "a call that timed out is not retried");
}

#[test]
fn a_function_that_hangs_fails_at_its_timeout_and_its_process_is_replaced() {
    side_by_side([
        &|| replaces_the_worker_of_a_function_that_hangs(App::node().tool("pid", PID).tool("hang", HANG)),
        &|| replaces_the_worker_of_a_function_that_hangs(App::handler(&["pid", "hang"], HANDLER_TOOLS, "")),
    ]);
}

/// A disconnected client cancels its call (2026-07-28). A function that cannot be cancelled must not
/// occupy the worker for longer than its timeout.
#[test]
fn a_cancelled_function_that_hangs_does_not_occupy_its_process_for_ever() {
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

/// The request of a client and its headers are for the handler only, not for the target of a redirect.
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
    let text = host.call("away", json!({})).expect_err("a redirect is an error");
    assert!(text.contains("answered 307"), "{text}");
    assert_eq!(app.begun(), 0);
}
