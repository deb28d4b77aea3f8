//! Invocations: the inputs of the function and its results.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_azure_functions::datum::Datum;
use bindpost_azure_functions::worker::*;
use bytes::Bytes;

use super::worker_harness::*;
use super::worker_scripted::Step;

#[tokio::test]
async fn indexes_loads_and_invokes() {
    for framing in BOTH {
        let running = start(framing, script(&[("echo", &[]), ("save", &[Step::Output])])).await;
        assert_eq!(running.loaded, [Ok(()), Ok(())]);
        assert_eq!(running.text("echo", "hällo \u{1F600}").await, "hällo \u{1F600}");
        let outcome = running.invoke("save", "content").await.unwrap();
        assert_eq!(outcome.outputs, [("file".to_owned(), Datum::Text("content".into()))]);
        assert_eq!(outcome.returned, Datum::Bytes(Bytes::from_static(b"\0\x01\xff")));
        assert_eq!(running.workers.health(), PoolHealth::Serving(1));
        assert!(running.heard.lines().contains(&"started 1: scripted".to_owned()));
    }
}

#[tokio::test]
async fn inputs_arrive_unchanged() {
    for framing in BOTH {
        let running = start(framing, script(&[("inputs", &[Step::ReturnInputs])])).await;
        let mut invocation = running.invocation("inputs", "x");
        invocation.inputs.extend([
            ("missing".to_owned(), Datum::Nothing),
            ("blob".to_owned(), Datum::Bytes(Bytes::from_static(b"b"))),
        ]);
        invocation.metadata =
            vec![("args".to_owned(), Datum::Json("{}".into())), ("number".to_owned(), Datum::Int(5))];
        invocation.trace_parent = Some("00-trace-01".into());
        let outcome = running.workers.invoke(invocation, LONG, |_| {}).await.unwrap();
        let expected = "context=string missing=empty blob=bytes args:json number:string 00-trace-01";
        assert_eq!(outcome.returned, Datum::Text(expected.into()));
    }
}

#[tokio::test]
async fn a_failure_has_message_and_stack() {
    for framing in BOTH {
        let running = start(
            framing,
            script(&[("fail", &[Step::Fail("boom".into())]), ("cancelled", &[Step::Cancelled])]),
        )
        .await;
        let error = running.invoke("fail", "").await.unwrap_err();
        let stack = "  at /some/place/app.py line 1".to_owned();
        assert_eq!(error, InvocationError::Failed { message: "boom".into(), stack });
        assert_eq!(error.to_string(), "boom");
        assert_eq!(running.invoke("cancelled", "").await, Err(InvocationError::Cancelled));
    }
}

#[tokio::test]
async fn eight_megabytes_pass_both_ways() {
    for framing in BOTH {
        let running = start(framing, script(&[("echo", &[])])).await;
        let large = "ab\"\\ü".repeat(8 << 20 >> 3);
        assert!(running.text("echo", &large).await == large);
    }
}

#[tokio::test]
async fn answers_find_their_invocation_in_any_order() {
    for framing in BOTH {
        // Like the public Python worker, which answers with the request id of its command line.
        let mut script = script(&[("sleep", &[Step::SleepInput])]);
        script.own_request_id = true;
        let running = start(framing, script).await;
        let calls: Vec<_> =
            [300, 200, 100, 0].iter().map(|it| (it, running.spawn("sleep", &it.to_string(), LONG))).collect();
        for (millis, call) in calls {
            assert_eq!(call.await.unwrap().unwrap().returned, Datum::Text(millis.to_string()));
        }
    }
}

#[tokio::test]
async fn stray_and_double_answers_are_ignored() {
    for framing in BOTH {
        let running =
            start(framing, script(&[("stray", &[Step::StrayAnswer, Step::Twice]), ("echo", &[])])).await;
        for number in 0..20 {
            assert_eq!(running.text("stray", &number.to_string()).await, number.to_string());
        }
        assert_eq!(running.text("echo", "still here").await, "still here");
        assert_eq!(running.workers.in_flight(), 0);
    }
}

#[tokio::test]
async fn a_function_that_cannot_be_loaded_is_never_sent() {
    for framing in BOTH {
        let mut script = script(&[("echo", &[]), ("broken", &[Step::Exit(9)])]);
        script.load_failures.insert("broken".into(), "no module named x".into());
        let running = start(framing, script).await;
        assert_eq!(running.loaded, [Err("no module named x".to_owned()), Ok(())]);
        let error = running.invoke("broken", "").await.unwrap_err();
        assert_eq!(error, InvocationError::NotLoaded { message: "no module named x".into() });
        assert_eq!(running.text("echo", "a").await, "a");
    }
}

#[tokio::test]
async fn all_logs_come_before_the_outcome() {
    for framing in BOTH {
        let steps = [Step::Log("first".into()), Step::StrayLog("stray".into()), Step::Logs(300)];
        let running = start(framing, script(&[("log", &steps)])).await;
        let logs = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&logs);
        let invocation = running.invocation("log", "");
        running
            .workers
            .invoke(invocation, LONG, move |log| sink.lock().unwrap().push(log.message))
            .await
            .unwrap();
        let expected = ["first".to_owned()].into_iter().chain((0..300).map(|it| it.to_string()));
        assert_eq!(*logs.lock().unwrap(), expected.collect::<Vec<_>>());
        assert!(running.heard.lines().contains(&"log: stray".to_owned()));
    }
}

#[tokio::test]
async fn logs_beyond_the_queue_are_dropped_and_counted() {
    let limits = WorkerLimits { waiting_logs: 100, ..quick() };
    let running = start_with(Framing::Frames, script(&[("log", &[Step::Logs(5_000)])]), limits, 1).await;
    let (mut taken, mut dropped) = (0, 0);
    let logs = |log: LogRecord| match log.message.strip_suffix(
        " log records of this invocation were dropped: they came faster than they could be passed on",
    ) {
        Some(count) => dropped += count.parse::<usize>().unwrap(),
        None => {
            taken += 1;
            // Slower than the worker.
            std::thread::sleep(Duration::from_micros(200));
        }
    };
    running.workers.invoke(running.invocation("log", ""), LONG, logs).await.unwrap();
    assert_eq!(taken + dropped, 5_000);
}

#[tokio::test]
async fn dropping_an_invocation_cancels_it() {
    for framing in BOTH {
        let running = start(framing, script(&[("hang", &[Step::Hang]), ("echo", &[])])).await;
        let invocation = running.invocation("hang", "");
        let id = invocation.id.clone();
        let call = running.workers.invoke(invocation, LONG, |_| {});
        assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
        assert_eq!(running.workers.in_flight(), 0);
        until("the cancel arrives", || running.scratch.notes("notes").contains(&format!("cancel {id}")))
            .await;
        assert_eq!(running.text("echo", "a").await, "a");
    }
}

#[tokio::test]
async fn no_cancel_for_a_worker_that_does_not_support_it() {
    let mut script = script(&[("hang", &[Step::Hang]), ("echo", &[])]);
    // Any value enables the capability, except an empty one.
    script.capabilities.insert("HandlesInvocationCancelMessage".into(), String::new());
    let running = start(Framing::Grpc, script).await;
    let call = running.workers.invoke(running.invocation("hang", ""), LONG, |_| {});
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    assert_eq!(running.text("echo", "a").await, "a");
    assert!(!running.scratch.notes("notes").iter().any(|note| note.starts_with("cancel")));
}

#[tokio::test]
async fn an_oversize_answer_fails_only_its_invocation() {
    for framing in BOTH {
        let limits = WorkerLimits { message: 1 << 20, ..quick() };
        let functions =
            script(&[("large", &[Step::ReturnSize(5 << 20)]), ("slow", &[Step::Sleep(500)]), ("echo", &[])]);
        let running = start_with(framing, functions, limits, 1).await;
        let other = running.spawn("slow", "other", LONG);
        let error = running.invoke("large", "").await.unwrap_err();
        assert!(matches!(&error, InvocationError::Message { reason } if reason.contains("limit")), "{error}");
        assert_eq!(other.await.unwrap().unwrap().returned, Datum::Text("other".into()));
        // The request can be too large as well.
        let error = running.invoke("echo", &"x".repeat(2 << 20)).await.unwrap_err();
        assert!(matches!(&error, InvocationError::Message { .. }), "{error}");
        assert_eq!(running.text("echo", "a").await, "a");
        assert_eq!(running.scratch.pids().len(), 1, "the worker was not replaced");
    }
}

#[tokio::test]
async fn only_the_worker_we_started_may_connect() {
    for framing in BOTH {
        let mut script = script(&[("echo", &[])]);
        script.lies_about_its_id = true;
        let running = start(framing, script).await;
        assert_eq!(running.text("echo", "a").await, "a");
        assert_eq!(running.scratch.notes("lies"), ["unminted: true", "taken: true"]);
    }
}
