//! Runs a client, and parses its output line by line.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::read;

/// The results of a client.
pub(crate) struct ClientReport {
    pub(crate) client: &'static str,
    pub(crate) checks: Vec<(String, Verdict)>,
    pub(crate) log: String,
    pub(crate) took: Duration,
}

impl ClientReport {
    /// Runs the client until it exits, and prints and parses its output.
    pub(crate) fn run_client(
        client: &'static str,
        command: &mut Command,
        patience: Duration,
        folder: &Path,
    ) -> Result<Self> {
        let (lines, log) = (folder.join("client.out"), folder.join("client.log"));
        let begin = Instant::now();
        let status = wait(command.stdout(File::create(&lines)?).stderr(File::create(&log)?), patience)?;

        let took = begin.elapsed();
        let mut report = Self { client, checks: Vec::new(), log: read(&log)?, took };
        for line in read(&lines)?.lines() {
            println!("  {line}");
            report.checks.extend(parse(line));
        }
        let in_order = status.is_some_and(|status| status.success()) && !report.checks.is_empty();
        if !in_order && report.count(Verdict::Failed) == 0 {
            report.fail("end", &status.map_or("it did not exit and was killed".into(), |it| it.to_string()));
        }
        Ok(report)
    }

    pub(super) fn verdict(&self, check: &str) -> Option<Verdict> {
        self.checks.iter().find(|(name, _)| name == check).map(|(_, verdict)| *verdict)
    }

    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|(_, seen)| *seen == verdict).count()
    }

    /// Removes the results of this check.
    pub(crate) fn fail(&mut self, check: &str, why: &str) {
        println!("  FAIL {check}: {why}");
        self.checks.retain(|(name, _)| name != check);
        self.checks.push((check.to_owned(), Verdict::Failed));
    }
}

/// Waits until the client exits, with a timeout. Returns no status if it had to be killed.
fn wait(command: &mut Command, patience: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    let mut child = command.stdin(Stdio::null()).spawn().context("could not start the client")?;
    while begin.elapsed() < patience {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed,
    Skipped,
    Failed,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Skipped => "skip",
            Self::Failed => "FAIL",
        }
    }
}

/// Parses `skip cancel: it cannot` as the result of `cancel`. Other lines are for the reader only.
fn parse(line: &str) -> Option<(String, Verdict)> {
    let (word, rest) = line.split_once(' ')?;
    let all = [Verdict::Passed, Verdict::Skipped, Verdict::Failed];
    let verdict = all.into_iter().find(|verdict| verdict.word() == word)?;
    Some((rest.split(':').next().unwrap_or(rest).to_owned(), verdict))
}

#[cfg(test)]
mod tests {
    use super::{Verdict, parse};

    #[test]
    fn reads_the_lines_of_a_client() {
        assert_eq!(parse("ok list"), Some(("list".into(), Verdict::Passed)));
        assert_eq!(parse("skip cancel: it cannot: never"), Some(("cancel".into(), Verdict::Skipped)));
        assert_eq!(parse("FAIL cut: lost"), Some(("cut".into(), Verdict::Failed)));
        assert_eq!(parse("warning: old"), None);
    }
}
