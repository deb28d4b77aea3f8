//! The processes under load: samples their memory, and kills workers.
use super::World;
use serde_json::{json, Value};
use std::fs;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// The maximum number of kills. A host gives up after three restarts per process in half an hour: with four
/// processes, after twelve.
const MOST_KILLS: u32 = 11;
const LEAST_BETWEEN_KILLS: Duration = Duration::from_secs(15);
/// The process whose children are killed.
const HOST: &str = "host";

pub struct Process {
    name: String,
    pid: u32,
    /// Resident memory in KiB, by seconds since the start.
    samples: Vec<(f64, u64)>,
}

/// Parses `NAME=PID,…`.
pub fn parse(list: &str) -> Vec<Process> {
    let processes = list.split(',').map(|process| {
        let (name, pid) = process.split_once('=').expect("NAME=PID");
        Process { name: name.to_owned(), pid: pid.parse().expect("a process id"), samples: Vec::new() }
    });
    processes.collect()
}

/// Samples until the end of the load, and returns the series of each process.
pub async fn watch(world: Rc<World>, mut processes: Vec<Process>) -> Value {
    let begin = Instant::now();
    let host = processes.iter().find(|process| process.name == HOST).expect("a process named host").pid;
    let every = ((world.end - begin) / (MOST_KILLS + 1)).max(LEAST_BETWEEN_KILLS);
    let mut next_kill = begin + every;
    let mut next_word = begin;
    while !world.is_over() {
        let now = Instant::now();
        let at = (now - begin).as_secs_f64();
        for process in &mut processes {
            match resident(process.pid) {
                Some(kilobytes) => process.samples.push((at, kilobytes)),
                None => {
                    let text = format!("the process {} has ended", process.name);
                    world.violation("process", &crate::http::Trouble(text));
                    return series(&processes);
                }
            }
        }
        if now >= next_kill && world.kills.borrow().len() < MOST_KILLS as usize {
            next_kill = now + every;
            kill_a_worker(&world, host);
        }
        if now >= next_word {
            next_word = now + Duration::from_secs(30);
            say(&world, at, &processes);
        }
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
    series(&processes)
}

fn series(processes: &[Process]) -> Value {
    let all = processes.iter().map(|process| json!({"process": process.name, "samples": process.samples}));
    all.collect()
}

fn say(world: &World, at: f64, processes: &[Process]) {
    let actions: u64 = world.counts.borrow().values().sum();
    let memory = processes.iter().filter_map(|process| {
        let (_, kilobytes) = process.samples.last()?;
        Some(format!("{} {} MiB", process.name, kilobytes / 1024))
    });
    let memory = memory.collect::<Vec<_>>().join(", ");
    eprintln!("{at:>5.0} s  {actions} actions, {} violations; {memory}", world.violated.get());
}

fn kill_a_worker(world: &World, host: u32) {
    let workers = children(host);
    let Some(worker) = workers.get(world.kills.borrow().len() % workers.len().max(1)) else {
        let text = "the host has no worker to kill".to_owned();
        return world.violation("worker killed", &crate::http::Trouble(text));
    };
    world.kills.borrow_mut().push(Instant::now());
    let killed = Command::new("kill").args(["-KILL", &worker.to_string()]).status();
    world.note(
        "worker killed",
        if killed.is_ok_and(|status| status.success()) { "killed" } else { "was gone" },
    );
}

/// Returns the child processes of a process.
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut children: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect();
    children.sort_unstable();
    children
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses, and may contain any character.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the resident memory in KiB.
fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
