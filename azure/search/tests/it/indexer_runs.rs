//! `runIndexer` and `getIndexerStatus`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindpost_azure_search::SearchServerState;
use bindpost_mcp_openapi::UpstreamLimits;
use serde_json::{Value, json};

use crate::service::{Scripted, Service, server, shared};
use crate::talk::{ERAS, Era, Talk};

/// Returns the state of the tools without a service.
fn nowhere() -> SearchServerState {
    shared("http://127.0.0.1:9", None, UpstreamLimits::default())
}

fn steps(talk: &mut Talk) -> Vec<f64> {
    talk.progress().iter().map(|step| step["progress"].as_f64().unwrap()).collect()
}

fn rows(count: usize) -> String {
    (0..count).map(|n| format!("{{\"id\": \"r{n}\", \"n\": {n}}}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_to_the_end_and_returns_the_counts_in_legacy_and_modern_revisions() {
    let service = Service::start().await;
    service.put_file("rows", "a.jsonl", &rows(25));
    service.with_indexer(json!({})).await;
    for (number, era) in ERAS.into_iter().enumerate() {
        let mut talk = Talk::with(&service.server(), era, Some(true)).await;
        service.put_file(
            "rows",
            &format!("more{number}.jsonl"),
            &format!("{{\"id\": \"m{number}\", \"n\": 1}}\n"),
        );
        let arguments = json!({"indexerName": "loader", "clientRequestId": "abc"});
        let told = talk.call("runIndexer", arguments).await.unwrap();
        assert_eq!(
            (&told["status"], &told["itemsFailed"], &told["attached"]),
            (&json!("success"), &json!(0), &json!(false))
        );
        // The first run reads both files, the second only the new one. Neither is confused by the
        // previous run.
        assert_eq!(told["itemsProcessed"], if number == 0 { 26 } else { 1 }, "{told}");
        assert_eq!((&told["indexerName"], &told["clientRequestId"]), (&json!("loader"), &json!("abc")));
        assert!(told["durationSeconds"].as_f64().unwrap() >= 0.0);
        let steps = steps(&mut talk);
        assert!(!steps.is_empty() && steps.is_sorted(), "{steps:?}");
        assert!(talk.asked.is_empty());
    }
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    let told = talk.call("getIndexerStatus", json!({"indexerName": "loader", "history": 1})).await.unwrap();
    assert_eq!((&told["status"], &told["isRunning"]), (&json!("running"), &json!(false)), "{told}");
    assert_eq!(
        (told["history"].as_array().unwrap().len(), &told["history"][0]["itemsProcessed"]),
        (1, &json!(26))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_is_an_error_with_the_same_json() {
    let service = Service::start().await;
    service.put_file(
        "rows",
        "bad.jsonl",
        "{\"id\": \"1\", \"n\": \"no number\"}\n{\"id\": \"2\", \"n\": 2}\n",
    );
    service.with_indexer(json!({})).await;
    let mut talk = Talk::with(&service.server(), Era::Alone, Some(true)).await;
    let told = talk.call("runIndexer", json!({"indexerName": "loader"})).await.unwrap_err();
    assert_eq!((&told["status"], &told["itemsFailed"]), (&json!("transientFailure"), &json!(1)), "{told}");
    assert!(told["errors"][0]["message"].as_str().unwrap().contains("'n'"), "{told}");
    assert!(told["errors"][0]["key"].is_string(), "{told}");
    let missing = talk.call("runIndexer", json!({"indexerName": "../../servicestats"})).await.unwrap_err();
    assert_eq!(
        (&missing["error"], &missing["status"]),
        (&json!("resource_not_found"), &json!(404)),
        "{missing}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_needs_confirmation_and_its_entry_is_not_the_end() {
    let service = Service::start().await;
    service.put_file("rows", "a.jsonl", &rows(3));
    service.with_indexer(json!({})).await;
    for era in ERAS {
        let mut talk = Talk::with(&service.server(), era, Some(true)).await;
        let told = talk.call("runIndexer", json!({"indexerName": "loader", "reset": true})).await.unwrap();
        assert_eq!(talk.asked.len(), 1, "{:?}", talk.asked);
        assert_eq!((&told["status"], &told["itemsProcessed"]), (&json!("success"), &json!(3)));
    }
    let mut talk = Talk::with(&service.server(), Era::Session, Some(false)).await;
    let refused = talk.call("runIndexer", json!({"indexerName": "loader", "reset": true})).await;
    assert!(refused.unwrap_err().as_str().unwrap().contains("did not agree"));
    let status = service.done("GET", "indexers('loader')/search.status", Value::Null).await;
    assert_eq!(status["lastResult"]["status"], "success", "nothing was reset: {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_servers_do_not_have_run_indexer() {
    let mut talk =
        Talk::start(&server(SearchServerState { read_only: true, ..nowhere() }), Era::Session).await;
    let listed = talk.request("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert!(!tools.iter().any(|tool| tool["name"] == "runIndexer"));
    let ours = ["getIndexerStatus", "diagnoseIndexer", "planIndexChange"];
    let ours: Vec<&Value> =
        tools.iter().filter(|tool| ours.iter().any(|name| tool["name"] == *name)).collect();
    assert_eq!(ours.len(), 3);
    for tool in ours {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        for changing in ["apply", "run", "keepOld"] {
            assert!(tool["inputSchema"]["properties"].get(changing).is_none(), "{tool}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_small() {
    let mut talk = Talk::start(&server(nowhere()), Era::Session).await;
    let listed = talk.request("tools/list", json!({})).await.unwrap();
    for tool in listed["tools"].as_array().unwrap() {
        let bytes = tool.to_string().len();
        // `searchDocuments` needs more for the query language.
        let most = if tool["name"] == "searchDocuments" { 3072 } else { 1331 };
        assert!(bytes <= most, "{bytes}: {tool}");
    }
}

/// Returns a run as in the status of the service.
fn run(status: &str, start: &str, end: Option<&str>, items: u64) -> Value {
    json!({"status": status, "startTime": start, "endTime": end, "itemsProcessed": items, "itemsFailed": 0,
        "errors": [], "warnings": []})
}

fn status(overall: &str, last: &Value, history: &[Value]) -> Value {
    json!({"name": "x", "status": overall, "lastResult": last, "executionHistory": history})
}

const OLD: &str = "2020-01-01T00:00:00Z";
const OLD_END: &str = "2020-01-01T00:01:00Z";
// A time after any run of this test.
const NEW: &str = "2100-01-01T00:00:00Z";
const NEW_END: &str = "2100-01-01T00:00:09Z";

/// Starts a service whose `search.status` returns these responses in turn, and then the last one forever.
async fn saying(run_status: u16, says: Vec<(u16, Value)>) -> Scripted {
    let looked = Arc::new(AtomicUsize::new(0));
    Scripted::start(move |_, path, _| {
        if path.ends_with("search.run") {
            let error =
                json!({"error": {"code": "", "message": "Another indexer invocation is in progress."}});
            return (run_status, if run_status >= 400 { error } else { Value::Null });
        }
        let number = looked.fetch_add(1, Ordering::Relaxed).min(says.len() - 1);
        says[number].clone()
    })
    .await
}

async fn told_of(service: &Scripted, arguments: Value) -> Value {
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    let told = talk.call("runIndexer", arguments).await;
    let steps = steps(&mut talk);
    assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "progress must increase: {steps:?}");
    told.unwrap_or_else(|failure| failure)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_lags_behind_does_not_end_the_wait() {
    let old = run("success", OLD, Some(OLD_END), 7);
    let before = (200, status("running", &old, std::slice::from_ref(&old)));
    let during =
        |items| (200, status("running", &run("inProgress", NEW, None, items), std::slice::from_ref(&old)));
    let new = run("success", NEW, Some(NEW_END), 9);
    let after = (200, status("running", &new, &[new.clone(), old.clone()]));
    let busy = (503, json!({"error": {"code": "", "message": "busy"}}));
    let says = vec![before.clone(), before.clone(), busy, during(2), during(1), during(5), after];
    let told = told_of(&saying(202, says).await, json!({"indexerName": "x"})).await;
    assert_eq!(
        (&told["status"], &told["itemsProcessed"], &told["durationSeconds"]),
        (&json!("success"), &json!(9), &json!(9.0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_the_same_start_as_the_previous_one_is_identified_by_its_end() {
    let old = run("success", OLD, Some(NEW), 7);
    let new = run("transientFailure", OLD, Some(NEW_END), 1);
    let says =
        [&old, &old, &new].map(|last| (200, status("running", last, std::slice::from_ref(last)))).to_vec();
    let told = told_of(&saying(202, says).await, json!({"indexerName": "x"})).await;
    assert_eq!((&told["status"], &told["itemsProcessed"]), (&json!("transientFailure"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_run_in_progress_is_not_ours_unless_we_attach_to_it() {
    let earlier = |status: &str, end| run(status, OLD, end, 3);
    let ours = run("success", NEW, Some(NEW_END), 4);
    let ended = earlier("success", Some(NEW));
    let says = vec![
        (200, status("running", &earlier("inProgress", None), &[])),
        (200, status("running", &earlier("inProgress", None), &[])),
        (200, status("running", &ended, std::slice::from_ref(&ended))),
        (200, status("running", &ours, &[ours.clone(), ended.clone()])),
    ];
    let told = told_of(&saying(202, says.clone()).await, json!({"indexerName": "x"})).await;
    assert_eq!((&told["itemsProcessed"], &told["attached"]), (&json!(4), &json!(false)));
    let told = told_of(&saying(409, says).await, json!({"indexerName": "x"})).await;
    assert_eq!((&told["itemsProcessed"], &told["attached"]), (&json!(3), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn our_run_is_found_despite_a_later_one() {
    let ours = run("success", NEW, Some(NEW_END), 4);
    let later = run("inProgress", "2100-01-01T00:01:00Z", None, 1);
    let says = vec![(200, status("running", &Value::Null, &[])), (200, status("running", &later, &[ours]))];
    let told = told_of(&saying(202, says).await, json!({"indexerName": "x"})).await;
    assert_eq!((&told["status"], &told["itemsProcessed"]), (&json!("success"), &json!(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ended_before_ours_was_accepted_is_not_ours() {
    // The first poll did not contain it yet.
    let earlier = run("success", "2021-01-01T00:00:00Z", Some("2021-01-01T00:00:05Z"), 3);
    let ours = run("success", NEW, Some(NEW_END), 4);
    let says = vec![
        (200, status("running", &Value::Null, &[])),
        (200, status("running", &earlier, std::slice::from_ref(&earlier))),
        (200, status("running", &ours, &[ours.clone(), earlier.clone()])),
    ];
    let told = told_of(&saying(202, says).await, json!({"indexerName": "x"})).await;
    assert_eq!(told["itemsProcessed"], 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_on_a_reset_and_on_an_indexer_in_error() {
    let old = run("success", OLD, Some(OLD_END), 7);
    let reset = run("reset", NEW, Some(NEW), 0);
    let before = (200, status("running", &old, &[]));
    let says = vec![before.clone(), (200, status("running", &reset, &[]))];
    assert_eq!(told_of(&saying(202, says).await, json!({"indexerName": "x"})).await["status"], "reset");
    let says = vec![before, (200, status("error", &old, &[]))];
    assert_eq!(told_of(&saying(202, says).await, json!({"indexerName": "x"})).await["status"], "error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_is_no_failure() {
    let under_way = run("inProgress", NEW, None, 12);
    let says = vec![(200, status("running", &Value::Null, &[])), (200, status("running", &under_way, &[]))];
    let service = saying(202, says).await;
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    let told = talk.call("runIndexer", json!({"indexerName": "x", "timeoutSeconds": 1})).await.unwrap();
    assert_eq!(
        (&told["status"], &told["timedOut"], &told["itemsProcessed"]),
        (&json!("inProgress"), &json!(true), &json!(12))
    );
    assert!(told["next"].as_str().unwrap().contains("getIndexerStatus"));
    let told = talk.call("runIndexer", json!({"indexerName": "x", "wait": false})).await.unwrap();
    assert_eq!((&told["status"], &told["attached"]), (&json!("started"), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancellation_stops_polling() {
    let under_way = run("inProgress", NEW, None, 1);
    let says = vec![(200, status("running", &Value::Null, &[])), (200, status("running", &under_way, &[]))];
    let service = saying(202, says).await;
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    let id = talk
        .send("tools/call", json!({"name": "runIndexer", "arguments": json!({"indexerName": "x"})}))
        .await;
    assert_eq!(talk.next().await["method"], "notifications/progress");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    talk.client.send(cancel.to_string()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let looked = service.asked("search.status");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(service.asked("search.status"), looked, "polling continues");
    assert_eq!(service.asked("search.run"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn continues_as_a_task() {
    let service = Service::start().await;
    service.put_file("rows", "a.jsonl", &rows(5));
    service.with_indexer(json!({})).await;
    let can = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}});
    let mut talk = Talk::able(&service.server(), Era::Alone, can).await;
    let call = json!({"name": "runIndexer", "arguments": {"indexerName": "loader"}});
    let task = talk.request("tools/call", call).await.unwrap();
    assert_eq!(task["resultType"], "task", "{task}");
    for _ in 0..600 {
        let now = talk.request("tasks/get", json!({"taskId": task["taskId"]})).await.unwrap();
        if now["status"] == "completed" {
            assert_eq!(now["result"]["structuredContent"]["itemsProcessed"], 5, "{now}");
            return;
        }
        assert_eq!(now["status"], "working", "{now}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the task did not end");
}
