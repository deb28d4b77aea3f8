//! `cargo xtask`: the development commands of this repository, one file per command.
#![allow(clippy::print_stdout, reason = "the output of a command is for the developer who started it")]

mod bench;
mod compare;
mod conformance;
mod cost;
mod deny;
mod dist;
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
    ("test", "run all steps of CI, in order  [--only STEP,…] [--skip STEP,…]", test::run),
    (
        "fuzz",
        "fuzz the parsers, keep findings as tests  (--minutes N [--jobs K] | --replay) [--only TARGET,…]",
        fuzz::run,
    ),
    ("tidy", "check rules of this repository that the compiler does not check", tidy::run),
    (
        "words",
        "figures about names and prose, of this repository or of another checkout: words [FOLDER]",
        tidy::words::run,
    ),
    ("deny", "check licences, sources and duplicate versions of all dependencies", |_| deny::run()),
    (
        "dist",
        "packages of a release in target/packages  [--profile dev|release|dist] [--program FILE]",
        dist::run,
    ),
    ("licenses", "print the license texts of the crates in the program", |_| dist::print_licenses()),
    ("conformance", "official suite  [--set S] [--scenario NAME] [--url URL] [--keep]", conformance::run),
    ("interop", "test the servers with published clients", |_| interop::run()),
    ("search-tour", "test the embedded service with the clients of Azure AI Search", |_| search_tour::run()),
    (
        "compare",
        "test the same server in several frameworks  [--measure | openapi [--program FILE]]",
        compare::run,
    ),
    ("cost", "compare calls with and without an API key; needs valgrind", |_| cost::run()),
    (
        "bench",
        "benchmark against other servers  [functions|search] [--all] [--verdict] [-- run.py arguments]",
        bench::run,
    ),
    (
        "soak",
        "mixed load on all servers: no response lost, memory does not grow  [--minutes 15] [--dev]",
        soak::run,
    ),
    (
        "neighbours",
        "effect of one misbehaving client on 63 others  [--rounds 3] [--seconds 6] [--dev]",
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
