//! The search service as a process, and its CPU time and memory as reported by the kernel.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::figure;

/// The unit of CPU time in `/proc`: hundredths of a second.
const TICKS: f64 = 100.0;
/// The interval for detecting an idle process. Upkeep runs once a second.
const REST: Duration = Duration::from_millis(1500);
/// The maximum CPU time of upkeep in that interval, in seconds.
const IDLE: f64 = 0.02;

/// The memory of a process, in MiB.
pub(super) struct ProcessMemory {
    /// The peak resident memory, including mapped files.
    pub(super) peak: f64,
    /// The current resident memory without mapped files.
    pub(super) anonymous: f64,
}

impl ProcessMemory {
    pub(super) fn parse(said: &Value) -> Result<Self> {
        let mebibytes = |name| Ok::<_, anyhow::Error>(figure(said, name)? / 1024.0);
        Ok(Self { peak: mebibytes("peak_kb")?, anonymous: mebibytes("anonymous_kb")? })
    }
}

pub(super) struct BenchService {
    child: Child,
    port: String,
}

impl BenchService {
    /// Starts the service with a folder and waits until it serves.
    pub(super) fn start(bindpost: &Path, data: &Path) -> Result<Self> {
        let log = data.with_extension("log");
        let mut command = Command::new(bindpost);
        command.arg("search-service").args(["--json", "--without-keys", "--port", "0", "--data"]).arg(data);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut child = command.spawn().context("could not start the service")?;
        let output = child.stdout.take().context("no pipe")?;
        let mut service = Self { child, port: String::new() };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line)
            .with_context(|| format!("the service did not start; see {}", log.display()))?;
        let port = ready["url"].as_str().and_then(|url| url.rsplit_once(':'));
        service.port = port.context("the service does not print its address")?.1.to_owned();
        Ok(service)
    }

    pub(super) fn port(&self) -> &str {
        &self.port
    }

    /// Returns the CPU time so far in seconds, user and system.
    pub(super) fn cpu(&self) -> Result<f64> {
        let stat = self.read("stat")?;
        // The second field is the name in parentheses, and may contain any character.
        let words: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        let ticks = |at: usize| -> Option<f64> { words.get(at)?.parse().ok() };
        let (own, system) = ticks(11).zip(ticks(12)).context("no CPU times in /proc")?;
        Ok((own + system) / TICKS)
    }

    /// Returns the CPU time after the process has become idle.
    pub(super) fn cpu_at_rest(&self) -> Result<f64> {
        let mut before = self.cpu()?;
        loop {
            sleep(REST);
            let now = self.cpu()?;
            if now - before <= IDLE {
                return Ok(now);
            }
            before = now;
        }
    }

    pub(super) fn memory(&self) -> Result<ProcessMemory> {
        let status = self.read("status")?;
        let mebibytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let kilobytes: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            kilobytes.map(|kilobytes| kilobytes / 1024.0).with_context(|| format!("no {name} in /proc"))
        };
        Ok(ProcessMemory { peak: mebibytes("VmHWM")?, anonymous: mebibytes("RssAnon")? })
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn read(&self, name: &str) -> Result<String> {
        Ok(fs::read_to_string(format!("/proc/{}/{name}", self.child.id()))?)
    }
}

impl Drop for BenchService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
