//! Several worker processes for one app.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::app::{App, NAP, PID};
use super::client::Reply;
use super::host::{Host, command, signal};
use super::{PATIENCE, eventually};

/// Returns the ids of the processes that run a few concurrent calls.
fn pids(host: &Host) -> HashSet<String> {
    let calls: Vec<_> =
        (0..6).map(|_| host.send_call("nap", json!({"ms": 300})).expect("connects")).collect();
    let texts =
        calls.into_iter().map(|call| Reply::read(call).expect("an answer").tool_text().expect("it rests"));
    texts.map(|text| text.rsplit(' ').next().expect("a pid").to_owned()).collect()
}

#[test]
fn calls_are_distributed_over_the_configured_number_of_processes() {
    let app = App::node().tool("pid", PID).tool("nap", NAP);
    let host = Host::start(&app, &["--processes", "2"]);
    // The second process may start a little later.
    eventually(PATIENCE, "two processes", || (pids(&host).len() == 2).then_some(()));

    // The end of one process does not affect the other.
    let victim = host.worker().expect("it serves");
    signal(victim, Signal::KILL);
    let other = host.worker_besides(&[victim], Duration::from_secs(5));
    eventually(PATIENCE, "two again", || {
        let pids = pids(&host);
        (pids.len() == 2 && !pids.contains(&victim.to_string())).then_some(())
    });
    assert!(super::host::is_running(other));
}

#[test]
fn a_setting_configures_the_number_of_processes() {
    let settings = r#"{"IsEncrypted": false, "Values": {"FUNCTIONS_WORKER_PROCESS_COUNT": "2"}}"#;
    let app = App::node().tool("pid", PID).tool("nap", NAP).with("local.settings.json", settings);
    let host = Host::start_with(command(app.path()).args(["--port", "0"]));
    eventually(PATIENCE, "two processes", || (pids(&host).len() == 2).then_some(()));
}
