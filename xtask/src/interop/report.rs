//! What a client printed, line by line.

use std::time::Duration;

/// What a client said.
pub(super) struct Report {
    pub(super) client: &'static str,
    pub(super) checks: Vec<(String, Verdict)>,
    pub(super) log: String,
    pub(super) took: Duration,
}

impl Report {
    pub(super) fn verdict(&self, check: &str) -> Option<Verdict> {
        self.checks.iter().find(|(name, _)| name == check).map(|(_, verdict)| *verdict)
    }

    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|(_, seen)| *seen == verdict).count()
    }

    /// Takes back what the client said of this check.
    pub(super) fn fail(&mut self, check: &str, why: &str) {
        println!("  FAIL {check}: {why}");
        self.checks.retain(|(name, _)| name != check);
        self.checks.push((check.to_owned(), Verdict::Failed));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
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

/// `skip cancel: it cannot` is the verdict on `cancel`; other lines are for the reader only.
pub(super) fn parse(line: &str) -> Option<(String, Verdict)> {
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
