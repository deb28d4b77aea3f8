//! The end of the host: asked once, asked twice, killed.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::app::{App, HANDLER_TOOLS, HANG, NAP, PID};
use super::client::Reply;
use super::host::{Host, command, is_running, must_end_within};
use super::{PATIENCE, eventually};

/// Stops a host with many calls under way: none of their answers may be lost.
fn loses_no_answer(app: &App) {
    const CALLS: usize = 200;
    // As many as run at the same time; the others wait for their turn, and have been accepted all the same.
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
    eventually(PATIENCE, "that nobody is let in any more", || host.connect().is_err().then_some(()));
    // Whoever holds a connection learns that it should go elsewhere: it is told, or the connection is closed.
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
fn a_host_that_is_asked_to_end_answers_every_call_before() {
    loses_no_answer(&App::node().tool("pid", PID).tool("nap", NAP));
}

#[test]
fn a_host_of_a_handler_that_is_asked_to_end_answers_every_call_before() {
    loses_no_answer(&App::handler(&["pid", "nap"], HANDLER_TOOLS, ""));
}

#[test]
fn a_host_that_has_just_said_that_it_is_ready_hears_signals() {
    let app = App::node().tool("pid", PID);
    let mut host = Host::start(&app, &[]);
    host.signal(Signal::TERM);
    assert_eq!(host.ends_within(PATIENCE).code(), Some(0));
}

#[test]
fn an_idle_host_ends_soon_and_takes_its_worker_along() {
    for what in [Signal::TERM, Signal::INT] {
        let app = App::node().tool("pid", PID);
        let mut host = Host::start(&app, &[]);
        let worker = host.worker().expect("it serves");
        host.signal(what);
        assert_eq!(host.ends_within(Duration::from_secs(5)).code(), Some(0));
        assert!(!is_running(worker));
    }
}

/// Starts an app whose temporary files are in its own folder, where they are no change of the app.
fn start_with_temporary_files_in(app: &App) -> Host {
    Host::start_with(command(app.path()).env("TMPDIR", app.path()).args(["--port", "0", "--no-watch"]))
}

#[test]
fn a_host_that_ends_leaves_no_temporary_files() {
    let app = App::node().tool("pid", PID);
    let files = || std::fs::read_dir(app.path()).expect("it is there").count();
    let before = files();
    for signals in [&[Signal::TERM][..], &[Signal::TERM, Signal::INT]] {
        let mut host = start_with_temporary_files_in(&app);
        assert!(files() > before, "the worker is somewhere else, and this test says nothing");
        signals.iter().for_each(|signal| host.signal(*signal));
        host.ends_within(PATIENCE);
        assert_eq!(files(), before);
    }
}

/// The temporary folders in the app's own.
fn temporary_folders(app: &App) -> Vec<String> {
    let entries = std::fs::read_dir(app.path()).expect("it is there").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("bindpost-")).collect()
}

#[test]
fn the_next_start_removes_what_a_killed_host_left_and_nothing_else() {
    let app = App::node().tool("pid", PID);
    let live = start_with_temporary_files_in(&app);
    let of_live = temporary_folders(&app);
    assert_eq!(of_live.len(), 1);
    let mut killed = start_with_temporary_files_in(&app);
    killed.signal(Signal::KILL);
    killed.ends_within(PATIENCE);
    assert_eq!(temporary_folders(&app).len(), 2, "the folder of the killed host is still there");
    let mut next = start_with_temporary_files_in(&app);
    let left = temporary_folders(&app);
    assert!(left.len() == 2 && left.contains(&of_live[0]), "{left:?}");
    // Its folder is there, and so it can start a worker again.
    let worker = live.worker().expect("it serves");
    super::host::signal(worker, Signal::KILL);
    live.worker_besides(&[worker], PATIENCE);
    next.signal(Signal::TERM);
    next.ends_within(PATIENCE);
    assert_eq!(temporary_folders(&app), of_live);
}

/// Asks a host twice while functions hang: nothing is waited for.
fn ends_at_once_when_asked_twice(app: &App, tool: &str, signals: [Signal; 2]) {
    let mut host = Host::start(app, &[]);
    let worker = host.worker().expect("it serves");
    let call = host.send_call(tool, json!({})).expect("connects");
    eventually(PATIENCE, "a call under way", || (app.begun() == 1).then_some(()));
    host.signal(signals[0]);
    eventually(PATIENCE, "that nobody is let in any more", || host.connect().is_err().then_some(()));
    let asked = Instant::now();
    host.signal(signals[1]);
    host.ends_within(Duration::from_secs(2));
    // The promise is one second on an idle machine.
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    must_end_within(worker, Duration::from_secs(2));
    // The call is not left hanging: it is answered, or its connection ends.
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
    // It cannot even read that it should end.
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

/// Only Linux ends a program with its parent; elsewhere workers end when their connection does.
#[cfg(target_os = "linux")]
#[test]
fn no_process_outlives_a_host_that_is_killed() {
    let handler = App::handler(&["pid", "hang"], HANDLER_TOOLS, "");
    for app in [App::node().tool("pid", PID).tool("hang", HANG), handler] {
        // What a killed host cannot remove goes with the app's folder.
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
