//! Prints the progress of set-up.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use bindpost_azure_functions::setup::SetupProgress;

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
