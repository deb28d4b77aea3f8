//! Logs, progress and cancellation of running functions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Call, Client, Way, within};
use crate::served::{Language, Served};

for_all_apps! {
    sends_logs_only_on_request,
    sends_progress_only_on_request,
    runs_calls_side_by_side,
    shares_work_among_processes,
    cancels_by_notification,
    cancels_when_the_connection_closes,
}

/// Returns the levels and texts of the log messages received.
fn logs(client: &mut Client) -> Vec<(String, String)> {
    let heard = std::mem::take(&mut client.heard).into_iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    heard
        .map(|message| {
            assert_eq!(message["method"], "notifications/message");
            (text(&message["params"]["level"]), text(&message["params"]["data"]))
        })
        .collect()
}

async fn sends_logs_only_on_request(app: Language) {
    let host = app.shared();
    let all = [("debug", "a detail"), ("info", "a fact"), ("warning", "a warning"), ("error", "an error")];
    let all: Vec<(String, String)> =
        all.iter().map(|(level, text)| ((*level).to_owned(), (*text).to_owned())).collect();
    for mut client in host.clients().await {
        assert_eq!(client.text("LogTool", json!({})).await, "logged");
        assert_eq!(logs(&mut client), [], "{:?}", client.way);
    }
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        // `ask` returns the messages that came before the result, so all are in time and in order. The output
        // that a function prints goes to the console.
        client.listen("debug").await;
        assert_eq!(client.text("LogTool", json!({})).await, "logged");
        assert_eq!(logs(&mut client), all, "{:?}", client.way);
        client.listen("warning").await;
        assert_eq!(client.text("LogTool", json!({})).await, "logged");
        assert_eq!(logs(&mut client), all[2..], "{:?}", client.way);
    }
}

async fn sends_progress_only_on_request(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        assert_eq!(client.text("ProgressTool", json!({"steps": 3})).await, "done");
        assert_eq!(client.heard, [] as [Value; 0], "{:?}", client.way);
        if client.way == Way::Cold {
            continue;
        }
        let params = json!({
            "name": "ProgressTool", "arguments": {"steps": 3}, "_meta": {"progressToken": "token"},
        });
        assert_eq!(client.result("tools/call", params).await["content"][0]["text"], "done");
        let expected: Vec<Value> = (1..=3)
            .map(|step| {
                let message = format!("step {step}");
                let params = json!({
                    "progressToken": "token", "progress": f64::from(step), "total": 3.0, "message": message,
                });
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            })
            .collect();
        assert_eq!(client.heard, expected, "{:?}", client.way);
    }
}

/// A waiting call does not block another one.
async fn runs_calls_side_by_side(app: Language) {
    let host = app.shared();
    let mut slow = host.client(Way::Alone).await;
    let (mut waiting, _) = begun(&mut slow, "side-by-side").await;
    let mut quick = host.client(Way::Alone).await;
    assert_eq!(quick.text("EchoTool", json!({"message": "meanwhile"})).await, "meanwhile");
    let_go(&host, "side-by-side").await;
    let answer = slow.message_of(&mut waiting).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "waited");
}

/// While one process is busy, the other one gets the calls.
async fn shares_work_among_processes(app: Language) {
    let host = app.launch().options(|options| options.processes = Some(2)).serve();
    let mut client = host.client(Way::Alone).await;
    let (waiting, busy) = begun(&mut client, "busy").await;
    // The app is served as soon as the first process is ready.
    within(async { while client.text("ProcessTool", json!({})).await == busy {} }).await;
    for _ in 0..3 {
        assert_ne!(client.text("ProcessTool", json!({})).await, busy);
    }
    let_go(&host, "busy").await;
    drop(waiting);
}

/// Starts a call of `SlowTool` whose function runs and waits. Returns the call and the process it runs in.
pub(super) async fn begun(client: &mut Client, name: &str) -> (Call, String) {
    let params = json!({"name": "SlowTool", "arguments": {"name": name}, "_meta": {"progressToken": 1}});
    let mut call = client.begin("tools/call", params).await;
    let progress = client.message_of(&mut call).await.unwrap();
    assert_eq!(progress["method"], "notifications/progress");
    (call, progress["params"]["message"].as_str().unwrap().to_owned())
}

/// Lets the function continue, and waits until it has ended and all messages of its worker have been
/// received: later answers come on the same stream.
pub(super) async fn let_go(host: &Served, name: &str) {
    std::fs::write(host.file(&format!("go-{name}")), "").unwrap();
    let mark = host.file(&format!("ended-{name}"));
    within(async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let mut client = host.client(Way::Alone).await;
    for _ in 0..3 {
        client.text("EchoTool", json!({"message": "later"})).await;
    }
}

pub(super) fn was_written(host: &Served, name: &str) -> bool {
    let Ok(files) = std::fs::read_dir(host.file(".bindpost/blobs/slow")) else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().contains(name))
}

async fn cancels_by_notification(app: Language) {
    let host = app.shared();
    for (way, name) in [(Way::LATEST, "cancelled-in-session"), (Way::Sse, "cancelled-on-sse")] {
        let mut client = host.client(way).await;
        let (mut call, _) = begun(&mut client, name).await;
        client.notify("notifications/cancelled", json!({"requestId": call.id, "reason": "enough"})).await;
        let_go(&host, name).await;
        // The next event is the end of the stream. On HTTP+SSE, whose stream continues, it is another
        // response.
        if way == Way::Sse {
            assert_eq!(client.text("EchoTool", json!({"message": "next"})).await, "next");
        } else {
            assert_eq!(client.message_of(&mut call).await, None);
        }
        assert!(!was_written(&host, name), "{way:?}");
    }
    // The same call, not cancelled, is answered and writes.
    let mut client = host.client(Way::LATEST).await;
    let (mut call, _) = begun(&mut client, "not-cancelled").await;
    let_go(&host, "not-cancelled").await;
    assert_eq!(client.message_of(&mut call).await.unwrap()["result"]["content"][0]["text"], "waited");
    assert!(was_written(&host, "not-cancelled"));
}

async fn cancels_when_the_connection_closes(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::Alone).await;
    drop(begun(&mut client, "hung-up").await);
    // There is no signal when the host has noticed the disconnect.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let_go(&host, "hung-up").await;
    assert!(!was_written(&host, "hung-up"));
}
