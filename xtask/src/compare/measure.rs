//! The figures of `docs/compare.md`: lines of code, dependencies, requests per second, memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{FrameworkLanguage, FrameworkServer, InstalledServer, KEY, sources};
use crate::table;
use crate::workspace::{self, cargo};

/// The revisions, with the names of their profiles in `bench/load`. Neither has a session.
const PROFILES: [(&str, &str); 2] = [("2025-11-25", "legacy"), ("2026-07-28", "modern")];

/// The number of starts and measurements of each server, in turns. The best is used, because other load on
/// the machine can only make a server slower.
const ROUNDS: usize = 5;

/// The cores of the server and of the load generator.
const SERVER_CORE: [&str; 3] = ["taskset", "--cpu-list", "0"];
const LOAD_CORE: [&str; 3] = ["taskset", "--cpu-list", "1"];

pub(super) fn print(servers: &[InstalledServer]) -> Result<()> {
    let mut build = cargo(&["build", "--release", "--quiet", "--package", "load"]);
    workspace::run(build.current_dir(workspace::root().join("bench")))?;

    let mut loads: Vec<Vec<LoadMeasurement>> = servers.iter().map(|_| Vec::new()).collect();
    for round in 1..=ROUNDS {
        for (server, loads) in servers.iter().zip(&mut loads) {
            let load = LoadMeasurement::run(server)?;
            let [legacy, modern] = load.wires.map(|wire| format!("{:.0}", wire.requests_per_second));
            println!("round {round}: {}: {legacy} and {modern} requests/s", server.framework.name);
            loads.push(load);
        }
    }

    let mut rows = Vec::new();
    for (server, loads) in servers.iter().zip(&loads) {
        let framework = server.framework;
        let needs = RuntimeFootprint::measure(server)?;
        let best = |better: fn(f64, f64) -> f64, figure: fn(&WireMeasurement) -> f64| {
            [0, 1].map(|wire| {
                let figures = loads.iter().map(|load| figure(&load.wires[wire]));
                format!("{:.0}", figures.reduce(better).unwrap_or_default())
            })
        };
        let [legacy, modern] = best(f64::max, |wire| wire.requests_per_second);
        let [legacy_cpu, modern_cpu] = best(f64::min, |wire| wire.cpu);
        rows.push(vec![
            framework.name.to_owned(),
            code_lines(framework.source)?.to_string(),
            code_lines(framework.manifest)?.to_string(),
            needs.runtime,
            needs.packages.to_string(),
            megabytes(needs.installed),
            legacy,
            modern,
            legacy_cpu,
            modern_cpu,
            megabytes(median(loads.iter().map(|load| load.memory))),
        ]);
    }
    println!("\nThe revisions are {} and {}, in this order.", PROFILES[0].0, PROFILES[1].0);
    let heading = [
        "framework",
        "lines",
        "manifest",
        "runtime",
        "packages",
        "MB",
        "req/s",
        "req/s",
        "CPU µs",
        "CPU µs",
        "RSS MB",
    ];
    table::print(&heading, &rows);
    Ok(())
}

/// One start of one server: `tools/call get_order` with the key, 32 connections.
struct LoadMeasurement {
    /// The results by revision, in the order of `PROFILES`.
    wires: [WireMeasurement; PROFILES.len()],
    /// The used memory in bytes after the load.
    memory: f64,
}

#[derive(Clone, Copy, Default)]
struct WireMeasurement {
    requests_per_second: f64,
    /// The microseconds of the server's CPU time per request. Other load on the machine has little effect
    /// on it.
    cpu: f64,
}

impl LoadMeasurement {
    fn run(server: &InstalledServer) -> Result<Self> {
        let server = FrameworkServer::start(server, &SERVER_CORE)?;
        // Just-in-time compilers must see both revisions before the measurement.
        for (_, profile) in PROFILES {
            WireMeasurement::load(&server, profile, "3")?;
        }
        let mut wires = [WireMeasurement::default(); PROFILES.len()];
        for ((_, profile), wire) in PROFILES.iter().zip(&mut wires) {
            *wire = WireMeasurement::load(&server, profile, "2")?;
        }
        Ok(Self { wires, memory: resident(server.child.id())? })
    }
}

impl WireMeasurement {
    fn load(server: &FrameworkServer, profile: &str, seconds: &str) -> Result<Self> {
        let [taskset, arguments @ ..] = LOAD_CORE;
        let mut command = Command::new(taskset);
        command.args(arguments).arg(workspace::root().join("bench/target/release/load"));
        command.args(["--port", &server.port.to_string(), "--header", &format!("x-api-key:{KEY}")]);
        command.args(["--op", "call", "--tool", "get_order", "--arguments", r#"{"orderId":"123"}"#]);
        command.args(["--marker", "18.5", "--profile", profile, "--conns", "32", "--secs", seconds]);
        let before = cpu(server.child.id())?;
        let report: Value = serde_json::from_str(&workspace::output(&mut command)?)?;
        let spent = cpu(server.child.id())? - before;
        // Wrong responses may be fast.
        ensure!(report["errors"] == 0, "the load generator saw errors: {report}");
        let number = |key: &str| report[key].as_f64().with_context(|| format!("no {key} in {report}"));
        Ok(Self { requests_per_second: number("rps")?, cpu: spent / number("total")? })
    }
}

/// Returns the CPU time of a process in microseconds. Linux counts it in hundredths of a second.
fn cpu(process: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The program name, in parentheses, may contain spaces. User and system time are the 14th and 15th
    // field.
    let words = stat.rsplit_once(')').map_or("", |(_, words)| words).split_whitespace();
    let ticks: Vec<f64> = words.skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    ensure!(ticks.len() == 2, "cannot read the processor time in {stat}");
    Ok(ticks.iter().sum::<f64>() * 10_000.0)
}

fn resident(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    Ok(kilobytes.context("no VmRSS")? * 1024.0)
}

/// The dependencies that the server needs at run time, in addition to its code.
struct RuntimeFootprint {
    runtime: String,
    /// The number of all packages, not only of those in the manifest.
    packages: usize,
    /// The size in bytes of the packages, or of the program that was built from them.
    installed: f64,
}

impl RuntimeFootprint {
    fn measure(server: &InstalledServer) -> Result<Self> {
        let [program, ..] = &server.command[..] else { bail!("no program") };
        let version = || workspace::output(Command::new(program).arg("--version"));
        Ok(match server.framework.language {
            FrameworkLanguage::Rust { package, .. } => Self {
                runtime: "none".to_owned(),
                packages: crates(&sources().join(server.framework.manifest), package)?,
                installed: stripped_size(program)?,
            },
            FrameworkLanguage::Node => {
                let modules = server.folder.join("node_modules");
                let lock = fs::read_to_string(modules.join(".package-lock.json"))?;
                let lock: Value = serde_json::from_str(&lock)?;
                Self {
                    runtime: format!("Node {}", version()?.trim().trim_start_matches('v')),
                    packages: lock["packages"].as_object().map_or(0, serde_json::Map::len),
                    installed: size(&modules, &|_| true)?,
                }
            }
            FrameworkLanguage::Python => {
                let list = Command::new(program).args(["-m", "pip", "list", "--format", "json"]).output()?;
                let list: Value = serde_json::from_slice(&list.stdout)?;
                let names = list.as_array().into_iter().flatten().filter_map(|entry| entry["name"].as_str());
                Self {
                    runtime: version()?.trim().to_owned(),
                    packages: names.filter(|name| !comes_with_python(name)).count(),
                    installed: size(&server.folder.join("lib"), &|name| !comes_with_python(name))?,
                }
            }
        })
    }
}

/// The packages of an empty virtual environment.
fn comes_with_python(name: &str) -> bool {
    ["pip", "setuptools", "pkg_resources", "_distutils_hack"]
        .iter()
        .any(|known| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
}

/// Returns the crates that are compiled for this machine, without the package itself.
fn crates(manifest: &Path, package: &str) -> Result<usize> {
    let mut tree =
        cargo(&["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    tree.args(["--package", package, "--manifest-path"]).arg(manifest);
    let tree = workspace::output(&mut tree)?;
    let crates: BTreeSet<_> = tree.lines().filter_map(|line| Some(line.split_once(' ')?.0)).collect();
    Ok(crates.len().saturating_sub(1))
}

/// Returns the size of a program without its symbols.
fn stripped_size(program: &Path) -> Result<f64> {
    let copy = program.with_extension("stripped");
    workspace::run(Command::new("strip").arg("-o").arg(&copy).arg(program))?;
    let length = fs::metadata(&copy)?.len();
    fs::remove_file(&copy)?;
    Ok(length as f64)
}

/// Returns the size of all files below a folder that `counts` accepts by their name and the names
/// of their folders.
fn size(folder: &Path, counts: &dyn Fn(&str) -> bool) -> Result<f64> {
    let mut sum = 0.0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if !counts(&entry.file_name().to_string_lossy()) {
            continue;
        }
        if kind.is_dir() {
            sum += size(&entry.path(), counts)?;
        } else if kind.is_file() {
            sum += entry.metadata()?.len() as f64;
        }
    }
    Ok(sum)
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1e6)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn code_lines(file: &str) -> Result<usize> {
    Ok(count_code_lines(file, &fs::read_to_string(sources().join(file))?))
}

/// Counts lines that are neither blank nor only a comment. Descriptions are included in any form that the
/// framework reads: a doc comment, a docstring, a string.
fn count_code_lines(file: &str, text: &str) -> usize {
    let is_comment = |line: &str| match file.rsplit_once('.') {
        Some((_, "rs")) => line.starts_with("//") && !line.starts_with("///"),
        Some((_, "ts")) => line.starts_with("//"),
        _ => line.starts_with('#'),
    };
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_comment(line)).count()
}

#[cfg(test)]
mod tests {
    use super::{comes_with_python, count_code_lines, median};

    #[test]
    fn counts_code_and_descriptions() {
        assert_eq!(
            count_code_lines("main.rs", "//! Module.\n\n/// Read by the macro.\n#[tool]\n// Why.\nfn x() {}"),
            3
        );
        assert_eq!(count_code_lines("server.ts", "// Why.\nconst x = '#'; // y\n"), 1);
        assert_eq!(count_code_lines("server.py", "# Why.\n\n    \"\"\"Described.\"\"\"\n"), 1);
        assert_eq!(count_code_lines("Cargo.toml", "[dependencies]\n# Why.\nserde = \"1\"\n"), 2);
    }

    #[test]
    fn takes_the_middle() {
        assert!((median([3.0, 1.0, 2.0].into_iter()) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn knows_what_a_fresh_environment_has() {
        assert!(comes_with_python("pip") && comes_with_python("pip-23.2.1.dist-info"));
        assert!(!comes_with_python("pipeline") && !comes_with_python("mcp"));
    }
}
