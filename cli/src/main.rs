//! The program `bindpost`: flags in, a command run, an exit code out.

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
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindpost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: CliCommand) -> anyhow::Result<()> {
    // It becomes another program, and needs none of what follows.
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
            CliCommand::Demo(demo) => commands::demo::run(demo).await,
            CliCommand::Run(run) => commands::run::run(run).await,
            CliCommand::Search(search) => commands::search::run(search).await,
            CliCommand::SearchService(service) => commands::search_service::run(service).await,
            CliCommand::Openapi(flags) => commands::openapi::run(*flags).await,
            CliCommand::Exec(exec) => commands::exec::run(exec).map(|never| match never {}),
        }
    })
}

/// Half of the processors: functions run in processes of their own, which need the others. A thread of the host that
/// is woken only to look for work takes a processor from them.
fn host_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2))
}
