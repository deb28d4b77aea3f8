//! The program `bindpost`: flags in, a command run, an exit code out.

mod commands;
mod flags;
mod log;
mod progress;
mod screen;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use flags::{Command, Flags};

fn main() -> ExitCode {
    let flags = Flags::parse();
    match flags.command {
        Command::Run(_) => log::start_for_functions(),
        Command::Demo(_)
        | Command::Search(_)
        | Command::SearchService(_)
        | Command::Openapi(_)
        | Command::Exec(_) => log::start(),
    }
    match run(flags.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindpost: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    // It becomes another program, and needs none of what follows.
    if let Command::Exec(exec) = command {
        return commands::exec::run(exec).map(|never| match never {});
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let (Command::Run(_), None) = (&command, std::env::var_os("TOKIO_WORKER_THREADS")) {
        runtime.worker_threads(host_threads());
    }
    let runtime = runtime.enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        match command {
            Command::Demo(demo) => commands::demo::run(demo).await,
            Command::Run(run) => commands::run::run(run).await,
            Command::Search(search) => commands::search::run(search).await,
            Command::SearchService(service) => commands::search_service::run(service).await,
            Command::Openapi(flags) => commands::openapi::run(*flags).await,
            Command::Exec(exec) => commands::exec::run(exec).map(|never| match never {}),
        }
    })
}

/// Half of the processors: functions run in processes of their own, which need the others. A thread of the host that
/// is woken only to look for work takes a processor from them.
fn host_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2))
}
