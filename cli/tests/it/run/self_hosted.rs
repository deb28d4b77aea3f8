//! Self-hosted apps: the program of the app is a server, and requests are forwarded to it.

use std::io::Read as _;
use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::app::App;
use super::host::{Host, command, is_running, must_end_within, run_to_end, signal};
use super::{PATIENCE, eventually};

/// An MCP server of the standard library with one tool. `GET /pid` returns its process, `GET /exit` ends it, and
/// `GET /events` is a stream that does not end.
const SERVER: &str = r#"
import json, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "1"

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/exit":
            os._exit(3)
        if self.path == "/nap":
            open("begun.txt", "w").write(".")
            time.sleep(2)
        if self.path == "/events":
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while True:
                self.wfile.write(b"9\r\ndata: 1\n\n\r\n")
                time.sleep(0.05)
        self.answer(200, {"pid": os.getpid(), "version": VERSION})

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "plain", "version": VERSION}},
            "tools/list": {"tools": [{"name": "nothing", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": VERSION}]},
        }
        if "id" not in message:
            return self.answer(202, None)
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})

    def answer(self, status, value):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if value and "result" in value and os.environ.get("SESSIONS"):
            self.send_header("mcp-session-id", "a")
        self.end_headers()
        self.wfile.write(body)

    do_DELETE = do_GET

    def log_message(self, *_):
        pass

class Server(ThreadingHTTPServer):
    daemon_threads = True

Server(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
"#;

fn app() -> App {
    // The setting names the language in which the server is written.
    let settings = json!({"IsEncrypted": false, "Values": {"FUNCTIONS_WORKER_RUNTIME": "python"}});
    App::node()
        .host(json!({
            "configurationProfile": "mcp-custom-handler",
            "customHandler": {
                "description": {"defaultExecutablePath": "python3", "arguments": ["server.py"]},
                "http": {"defaultAuthorizationLevel": "anonymous"},
            },
        }))
        .with("local.settings.json", &settings.to_string())
        .with("server.py", SERVER)
}

/// Returns the process and the version of the server, if it answers.
fn serving(host: &Host) -> Option<(i32, String)> {
    let reply = host.get("/pid");
    if reply.status != 200 {
        return None;
    }
    let about: Value = serde_json::from_str(&reply.body).expect("JSON");
    let pid = about["pid"].as_i64().expect("a pid");
    Some((i32::try_from(pid).expect("a pid"), about["version"].as_str().expect("a version").to_owned()))
}

fn pid(host: &Host) -> i32 {
    serving(host).expect("the server answers").0
}

#[test]
fn a_self_hosted_app_is_served_and_described() {
    let app = app();
    let host = Host::start(&app, &[]);
    let about = json!({"name": "plain", "version": "1", "revision": "2025-06-18", "sessions": false});
    assert_eq!(host.ready["server"], about);
    assert_eq!(host.ready["worker"]["kind"], "self-hosted");
    assert_eq!(host.ready["tools"][0]["name"], "nothing");
    assert_eq!((&host.ready["requiresKey"], &host.ready["sse"]), (&json!(false), &Value::Null));
    assert!(host.ready["mcp"].as_str().expect("a URL").ends_with("/mcp"), "{}", host.ready);
    // The client posts to the path of the platform.
    let result = host.request("tools/call", json!({"name": "nothing", "arguments": {}}));
    assert_eq!(result["content"][0]["text"], "1");
    assert_eq!(host.get("/_/readyz").status, 200);
}

#[test]
fn a_server_with_sessions_is_told_once() {
    let app = app();
    let host = Host::start_with(command(app.path()).args(["--port", "0"]).env("SESSIONS", "1"));
    assert_eq!(host.ready["server"]["sessions"], true);
    let notice = host.ready["notices"][0].as_str().expect("a notice");
    assert!(notice.starts_with("the server has sessions (Mcp-Session-Id)"), "{notice}");
}

#[test]
fn a_server_that_is_killed_is_started_again() {
    let app = app();
    let host = Host::start(&app, &[]);
    let first = pid(&host);
    signal(first, Signal::KILL);
    let second = eventually(PATIENCE, "another server", || serving(&host).filter(|(pid, _)| *pid != first)).0;
    host.wait_until_it_says("the server of the app exited: signal 9, SIGKILL; restarting");
    // The second restart waits, and until then requests are answered with the reason.
    signal(second, Signal::KILL);
    let reply = eventually(PATIENCE, "a rejected request", || {
        let reply = host.get("/pid");
        (reply.status == 502 && reply.body.contains("is not running")).then_some(reply)
    });
    assert_eq!(
        reply.body,
        "the server of the app is not running: it has exited and is being started again\n"
    );
    assert!(reply.head.to_ascii_lowercase().contains("\r\nretry-after: 1\r\n"), "{}", reply.head);
    let not_ready = host.get("/_/readyz");
    if not_ready.status != 200 {
        assert!(not_ready.body.contains("it has exited and is being started again"), "{}", not_ready.body);
    }
    eventually(PATIENCE, "a third server", || serving(&host).filter(|(pid, _)| *pid != second));
    assert_eq!(host.get("/_/readyz").status, 200);
}

#[test]
fn a_request_whose_server_exits_gets_an_answer() {
    let app = app();
    let host = Host::start(&app, &[]);
    let reply = host.get("/exit");
    assert_eq!(reply.status, 502);
    assert_eq!(reply.body, "the server of the app closed the connection without a valid response\n");
    eventually(PATIENCE, "another server", || serving(&host));
}

#[test]
fn a_server_that_keeps_exiting_ends_the_host() {
    let app = app();
    let mut host = Host::start(&app, &["--no-watch"]);
    app.write("server.py", "raise SystemExit('broken')");
    signal(pid(&host), Signal::KILL);
    let status = host.ends_within(Duration::from_secs(60));
    assert!(!status.success());
    assert!(host.said().contains("the app does not keep running: "), "{}", host.said());
    assert!(host.said().contains("broken"), "{}", host.said());
}

#[test]
fn a_change_stops_the_old_server_before_the_new_one_starts() {
    // With a fixed port, two servers could not run beside each other.
    let port = TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("bound").port();
    let handler = json!({
        "description": {"defaultExecutablePath": "python3", "arguments": ["server.py"]},
        "http": {"defaultAuthorizationLevel": "anonymous"}, "port": port.to_string(),
    });
    let app = app().host(json!({"customHandler": handler}));
    let host = Host::start(&app, &[]);
    let first = pid(&host);
    app.write("server.py", &SERVER.replace("VERSION = \"1\"", "VERSION = \"2\""));
    eventually(PATIENCE, "the new version", || serving(&host).filter(|(_, version)| version == "2"));
    assert!(!is_running(first));
    host.wait_until_it_says("server.py changed: started again");

    // A server that does not start leaves none, until the next change.
    app.write("server.py", "raise SystemExit('broken')");
    host.wait_until_it_says("server.py changed, but the server does not run until the next change");
    let reply = host.get("/pid");
    let expected = "the server of the app is not running: it exited before it was ready\n";
    assert_eq!((reply.status, reply.body.as_str()), (502, expected));
    app.write("server.py", &SERVER.replace("VERSION = \"1\"", "VERSION = \"3\""));
    eventually(PATIENCE, "the repaired version", || serving(&host).filter(|(_, version)| version == "3"));
}

#[test]
fn a_mistake_in_host_json_leaves_the_server_running() {
    let app = app();
    let host = Host::start(&app, &[]);
    let first = pid(&host);
    app.write("host.json", r#"{"version": "2.0", "configurationProfile": "other"}"#);
    host.wait_until_it_says("Configuration profile 'other' is not supported.");
    assert!(
        host.said().contains("host.json changed, but the previous server keeps running"),
        "{}",
        host.said()
    );
    assert_eq!(pid(&host), first);
}

#[test]
fn a_change_of_the_level_applies_at_once() {
    let app = app();
    let host = Host::start_with(command(app.path()).args(["--port", "0", "--host", "0.0.0.0"]));
    assert_eq!(host.ready["requiresKey"], false);
    assert_eq!(host.get("/pid").status, 200);
    let handler = json!({
        "description": {"defaultExecutablePath": "python3", "arguments": ["server.py"]},
        "http": {"defaultAuthorizationLevel": "function"},
    });
    let text =
        json!({"version": "2.0", "configurationProfile": "mcp-custom-handler", "customHandler": handler});
    app.write("host.json", &text.to_string());
    eventually(PATIENCE, "a key is required", || (host.get("/pid").status == 401).then_some(()));
    let keys = app.read(".bindpost/keys").expect("the keys");
    let key = keys.lines().find_map(|line| line.strip_prefix("mcp_extension = ")).expect("a key");
    eventually(PATIENCE, "the server with a key", || {
        (host.get(&format!("/pid?code={key}")).status == 200).then_some(())
    });
}

#[test]
fn a_stop_waits_for_requests_and_ends_streams_and_the_server() {
    let app = app();
    let mut host = Host::start(&app, &[]);
    let server = pid(&host);
    let mut events = host.send("GET", "/events", &[], "").expect("connects");
    let mut head = [0; 15];
    events.read_exact(&mut head).expect("the stream begins");
    let client = (*host).clone();
    let napping = std::thread::spawn(move || client.get("/nap"));
    eventually(PATIENCE, "the request has begun", || app.read("begun.txt"));
    host.signal(Signal::TERM);
    assert_eq!(napping.join().expect("it is answered").status, 200);
    // The stream ends, although its client does not close it.
    let mut rest = Vec::new();
    events.read_to_end(&mut rest).expect("the stream ends");
    assert!(rest.ends_with(b"\r\n0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    assert!(host.ends_within(PATIENCE).success());
    must_end_within(server, PATIENCE);
}

#[test]
fn a_killed_host_leaves_no_server() {
    let app = app();
    let host = Host::start(&app, &[]);
    let server = pid(&host);
    host.signal(Signal::KILL);
    if cfg!(target_os = "linux") {
        must_end_within(server, PATIENCE);
    } else {
        signal(server, Signal::KILL);
    }
}

#[test]
fn what_does_not_go_with_a_self_hosted_app_is_refused() {
    let app = app();
    for (arguments, says) in [
        (&["--stdio"][..], "cannot serve it over stdio\n  fix: run it without --stdio"),
        (&["--port", "0", "--processes", "2"], "--processes 2 is not possible"),
    ] {
        let mut refused = command(app.path());
        refused.args(arguments);
        let output = run_to_end(refused);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(says), "{arguments:?}: {stderr}");
    }
}

/// The port of bindpost may be that which the app has for its server.
#[test]
fn a_port_for_both_is_told() {
    let port =
        TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("bound").port().to_string();
    let handler = json!({
        "description": {"defaultExecutablePath": "python3", "arguments": ["server.py"]}, "port": port,
    });
    let app = app().host(json!({"customHandler": handler}));
    let mut refused = command(app.path());
    refused.args(["--port", &port]);
    let output = run_to_end(refused);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let says = format!("customHandler.port: port {port} of the server of the app is already in use");
    assert!(!output.status.success() && stderr.contains(&says), "{stderr}");
}

#[test]
fn the_start_screen_shows_the_server() {
    let app = app();
    let mut host = command(app.path());
    host.args(["--port", "0"]).env("COLUMNS", "200");
    host.stderr(std::process::Stdio::piped());
    let mut child = host.spawn().expect("bindpost runs");
    let stderr = std::io::BufReader::new(child.stderr.take().expect("piped"));
    let mut screen = String::new();
    for line in std::io::BufRead::lines(stderr).map_while(Result::ok) {
        screen.push_str(&line);
        screen.push('\n');
        if line.contains("nothing") {
            break;
        }
    }
    signal(i32::try_from(child.id()).expect("a pid"), Signal::TERM);
    let _ = child.wait();
    for part in [
        "self-hosted server   ready in ",
        "/mcp   every other path",
        "Server     plain 1, MCP 2025-06-18",
        "TOOLS (1)",
    ] {
        assert!(screen.contains(part), "{part} is not in\n{screen}");
    }
}
