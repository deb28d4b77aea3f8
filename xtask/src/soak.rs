//! `cargo xtask soak`: runs mixed load against real servers for minutes. Every request must get exactly one
//! correct response, or an error that is allowed for it, and the memory of each server must not grow in the
//! second half.
//!
//! `bench/crowd` is the load generator. The servers are `examples/soak-server`, `bindpost search-service`,
//! and `bindpost run` with `examples/snippets-node`, whose workers are killed from time to time.

mod memory;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use self::memory::MemorySeries;
use crate::servers::{BuildProfile, ServerProcess};
use crate::workspace;
use crate::{packages, table};

/// The worker processes of the function app: enough for the kills of one run, see
/// `bench/crowd/src/soak/processes.rs`.
const WORKERS: &str = "4";
/// The minimum duration in minutes for which memory is checked. Uploads make it vary, and a quarter must
/// contain many of them.
const SHORTEST_FOR_MEMORY: f64 = 5.0;
/// The number of API keys of the clients.
const KEYS: &str = "16";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = SoakOptions::parse(args)?;
    let folder = workspace::target().join("soak");
    let bin = options.profile.build(&["bindpost-cli", "soak-server"])?;
    let load = workspace::build_bench(&["crowd-load"])?.join("crowd-load");
    let app = install_app()?;

    let data = folder.join("search-data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    let mut mcp = Command::new(bin.join("soak-server"));
    mcp.args(["--port", "0", "--keys", KEYS, "--short-lives"]);
    let mut search = Command::new(bin.join("bindpost"));
    search.args(["search-service", "--json", "--without-keys", "--port", "0", "--data"]).arg(&data);
    let mut host = Command::new(bin.join("bindpost"));
    host.arg("run").arg(&app).args(["--json", "--port", "0", "--no-watch", "--no-install"]);
    host.args(["--processes", WORKERS]);
    let mcp = ServerProcess::start("mcp", mcp, &folder)?;
    let search = ServerProcess::start("search", search, &folder)?;
    let host = ServerProcess::start("host", host, &folder)?;

    let seconds = (options.minutes * 60.0).round().to_string();
    println!("{seconds} s of mixed load; the servers' logs are in {}", folder.display());
    let pids = [&mcp, &search, &host].map(|server| format!("{}={}", server.name(), server.pid()));
    let mut command = Command::new(load);
    command.args(["soak", "--seconds", &seconds, "--pids", &pids.join(",")]);
    command.args(["--mcp", mcp.port(), "--search", search.port()]);
    command.args(["--host", host.port(), "--host-path", host.path()]);
    let line = workspace::output(command.stderr(std::process::Stdio::inherit()))?;
    let report: Value = serde_json::from_str(&line).with_context(|| format!("no report: {line:?}"))?;
    let mut complaints: Vec<String> =
        [mcp, search, host].into_iter().filter_map(ServerProcess::stop).collect();

    print_counts(&report)?;
    println!("\nresident memory in MiB");
    for said in report["memory"].as_array().context("the report has no memory")? {
        let series = MemorySeries::parse(said)?;
        series.print();
        let complaint = series.complaint();
        if options.minutes >= SHORTEST_FOR_MEMORY {
            complaints.extend(complaint);
        } else if let Some(complaint) = complaint {
            println!("           {complaint}, but the run is too short for this check");
        }
    }
    complaints.extend(violations(&report));
    println!();
    ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    let flat = if options.minutes >= SHORTEST_FOR_MEMORY { ", and memory does not grow" } else { "" };
    println!("no response lost{flat}");
    Ok(())
}

struct SoakOptions {
    minutes: f64,
    profile: BuildProfile,
}

impl SoakOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self { minutes: 15.0, profile: BuildProfile::Dist };
        let mut words = args.iter();
        while let Some(name) = words.next() {
            match name.as_str() {
                "--minutes" => {
                    let value = words.next().context("--minutes needs a value")?;
                    options.minutes =
                        value.parse().with_context(|| format!("--minutes {value}: not a number"))?;
                }
                "--dev" => options.profile = BuildProfile::Dev,
                other => bail!("no such option: {other} (there are --minutes N and --dev)"),
            }
        }
        ensure!(options.minutes >= 1.0, "--minutes must be at least 1");
        Ok(options)
    }
}

/// Copies the function app to its own folder, with its packages and without the blobs of an earlier run.
fn install_app() -> Result<PathBuf> {
    let source = workspace::root().join("examples/snippets-node");
    let folder = workspace::target().join("soak-app");
    packages::npm(&folder, &source)?;
    workspace::copy(&source, &folder)?;
    let blobs = folder.join(".bindpost");
    if blobs.exists() {
        std::fs::remove_dir_all(&blobs)?;
    }
    Ok(folder)
}

fn print_counts(report: &Value) -> Result<()> {
    let counts = report["counts"].as_array().context("the report has no counts")?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows: Vec<Vec<String>> =
        counts.iter().map(|row| row.as_array().into_iter().flatten().map(text).collect()).collect();
    println!();
    table::print(&["action", "outcome", "count"], &rows);
    Ok(())
}

/// Prints the violations, and returns a message with their number.
fn violations(report: &Value) -> Option<String> {
    let shown = report["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !shown.is_empty() {
        println!("\nviolations");
    }
    for violation in shown {
        println!("  {}", violation.as_str().unwrap_or_default());
    }
    match report["violated"].as_u64() {
        Some(0) => None,
        Some(count) => Some(format!("{count} responses were lost or wrong")),
        None => Some("the report has no number of lost responses".to_owned()),
    }
}
