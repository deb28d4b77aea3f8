//! Files that change while the app runs.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::app::{App, HANDLER_TOOLS, NAP, PID, handler, tool};
use super::client::{Client, Events, MCP, Reply, SSE};
use super::host::{Host, must_end_within, signal};
use super::{PATIENCE, eventually};

fn says(word: &str) -> String {
    format!("module.exports = async () => {word:?};")
}

fn wait_for_answer(client: &Client, tool: &str, answer: &str) {
    eventually(PATIENCE, answer, || (client.call(tool, json!({})).as_deref() == Ok(answer)).then_some(()));
}

#[test]
fn an_edited_script_is_served_by_a_new_worker_and_the_old_one_ends() {
    let app = App::node().tool("pid", PID).tool("word", &says("old"));
    let host = Host::start(&app, &[]);
    let worker = host.worker().expect("it serves");
    assert_eq!(host.call("word", json!({})).as_deref(), Ok("old"));
    app.write("word/index.js", &says("new"));
    wait_for_answer(&host, "word", "new");
    assert_ne!(host.worker(), Some(worker));
    must_end_within(worker, Duration::from_secs(10));
    host.wait_until_it_says("word/index.js changed: started again");
}

/// Calls that began before a change are completed, and no call is rejected because of it.
fn calls_outlive_a_change(app: &App, change: impl Fn()) {
    let host = Host::start(app, &[]);
    let worker = host.worker().expect("it serves");
    // More calls than run at the same time, so that some of them wait during the change.
    let calls: Vec<_> =
        (0..150).map(|_| host.send_call("nap", json!({"ms": 2500})).expect("connects")).collect();
    eventually(PATIENCE, "calls under way", || (app.begun() >= 100).then_some(()));
    change();
    // All workers are busy, so the change is visible on the console only.
    host.wait_until_it_says("changed: started again");
    for call in calls {
        let text = Reply::read(call).expect("an answer").tool_text();
        assert!(text.as_ref().is_ok_and(|text| text.contains(&worker.to_string())), "{worker}: {text:?}");
    }
    host.worker_besides(&[worker], PATIENCE);
    must_end_within(worker, Duration::from_secs(10));
}

#[test]
fn calls_in_flight_end_in_the_worker_they_began_in() {
    let app = App::node().tool("pid", PID).tool("nap", NAP);
    calls_outlive_a_change(&app, || app.write("pid/index.js", &format!("{PID}// changed")));
}

#[test]
fn calls_in_flight_end_in_the_handler_they_began_in() {
    let app = App::handler(&["pid", "nap"], HANDLER_TOOLS, "");
    calls_outlive_a_change(&app, || app.write("handler.py", &handler(HANDLER_TOOLS, "# changed")));
}

/// Breaks a running app in several ways and repairs it.
#[test]
fn a_broken_edit_is_not_served_until_it_is_repaired() {
    let app = App::node().tool("word", &says("old"));
    let host = Host::start(&app, &[]);
    let breaks = [
        ("word/index.js", "module.exports = async () => {"),
        ("host.json", r#"{"version": "2.0","#),
        ("word/function.json", r#"{"scriptFile": "index.js", "bindings": []}"#),
    ];
    for (number, (file, broken)) in breaks.into_iter().enumerate() {
        let whole = app.read(file).expect("the file exists");
        app.write(file, broken);
        host.wait_until_it_says(&format!("{file} changed, but the previous app keeps running"));
        let word = if number == 0 { "old".to_owned() } else { format!("new {}", number - 1) };
        assert_eq!(host.call("word", json!({})), Ok(word));
        assert_eq!(host.readiness(), 200);
        app.write(file, &whole);
        app.write("word/index.js", &says(&format!("new {number}")));
        wait_for_answer(&host, "word", &format!("new {number}"));
    }
}

#[test]
fn an_app_whose_worker_was_killed_still_applies_changes() {
    let app = App::node().tool("pid", PID).tool("word", &says("old"));
    let host = Host::start(&app, &[]);
    let worker = host.worker().expect("it serves");
    signal(worker, Signal::KILL);
    app.write("word/index.js", &says("new"));
    wait_for_answer(&host, "word", "new");
}

/// A handler that was started for a broken edit must end.
#[cfg(target_os = "linux")]
#[test]
fn a_broken_edit_leaves_no_process_behind() {
    let app = App::handler(&["pid"], HANDLER_TOOLS, "");
    let host = Host::start(&app, &[]);
    app.write("pid/function.json", r#"{"bindings": []}"#);
    host.wait_until_it_says("pid/function.json changed, but the previous app keeps running");
    let worker = host.worker().expect("it serves");
    eventually(PATIENCE, "one child only", || (children(host.pid()) == [worker]).then_some(()));
    // It is not started later either.
    thread::sleep(Duration::from_secs(1));
    assert_eq!(children(host.pid()), [worker]);
}

/// Returns the running child processes of a process.
#[cfg(target_os = "linux")]
fn children(parent: i32) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").expect("Linux").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent_of = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse::<i32>().ok());
        parent_of == Some(parent) && super::host::is_running(*pid)
    };
    pids.filter(is_child).collect()
}

#[test]
fn no_watch_disables_the_file_watcher() {
    let app = App::node().tool("word", &says("old"));
    let host = Host::start(&app, &["--no-watch"]);
    app.write("word/index.js", &says("new"));
    // A watched app would have been restarted by now.
    thread::sleep(Duration::from_secs(3));
    assert_eq!(host.call("word", json!({})).as_deref(), Ok("old"));
}

fn initialize(revision: &str) -> Value {
    let client = json!({"name": "listener", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

const INITIALIZED: &str = r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;

#[test]
fn subscribed_clients_are_notified_of_a_new_tool() {
    let app = App::node().tool("word", &says("old"));
    let host = Host::start(&app, &[]);
    let initialized: Value = serde_json::from_str(INITIALIZED).expect("JSON");

    // An HTTP+SSE client.
    let mut old_client = Events::open(&host, SSE, &[]);
    let endpoint = old_client.next().expect("where to post");
    let endpoint = format!("{MCP}/{}", endpoint.rsplit('/').next().expect("a path"));
    host.post(&endpoint, &[], &initialize("2024-11-05")).expect("an answer");
    host.post(&endpoint, &[], &initialized).expect("an answer");

    // A streamable HTTP client.
    let opened = host.post(MCP, &[], &initialize("2025-11-25")).expect("an answer");
    let session = opened.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.expect("a session").to_owned();
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    host.post(MCP, &headers, &initialized).expect("an answer");
    let mut new_client = Events::open(&host, MCP, &headers);
    // The stream must be open before the change.
    thread::sleep(Duration::from_millis(300));

    app.write("another/index.js", &says("another"));
    app.write("another/function.json", &tool("another"));
    old_client.wait_for("notifications/tools/list_changed");
    new_client.wait_for("notifications/tools/list_changed");
    assert_eq!(host.tools().len(), 2);
    assert_eq!(host.call("another", json!({})).as_deref(), Ok("another"));
}
