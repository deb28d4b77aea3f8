//! `cargo xtask bench`: compares our server with the limit and with other servers, by `bench/run.py`, and
//! checks the result. `cargo xtask bench functions` compares the Functions host with its workers alone,
//! `cargo xtask bench search` the search service with tantivy alone.

mod functions;
mod search;
mod verdict;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

pub(crate) use self::functions::median;
use crate::workspace;

/// The limit, the two fastest other servers, and ours. They are sufficient for a verdict.
const QUICK: &str = "limit hyper-parse,rmcp,turbomcp,bindpost";

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args.split_first() {
        Some((first, rest)) if first == "functions" => return functions::run(rest),
        Some((first, rest)) if first == "search" => return search::run(rest),
        _ => {}
    }
    let (ours, theirs) = match args.iter().position(|arg| arg == "--") {
        Some(at) => (&args[..at], Some(&args[at + 1..])),
        None => (args, None),
    };
    let (mut all, mut only_verdict) = (false, false);
    for arg in ours {
        match arg.as_str() {
            "--all" => all = true,
            "--verdict" => only_verdict = true,
            other => bail!(
                "no such option: {other} (there are functions, search, --all, --verdict, and -- followed by arguments of run.py)"
            ),
        }
    }

    if !only_verdict {
        workspace::build_dist(&["bench-server"])?;
        match theirs {
            Some(arguments) => workspace::run(run_py().args(arguments))?,
            None => every_step(all)?,
        }
    }
    // A command line with one step runs only that step.
    if theirs.is_none() { verdict::print(&folder().join("out")) } else { Ok(()) }
}

fn every_step(all: bool) -> Result<()> {
    for step in ["build", "check", "bench", "instr", "syscalls", "sessions", "table"] {
        println!("\n━━ bench/run.py {step} ━━");
        let mut command = run_py();
        command.arg(step);
        if !all {
            command.args(["--only", QUICK, "--rounds", "2", "--secs", "0.8"]);
        }
        if step == "syscalls" {
            command.args(["--ops", "echo"]);
        }
        workspace::run(&mut command)?;
    }
    Ok(())
}

fn run_py() -> Command {
    let mut command = Command::new("python3");
    command.arg("run.py").current_dir(folder());
    command.env("BINDPOST_BENCH_SERVER", workspace::target().join("dist/bench-server"));
    command
}

fn folder() -> PathBuf {
    workspace::root().join("bench")
}
