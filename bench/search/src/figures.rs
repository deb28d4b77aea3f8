//! What is measured of a process and of its answers.
use rustix::time::{clock_gettime, ClockId};
use serde_json::{json, Value};
use std::time::Duration;

/// CPU time of this process so far.
pub fn process() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// CPU time of this thread so far.
pub fn thread() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The lines of this process that tell its memory.
pub fn memory() -> Value {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).expect("a line of memory")
    };
    json!({"peak_kb": kilobytes("VmHWM"), "anonymous_kb": kilobytes("RssAnon")})
}

/// What a number of searches took and found.
pub struct Searches {
    /// Of each one.
    pub times: Vec<Duration>,
    pub found: usize,
    pub wall: Duration,
}

impl Searches {
    pub fn json(mut self) -> Value {
        self.times.sort_unstable();
        let median = self.times[self.times.len() / 2];
        json!({
            "queries": self.times.len(),
            "found": self.found,
            "rate": self.times.len() as f64 / self.wall.as_secs_f64(),
            "median_us": median.as_secs_f64() * 1e6,
        })
    }
}

/// Runs queries on some threads, each thread with what `start` gives it. `search` tells how many documents it found.
pub fn searches<T>(
    queries: usize,
    threads: usize,
    start: impl Fn() -> T + Sync,
    search: impl Fn(&mut T, usize) -> usize + Sync,
) -> Searches {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let before = std::time::Instant::now();
    let work = || {
        let mut own = start();
        let (mut times, mut found) = (Vec::new(), 0);
        loop {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if number >= queries {
                return (times, found);
            }
            let before = std::time::Instant::now();
            found += search(&mut own, number);
            times.push(before.elapsed());
        }
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    let wall = before.elapsed();
    let found = done.iter().map(|(_, found)| found).sum();
    Searches { times: done.into_iter().flat_map(|(times, _)| times).collect(), found, wall }
}
