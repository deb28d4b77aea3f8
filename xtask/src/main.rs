//! `cargo xtask`: the chores of this repository, one file per command.
#![allow(clippy::print_stdout, reason = "what a chore prints is for the developer who started it")]

mod bench;
mod compare;
mod conformance;
mod cost;
mod fuzz;
mod interop;
mod neighbours;
mod search_tour;
mod soak;
mod test;
mod tidy;

mod node;
mod packages;
mod servers;
mod table;
mod workspace;

use std::process::ExitCode;

type Run = fn(&[String]) -> anyhow::Result<()>;

const COMMANDS: &[(&str, &str, Run)] = &[
    ("test", "everything CI runs, in order  [--only STEP,…] [--skip STEP,…]", test::run),
    (
        "fuzz",
        "libFuzzer on the parsers, findings kept as tests  (--minutes N [--jobs K] | --replay) [--only TARGET,…]",
        fuzz::run,
    ),
    ("tidy", "rules about this repository that no compiler checks", tidy::run),
    (
        "words",
        "figures about names and prose, of this repository or of another checkout: words [FOLDER]",
        tidy::words::run,
    ),
    ("conformance", "the official suite  [--set S] [--scenario NAME] [--url URL] [--keep]", conformance::run),
    ("interop", "real clients, each from its package, against ours", |_| interop::run()),
    ("search-tour", "the official clients of Azure AI Search against the embedded service", |_| {
        search_tour::run()
    }),
    (
        "compare",
        "the same server in other frameworks, and one test for all  [--measure | openapi [--program FILE]]",
        compare::run,
    ),
    ("cost", "instructions of a call with an API key, beside one without; needs valgrind", |_| cost::run()),
    (
        "bench",
        "against the limit and the peers  [functions|search] [--all] [--verdict] [-- run.py arguments]",
        bench::run,
    ),
    (
        "soak",
        "mixed load against all servers: no answer lost, memory flat  [--minutes 15] [--dev]",
        soak::run,
    ),
    (
        "neighbours",
        "what 63 clients feel of one that misbehaves  [--rounds 3] [--seconds 6] [--dev]",
        neighbours::run,
    ),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) =
        args.split_first().filter(|(name, _)| !["help", "--help", "-h"].contains(&name.as_str()))
    else {
        print_help();
        return ExitCode::SUCCESS;
    };
    let Some((_, _, run)) = COMMANDS.iter().find(|(command, ..)| command == name) else {
        eprintln!("no such command: {name}\n");
        print_help();
        return ExitCode::FAILURE;
    };
    match run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ncargo xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print_help() {
    println!("cargo xtask COMMAND [OPTIONS]\n");
    for (name, about, _) in COMMANDS {
        println!("  {name:<12} {about}");
    }
}
