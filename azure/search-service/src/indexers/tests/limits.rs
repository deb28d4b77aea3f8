//! Tests of batches, failures, counters and cancellation.

use std::sync::OnceLock;
use std::time::Duration;

use super::*;

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|id| format!("{{\"id\":\"{id:03}\"}}\n")).collect()
}

#[test]
fn batches_have_the_configured_size() {
    let mut bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.indexer["parameters"]["batchSize"] = json!(4);
    bench.folder.write("a.jsonl", lines(0..6));
    bench.folder.write("b.jsonl", lines(6..9));
    assert_eq!(bench.succeed(), 9);
    assert_eq!(*bench.index.batches.lock().unwrap(), [4, 4, 1]);
}

#[test]
fn the_first_failure_ends_a_run_by_default_and_the_blob_is_retried() {
    let bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.folder.write("a.jsonl", lines(0..2));
    bench.folder.write("b.jsonl", "{\"id\":\"x\"}\n{\"id\":\n{\"id\":\"y\"}\n");
    let result = bench.run();
    assert_eq!(result.status, status::ExecutionStatus::TransientFailure);
    let message = result.error_message.unwrap();
    assert!(message.contains("maxFailedItems") && message.contains("b.jsonl, line 2"), "{message}");
    assert_eq!((result.items_processed, result.items_failed), (4, 1));
    assert_eq!(bench.index.keys(), ["000", "001", "x"]);
    assert_eq!(bench.status()["status"], "running");
    bench.folder.write("b.jsonl", "{\"id\":\"x\"}\n{\"id\":\"z\"}\n{\"id\":\"y\"}\n");
    assert_eq!(bench.succeed(), 3);
}

#[test]
fn failures_within_the_limits_are_reported_and_the_run_succeeds() {
    let mut bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.indexer["parameters"]["maxFailedItems"] = json!(2);
    bench.indexer["parameters"]["maxFailedItemsPerBatch"] = json!(2);
    bench
        .folder
        .write("a.jsonl", "{\"id\":\"1\"}\n[]\n{\"id\":\"2\",\"title\":\"refuse\"}\n{\"id\":\"3\"}\n");
    let result = bench.run();
    assert_eq!(result.status, status::ExecutionStatus::Success, "{result:?}");
    assert_eq!((result.items_processed, result.items_failed, result.errors.len()), (4, 2, 2));
    let refused = &result.errors[1];
    assert_eq!((refused.key.as_deref(), refused.status_code), (Some("2"), 400));
    assert_eq!(refused.name.as_deref(), Some("Indexing.idx"));
    assert_eq!(result.errors[0].details.as_deref(), Some("a.jsonl, line 2"));
    // A failed item is not retried until it changes.
    assert_eq!(bench.succeed(), 0);
}

#[test]
fn failures_in_one_batch_have_a_limit_of_their_own() {
    let mut bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.indexer["parameters"] = json!({"maxFailedItems": -1, "maxFailedItemsPerBatch": 1, "batchSize": 3,
        "configuration": {"parsingMode": "jsonLines"}});
    let refuse = |id: u32| format!("{{\"id\":\"{id}\",\"title\":\"refuse\"}}\n");
    bench.folder.write("a.jsonl", format!("{}{}{}{}", refuse(1), lines(2..4), refuse(4), lines(5..7)));
    assert_eq!(bench.run().status, status::ExecutionStatus::Success);
    bench.folder.write("a.jsonl", format!("{}{}{}", refuse(1), refuse(2), lines(5..7)));
    let result = bench.run();
    assert!(result.error_message.unwrap().contains("maxFailedItemsPerBatch"));
}

#[test]
fn invalid_values_fail_their_item() {
    let bench = Bench::new(json!({"parsingMode": "jsonLines"})).tolerate();
    bench.folder.write("a.jsonl", "{\"id\":\"1\",\"count\":\"many\"}\n{\"id\":\"2\",\"count\":\"7\"}\n");
    let result = bench.run();
    assert!(result.errors[0].error_message.contains("'count'"));
    assert_eq!(result.errors[0].details.as_deref(), Some("a.jsonl, item 1"));
    assert_eq!(bench.index.all()[0]["count"], 7);
}

/// A bench whose index calls `act` before each batch.
fn hooked(act: impl Fn(&Arc<IndexerScheduler>) + Send + Sync + 'static) -> Bench {
    let place: Arc<OnceLock<Arc<IndexerScheduler>>> = Arc::default();
    let seen = Arc::clone(&place);
    let hook: Hook = Box::new(move || act(seen.get().unwrap()));
    let index = Index { hook: Some(hook), ..Index::default() };
    let mut bench = Bench::with(json!({"parsingMode": "jsonLines"}), index, IndexerLimits::default());
    bench.indexer["parameters"]["batchSize"] = json!(2);
    assert!(place.set(Arc::clone(&bench.indexers)).is_ok());
    bench
}

#[test]
fn counters_are_visible_during_a_run() {
    let seen: Arc<Mutex<Vec<(Value, Value)>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let bench = hooked(move |indexers| {
        let last = indexers.status("ix").unwrap()["lastResult"].take();
        notes.lock().unwrap().push((last["status"].clone(), last["itemsProcessed"].clone()));
    });
    bench.folder.write("a.jsonl", lines(0..5));
    bench.succeed();
    let going = json!("inProgress");
    let expected = [(going.clone(), json!(0)), (going.clone(), json!(2)), (going, json!(4))];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(bench.status()["lastResult"]["status"], "success");
    assert_eq!(bench.status()["lastResult"]["itemsProcessed"], 5);
}

#[test]
fn a_cancelled_run_ends_and_the_next_run_continues() {
    let bench = hooked(|indexers| indexers.cancel("ix"));
    bench.folder.write("a.jsonl", lines(0..2));
    bench.folder.write("b.jsonl", lines(2..4));
    let result = bench.run();
    assert_eq!(result.error_message.as_deref(), Some("The run was cancelled."));
    assert_eq!(bench.index.keys(), ["000", "001"]);
    assert_eq!(bench.run().items_processed, 2);
    assert_eq!(bench.index.keys().len(), 4);
    assert_eq!(bench.succeed(), 0);
}

#[test]
fn blobs_with_pending_documents_are_processed_again() {
    let bench = hooked(|indexers| indexers.cancel("ix"));
    bench.folder.write("a.jsonl", lines(0..1));
    bench.folder.write("b.jsonl", lines(1..4));
    bench.folder.write("c.jsonl", lines(4..5));
    // The first batch has all of a and the first line of b, so only a is finished.
    assert_eq!(bench.run().items_processed, 2);
    let expected = ["000", "001"];
    assert_eq!(bench.index.keys(), expected);
    assert_eq!(bench.run().items_processed, 2);
    assert_eq!(bench.index.keys(), ["000", "001", "002"]);
}

#[test]
fn a_run_ends_at_its_time_limit() {
    let limits = IndexerLimits { run_time: Duration::ZERO, ..IndexerLimits::default() };
    let bench = Bench::with(json!({}), Index::default(), limits);
    bench.folder.write("a.txt", "x");
    assert!(bench.run().error_message.unwrap().contains("next run"));
}

#[test]
fn a_panic_ends_its_run_only() {
    let bench = hooked(|_| panic!("on purpose"));
    bench.folder.write("a.jsonl", lines(0..2));
    let result = bench.run();
    assert_eq!(result.status, status::ExecutionStatus::TransientFailure);
    assert!(!bench.indexers.is_running("ix"));
    assert_eq!(bench.status()["executionHistory"].as_array().unwrap().len(), 1);
}

#[test]
fn a_second_run_of_the_same_indexer_is_rejected() {
    let bench = Bench::new(json!({}));
    let ticket = bench.indexers.reserve_run(bench.job()).unwrap();
    let error = bench.indexers.reserve_run(bench.job()).err().unwrap();
    assert_eq!(error.status, http::StatusCode::CONFLICT);
    assert!(error.message.contains("concurrent invocations are not allowed"));
    assert_eq!(bench.indexers.reset("ix").unwrap_err().status, http::StatusCode::CONFLICT);
    drop(ticket);
    bench.succeed();
}

#[tokio::test]
async fn a_request_waits_for_a_run_that_ends() {
    let bench = Bench::new(json!({}));
    // Nothing runs, so this does not wait.
    bench.indexers.wait_for_end("ix", Duration::MAX).await;
    let ticket = bench.indexers.reserve_run(bench.job()).unwrap();
    let indexers = Arc::clone(&bench.indexers);
    let waiting = tokio::spawn(async move {
        indexers.wait_for_end("ix", Duration::MAX).await;
        indexers.reset("ix")
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    drop(ticket);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_long_run_is_not_waited_for() {
    let bench = Bench::new(json!({}));
    let _ticket = bench.indexers.reserve_run(bench.job()).unwrap();
    bench.indexers.wait_for_end("ix", Duration::from_millis(1)).await;
    assert!(bench.indexers.is_running("ix"));
    assert_eq!(bench.indexers.reset("ix").unwrap_err().status, http::StatusCode::CONFLICT);
}

#[test]
fn messages_are_limited() {
    let bench = Bench::new(json!({"parsingMode": "jsonLines"})).tolerate();
    bench.folder.write("a.jsonl", "[]\n".repeat(1_500));
    let result = bench.run();
    assert_eq!((result.items_failed, result.errors.len()), (1_500, 1_000));
    bench.run();
    assert_eq!(bench.status()["executionHistory"][1]["errors"].as_array().unwrap().len(), 20);
}
