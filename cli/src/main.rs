//! The program `bindpost`. It parses the flags, runs a command and returns an exit code.
//!
//! `flags.rs` has all flags with their help. `commands/` has one file for each command. `screen.rs`, `progress.rs` and
//! `log.rs` write to the terminal.

mod commands;
mod flags;
mod log;
mod progress;
mod screen;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use flags::{CliCommand, CliFlags};

fn main() -> ExitCode {
    let flags = CliFlags::parse();
    match flags.command {
        CliCommand::Run(_) => log::start_for_functions(),
        CliCommand::Demo(_)
        | CliCommand::Search(_)
        | CliCommand::SearchService(_)
        | CliCommand::Openapi(_)
        | CliCommand::Exec(_) => log::start(),
    }
    match run(flags.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bindpost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: CliCommand) -> anyhow::Result<ExitCode> {
    // `exec` replaces this process, so it needs no runtime.
    if let CliCommand::Exec(exec) = command {
        return commands::exec::run(exec).map(|never| match never {});
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let (CliCommand::Run(_), None) = (&command, std::env::var_os("TOKIO_WORKER_THREADS")) {
        runtime.worker_threads(host_threads());
    }
    let runtime = runtime.enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        match command {
            CliCommand::Demo(demo) => commands::demo::run(demo).await?,
            CliCommand::Run(run) => commands::run::run(run).await?,
            CliCommand::Search(search) => return commands::search::run(*search).await,
            CliCommand::SearchService(service) => commands::search_service::run(service).await?,
            CliCommand::Openapi(flags) => commands::openapi::run(*flags).await?,
            CliCommand::Exec(exec) => commands::exec::run(exec).map(|never| match never {})?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns half the number of processors. Functions run in separate processes, which need the other
/// half. Idle threads of the host would compete with them.
fn host_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2))
}
