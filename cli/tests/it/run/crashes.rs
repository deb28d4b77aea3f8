//! Workers that exit. Every call has exactly one response, the worker is replaced, and the number of
//! restarts is limited.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::app::{App, HANDLER_TOOLS, HANG, NAP, PID};
use super::client::Reply;
use super::host::{Host, signal};
use super::{PATIENCE, eventually, side_by_side};

/// Kills the worker during many calls. Each of them must fail, soon and once.
fn every_call_of_a_killed_worker_fails(app: &App) {
    const CALLS: usize = 100;
    let host = Host::start(app, &[]);
    let worker = host.worker().expect("it serves");
    let calls: Vec<_> = (0..CALLS).map(|_| host.send_call("hang", json!({})).expect("connects")).collect();
    eventually(PATIENCE, "100 calls in flight", || (app.begun() == CALLS).then_some(()));
    let killed = Instant::now();
    signal(worker, Signal::KILL);
    for call in calls {
        let text =
            Reply::read(call).expect("an answer").tool_text().expect_err("the function had no time to end");
        assert!(text.contains("worker exited"), "{text}");
    }
    // The requirement is one second on an idle machine.
    assert!(killed.elapsed() < Duration::from_secs(5), "the last answer came after {:?}", killed.elapsed());
    // The requirement is two seconds.
    host.worker_besides(&[worker], Duration::from_secs(8));
    assert_eq!(host.readiness(), 200);
    assert_eq!(app.begun(), CALLS, "a call that may have had an effect is not retried");
}

#[test]
fn a_killed_worker_answers_all_its_calls_and_is_replaced() {
    every_call_of_a_killed_worker_fails(&App::node().tool("pid", PID).tool("hang", HANG));
}

#[test]
fn a_killed_handler_answers_all_its_calls_and_is_replaced() {
    every_call_of_a_killed_worker_fails(&App::handler(&["pid", "hang"], HANDLER_TOOLS, ""));
}

#[test]
fn calls_wait_for_the_next_worker_while_none_runs() {
    let app = App::node().tool("pid", PID);
    let host = Host::start(&app, &[]);
    let worker = host.worker().expect("it serves");
    signal(worker, Signal::KILL);
    super::host::must_end_within(worker, PATIENCE);
    // The host may not have detected the end of its worker. A call that was sent to that worker fails.
    let answers: Vec<_> = (0..10).map(|_| host.call("pid", json!({}))).collect();
    for answer in &answers {
        if let Err(text) = answer {
            assert!(text.contains("worker exited"), "{text}");
        }
    }
    let served = answers.iter().flatten().filter(|pid| **pid != worker.to_string()).count();
    assert!(served >= 9, "{answers:?}");
}

/// Runs an app whose worker exits soon after each start, until the host gives up.
fn gives_up_on_a_worker_that_keeps_ending(app: &App) {
    let mut host = Host::start(app, &[]);
    let status = host.ends_within(Duration::from_secs(30));
    assert!(!status.success(), "an app that does not keep running is a failure");
    let said = host.said();
    assert!(said.contains("the app does not keep running"), "{said}");
    assert!(said.contains("exit code 3"), "the exit code is missing: {said}");
    // The first start and three restarts.
    let starts = app.read("starts.txt").unwrap_or_default();
    let times: Vec<f64> = starts.lines().map(|time| time.parse().expect("a time")).collect();
    assert_eq!(times.len(), 4, "{times:?}");
    for (before, after) in times.iter().zip(times.iter().skip(1)).skip(1) {
        assert!(after - before > 1.0, "starts follow each other too fast: {times:?}");
    }
}

#[test]
fn a_process_that_keeps_exiting_is_restarted_a_few_times_and_then_ends_the_host() {
    let worker = format!(
        "require('node:fs').appendFileSync('starts.txt', `${{Date.now() / 1000}}\\n`);
         setTimeout(() => process.exit(3), 300);
         {PID}"
    );
    let handler = r#"
with open("starts.txt", "a") as file:
    file.write(f"{time.time()}\n")
threading.Timer(0.3, lambda: os._exit(3)).start()
"#;
    side_by_side([&|| gives_up_on_a_worker_that_keeps_ending(&App::node().tool("pid", &worker)), &|| {
        gives_up_on_a_worker_that_keeps_ending(&App::handler(&["pid"], HANDLER_TOOLS, handler))
    }]);
}

/// Calls continuously while workers are killed. Each call has one response, and only calls of killed
/// workers fail.
fn each_call_has_one_answer(calls: usize, kills: usize) {
    let app = App::node().tool("pid", PID).tool("nap", NAP);
    // Each process may be restarted three times, so five processes may be killed fifteen times before
    // the host gives up.
    let host = Host::start(&app, &["--processes", "5"]);
    let (next, rested, exited) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let unexpected = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::SeqCst) < calls {
                    // Reading fails unless there is exactly one response.
                    match host.call("nap", json!({"ms": 150})) {
                        Ok(_) => rested.fetch_add(1, Ordering::SeqCst),
                        Err(text) if text.contains("worker exited") => exited.fetch_add(1, Ordering::SeqCst),
                        Err(text) => {
                            unexpected.lock().expect("no thread panicked").push(text);
                            0
                        }
                    };
                }
            });
        }
        let mut killed = Vec::new();
        while killed.len() < kills {
            let pid = host.worker_besides(&killed, PATIENCE);
            signal(pid, Signal::KILL);
            killed.push(pid);
            // Workers are started at most once a second. With longer intervals there would be no time
            // without a worker.
            thread::sleep(Duration::from_millis(700));
        }
    });
    assert_eq!(*unexpected.lock().expect("no thread panicked"), Vec::<String>::new());
    let (rested, exited) = (rested.into_inner(), exited.into_inner());
    assert_eq!(rested + exited, calls);
    // At most six calls ran in the killed worker.
    assert!(exited <= 6 * kills, "{exited} of {calls} calls failed after {kills} kills");
    assert!(host.worker().is_some());
}

#[test]
fn a_thousand_calls_have_one_response_each_while_workers_are_killed_twenty_times() {
    side_by_side([&|| each_call_has_one_answer(500, 10), &|| each_call_has_one_answer(500, 10)]);
}
