//! Changes of `host.json` while the app is served: all of its settings are applied.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::app::{App, NAP, PID};
use super::client::{Client, Events, MCP, Reply, SSE, call};
use super::host::{Host, command};
use super::{PATIENCE, eventually};

/// Returns a `host.json` with these members of `extensions.mcp`.
fn host_json(mcp: Value) -> String {
    json!({"version": "2.0", "extensions": {"mcp": mcp}}).to_string()
}

fn level(level: &str) -> String {
    host_json(json!({"system": {"webhookAuthorizationLevel": level}}))
}

/// Serves an app on an address where the authorization level applies.
fn serve(app: &App) -> Host {
    Host::start_with(command(app.path()).args(["--host", "0.0.0.0", "--port", "0"]))
}

/// Returns the key of the MCP extension in the key file of the app.
fn key(app: &App) -> String {
    let keys = app.read(".bindpost/keys").expect("the file exists");
    assert_eq!(app.read(".bindpost/.gitignore").expect("the file exists"), "*\n");
    let mut lines = keys.lines().filter_map(|line| line.split_once(" = "));
    lines.find(|(name, _)| *name == "mcp_extension").expect("the key exists").1.to_owned()
}

fn status(client: &Client, path: &str, headers: &[(&str, &str)]) -> u16 {
    client.post(path, headers, &call("pid", json!({}))).expect("an answer").status
}

/// Returns the status of a call on a connection that stays open.
fn call_on(socket: &mut TcpStream, client: &Client) -> u16 {
    let body = call("pid", json!({})).to_string();
    write!(
        socket,
        "POST {MCP} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, \
         text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        client.address,
        body.len()
    )
    .expect("it reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).expect("an answer");
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().expect("a number")];
    socket.read_exact(&mut body).expect("the rest");
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

fn initialize() -> Value {
    let client = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// Opens a session and returns its id.
fn open_session(client: &Client, headers: &[(&str, &str)]) -> String {
    let opened = client.post(MCP, headers, &initialize()).expect("an answer");
    let id = opened.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    id.unwrap_or_else(|| panic!("no session: {opened:?}")).to_owned()
}

/// Opens an HTTP+SSE stream. Returns it with the path to post to.
fn open_pipe(client: &Client) -> (Events, String) {
    let mut events = Events::open(client, SSE, &[]);
    let endpoint = events.next().expect("where to post");
    (events, format!("{MCP}/{}", endpoint.rsplit('/').next().expect("a path")))
}

#[test]
fn a_level_that_becomes_system_requires_a_key() {
    let app = App::node().tool("pid", PID).with("host.json", &level("Anonymous"));
    let host = serve(&app);
    assert_eq!(host.ready["requiresKey"], false);
    assert_eq!(status(&host, MCP, &[]), 200);
    let session = open_session(&host, &[]);
    let in_session = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(status(&host, MCP, &in_session), 200);
    let mut stream = Events::open(&host, MCP, &in_session);
    let (mut pipe, endpoint) = open_pipe(&host);
    assert_eq!(status(&host, &endpoint, &[]), 202);
    pipe.next().expect("the answer");

    // A connection that stays open and had a response without a key.
    let mut kept = host.connect().expect("connects");
    assert_eq!(call_on(&mut kept, &host), 200);

    app.write("host.json", &level("System"));
    host.wait_until_it_says("host.json changed");
    host.wait_until_it_says("webhookAuthorizationLevel");
    assert_eq!(call_on(&mut kept, &host), 401);
    assert_eq!(status(&host, MCP, &[]), 401);
    assert_eq!(status(&host, "/mcp", &[]), 401);
    assert_eq!(status(&host, MCP, &[("x-functions-key", "wrong")]), 401);
    let key = key(&app);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &key)]), 200);
    // Sessions and streams that were opened without a key are invalid, with a key or without.
    assert_eq!(status(&host, MCP, &in_session), 401);
    let with_key = [in_session[0], in_session[1], ("x-functions-key", key.as_str())];
    assert_eq!(status(&host, MCP, &with_key), 404);
    assert_eq!(stream.next(), None, "the stream of the session ends");
    assert_eq!(status(&host, &endpoint, &[]), 401);
    assert_eq!(status(&host, &endpoint, &[("x-functions-key", &key)]), 404);
    assert_eq!(pipe.next(), None, "the HTTP+SSE stream ends");
    assert!(!host.said().contains(&key), "{}", host.said());
}

#[test]
fn a_level_that_becomes_anonymous_requires_no_key() {
    let app = App::node().tool("pid", PID).with("host.json", &level("System"));
    let host = serve(&app);
    assert_eq!(host.ready["requiresKey"], true);
    assert_eq!(status(&host, MCP, &[]), 401);
    app.write("host.json", &level("Anonymous"));
    eventually(PATIENCE, "an open host", || (status(&host, MCP, &[]) == 200).then_some(()));
    // The level changes back.
    app.write("host.json", &level("System"));
    eventually(PATIENCE, "a closed host", || (status(&host, MCP, &[]) == 401).then_some(()));
    assert_eq!(status(&host, MCP, &[("x-functions-key", &key(&app))]), 200);
}

/// The authorization level is applied without waiting for workers or for code that loads.
#[test]
fn a_level_is_applied_even_if_the_app_cannot_restart() {
    let app = App::node().tool("pid", PID).with("host.json", &level("Anonymous"));
    let host = serve(&app);
    assert_eq!(status(&host, MCP, &[]), 200);
    app.write("pid/index.js", "module.exports = async () => {");
    app.write("host.json", &level("System"));
    host.wait_until_it_says("the previous functions keep running");
    assert_eq!(status(&host, MCP, &[]), 401);
    assert_eq!(status(&host, MCP, &[("x-functions-key", &key(&app))]), 200);
}

/// If a key is required but the keys cannot be created, the host rejects every caller.
#[test]
fn every_caller_is_rejected_if_the_keys_cannot_be_created() {
    let app = App::node().tool("pid", PID).with("host.json", &level("Anonymous"));
    let host = serve(&app);
    // A file at the path of the key folder.
    app.write(".bindpost", "in the way");
    app.write("host.json", &level("System"));
    host.wait_until_it_says("all calls are rejected");
    assert_eq!(status(&host, MCP, &[]), 401);
    std::fs::remove_file(app.path().join(".bindpost")).expect("the file exists");
    app.write("host.json", &format!("{} ", level("System")));
    eventually(PATIENCE, "keys", || app.read(".bindpost/keys"));
    assert_eq!(status(&host, MCP, &[]), 401);
    let with_key = || status(&host, MCP, &[("x-functions-key", &key(&app))]) == 200;
    eventually(PATIENCE, "the key is accepted", || with_key().then_some(()));
}

/// The head of the request arrives before the change, its body after it.
#[test]
fn a_body_that_arrives_after_the_level_was_raised_runs_nothing() {
    let app = App::node().tool("nap", NAP).with("host.json", &level("Anonymous"));
    let host = serve(&app);
    let body = call("nap", json!({"ms": 0})).to_string();
    let mut socket = host.connect().expect("connects");
    let head = format!(
        "POST {MCP} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        host.address,
        body.len()
    );
    let (first, rest) = body.split_at(10);
    write!(socket, "{head}{first}").expect("it reads");
    // The host must have read the head before the change.
    std::thread::sleep(Duration::from_millis(300));
    app.write("host.json", &level("System"));
    eventually(PATIENCE, "a closed host", || {
        let reply = host.post(MCP, &[], &call("nap", json!({"ms": 0}))).expect("an answer");
        (reply.status == 401).then_some(())
    });
    let begun = app.begun();
    write!(socket, "{rest}").expect("it reads");
    let reply = Reply::read(socket).expect("an answer");
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(app.begun(), begun);
}

/// Calls that run when the level changes were authorized before, and are answered.
#[test]
fn calls_that_run_while_the_level_changes_are_answered() {
    let app = App::node().tool("nap", NAP).with("host.json", &level("Anonymous"));
    let host = serve(&app);
    let running = host.send_call("nap", json!({"ms": 3000})).expect("connects");
    eventually(PATIENCE, "a call under way", || (app.begun() == 1).then_some(()));
    app.write("host.json", &level("System"));
    eventually(PATIENCE, "a closed host", || (status(&host, MCP, &[]) == 401).then_some(()));
    let text = Reply::read(running).expect("an answer").tool_text();
    assert!(text.as_ref().is_ok_and(|text| text.starts_with("rested 3000 ms")), "{text:?}");
}

const STRICT: &str = r#"{"scriptFile": "index.js", "bindings": [{"type": "mcpToolTrigger", "direction": "in",
    "name": "call", "toolName": "nap", "description": "Rests",
    "toolProperties": "[{\"propertyName\": \"ms\", \"propertyType\": \"integer\", \"description\": \"How long\"}]"}]}"#;

#[test]
fn all_other_settings_of_host_json_are_applied() {
    let app = App::node().tool("nap", NAP).with("nap/function.json", STRICT);
    app.write("host.json", &host_json(json!({"serverName": "before"})));
    let host = Host::start(&app, &[]);
    let greeting = || host.post(MCP, &[], &initialize()).expect("an answer").message()["result"].clone();
    assert_eq!(greeting()["serverInfo"]["name"], "before");
    let session = open_session(&host, &[]);
    let large = || {
        let padded = json!({"ms": 0, "padding": "x".repeat(5_000)});
        host.post(MCP, &[], &call("nap", padded)).expect("an answer").status
    };
    assert_eq!(large(), 200);
    assert_eq!(
        host.call("nap", json!({"ms": "0"})).as_deref().map(|text| text.starts_with("rested")),
        Ok(true)
    );
    assert!(open_pipe(&host).1.contains("sessionId"));

    let mcp = json!({
        "serverName": "after", "serverVersion": "2.3.4", "instructions": "Rest well.",
        "messageOptions": {"useAbsoluteUriForEndpoint": true},
        "validateArguments": true, "maxRequestBodyBytes": 4_000,
    });
    app.write(
        "host.json",
        &json!({"version": "2.0", "functionTimeout": "00:00:01", "extensions": {"mcp": mcp}}).to_string(),
    );
    host.wait_until_it_says("host.json changed: started again");
    let greeting = greeting();
    assert_eq!(greeting["serverInfo"]["name"], "after");
    assert_eq!(greeting["serverInfo"]["version"], "2.3.4");
    assert_eq!(greeting["instructions"], "Rest well.");
    assert_eq!(large(), 413);
    let endpoint = Events::open(&host, SSE, &[]).next().expect("where to post");
    assert!(endpoint.starts_with("http://"), "{endpoint}");
    let refused = host.call("nap", json!({"ms": "0"}));
    assert!(refused.is_err(), "{refused:?}");
    // One second instead of half an hour.
    let late = host.call("nap", json!({"ms": 20_000}));
    assert!(late.is_err(), "{late:?}");
    for name in
        ["serverName", "serverVersion", "instructions", "useAbsoluteUriForEndpoint", "maxRequestBodyBytes"]
    {
        assert!(host.said().contains(name), "{name}: {}", host.said());
    }
    // Clients that received the old name connect again.
    let in_session = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(host.post(MCP, &in_session, &call("nap", json!({"ms": 0}))).expect("an answer").status, 404);
}

/// The endpoint that replaced the first one ends its streams too.
#[test]
fn a_changed_host_ends_as_fast_as_an_unchanged_one() {
    let app = App::node().tool("pid", PID);
    let mut host = Host::start(&app, &[]);
    app.write("host.json", &host_json(json!({"serverName": "after"})));
    host.wait_until_it_says("host.json changed: started again");
    let session = open_session(&host, &[]);
    let in_session = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(status(&host, MCP, &in_session), 200);
    let mut stream = Events::open(&host, MCP, &in_session);
    let (mut pipe, _) = open_pipe(&host);
    host.signal(Signal::TERM);
    assert_eq!((stream.next(), pipe.next()), (None, None));
    assert!(host.ends_within(PATIENCE).success());
}

/// Settings that only affect functions are applied without ending the sessions.
#[test]
fn sessions_continue_if_nothing_visible_to_clients_changes() {
    let app = App::node().tool("pid", PID);
    let host = Host::start(&app, &[]);
    let session = open_session(&host, &[]);
    let in_session = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    app.write(
        "host.json",
        r#"{"version": "2.0", "functionTimeout": "00:10:00", "logging": {"logLevel": {"default": "Debug"}}}"#,
    );
    host.wait_until_it_says("host.json changed: started again");
    assert_eq!(status(&host, MCP, &in_session), 200);
}

/// `local.settings.json` contains the origins of web pages, and the port, which cannot change while the
/// host listens.
#[test]
fn local_settings_are_applied_and_a_new_port_needs_a_restart() {
    let app = App::node().tool("pid", PID);
    let host = Host::start(&app, &[]);
    let origin = [("origin", "https://pages.example")];
    assert_eq!(status(&host, MCP, &origin), 403);
    let local = json!({"Host": {"CORS": "https://pages.example", "LocalHttpPort": 7999}});
    app.write("local.settings.json", &local.to_string());
    host.wait_until_it_says("LocalHttpPort");
    eventually(PATIENCE, "the origin is accepted", || (status(&host, MCP, &origin) == 200).then_some(()));
    let said = host.said();
    let line = said.lines().find(|line| line.contains("LocalHttpPort")).expect("a line");
    assert!(line.contains("7999") && line.contains("restart bindpost"), "{line}");
}

/// A client over stdio has received the server name already.
#[test]
fn stdio_reports_settings_that_need_a_restart() {
    let app = App::node().tool("pid", PID);
    let mut command: Command = command(app.path());
    let mut child = command
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bindpost runs");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stderr = child.stderr.take().expect("piped");
    writeln!(stdin, "{}", initialize()).expect("it reads");
    let mut answer = [0; 1];
    child.stdout.as_mut().expect("piped").read_exact(&mut answer).expect("an answer");
    app.write("host.json", &host_json(json!({"serverName": "after", "validateArguments": true})));
    // The host checks the files twice a second, and then starts a worker.
    let waited = std::thread::spawn(move || {
        let mut said = String::new();
        let mut piece = [0; 4096];
        while !said.contains("started again") {
            match stderr.read(&mut piece) {
                Ok(length @ 1..) => said.push_str(&String::from_utf8_lossy(&piece[..length])),
                _ => break,
            }
        }
        said
    });
    eventually(PATIENCE, "the change is applied", || waited.is_finished().then_some(()));
    let said = waited.join().expect("it reads");
    drop(stdin);
    child.wait().expect("it ends with its input");
    let line = said.lines().find(|line| line.contains("serverName")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("restart bindpost") && !line.contains("validateArguments"), "{line}");
}
