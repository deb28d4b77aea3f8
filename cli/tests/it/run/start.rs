//! Start-up output: the line of JSON and the start screen.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::PATIENCE;
use super::app::{App, PID, tool};
use super::host::{Host, command, signal};

/// An app with a tool with an argument, a resource, a prompt and a function with another trigger.
fn app() -> App {
    let properties = json!([{"propertyName": "city", "propertyType": "string", "description": "Where", "isRequired": true}]);
    let function = |trigger: Value| json!({"scriptFile": "../all.js", "bindings": [trigger]}).to_string();
    let weather = json!({
        "type": "mcpToolTrigger", "direction": "in", "name": "call", "toolName": "weather",
        "description": "Tells the weather", "toolProperties": properties.to_string(),
    });
    let readme = json!({
        "type": "mcpResourceTrigger", "direction": "in", "name": "call", "uri": "file://readme.md",
        "resourceName": "readme", "mimeType": "text/plain",
    });
    let review = json!({
        "type": "mcpPromptTrigger", "direction": "in", "name": "call", "promptName": "code_review",
        "promptArguments": json!([{"name": "code", "description": "What to review", "required": true}]).to_string(),
    });
    let queue = json!({"type": "queueTrigger", "direction": "in", "name": "message", "queueName": "work"});
    App::node()
        .with("all.js", "module.exports = async () => 'it works';")
        .with("weather/function.json", &function(weather))
        .with("readme/function.json", &function(readme))
        .with("review/function.json", &function(review))
        .with("old_queue/function.json", &function(queue))
}

#[test]
fn one_line_of_json_lists_the_entries_and_addresses() {
    let app = app();
    let host = Host::start(&app, &[]);
    let ready = &host.ready;
    assert_eq!(ready["event"], "ready");
    assert_eq!(ready["app"], app.path().file_name().expect("a name").to_str().expect("Unicode"));
    assert!(ready["runtime"].as_str().is_some_and(|runtime| runtime.starts_with("node ")), "{ready}");
    assert_eq!(ready["worker"], json!({"kind": "built-in"}));
    assert!(ready["readyMs"].is_u64(), "{ready}");
    assert_eq!(ready["requiresKey"], false);
    let base = format!("http://{}/runtime/webhooks/mcp", host.address);
    assert_eq!(ready["mcp"], base);
    assert_eq!(ready["sse"], format!("{base}/sse"));
    let city = json!({"name": "city", "type": "string", "required": true});
    assert_eq!(ready["tools"][0]["name"], "weather");
    assert_eq!(ready["tools"][0]["function"], "weather");
    assert_eq!(ready["tools"][0]["arguments"], json!([city]));
    assert_eq!(ready["resources"][0]["uri"], "file://readme.md");
    assert_eq!(ready["resources"][0]["mimeType"], "text/plain");
    assert_eq!(ready["prompts"][0]["name"], "code_review");
    assert_eq!(ready["prompts"][0]["arguments"][0]["name"], "code");

    // The listed entries are served.
    assert_eq!(host.call("weather", json!({"city": "Oslo"})).as_deref(), Ok("it works"));
    let read = host.request("resources/read", json!({"uri": "file://readme.md"}));
    assert_eq!(read["contents"][0]["text"], "it works");
    let prompt = host.request("prompts/get", json!({"name": "code_review", "arguments": {"code": "x"}}));
    assert_eq!(prompt["messages"][0]["content"]["text"], "it works");
    assert_eq!(host.get("/_/healthz").status, 200);
    assert_eq!(host.readiness(), 200);
}

#[test]
fn a_function_with_another_trigger_is_skipped_and_named() {
    let host = Host::start(&app(), &[]);
    let warnings = host.ready["warnings"].as_array().expect("a list").clone();
    let says = |warning: &Value| {
        let message = warning["message"].as_str().unwrap_or_default();
        message.contains("function old_queue is skipped") && message.contains("queueTrigger")
    };
    assert!(warnings.iter().any(says), "{warnings:?}");
    assert_eq!(host.tools(), ["weather"]);
}

#[test]
fn the_start_screen_is_printed_on_stderr_only() {
    let app = app();
    let mut child = command(app.path())
        .args(["--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bindpost runs");
    let stderr = BufReader::new(child.stderr.take().expect("piped"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut screen = String::new();
    // The skipped function is the last thing on the screen.
    while !screen.contains("old_queue is skipped") {
        let Ok(line) = lines.recv_timeout(PATIENCE) else { break };
        screen.push_str(&line);
        screen.push('\n');
    }
    signal(i32::try_from(child.id()).expect("a pid"), Signal::TERM);
    let output = child.wait_with_output().expect("it has ended");
    let parts = [
        "/runtime/webhooks/mcp ",
        "/runtime/webhooks/mcp/sse",
        "/_/healthz",
        "open: no key required",
        "TOOLS (1)",
        "city*: string",
        "RESOURCES (1)",
        "file://readme.md",
        "PROMPTS (1)",
        "code_review",
        "! function old_queue is skipped: the trigger queueTrigger",
    ];
    for part in parts {
        assert!(screen.contains(part), "{part:?} is not on the screen:\n{screen}");
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(!screen.contains('\u{1b}'), "no colours without a terminal:\n{screen}");
}

#[test]
fn one_invalid_function_does_not_prevent_the_others_from_being_served() {
    let broken = tool("bad").replace("toolName", "noName");
    let app = App::node().tool("pid", PID).with("bad/function.json", &broken).with("bad/index.js", PID);
    let host = Host::start(&app, &[]);
    assert_eq!(host.tools(), ["pid"]);
    let warnings = host.ready["warnings"].to_string();
    assert!(warnings.contains("bad/function.json: function bad: mcpToolTrigger.toolName"), "{warnings}");
    assert!(warnings.contains(r#""fix":"give toolName a text"#), "{warnings}");
}
