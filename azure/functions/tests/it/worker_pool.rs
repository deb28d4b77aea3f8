//! Several workers: dispatch, replacement and stop.

use std::time::Duration;

use bindpost_azure_functions::datum::Datum;
use bindpost_azure_functions::worker::*;

use super::worker_harness::*;
use super::worker_scripted::Step;

#[tokio::test]
async fn the_least_busy_worker_gets_the_invocation() {
    let functions = script(&[("pid", &[Step::Sleep(200), Step::ReturnPid])]);
    let running = start_with(Framing::Frames, functions, quick(), 3).await;
    // Only the first worker was asked for its functions.
    assert_eq!(running.scratch.notes("notes"), ["index"]);
    let calls: Vec<_> = (0..6).map(|_| running.spawn("pid", "", LONG)).collect();
    let mut pids = Vec::new();
    for call in calls {
        pids.push(call.await.unwrap().unwrap().returned);
    }
    for pid in running.scratch.pids() {
        let pid = Datum::Text(pid.to_string());
        assert_eq!(pids.iter().filter(|it| **it == pid).count(), 2, "{pids:?}");
    }
}

#[tokio::test]
async fn drain_waits_for_running_invocations_and_rejects_new_ones() {
    for framing in BOTH {
        let running = start_with(framing, script(&[("slow", &[Step::Sleep(400)])]), quick(), 2).await;
        let call = running.spawn("slow", "done", LONG);
        until("it runs", || running.workers.in_flight() == 1).await;
        let workers = running.workers.clone();
        let drain = tokio::spawn(async move { workers.drain(LONG).await });
        until("it drains", || running.workers.health() == PoolHealth::Stopping).await;
        let refused = running.invoke("slow", "").await.unwrap_err();
        assert!(matches!(refused, InvocationError::NoWorker { .. }), "{refused}");
        assert_eq!(drain.await.unwrap(), 0);
        assert_eq!(call.await.unwrap().unwrap().returned, Datum::Text("done".into()));
        assert!(running.scratch.pids().into_iter().all(|pid| !is_alive(pid)));
        // They were asked to terminate, and exited by themselves.
        let asked = running.scratch.notes("notes").iter().filter(|note| *note == "terminate").count();
        assert_eq!(asked, 2);
    }
}

#[tokio::test]
async fn drain_has_a_limit_and_fails_the_rest() {
    let running = start(Framing::Grpc, script(&[("hang", &[Step::Hang])])).await;
    let call = running.spawn("hang", "", LONG);
    until("it runs", || running.workers.in_flight() == 1).await;
    assert_eq!(running.workers.drain(Duration::from_millis(100)).await, 1);
    assert!(matches!(call.await.unwrap(), Err(InvocationError::WorkerExited { .. })));
}

#[tokio::test]
async fn a_worker_that_ignores_everything_is_killed() {
    for framing in BOTH {
        let mut script = script(&[("echo", &[])]);
        (script.ignore_terminate, script.ignore_sigterm) = (true, true);
        let limits = WorkerLimits { terminate: Duration::from_millis(200), ..quick() };
        let running = start_with(framing, script, limits, 1).await;
        assert_eq!(running.workers.drain(LONG).await, 0);
        assert!(!is_alive(running.scratch.pids()[0]));
        assert_eq!(running.scratch.notes("notes"), ["index", "terminate"]);
    }
}

#[tokio::test]
async fn dropping_the_workers_kills_them() {
    let mut script = script(&[("echo", &[])]);
    (script.ignore_terminate, script.ignore_sigterm) = (true, true);
    let running = start_with(Framing::Grpc, script, quick(), 2).await;
    let pids = running.scratch.pids();
    drop(running.workers);
    until("they have exited", || pids.iter().all(|pid| !is_alive(*pid))).await;
}

#[tokio::test]
async fn a_changed_app_takes_over_without_losing_an_invocation() {
    for framing in BOTH {
        let running = start_with(
            framing,
            script(&[("version", &[Step::Sleep(500), Step::Return("old".into())])]),
            quick(),
            2,
        )
        .await;
        let old: Vec<_> = (0..4).map(|_| running.spawn("version", "", LONG)).collect();
        until("they run", || running.workers.in_flight() == 4).await;

        let new = script(&[("version", &[Step::Return("new".into())])]);
        let fresh = running.workers.prepare(launch(framing, &running.scratch, new)).await.unwrap();
        let functions = functions(&fresh.indexing);
        assert_eq!(running.workers.replace_all(fresh, functions).await.unwrap(), [Ok(())]);

        assert_eq!(running.text("version", "").await, "new");
        for call in old {
            assert_eq!(call.await.unwrap().unwrap().returned, Datum::Text("old".into()));
        }
        let pids = running.scratch.pids();
        until("the old ones have exited", || pids.iter().filter(|pid| is_alive(**pid)).count() == 1).await;
        assert_eq!(running.workers.worker_details().len(), 1);
    }
}

#[tokio::test]
async fn a_changed_app_that_does_not_start_leaves_the_old_one_serving() {
    let running = start(Framing::Frames, script(&[("echo", &[])])).await;
    let mut broken = script(&[("echo", &[])]);
    broken.index_failure = Some("SyntaxError: invalid syntax".into());
    let error =
        running.workers.prepare(launch(Framing::Frames, &running.scratch, broken)).await.err().unwrap();
    assert!(error.to_string().contains("SyntaxError"), "{error}");
    assert_eq!(running.text("echo", "a").await, "a");
    let pids = running.scratch.pids();
    until("the broken one has exited", || !is_alive(pids[1])).await;
}

#[tokio::test]
async fn console_lines_are_reported() {
    let steps = [
        Step::Say("from the function".into()),
        Step::Say("LanguageWorkerConsoleLog from the worker".into()),
        Step::Say("azfuncjsonlog:{}".into()),
    ];
    let running = start(Framing::Frames, script(&[("say", &steps)])).await;
    running.invoke("say", "").await.unwrap();
    let heard = || running.heard.lines();
    until("the lines have arrived", || heard().contains(&"Worker err: from the worker".to_owned())).await;
    assert!(heard().contains(&"User err: from the function".to_owned()));
    assert!(!heard().iter().any(|line| line.contains("azfuncjsonlog")));
}

#[tokio::test]
async fn a_failed_start_has_a_reason() {
    let start = |change: fn(&mut super::worker_scripted::Script), limits: WorkerLimits| async move {
        let scratch = Scratch::new();
        let mut script = script(&[("echo", &[])]);
        change(&mut script);
        let launch = launch(Framing::Grpc, &scratch, script);
        let error = WorkerPool::start(launch, limits, std::sync::Arc::new(NoEvents)).await.err().unwrap();
        let pids = scratch.pids();
        until("no process is left", || pids.iter().all(|pid| !is_alive(*pid))).await;
        error.to_string()
    };
    let exited =
        start(|it| it.at_start = vec![Step::Say("no such module".into()), Step::Exit(3)], quick()).await;
    assert!(exited.contains("exit code 3") && exited.contains("\n    no such module"), "{exited}");
    assert!(exited.contains("worker_scripted::process"), "{exited}");

    let limits = WorkerLimits { connect: Duration::from_millis(300), ..quick() };
    let hung = start(|it| it.at_start = vec![Step::Say("waiting".into()), Step::Hang], limits).await;
    assert!(hung.contains("did not connect to the host within 0.3 s") && hung.contains("waiting"), "{hung}");

    let failed = start(|it| it.index_failure = Some("ImportError: x".into()), quick()).await;
    assert!(failed.starts_with("the worker could not list its functions\n"), "{failed}");
    assert!(failed.ends_with("\n  ImportError: x"), "{failed}");
    assert!(!failed.contains("/some/place"), "{failed}");

    let scratch = Scratch::new();
    let mut launch = launch(Framing::Frames, &scratch, script(&[]));
    launch.program = "/no/such/python".into();
    let error = WorkerPool::start(launch, quick(), std::sync::Arc::new(NoEvents)).await.err().unwrap();
    assert!(error.to_string().starts_with("cannot start `/no/such/python"), "{error}");
}

#[tokio::test]
async fn a_worker_without_functions_falls_back_to_function_json() {
    let scratch = Scratch::new();
    let mut script = script(&[]);
    script.use_function_json = true;
    script.at_start = vec![Step::Say("Worker was unable to load entry point".into())];
    let launch = launch(Framing::Grpc, &scratch, script);
    let (_workers, indexing) =
        WorkerPool::start(launch, quick(), std::sync::Arc::new(NoEvents)).await.unwrap();
    let IndexingResult::UseFunctionJson { console } = indexing else { panic!("{indexing:?}") };
    assert!(console.iter().any(|line| line.contains("unable to load entry point")), "{console:?}");
}
