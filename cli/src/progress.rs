//! What set-up says while it works, for whoever waits.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use bindpost_azure_functions::setup::SetupProgress;

/// Prints steps to stderr; what their programs say only where somebody watches.
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
