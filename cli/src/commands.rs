//! One file per command. A command takes plain values, so a test can run it without a shell.

pub(crate) mod demo;
pub(crate) mod exec;
pub(crate) mod run;

use std::io::Write as _;

/// Tells whoever started us. Nobody may be there any more, and that is no reason to stop.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
