//! Console output of functions, in small and large amounts.

use std::thread;

use serde_json::json;

use super::app::{App, PID};
use super::host::Host;

/// Writes 50 MB of lines, 20 MB of one endless line and 20 MB of log records in small portions, so that
/// the worker has time for other calls.
const FLOOD: &str = "
    const pause = () => new Promise(setImmediate);
    const line = 'x'.repeat(99);
    module.exports = async (context) => {
        for (let portion = 0; portion < 50; portion++) {
            for (let count = 0; count < 10_000; count++) console.log(line);
            await pause();
        }
        const endless = 'y'.repeat(1 << 20);
        for (let portion = 0; portion < 20; portion++) {
            process.stderr.write(endless);
            await pause();
        }
        for (let portion = 0; portion < 200; portion++) {
            for (let count = 0; count < 1000; count++) context.log(line);
            await pause();
        }
        return 'said it all';
    };";

/// Returns the peak memory of a process in KiB.
#[cfg(target_os = "linux")]
fn most_memory(pid: i32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn a_flood_of_output_neither_fills_the_memory_nor_stops_calls() {
    let app = App::node().tool("pid", PID).tool("flood", FLOOD);
    let host = Host::start(&app, &[]);
    let worker = host.worker().expect("it serves");
    let before = most_memory(host.pid());
    let served = thread::scope(|scope| {
        let flood = scope.spawn(|| host.call("flood", json!({})));
        let mut served = 0;
        while !flood.is_finished() {
            assert_eq!(host.worker(), Some(worker), "the worker survives its own output");
            served += 1;
        }
        assert_eq!(flood.join().expect("no panic").as_deref(), Ok("said it all"));
        served
    });
    assert!(served > 3, "{served} calls were served during the flood");
    let grown = most_memory(host.pid()) - before;
    assert!(grown <= 32 << 10, "the host has grown by {grown} KiB");
    host.wait_until_it_says("lines were dropped: they came too fast");
}

#[test]
fn console_output_of_a_function_is_logged() {
    let talk = "module.exports = async (context) => { console.log('plain words'); context.log('logged words'); return 'x'; };";
    let app = App::node().tool("talk", talk);
    let host = Host::start(&app, &[]);
    host.call("talk", json!({})).expect("it talks");
    host.wait_until_it_says("plain words");
    host.wait_until_it_says("logged words");
    assert!(!host.said().contains('\u{1b}'), "no colours without a terminal: {}", host.said());
}
