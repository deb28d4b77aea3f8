//! Prints the progress of set-up, and of long operations of search as code.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bindpost_azure_functions::setup::SetupProgress;
use bindpost_azure_search::code::ProgressUpdate;

use crate::screen::without_controls;

/// Prints the steps of set-up to stderr. The output of their programs is printed only on a terminal.
#[derive(Debug)]
pub(crate) struct ProgressPrinter {
    is_watched: bool,
}

impl ProgressPrinter {
    pub(crate) fn new() -> ProgressPrinter {
        ProgressPrinter { is_watched: std::io::stderr().is_terminal() }
    }
}

impl SetupProgress for ProgressPrinter {
    fn started(&self, step: &str) {
        let _ = writeln!(std::io::stderr(), "  … {step}");
    }

    fn output(&self, line: &str) {
        if self.is_watched {
            let _ = writeln!(std::io::stderr(), "      {line}");
        }
    }

    fn done(&self, step: &str, took: Duration) {
        let _ = writeln!(std::io::stderr(), "  ✓ {step} ({:.1} s)", took.as_secs_f32());
    }
}

/// Prints the progress of long operations of search as code to stderr: a bar on a terminal, otherwise a
/// line for each step and some lines for each copy.
#[derive(Debug)]
pub(crate) struct TransferProgress {
    is_watched: bool,
    state: Mutex<TransferState>,
}

#[derive(Debug)]
struct TransferState {
    what: String,
    last: Instant,
    /// Whether a bar is on the screen.
    has_bar: bool,
}

impl TransferProgress {
    /// Time between two drawings of the bar, and between two lines.
    const BAR: Duration = Duration::from_millis(100);
    const LINE: Duration = Duration::from_secs(5);
    /// Number of characters of a bar.
    const WIDTH: u64 = 24;

    pub(crate) fn start() -> Arc<TransferProgress> {
        let state = TransferState { what: String::new(), last: Instant::now(), has_bar: false };
        Arc::new(TransferProgress { is_watched: std::io::stderr().is_terminal(), state: Mutex::new(state) })
    }

    pub(crate) fn update(&self, update: &ProgressUpdate) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = state.what != update.what;
        let is_done = update.total == Some(update.done);
        let pause = if self.is_watched { Self::BAR } else { Self::LINE };
        if !is_new && !is_done && state.last.elapsed() < pause {
            return;
        }
        state.what.clone_from(&update.what);
        state.last = Instant::now();
        let mut err = std::io::stderr().lock();
        if self.is_watched {
            state.has_bar = true;
            let _ = write!(err, "\r\x1b[2K  {}", Self::bar(update));
        } else if update.unit == "steps" {
            let _ = writeln!(err, "  … {}", without_controls(&update.what));
        } else if update.done > 0 {
            let _ = writeln!(err, "  … {}", Self::line(update));
        }
        let _ = err.flush();
    }

    /// Removes the bar from the screen.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.has_bar) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }

    fn bar(update: &ProgressUpdate) -> String {
        let Some(total) = update.total.filter(|total| *total > 0) else { return Self::line(update) };
        let done = update.done.min(total);
        let filled = (u128::from(done) * u128::from(Self::WIDTH) / u128::from(total)) as usize;
        let bar: String =
            (0..Self::WIDTH as usize).map(|place| if place < filled { '█' } else { '░' }).collect();
        format!("{bar} {:>3} %  {}", u128::from(done) * 100 / u128::from(total), Self::line(update))
    }

    fn line(update: &ProgressUpdate) -> String {
        let amount = |count: u64| match update.unit {
            "bytes" => format!("{:.1} MB", count as f64 / 1e6),
            _ => count.to_string(),
        };
        let of = update.total.map(|total| format!(" of {}", amount(total))).unwrap_or_default();
        let unit = if update.unit == "bytes" { "" } else { update.unit };
        format!("{}: {}{of} {unit}", without_controls(&update.what), amount(update.done))
            .trim_end()
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_part_that_is_done() {
        let update = |done, total, unit| ProgressUpdate { what: "copy a to b".to_owned(), done, total, unit };
        assert_eq!(
            TransferProgress::bar(&update(500, Some(1000), "documents")),
            "████████████░░░░░░░░░░░░  50 %  copy a to b: 500 of 1000 documents"
        );
        assert_eq!(TransferProgress::bar(&update(7, None, "documents")), "copy a to b: 7 documents");
        assert_eq!(
            TransferProgress::line(&update(1_500_000, Some(3_000_000), "bytes")),
            "copy a to b: 1.5 MB of 3.0 MB"
        );
        assert!(TransferProgress::bar(&update(2, Some(1), "steps")).contains("100 %"));
    }
}
