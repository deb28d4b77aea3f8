//! `cargo xtask bench functions`: measures how much of a worker's speed remains behind the Functions host.
//!
//! The same worker runs the same tool: driven by `bench/worker` over its socket, behind a minimal HTTP
//! server, and behind `bindpost run`, the last two with `bench/load` as the client. They take turns, so
//! that other load on the machine affects all of them. `public.rs` compares our workers with public ones.

mod processes;
mod public;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use self::processes::{DirectWorker, WorkerServer};
use self::public::PublicComparison;
use crate::workspace;
use crate::{packages, table};

/// The minimum calls per second through the host, relative to the worker alone, with 32 calls at once.
const THROUGHPUT: f64 = 0.7;
/// The maximum time of a call through the host, relative to the worker alone, with one call at a time.
const LATENCY: f64 = 2.0;

const ALONE: usize = 1;
const CROWD: usize = 32;
/// The seconds of warm-up before each measurement, and before the first one. The worker's compiler needs
/// some calls.
const WARMUP: f64 = 0.3;
const FIRST_WARMUP: f64 = 2.0;

const TOOL: &str = "hello";
const ARGUMENTS: &str = r#"{"who":"world 0123456789abcdef"}"#;
const MARKER: &str = "Hello, world 0123456789abcdef!";

#[derive(Clone, Copy, PartialEq)]
enum WorkerLanguage {
    Node,
    Python,
}

impl WorkerLanguage {
    const ALL: [Self; 2] = [Self::Node, Self::Python];

    fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Python => "python",
        }
    }

    /// Copies the app to its own folder, with its packages. Returns the folder and the interpreter.
    fn install(self) -> Result<(PathBuf, PathBuf)> {
        let source = workspace::root().join("bench/functions").join(self.name());
        let folder = workspace::target().join("bench-functions").join(self.name());
        let program = match self {
            Self::Node => {
                packages::npm(&folder, &source)?;
                PathBuf::from("node")
            }
            Self::Python => packages::python(&folder.join(".venv"), &source.join("requirements.txt"))?,
        };
        for entry in fs::read_dir(&source)? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
        let runtime = format!(r#"{{"Values":{{"FUNCTIONS_WORKER_RUNTIME":"{}"}}}}"#, self.name());
        fs::write(folder.join("local.settings.json"), runtime)?;
        Ok((folder, program))
    }

    /// Returns the worker's script, the same file that the host contains.
    fn worker(self) -> PathBuf {
        let workers = workspace::root().join("azure/functions/workers");
        match self {
            Self::Node => workers.join("node/worker.cjs"),
            Self::Python => workers.join("python/worker.py"),
        }
    }
}

/// The way in which the worker gets its calls.
#[derive(Clone, Copy, PartialEq)]
enum CallRoute {
    Direct,
    /// Through a server without JSON and MCP. It shows the cost of HTTP alone.
    Relay,
    /// Through the host, with a profile of `load`.
    Host {
        revision: &'static str,
        profile: &'static str,
    },
}

const WAYS: [CallRoute; 4] = [
    CallRoute::Direct,
    CallRoute::Relay,
    CallRoute::Host { revision: "2026-07-28", profile: "modern" },
    CallRoute::Host { revision: "2025-11-25", profile: "legacy" },
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = FunctionsBenchOptions::parse(args)?;
    workspace::build_dist(&["bindpost-cli"])?;
    let tools = workspace::build_bench(&["load", "worker-load"])?;
    if let Some(comparison) = &options.public {
        return comparison.run(&options, &tools.join("load"));
    }
    let mut rows = Vec::new();
    let mut promises = Vec::new();
    for language in WorkerLanguage::ALL {
        if options.only.is_none_or(|only| only == language) {
            let cells = measure(language, &options, &tools)?;
            rows.extend(cells.iter().map(|cell| cell.row(language, &cells)));
            promises.extend(cells.iter().filter_map(|cell| cell.promise(language, &cells)));
        }
    }
    println!();
    table::print(
        &["worker", "calls", "way", "calls/s", "median", "p50 µs", "median", "p99 µs", "calls/s ÷", "p50 ÷"],
        &rows,
    );
    println!(
        "\n÷ is the ratio to the same worker alone: of the best rounds, and the median in parentheses.\n"
    );
    // This is reported but is not a failure, because other load on the machine affects the two ways
    // differently.
    for promise in &promises {
        println!("{:<6} {}", if promise.kept { "kept" } else { "missed" }, promise.text);
    }
    Ok(())
}

struct FunctionsBenchOptions {
    rounds: usize,
    secs: f64,
    only: Option<WorkerLanguage>,
    /// Compare with a public worker instead.
    public: Option<PublicComparison>,
}

impl FunctionsBenchOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self { rounds: 5, secs: 1.5, only: None, public: None };
        let (mut app, mut workers) = (None, None);
        let mut words = args.iter();
        while let Some(name) = words.next() {
            let mut value = || words.next().with_context(|| format!("{name} needs a value"));
            match name.as_str() {
                "--rounds" => options.rounds = value()?.parse().context("--rounds needs a number")?,
                "--secs" => options.secs = value()?.parse().context("--secs needs a number")?,
                "--only" => {
                    let wanted = value()?;
                    let found = WorkerLanguage::ALL.into_iter().find(|language| language.name() == wanted);
                    options.only =
                        Some(found.with_context(|| format!("--only node or python, not {wanted}"))?);
                }
                "--app" => app = Some(PathBuf::from(value()?)),
                "--workers" => workers = Some(PathBuf::from(value()?)),
                other => bail!(
                    "no such option: {other} (there are --rounds N, --secs S, --only node|python, --app DIR and --workers DIR)"
                ),
            }
        }
        options.public = match (app, workers) {
            (Some(app), Some(workers)) => Some(PublicComparison { app, workers }),
            (None, None) => None,
            _ => bail!("--app and --workers are used together"),
        };
        ensure!(options.rounds > 0 && options.secs > 0.0, "--rounds and --secs must be above zero");
        Ok(options)
    }
}

/// The figures of one worker.
fn measure(
    language: WorkerLanguage,
    options: &FunctionsBenchOptions,
    tools: &Path,
) -> Result<Vec<RouteResults>> {
    let (app, program) = language.install()?;
    let driver = || processes::driver(&tools.join("worker-load"), &program, &language.worker(), &app);
    let mut direct = DirectWorker::start(driver())?;
    let relay = WorkerServer::relay(driver())?;
    let host = WorkerServer::host(&workspace::target().join("dist/bindpost"), &app, &[])?;
    let load = tools.join("load");
    let mut one = |way, calls, warmup, secs| match way {
        CallRoute::Direct => direct.measure(calls, warmup, secs),
        CallRoute::Relay => relay.measure(&load, "modern", calls, warmup, secs),
        CallRoute::Host { profile, .. } => host.measure(&load, profile, calls, warmup, secs),
    };
    for way in WAYS {
        one(way, CROWD, FIRST_WARMUP, WARMUP)?;
    }
    let places = [ALONE, CROWD].into_iter().flat_map(|calls| WAYS.map(|way| (way, calls)));
    let mut cells: Vec<RouteResults> =
        places.map(|(way, calls)| RouteResults { way, calls, rounds: Vec::new() }).collect();
    for round in 1..=options.rounds {
        println!("{}: round {round} of {}", language.name(), options.rounds);
        for cell in &mut cells {
            cell.rounds.push(one(cell.way, cell.calls, WARMUP, options.secs)?);
        }
    }
    Ok(cells)
}

/// One measurement.
#[derive(Clone, Copy)]
struct LoadFigures {
    rate: f64,
    p50: f64,
    p99: f64,
}

impl LoadFigures {
    /// Parses the line of JSON that both drivers print.
    fn parse(line: &str) -> Result<Self> {
        let said: Value = serde_json::from_str(line).with_context(|| format!("no figures: {line:?}"))?;
        ensure!(said["errors"] == 0 && said["n"].as_u64() > Some(0), "calls failed: {line}");
        let figure = |name: &str| said[name].as_f64().with_context(|| format!("no {name}: {line}"));
        Ok(Self { rate: figure("rps")?, p50: figure("p50_us")?, p99: figure("p99_us")? })
    }
}

/// One way with one number of concurrent calls, over all rounds.
struct RouteResults {
    way: CallRoute,
    calls: usize,
    rounds: Vec<LoadFigures>,
}

struct FunctionsPromise {
    text: String,
    kept: bool,
}

impl RouteResults {
    fn best_rate(&self) -> f64 {
        self.rounds.iter().map(|round| round.rate).fold(0.0, f64::max)
    }

    fn best_p50(&self) -> f64 {
        self.rounds.iter().map(|round| round.p50).fold(f64::INFINITY, f64::min)
    }

    fn median(&self, figure: fn(&LoadFigures) -> f64) -> f64 {
        median(self.rounds.iter().map(figure).collect())
    }

    /// The same number of concurrent calls, to the worker alone.
    fn direct<'a>(&self, cells: &'a [RouteResults]) -> Option<&'a RouteResults> {
        cells.iter().find(|cell| cell.way == CallRoute::Direct && cell.calls == self.calls)
    }

    /// Returns the ratio to the figure of the worker alone: of the best rounds, and the median of the
    /// rounds, each relative to the adjacent measurement.
    fn ratios(
        &self,
        cells: &[RouteResults],
        best: fn(&RouteResults) -> f64,
        figure: fn(&LoadFigures) -> f64,
    ) -> Option<(f64, f64)> {
        let direct = self.direct(cells)?;
        let pairs = self.rounds.iter().zip(&direct.rounds);
        let rounds = pairs.map(|(host, direct)| figure(host) / figure(direct)).collect();
        Some((best(self) / best(direct), median(rounds)))
    }

    fn rate_ratios(&self, cells: &[RouteResults]) -> Option<(f64, f64)> {
        self.ratios(cells, Self::best_rate, |round| round.rate)
    }

    fn p50_ratios(&self, cells: &[RouteResults]) -> Option<(f64, f64)> {
        self.ratios(cells, Self::best_p50, |round| round.p50)
    }

    fn row(&self, language: WorkerLanguage, cells: &[RouteResults]) -> Vec<String> {
        let way = match self.way {
            CallRoute::Direct => "alone".to_owned(),
            CallRoute::Relay => "relay".to_owned(),
            CallRoute::Host { revision, .. } => format!("host {revision}"),
        };
        let whole = |figure: f64| format!("{figure:.0}");
        let shown = |ratios: Option<(f64, f64)>| match ratios {
            Some((best, median)) if self.way != CallRoute::Direct => format!("{best:.2} ({median:.2})"),
            _ => String::new(),
        };
        vec![
            language.name().to_owned(),
            self.calls.to_string(),
            way,
            whole(self.best_rate()),
            whole(self.median(|round| round.rate)),
            whole(self.best_p50()),
            whole(self.median(|round| round.p50)),
            whole(self.median(|round| round.p99)),
            shown(self.rate_ratios(cells)),
            shown(self.p50_ratios(cells)),
        ]
    }

    /// Checks the target of this cell. The median of the rounds is used, because the best round may
    /// be an outlier.
    fn promise(&self, language: WorkerLanguage, cells: &[RouteResults]) -> Option<FunctionsPromise> {
        let CallRoute::Host { revision, .. } = self.way else { return None };
        let name = language.name();
        Some(if self.calls == CROWD {
            let (_, ratio) = self.rate_ratios(cells)?;
            let text = format!(
                "{name}, {revision}: {ratio:.2} of its calls per second, {CROWD} at once (at least {THROUGHPUT})"
            );
            FunctionsPromise { text, kept: ratio >= THROUGHPUT }
        } else {
            let (_, ratio) = self.p50_ratios(cells)?;
            let text = format!("{name}, {revision}: {ratio:.2} of its time for one call (at most {LATENCY})");
            FunctionsPromise { text, kept: ratio <= LATENCY }
        })
    }
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => f64::midpoint(figures[middle - 1], figures[middle]),
        _ => figures[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(way: CallRoute, rates: &[f64]) -> RouteResults {
        let rounds = rates.iter().map(|&rate| LoadFigures { rate, p50: 1.0, p99: 1.0 }).collect();
        RouteResults { way, calls: CROWD, rounds }
    }

    #[test]
    fn a_host_is_compared_with_its_neighbours_in_time() {
        let cells = [cell(WAYS[0], &[100.0, 50.0, 100.0]), cell(WAYS[2], &[80.0, 35.0, 60.0])];
        assert_eq!(cells[1].rate_ratios(&cells), Some((0.8, 0.7)));
        assert!(cells[0].promise(WorkerLanguage::Node, &cells).is_none());
        assert!(cells[1].promise(WorkerLanguage::Node, &cells).is_some_and(|promise| promise.kept));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn reads_figures_but_none_of_failed_calls() {
        let line = r#"{"op":"call","n":2,"rps":10.5,"p50_us":1,"p99_us":2,"errors":0}"#;
        assert_eq!(LoadFigures::parse(line).unwrap().rate, 10.5);
        assert!(LoadFigures::parse(&line.replace("\"errors\":0", "\"errors\":1")).is_err());
        assert!(LoadFigures::parse("thread panicked").is_err());
    }
}
