//! `bindpost run` with real processes, real signals and small apps that need no packages.

mod app;
mod changes;
mod client;
mod console;
mod crashes;
mod exec;
mod hangs;
mod host;
mod host_json;
mod http_tools;
mod keys;
mod mistakes;
mod processes;
mod self_hosted;
mod start;
mod stdio;
mod stopping;

use std::thread;
use std::time::{Duration, Instant};

/// Polls until there is a value. Fails after the time limit.
fn eventually<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Runs parts of a test in parallel that mostly wait.
fn side_by_side<const N: usize>(parts: [&(dyn Fn() + Sync); N]) {
    thread::scope(|scope| {
        parts.map(|part| scope.spawn(part)).map(|part| part.join().expect("each part holds"))
    });
}

/// Time limit of operations that take a moment on an idle machine and longer on a busy one.
const PATIENCE: Duration = Duration::from_secs(20);
