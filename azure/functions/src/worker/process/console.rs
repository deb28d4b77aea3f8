//! Reads the stdout and stderr of a worker line by line, with limits on line length and rate.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::worker::error::ConsoleTail;
use crate::worker::events::{ConsoleLine, ConsoleSource, WorkerEvents, WorkerNumber};
use crate::worker::limits::LINE;

/// The number of lines that are kept to explain why a worker exited.
const TAIL_LINES: usize = 50;
/// The maximum length of each of those lines, in bytes.
const TAIL_LINE: usize = 1 << 10;
/// The prefix of lines that a public worker writes for the host.
const OF_THE_WORKER: &str = "LanguageWorkerConsoleLog";
/// The prefix of lines for tools of the Functions host.
const OF_TOOLING: &[u8] = b"azfuncjsonlog:";

/// The console of one worker.
pub(crate) struct ProcessConsole {
    worker: WorkerNumber,
    events: Arc<dyn WorkerEvents>,
    meter: RateLimiter,
    tail: Mutex<VecDeque<String>>,
}

impl ProcessConsole {
    pub(crate) fn new(worker: WorkerNumber, events: Arc<dyn WorkerEvents>, lines_per_second: u32) -> Self {
        Self { worker, events, meter: RateLimiter::new(lines_per_second), tail: Mutex::default() }
    }

    /// Returns the last lines, for error messages.
    pub(crate) fn tail(&self) -> ConsoleTail {
        ConsoleTail(self.lines().iter().cloned().collect())
    }

    /// Reads one of the pipes until its end.
    pub(crate) async fn read(self: Arc<Self>, mut pipe: impl AsyncRead + Unpin, stderr: bool) {
        let mut cutter = LineSplitter::default();
        let mut chunk = vec![0; LINE];
        loop {
            let read = match tokio::time::timeout(Duration::from_secs(1), pipe.read(&mut chunk)).await {
                Err(_) => {
                    self.report(self.meter.take_dropped());
                    continue;
                }
                Ok(Ok(0) | Err(_)) => break,
                Ok(Ok(read)) => read,
            };
            cutter.push(chunk.get(..read).unwrap_or_default(), |line| self.line(line, stderr));
        }
        cutter.finish(|line| self.line(line, stderr));
        self.report(self.meter.take_dropped());
    }

    fn line(&self, line: &[u8], stderr: bool) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(OF_TOOLING) {
            return;
        }
        self.keep(line);
        let admitted = self.meter.admit();
        self.report(admitted.dropped_before);
        if !admitted.now {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let (text, from) = match text.strip_prefix(OF_THE_WORKER) {
            Some(rest) => (rest.trim_start(), ConsoleSource::Worker),
            None => (&*text, ConsoleSource::User),
        };
        self.events.console(self.worker, ConsoleLine { text, from, stderr });
    }

    fn keep(&self, line: &[u8]) {
        let mut lines = self.lines();
        // The memory of the oldest line is reused, so that many lines do not allocate.
        let mut kept =
            if lines.len() < TAIL_LINES { String::new() } else { lines.pop_front().unwrap_or_default() };
        kept.clear();
        kept.push_str(&String::from_utf8_lossy(line.get(..TAIL_LINE).unwrap_or(line)));
        lines.push_back(kept);
    }

    fn report(&self, dropped: Option<u64>) {
        if let Some(dropped) = dropped {
            self.events.dropped(self.worker, dropped);
        }
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits bytes into lines. Lines are truncated to 64 KiB.
#[derive(Default)]
struct LineSplitter {
    line: Vec<u8>,
}

impl LineSplitter {
    fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = chunk.split_at(end);
            if self.line.is_empty() {
                each(line);
            } else {
                self.append(line);
                each(&self.line);
                self.line.clear();
            }
            chunk = rest.get(1..).unwrap_or_default();
        }
        self.append(chunk);
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = LINE.saturating_sub(self.line.len()).min(bytes.len());
        self.line.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    fn finish(self, mut each: impl FnMut(&[u8])) {
        if !self.line.is_empty() {
            each(&self.line);
        }
    }
}

/// Admits a limited number of lines each second and counts the others.
pub(crate) struct RateLimiter {
    per_second: u32,
    state: Mutex<RateWindow>,
}

struct RateWindow {
    began: Instant,
    admitted: u32,
    dropped: u64,
}

/// Whether a line is admitted.
pub(crate) struct RateDecision {
    pub(crate) now: bool,
    /// The number of lines that were dropped since the last report. It is set at most once a second.
    pub(crate) dropped_before: Option<u64>,
}

impl RateLimiter {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second, state: Mutex::new(RateWindow { began: Instant::now(), admitted: 0, dropped: 0 }) }
    }

    pub(crate) fn admit(&self) -> RateDecision {
        let mut second = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dropped_before = None;
        if second.began.elapsed() >= Duration::from_secs(1) {
            dropped_before = Some(second.dropped).filter(|dropped| *dropped > 0);
            *second = RateWindow { began: Instant::now(), admitted: 0, dropped: 0 };
        }
        let now = second.admitted < self.per_second;
        if now {
            second.admitted += 1;
        } else {
            second.dropped += 1;
        }
        RateDecision { now, dropped_before }
    }

    /// Returns the number of lines dropped since the last report. This is needed when no
    /// further line arrives.
    pub(crate) fn take_dropped(&self) -> Option<u64> {
        let mut second = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some(std::mem::take(&mut second.dropped)).filter(|dropped| *dropped > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_truncated() {
        let mut cutter = LineSplitter::default();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            cutter.push(&chunk, |_| panic!("no line yet"));
            assert!(cutter.line.capacity() <= 2 * LINE);
        }
        let mut lines = Vec::new();
        cutter.push(b"end\nnext\nlast", |line| lines.push(line.len()));
        cutter.finish(|line| lines.push(line.len()));
        assert_eq!(lines, [LINE, 4, 4]);
    }

    #[test]
    fn the_rate_limiter_counts_dropped_lines() {
        let meter = RateLimiter::new(2);
        assert_eq!((0..5).filter(|_| meter.admit().now).count(), 2);
        assert_eq!(meter.take_dropped(), Some(3));
        assert_eq!(meter.take_dropped(), None);
    }
}
