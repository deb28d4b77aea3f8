//! The shutdown of the host: after one signal, after two signals, and killed.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::app::{App, HANDLER_TOOLS, HANG, NAP, PID};
use super::client::Reply;
use super::host::{Host, command, is_running, must_end_within};
use super::{PATIENCE, eventually};

/// Stops a host with many running calls. All of them must be answered.
fn loses_no_answer(app: &App) {
    const CALLS: usize = 200;
    // This many calls run at the same time. The others wait, but have been accepted.
    const RUNNING: usize = 100;
    let mut host = Host::start(app, &[]);
    let worker = host.worker().expect("it serves");
    let mut probe = host.connect().expect("connects");
    let question = format!("GET /_/readyz HTTP/1.1\r\nhost: {}\r\n\r\n", host.address);
    let mut status = || {
        probe.write_all(question.as_bytes()).ok()?;
        let mut answer = [0; 1024];
        let read = probe.read(&mut answer).ok().filter(|read| *read > 0)?;
        Some(String::from_utf8_lossy(&answer[..read]).split(' ').nth(1)?.to_owned())
    };
    assert_eq!(status().as_deref(), Some("200"));
    let naps = (0..CALLS).map(|number| 500 + (number * 1500 / CALLS));
    let calls: Vec<_> = naps.map(|ms| host.send_call("nap", json!({"ms": ms})).expect("connects")).collect();
    eventually(PATIENCE, "calls under way", || (app.begun() >= RUNNING).then_some(()));

    host.signal(Signal::TERM);
    eventually(PATIENCE, "refused connections", || host.connect().is_err().then_some(()));
    // An open connection gets 503, or is closed.
    assert!(matches!(status().as_deref(), None | Some("503")));
    let rested = calls.into_iter().map(|call| Reply::read(call).map(|reply| reply.tool_text()));
    let lost: Vec<_> =
        rested.filter(|answer| !matches!(answer, Ok(Ok(text)) if text.starts_with("rested"))).collect();
    assert!(lost.is_empty(), "{} of {CALLS} answers are lost: {:?}", lost.len(), lost.first());
    let status = host.ends_within(PATIENCE);
    assert_eq!(status.code(), Some(0));
    assert!(!is_running(worker), "the worker has outlived its host");
    assert_eq!(app.begun(), CALLS);
}

#[test]
fn a_stopping_host_answers_every_call() {
    loses_no_answer(&App::node().tool("pid", PID).tool("nap", NAP));
}

#[test]
fn a_stopping_host_of_a_handler_answers_every_call() {
    loses_no_answer(&App::handler(&["pid", "nap"], HANDLER_TOOLS, ""));
}

#[test]
fn a_host_that_has_just_become_ready_handles_signals() {
    let app = App::node().tool("pid", PID);
    let mut host = Host::start(&app, &[]);
    host.signal(Signal::TERM);
    assert_eq!(host.ends_within(PATIENCE).code(), Some(0));
}

#[test]
fn an_idle_host_ends_soon_with_its_worker() {
    for what in [Signal::TERM, Signal::INT] {
        let app = App::node().tool("pid", PID);
        let mut host = Host::start(&app, &[]);
        let worker = host.worker().expect("it serves");
        host.signal(what);
        assert_eq!(host.ends_within(Duration::from_secs(5)).code(), Some(0));
        assert!(!is_running(worker));
    }
}

/// Starts an app with its temporary files in its own folder, where they are not a change of the app.
fn start_with_temporary_files_in(app: &App) -> Host {
    Host::start_with(command(app.path()).env("TMPDIR", app.path()).args(["--port", "0", "--no-watch"]))
}

#[test]
fn a_host_that_ends_leaves_no_temporary_files() {
    let app = App::node().tool("pid", PID);
    let files = || std::fs::read_dir(app.path()).expect("the folder exists").count();
    let before = files();
    for signals in [&[Signal::TERM][..], &[Signal::TERM, Signal::INT]] {
        let mut host = start_with_temporary_files_in(&app);
        assert!(files() > before, "the worker uses another folder, so this test proves nothing");
        signals.iter().for_each(|signal| host.signal(*signal));
        host.ends_within(PATIENCE);
        assert_eq!(files(), before);
    }
}

/// Returns the temporary folders in the folder of the app.
fn temporary_folders(app: &App) -> Vec<String> {
    let entries = std::fs::read_dir(app.path()).expect("the folder exists").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("bindpost-")).collect()
}

#[test]
fn the_next_start_removes_only_the_files_of_a_killed_host() {
    let app = App::node().tool("pid", PID);
    let live = start_with_temporary_files_in(&app);
    let of_live = temporary_folders(&app);
    assert_eq!(of_live.len(), 1);
    let mut killed = start_with_temporary_files_in(&app);
    killed.signal(Signal::KILL);
    killed.ends_within(PATIENCE);
    assert_eq!(temporary_folders(&app).len(), 2, "the folder of the killed host still exists");
    let mut next = start_with_temporary_files_in(&app);
    let left = temporary_folders(&app);
    assert!(left.len() == 2 && left.contains(&of_live[0]), "{left:?}");
    // Its folder still exists, so it can start another worker.
    let worker = live.worker().expect("it serves");
    super::host::signal(worker, Signal::KILL);
    live.worker_besides(&[worker], PATIENCE);
    next.signal(Signal::TERM);
    next.ends_within(PATIENCE);
    assert_eq!(temporary_folders(&app), of_live);
}

/// Sends two signals while functions hang. The host must not wait for them.
fn ends_at_once_when_asked_twice(app: &App, tool: &str, signals: [Signal; 2]) {
    let mut host = Host::start(app, &[]);
    let worker = host.worker().expect("it serves");
    let call = host.send_call(tool, json!({})).expect("connects");
    eventually(PATIENCE, "a call under way", || (app.begun() == 1).then_some(()));
    host.signal(signals[0]);
    eventually(PATIENCE, "refused connections", || host.connect().is_err().then_some(()));
    let asked = Instant::now();
    host.signal(signals[1]);
    host.ends_within(Duration::from_secs(2));
    // The requirement is one second on an idle machine.
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    must_end_within(worker, Duration::from_secs(2));
    // The call is answered, or its connection is closed.
    if let Ok(reply) = Reply::read(call) {
        reply.tool_text().expect_err("the function never ended");
    }
}

#[test]
fn a_second_signal_ends_the_host_at_once() {
    let app = App::node().tool("pid", PID).tool("hang", HANG);
    ends_at_once_when_asked_twice(&app, "hang", [Signal::TERM, Signal::TERM]);
}

#[test]
fn a_second_signal_does_not_wait_for_a_worker_that_is_busy() {
    // The busy worker cannot read the request to end.
    let spin = "
        const fs = require('node:fs');
        module.exports = async () => {
            fs.appendFileSync('begun.txt', '.');
            for (;;);
        };";
    let app = App::node().tool("pid", PID).tool("spin", spin);
    ends_at_once_when_asked_twice(&app, "spin", [Signal::INT, Signal::INT]);
}

#[test]
fn a_second_signal_does_not_wait_for_a_handler_that_ignores_the_first() {
    let deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)";
    let app = App::handler(&["pid", "hang"], HANDLER_TOOLS, deaf);
    ends_at_once_when_asked_twice(&app, "hang", [Signal::INT, Signal::TERM]);
}

/// Only Linux ends a program with its parent. On other systems workers end when their connection closes.
#[cfg(target_os = "linux")]
#[test]
fn no_process_outlives_a_host_that_is_killed() {
    let handler = App::handler(&["pid", "hang"], HANDLER_TOOLS, "");
    for app in [App::node().tool("pid", PID).tool("hang", HANG), handler] {
        // Files that a killed host cannot delete are deleted with the folder of the app.
        let mut host = start_with_temporary_files_in(&app);
        let worker = host.worker().expect("it serves");
        let _call = host.send_call("hang", json!({})).expect("connects");
        eventually(PATIENCE, "a call under way", || (app.begun() == 1).then_some(()));
        assert!(is_running(worker));
        host.signal(Signal::KILL);
        host.ends_within(PATIENCE);
        must_end_within(worker, Duration::from_secs(5));
    }
}
