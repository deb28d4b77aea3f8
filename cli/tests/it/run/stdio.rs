//! An app over stdio.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;
use super::app::{App, HANDLER_TOOLS};
use super::client::call;
use super::host::command;

/// Serves an app over stdio, sends it messages and returns the lines of stdout.
pub(super) fn converse(app: &App, messages: &[Value]) -> Vec<Value> {
    let mut child = command(app.path())
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bindpost runs");
    let mut stdin = child.stdin.take().expect("piped");
    for message in messages {
        writeln!(stdin, "{message}").expect("it reads");
    }
    drop(stdin);
    let begin = Instant::now();
    let output = child.wait_with_output().expect("it ends with its input");
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let line = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?} is not a message; {stderr}"))
    };
    stdout.lines().map(line).collect()
}

/// Returns the messages of a client before its first call.
pub(super) fn handshake() -> Vec<Value> {
    let client = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ]
}

fn conversation(tool: &str) -> Vec<Value> {
    let mut calling = call(tool, json!({}));
    calling["id"] = json!(3);
    let mut messages = handshake();
    messages.push(calling);
    messages
}

/// Returns the response to a request. There must be exactly one.
pub(super) fn answer(lines: &[Value], id: u32) -> &Value {
    let answers: Vec<_> = lines.iter().filter(|line| line["id"] == id).collect();
    assert_eq!(answers.len(), 1, "{lines:?}");
    answers[0]
}

#[test]
fn an_app_is_served_over_stdio_without_its_console_output() {
    let talk = "
        console.log('loaded');
        module.exports = async () => {
            console.log('words');
            process.stdout.write('{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\\n');
            return 'answer';
        };";
    let app = App::node().tool("talk", talk);
    let lines = converse(&app, &conversation("talk"));
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(answer(&lines, 1)["result"]["serverInfo"]["name"], "Azure Functions MCP server");
    assert_eq!(answer(&lines, 2)["result"]["tools"][0]["name"], "talk");
    assert_eq!(answer(&lines, 3)["result"]["content"][0]["text"], "answer");
}

#[test]
fn a_handler_is_served_over_stdio() {
    let app = App::handler(&["pid"], HANDLER_TOOLS, "print('listening', flush=True)");
    let lines = converse(&app, &conversation("pid"));
    assert_eq!(lines.len(), 3, "{lines:?}");
    let pid = answer(&lines, 3)["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
}
