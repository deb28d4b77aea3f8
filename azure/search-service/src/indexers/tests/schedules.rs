//! Tests of schedules and of the status of indexers.

use chrono::{DateTime, TimeDelta, Utc};

use super::*;
use crate::indexers::scheduler::runs_when_created;

fn scheduled(schedule: Value, disabled: bool) -> IndexerDefinition {
    IndexerDefinition::parse(&json!({"name": "ix", "dataSourceName": "ds", "targetIndexName": "idx",
        "schedule": schedule, "disabled": disabled}))
    .unwrap()
}

#[test]
fn an_interval_counts_from_the_last_start() {
    let bench = Bench::new(json!({}));
    let indexer = scheduled(json!({"interval": "PT5M"}), false);
    let due = |at: DateTime<Utc>| !bench.indexers.due_indexers([&indexer], at).unwrap().is_empty();
    assert!(due(Utc::now()));
    bench.succeed();
    assert!(!due(Utc::now() + TimeDelta::minutes(4)));
    assert!(due(Utc::now() + TimeDelta::minutes(5)));
    let ticket = bench.indexers.reserve_run(bench.job()).unwrap();
    assert!(!due(Utc::now() + TimeDelta::minutes(5)));
    drop(ticket);
    let disabled = scheduled(json!({"interval": "PT5M"}), true);
    assert!(bench.indexers.due_indexers([&disabled], Utc::now()).unwrap().is_empty());
    assert!(bench.indexers.due_indexers([&scheduled(json!(null), false)], Utc::now()).unwrap().is_empty());
}

#[test]
fn a_start_time_fixes_the_times() {
    let bench = Bench::new(json!({}));
    let now = Utc::now();
    let start = now + TimeDelta::minutes(10);
    let indexer = scheduled(json!({"interval": "PT1H", "startTime": start.to_rfc3339()}), false);
    let due = |at: DateTime<Utc>| !bench.indexers.due_indexers([&indexer], at).unwrap().is_empty();
    assert!(!runs_when_created(&indexer, now));
    assert!(!due(now));
    assert!(due(start + TimeDelta::seconds(1)));
    bench.succeed();
    assert!(due(start + TimeDelta::seconds(1)), "a run before the start time is ignored");
    let past = scheduled(
        json!({"interval": "PT1H", "startTime": (now - TimeDelta::minutes(90)).to_rfc3339()}),
        false,
    );
    let due = |at: DateTime<Utc>| !bench.indexers.due_indexers([&past], at).unwrap().is_empty();
    assert!(!due(now + TimeDelta::minutes(29)));
    assert!(due(now + TimeDelta::minutes(31)));
}

#[test]
fn indexers_run_when_created_unless_disabled() {
    assert!(runs_when_created(&scheduled(json!(null), false), Utc::now()));
    let disabled = scheduled(json!(null), true);
    assert!(!runs_when_created(&disabled, Utc::now()));
    let mut bench = Bench::new(json!({}));
    bench.indexer["disabled"] = json!(true);
    assert!(bench.indexers.reserve_run(bench.job()).err().unwrap().message.contains("disabled"));
}

#[test]
fn status_has_the_format_of_the_rest_api() {
    let bench = Bench::new(json!({}));
    let fresh = bench.status();
    assert_eq!(fresh["lastResult"], Value::Null);
    assert_eq!(fresh["executionHistory"], json!([]));
    assert_eq!(fresh["limits"]["maxRunTime"], "PT24H");
    bench.folder.write("a.txt", "x");
    bench.succeed();
    bench.succeed();
    let status = bench.status();
    let history = status["executionHistory"].as_array().unwrap();
    assert_eq!(
        (history.len(), &history[0]["itemsProcessed"], &history[1]["itemsProcessed"]),
        (2, &json!(0), &json!(1))
    );
    assert_eq!(status["lastResult"], history[0]);
    assert_eq!(history[0]["initialTrackingState"], history[1]["finalTrackingState"]);
    for member in
        ["status", "startTime", "endTime", "errors", "warnings", "itemsFailed", "mode", "errorMessage"]
    {
        assert!(history[0].get(member).is_some(), "{member}");
    }
    for _ in 0..60 {
        bench.indexers.reset("ix").unwrap();
    }
    assert_eq!(bench.status()["executionHistory"].as_array().unwrap().len(), 50);
}

#[test]
fn failed_starts_are_recorded_and_deleted_indexers_are_forgotten() {
    let bench = Bench::new(json!({}));
    bench.indexers.record_failed_start("ix", &ApiError::not_found("Index 'idx' was not found.")).unwrap();
    let status = bench.status();
    assert_eq!(
        (&status["status"], &status["lastResult"]["status"]),
        (&json!("error"), &json!("transientFailure"))
    );
    bench.indexers.forget("ix");
    assert_eq!(bench.status()["lastResult"], Value::Null);
    let ticket = bench.indexers.reserve_run(bench.job()).unwrap();
    bench.indexers.forget("ix");
    ticket.run();
    assert_eq!(bench.status()["lastResult"], Value::Null);
}

#[test]
fn resync_is_not_supported() {
    let bench = Bench::new(json!({}));
    let error = bench.indexers.resync("ix", &json!({"options": ["permissions"]})).unwrap_err();
    assert_eq!(error.code, "NotSupportedByEmbeddedService");
    assert!(bench.indexers.resync("ix", &json!({"options": ["x"]})).unwrap_err().message.contains("'x'"));
}

#[tokio::test]
async fn runs_continue_in_the_background() {
    let bench = Bench::new(json!({}));
    bench.folder.write("a.txt", "x");
    let result = bench.indexers.start(bench.job()).unwrap().await.unwrap();
    assert_eq!(result.items_processed, 1);
}
