//! One file per command. A command takes plain values, so a test can run it without a shell.

pub(crate) mod demo;
pub(crate) mod exec;
pub(crate) mod run;
pub(crate) mod search_service;

use std::io::Write as _;

/// Tells whoever started us. Nobody may be there any more, and that is no reason to stop.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Until somebody has had enough: Ctrl-C, or the signal that ends programs.
async fn until_interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
