//! One target on libFuzzer: its command line, its output and its findings.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::folder;
use crate::workspace;

/// The timeout of an input. An input that exceeds it is a finding. Most take less than a millisecond.
const SLOW: &str = "-timeout=10";
/// The memory limit of an input. An input that exceeds it is a finding.
const LARGE: &str = "-rss_limit_mb=2048";
/// The maximum number of lines that are shown of a failure.
const MOST_LINES: usize = 12;

/// A target that was built.
pub(super) struct FuzzSession {
    target: String,
    program: PathBuf,
    /// The folder for the output and the inputs of libFuzzer. It is emptied when a session begins.
    artifacts: PathBuf,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct FuzzOutcome {
    pub(super) executions: u64,
    pub(super) edges: u64,
    pub(super) corpus: u64,
    pub(super) findings: Vec<FuzzFinding>,
}

/// An input that fails.
#[derive(Debug)]
pub(super) struct FuzzFinding {
    pub(super) file: PathBuf,
    pub(super) input: Vec<u8>,
    pub(super) failure: String,
}

/// The kind of failure of an input.
#[derive(Debug)]
pub(super) struct InputFailure {
    status: ExitStatus,
    output: String,
}

impl FuzzSession {
    pub(super) fn new(target: &str, program: PathBuf) -> Result<Self> {
        let artifacts = folder("artifacts", target);
        if artifacts.exists() {
            fs::remove_dir_all(&artifacts)?;
        }
        fs::create_dir_all(&artifacts)?;
        Ok(Self { target: target.to_owned(), program, artifacts })
    }

    /// Fuzzes until the time is over or an input fails.
    pub(super) fn run(&self, time: Duration) -> Result<FuzzOutcome> {
        let corpus = folder("corpus", &self.target);
        fs::create_dir_all(&corpus)?;
        let mut command = self.command(&self.artifacts);
        command.arg(format!("-max_total_time={}", time.as_secs())).arg("-print_final_stats=1");
        let words = workspace::root().join(format!("fuzz/dictionaries/{}.dict", self.target));
        if words.is_file() {
            command.arg(format!("-dict={}", words.display()));
        }
        // New inputs go to the first folder.
        command.arg(&corpus);
        let known = ["seeds", "findings"].map(|kind| folder(kind, &self.target));
        command.args(known.iter().filter(|folder| folder.is_dir()));

        let log = self.artifacts.join("log");
        let status =
            command.stdout(File::create(&log)?).stderr(File::options().append(true).open(&log)?).status();
        let status = status.with_context(|| format!("could not start {}", self.program.display()))?;
        let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        let mut outcome = FuzzOutcome::read(&text);
        outcome.corpus = fs::read_dir(&corpus)?.count() as u64;
        outcome.findings = self.findings(&text)?;
        if outcome.findings.is_empty() && !status.success() {
            bail!("it exited with {status} and left no input; its output is in {}", log.display());
        }
        Ok(outcome)
    }

    /// Runs one input. Returns `None` if it passes.
    pub(super) fn run_input(&self, input: &[u8]) -> Result<Option<InputFailure>> {
        // The files that libFuzzer writes about this input are not needed.
        let scratch = self.artifacts.join("scratch");
        fs::create_dir_all(&scratch)?;
        let file = scratch.join("input");
        fs::write(&file, input)?;
        let output = self.command(&scratch).arg(&file).output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!output.status.success()).then_some(InputFailure { status: output.status, output: text }))
    }

    fn command(&self, artifacts: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(workspace::root()).args([SLOW, LARGE]);
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command
    }

    /// Returns the inputs that libFuzzer wrote: `crash-…`, `timeout-…`, `oom-…`, `leak-…`.
    fn findings(&self, log: &str) -> Result<Vec<FuzzFinding>> {
        let mut findings = Vec::new();
        for entry in fs::read_dir(&self.artifacts)? {
            let file = entry?.path();
            if file.is_file() && !file.ends_with("log") {
                findings.push(FuzzFinding { input: fs::read(&file)?, file, failure: failure(log) });
            }
        }
        Ok(findings)
    }
}

impl FuzzOutcome {
    /// Parses libFuzzer's last lines: `#815 DONE cov: 12 ft: 34 …` and
    /// `stat::number_of_executed_units: 815`.
    fn read(log: &str) -> Self {
        let after = |word: &str| {
            let (_, rest) = log.rsplit_once(word)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let executions = after("stat::number_of_executed_units:").unwrap_or_default();
        Self { executions, edges: after(" cov: ").unwrap_or_default(), ..Self::default() }
    }
}

impl InputFailure {
    /// Returns whether another input fails for the same reason: the same kind of failure at the same place
    /// in the code.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.status == other.status && panic_location(&self.output) == panic_location(&other.output)
    }
}

/// Returns the place of the panic.
fn panic_location(output: &str) -> Option<&str> {
    output.lines().find_map(|line| line.split_once(" panicked at ")).map(|(_, place)| place)
}

/// Returns the lines that explain the failure: the panic, or libFuzzer's own message.
fn failure(log: &str) -> String {
    let begins = |line: &&str| line.contains(" panicked at ") || line.contains("ERROR: libFuzzer:");
    let lines = log.lines().skip_while(|line| !begins(line));
    let ends = |line: &str| {
        let line = line.trim_start();
        ["note: ", "stack backtrace:", "#0 "].iter().any(|end| line.starts_with(end))
    };
    lines.take_while(|line| !ends(line)).take(MOST_LINES).map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::{FuzzOutcome, failure, panic_location};

    const LOG: &str = "\
#2\tINITED cov: 90 ft: 91 corp: 1/1b exec/s: 0 rss: 30Mb
#815\tNEW    cov: 112 ft: 134 corp: 7/90b lim: 4 exec/s: 0 rss: 31Mb L: 2/9 MS: 1 CrossOver-

thread '<unnamed>' (7) panicked at mcp/server/src/cursor.rs:7:9:
assertion failed: 1 == 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
==7== ERROR: libFuzzer: deadly signal
    #0 0x55 in somewhere
stat::number_of_executed_units: 816
";

    #[test]
    fn reads_what_libfuzzer_prints() {
        let outcome = FuzzOutcome::read(LOG);
        assert_eq!((outcome.executions, outcome.edges), (816, 112));
        assert_eq!(FuzzOutcome::read("").executions, 0);
    }

    #[test]
    fn a_failure_is_the_panic_and_its_place() {
        assert_eq!(panic_location(LOG), Some("mcp/server/src/cursor.rs:7:9:"));
        let text = failure(LOG);
        assert!(text.contains("assertion failed: 1 == 2") && !text.contains("RUST_BACKTRACE"), "{text}");
        let slow = failure(
            "ALARM: working on the last Unit for 11 seconds\n==7== ERROR: libFuzzer: timeout after 11 seconds\n    #0 x\n",
        );
        assert_eq!(slow, "    ==7== ERROR: libFuzzer: timeout after 11 seconds\n");
    }
}
