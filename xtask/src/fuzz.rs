//! `cargo xtask fuzz`: runs the targets of `fuzz/` on libFuzzer, and keeps every failing input as a test.
//!
//! `--replay` needs no fuzzer. It runs the seeds and the findings on the pinned toolchain.

mod minimize;
mod session;
mod toolchain;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use self::session::{FuzzOutcome, FuzzSession};
use crate::{table, workspace};

/// The instructions for a finding.
const ADVICE: &str = "each finding is kept below fuzz/findings/ and fails until it is fixed: see it fail with \
    `cargo xtask fuzz --replay --only TARGET`, add a test next to the wrong code, fix it, and commit all \
    three; if the check in fuzz/fuzz_targets/ is wrong, repair that";

/// Returns the folder of a target: `seeds`, `findings`, `corpus` or `artifacts`.
fn folder(kind: &str, target: &str) -> PathBuf {
    workspace::root().join("fuzz").join(kind).join(target)
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = FuzzOptions::parse(args)?;
    let all = targets()?;
    let chosen = options.choose(&all)?;
    match options.minutes {
        Some(minutes) => fuzz(&chosen, chosen.len() == all.len(), minutes, options.jobs),
        None => replay(&chosen),
    }
}

/// Runs seeds and findings in ordinary builds of the targets.
fn replay(targets: &[&str]) -> Result<()> {
    let built = workspace::target();
    let mut cargo = workspace::cargo(&["build", "--manifest-path", "fuzz/Cargo.toml"]);
    for target in targets {
        cargo.args(["--bin", target]);
    }
    workspace::run(cargo.env("CARGO_TARGET_DIR", &built))?;
    let mut failed = Vec::new();
    for target in targets {
        // Relative to the root, because failures are reported with these paths.
        let inputs = ["seeds", "findings"].map(|kind| format!("fuzz/{kind}/{target}"));
        let inputs = inputs.iter().filter(|folder| workspace::root().join(folder).is_dir());
        let mut program = Command::new(built.join("debug").join(target));
        let status = program
            .current_dir(workspace::root())
            .args(inputs)
            .status()
            .with_context(|| format!("could not start {target}"))?;
        if !status.success() {
            failed.push(*target);
        }
    }
    ensure!(failed.is_empty(), "inputs of {} fail, for the reasons above", failed.join(", "));
    Ok(())
}

/// Runs each target for some minutes, several at a time.
fn fuzz(targets: &[&str], all: bool, minutes: u64, jobs: usize) -> Result<()> {
    let programs = toolchain::build(if all { &[] } else { targets })?;
    let waiting = Mutex::new(targets.iter());
    let done = Mutex::new(Vec::new());
    println!("fuzz: {} targets, {minutes} min each, {jobs} at a time", targets.len());
    thread::scope(|scope| {
        for _ in 0..jobs.min(targets.len()) {
            scope.spawn(|| {
                while let Some(target) = next(&waiting) {
                    let outcome = fuzz_one(target, &programs, Duration::from_secs(60 * minutes));
                    println!("fuzz: {target} {}", if outcome.is_ok() { "is done" } else { "did not run" });
                    if let Ok(mut done) = done.lock() {
                        done.push((target, outcome));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_| anyhow!("a run has panicked"))?;
    done.sort_by_key(|(target, _)| targets.iter().position(|other| other == target));
    report(done)
}

fn next<'a>(waiting: &Mutex<std::slice::Iter<'a, &'a str>>) -> Option<&'a str> {
    waiting.lock().ok()?.next().copied()
}

fn fuzz_one(target: &str, programs: &Path, time: Duration) -> Result<FuzzOutcome> {
    let session = FuzzSession::new(target, programs.join(target))?;
    let mut outcome = session.run(time)?;
    for finding in &mut outcome.findings {
        minimize::minimize(&session, finding)?;
        let kept = folder("findings", target);
        fs::create_dir_all(&kept)?;
        finding.file = kept.join(short_hash(&finding.file)?);
        fs::write(&finding.file, &finding.input)?;
    }
    Ok(outcome)
}

/// Returns the name of a finding: the beginning of the git hash of its content.
fn short_hash(file: &Path) -> Result<String> {
    let hash = workspace::output(Command::new("git").arg("hash-object").arg("--no-filters").arg(file))?;
    Ok(hash.chars().take(12).collect())
}

fn report(done: Vec<(&str, Result<FuzzOutcome>)>) -> Result<()> {
    let (mut rows, mut findings, mut broken) = (Vec::new(), 0, Vec::new());
    for (target, outcome) in done {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                broken.push(format!("{target}: {error:#}"));
                continue;
            }
        };
        for finding in &outcome.findings {
            let file = finding.file.strip_prefix(workspace::root()).unwrap_or(&finding.file);
            println!("\n{target}: {} ({} bytes)\n{}", file.display(), finding.input.len(), finding.failure);
        }
        findings += outcome.findings.len();
        rows.push(vec![
            target.to_owned(),
            outcome.executions.to_string(),
            outcome.edges.to_string(),
            outcome.corpus.to_string(),
            outcome.findings.len().to_string(),
        ]);
    }
    println!();
    table::print(&["target", "executions", "edges", "corpus", "findings"], &rows);
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    ensure!(findings == 0, "{findings} findings: {ADVICE}");
    Ok(())
}

/// Returns the targets in `fuzz/Cargo.toml`.
fn targets() -> Result<Vec<String>> {
    let mut cargo = workspace::cargo(&["metadata", "--manifest-path", "fuzz/Cargo.toml"]);
    let metadata = workspace::output(cargo.args(["--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let targets = metadata["packages"][0]["targets"].as_array().into_iter().flatten();
    let programs = targets.filter(|target| target["kind"][0] == "bin");
    Ok(programs.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect())
}

/// The options of the command line.
#[derive(Debug)]
struct FuzzOptions {
    /// The duration of each target. `None` replays.
    minutes: Option<u64>,
    only: Vec<String>,
    jobs: usize,
}

impl FuzzOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let (mut minutes, mut replay, mut only, mut jobs) = (None, false, Vec::new(), None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--minutes" => minutes = Some(number(arg, value()?)?.get() as u64),
                "--jobs" => jobs = Some(number(arg, value()?)?),
                "--only" => only.extend(value()?.split(',').map(str::to_owned)),
                "--replay" => replay = true,
                other => bail!("no such option: {other} (there are --minutes, --only, --jobs and --replay)"),
            }
        }
        ensure!(
            minutes.is_some() != replay,
            "use --minutes N to fuzz, or --replay to run the seeds and the findings"
        );
        let jobs = jobs.or(thread::available_parallelism().ok()).map_or(1, NonZero::get);
        Ok(Self { minutes, only, jobs })
    }

    /// Returns the targets of `--only`, or all.
    fn choose<'a>(&self, all: &'a [String]) -> Result<Vec<&'a str>> {
        for name in &self.only {
            ensure!(all.contains(name), "no such target: {name} (there are {})", all.join(", "));
        }
        let wanted = |target: &&str| self.only.is_empty() || self.only.iter().any(|name| name == target);
        Ok(all.iter().map(String::as_str).filter(wanted).collect())
    }
}

fn number(option: &str, text: &str) -> Result<NonZero<usize>> {
    text.parse().with_context(|| format!("{option} needs a whole number above zero, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::FuzzOptions;

    fn parse(line: &str) -> anyhow::Result<FuzzOptions> {
        FuzzOptions::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn chooses_targets_in_their_own_order() {
        let all = ["cursor", "headers", "sse_event"].map(String::from);
        assert_eq!(parse("--replay").unwrap().choose(&all).unwrap(), ["cursor", "headers", "sse_event"]);
        let options = parse("--minutes 10 --jobs 1 --only sse_event,cursor").unwrap();
        assert_eq!((options.minutes, options.jobs), (Some(10), 1));
        assert_eq!(options.choose(&all).unwrap(), ["cursor", "sse_event"]);
        let unknown = parse("--replay --only nothing").unwrap();
        assert!(unknown.choose(&all).unwrap_err().to_string().contains("no such target: nothing"));
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for line in ["", "--minutes", "--minutes 0", "--minutes ten", "--minutes 1 --replay", "--fast"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
