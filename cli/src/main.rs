//! The program `bindpost`: flags in, a command run, an exit code out.

mod commands;
mod flags;

use std::process::ExitCode;

use clap::Parser as _;
use flags::{Command, Flags};

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    start_log();
    let outcome = match flags.command {
        Command::Demo(demo) => commands::demo::run(demo).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindpost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Logs go to stderr: stdout belongs to the stdio transport.
fn start_log() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
}
