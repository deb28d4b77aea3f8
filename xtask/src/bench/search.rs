//! `cargo xtask bench search`: compares the cost of the search service with that of tantivy alone.
//!
//! `bench/search` generates documents and sends them to the service over HTTP. Then it indexes the same
//! ones with tantivy alone, in a separate process. Both run the same filtered queries. Costs are CPU time,
//! so that other load on the machine has little effect. The costs of the client are not included.

mod service;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use self::service::{BenchService, ProcessMemory};
use super::functions::median;
use crate::table;
use crate::workspace;

/// The maximum CPU time and memory of the service, relative to tantivy alone.
const INDEXING: f64 = 3.0;
const SEARCHING: f64 = 3.0;
const MEMORY: f64 = 2.0;
/// The maximum number of seconds until the service responds again after it was killed.
const RESTART: f64 = 2.0;

const CONCURRENCY: [&str; 2] = ["1", "16"];
/// The number of documents that are sent once more before the service is killed.
const BEFORE_THE_CRASH: usize = 15_000;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = SearchBenchOptions::parse(args)?;
    workspace::build_dist(&["bindpost-cli"])?;
    let load = SearchLoadProgram(workspace::build_bench(&["search-load"])?.join("search-load"));
    let bindpost = workspace::target().join("dist/bindpost");
    let folder = workspace::target().join("bench-search");
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        println!(
            "round {round} of {}: {} documents, {} queries",
            options.rounds, options.documents, options.queries
        );
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        let bare = load.measure_bare(&folder.join("bare"), &options)?;
        let (ours, restart) = load.measure_service(&bindpost, &folder.join("service"), &options)?;
        for (ours, bare) in ours.searching.iter().zip(&bare.searching) {
            // The stemmers differ in a few words.
            let near = ours.found.abs_diff(bare.found) * 100 <= bare.found;
            ensure!(near, "the sides found {} and {} documents for the same queries", ours.found, bare.found);
        }
        rounds.push(SearchRound { bare, ours, restart });
    }
    std::fs::remove_dir_all(&folder)?;

    println!();
    table::print(&["", "bare tantivy", "service", "÷", "of the rounds"], &rows(&rounds));
    println!("\nMedians. ÷ is the median of the ratios of the rounds.\n");
    // This is reported but is not a failure, as in the other benchmarks.
    for promise in promises(&rounds) {
        println!("{:<6} {}", if promise.kept { "kept" } else { "missed" }, promise.text);
    }
    Ok(())
}

/// The results of both sides, measured one after the other, because CPU time too depends on the load
/// of the machine.
struct SearchRound {
    bare: SideFigures,
    ours: SideFigures,
    /// The time of a restart in seconds.
    restart: f64,
}

struct SearchBenchOptions {
    documents: usize,
    queries: usize,
    rounds: usize,
}

impl SearchBenchOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self { documents: 100_000, queries: 10_000, rounds: 3 };
        let mut words = args.iter();
        while let Some(name) = words.next() {
            let mut number = || {
                let value = words.next().with_context(|| format!("{name} needs a value"))?;
                value.parse().with_context(|| format!("{name} needs a number"))
            };
            match name.as_str() {
                "--documents" => options.documents = number()?,
                "--queries" => options.queries = number()?,
                "--rounds" => options.rounds = number()?,
                other => bail!("no such option: {other} (there are --documents N, --queries N, --rounds N)"),
            }
        }
        ensure!(
            options.documents > 0 && options.queries > 0 && options.rounds > 0,
            "there must be something to measure"
        );
        Ok(options)
    }
}

/// The figures of one side.
struct SideFigures {
    /// The CPU time of indexing in seconds.
    indexing_cpu: f64,
    after_indexing: ProcessMemory,
    searching: Vec<QueryFigures>,
    after_searching: ProcessMemory,
}

/// The figures of queries with one number of concurrent calls.
struct QueryFigures {
    /// The CPU time of one query in microseconds.
    cpu: f64,
    median: f64,
    /// The number of queries per second.
    rate: f64,
    found: u64,
}

impl QueryFigures {
    fn parse(said: &Value, cpu_seconds: f64) -> Result<Self> {
        let queries = figure(said, "queries")?;
        Ok(Self {
            cpu: cpu_seconds * 1e6 / queries,
            median: figure(said, "median_us")?,
            rate: figure(said, "rate")?,
            found: said["found"].as_u64().context("no number of found documents")?,
        })
    }
}

fn figure(said: &Value, name: &str) -> Result<f64> {
    said[name].as_f64().with_context(|| format!("no {name} in {said}"))
}

/// The program `bench/search`.
struct SearchLoadProgram(PathBuf);

impl SearchLoadProgram {
    fn call(&self, args: &[&str]) -> Result<Value> {
        let line = workspace::output(Command::new(&self.0).args(args))?;
        serde_json::from_str(&line).with_context(|| format!("no figures: {line:?}"))
    }

    fn measure_bare(&self, folder: &Path, options: &SearchBenchOptions) -> Result<SideFigures> {
        let folder = folder.to_str().context("the folder's name is not UTF-8")?;
        let (documents, queries) = (options.documents.to_string(), options.queries.to_string());
        let said =
            self.call(&["bare", "--folder", folder, "--documents", &documents, "--queries", &queries])?;
        let searching = CONCURRENCY.iter().map(|&concurrency| {
            let said = &said["searching"][concurrency];
            QueryFigures::parse(said, figure(said, "cpu_s")?)
        });
        Ok(SideFigures {
            indexing_cpu: figure(&said["indexing"], "cpu_s")?,
            after_indexing: ProcessMemory::parse(&said["after_indexing"])?,
            searching: searching.collect::<Result<_>>()?,
            after_searching: ProcessMemory::parse(&said["after_searching"])?,
        })
    }

    /// Returns the figures of the service, and its start time after a crash.
    fn measure_service(
        &self,
        bindpost: &Path,
        folder: &Path,
        options: &SearchBenchOptions,
    ) -> Result<(SideFigures, f64)> {
        let mut service = BenchService::start(bindpost, folder)?;
        let port = service.port().to_owned();
        let upload =
            |documents: usize| self.call(&["upload", "--port", &port, "--documents", &documents.to_string()]);
        let count = |port: &str| {
            let said = self.call(&["count", "--port", port])?;
            let count = said["documents"].as_u64();
            ensure!(count == Some(options.documents as u64), "documents are missing: {said}");
            Ok(())
        };
        let search = |queries: usize, concurrency| {
            let queries = queries.to_string();
            self.call(&["search", "--port", &port, "--queries", &queries, "--concurrency", concurrency])
        };
        let idle = service.cpu()?;
        upload(options.documents)?;
        count(&port)?;
        // The later work of the service for these documents belongs to indexing.
        let indexing_cpu = service.cpu_at_rest()? - idle;
        let after_indexing = service.memory()?;
        search(options.queries.div_ceil(10), "1")?;
        let mut searching = Vec::new();
        for concurrency in CONCURRENCY {
            let before = service.cpu()?;
            let said = search(options.queries, concurrency)?;
            searching.push(QueryFigures::parse(&said, service.cpu()? - before)?);
        }
        let after_searching = service.memory()?;
        upload(options.documents.min(BEFORE_THE_CRASH))?;
        service.kill()?;
        let before = Instant::now();
        let again = BenchService::start(bindpost, folder)?;
        // All acknowledged documents still exist.
        count(again.port())?;
        let restart = before.elapsed().as_secs_f64();
        let side = SideFigures { indexing_cpu, after_indexing, searching, after_searching };
        Ok((side, restart))
    }
}

/// Builds the rows of the table from both sides of every round.
fn pairs(rounds: &[SearchRound], figure: impl Fn(&SideFigures) -> f64) -> Vec<(f64, f64)> {
    rounds.iter().map(|round| (figure(&round.bare), figure(&round.ours))).collect()
}

fn ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(bare, ours)| ours / bare).collect()
}

fn searching(side: &SideFigures, at: usize, figure: fn(&QueryFigures) -> f64) -> f64 {
    side.searching.get(at).map_or(f64::NAN, figure)
}

fn rows(rounds: &[SearchRound]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: String, digits: usize, figure: &dyn Fn(&SideFigures) -> f64| {
        let pairs = pairs(rounds, figure);
        let (bare, ours) = pairs.iter().copied().unzip();
        let ratios = ratios(&pairs);
        let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        let shown = |figures| format!("{:.digits$}", median(figures));
        rows.push(vec![name, shown(bare), shown(ours), format!("{:.2}", median(ratios)), each.join(" ")]);
    };
    row("indexing, CPU s".to_owned(), 2, &|side| side.indexing_cpu);
    for (at, calls) in CONCURRENCY.iter().enumerate() {
        row(format!("query, {calls} at once, CPU µs"), 0, &|side| searching(side, at, |one| one.cpu));
        row(format!("query, {calls} at once, median µs"), 0, &|side| searching(side, at, |one| one.median));
        row(format!("queries/s, {calls} at once"), 0, &|side| searching(side, at, |one| one.rate));
    }
    row("peak resident memory after indexing, MiB".to_owned(), 0, &|side| side.after_indexing.peak);
    row("private memory after indexing, MiB".to_owned(), 0, &|side| side.after_indexing.anonymous);
    row("peak resident memory after searching, MiB".to_owned(), 0, &|side| side.after_searching.peak);
    row("private memory after searching, MiB".to_owned(), 0, &|side| side.after_searching.anonymous);
    rows
}

struct SearchPromise {
    text: String,
    kept: bool,
}

/// Checks the targets. The median of the rounds is used, because the best round may be an outlier.
fn promises(rounds: &[SearchRound]) -> Vec<SearchPromise> {
    let mut promises = Vec::new();
    let mut promise = |figures: Vec<f64>, limit: f64, text: String| {
        let figure = median(figures);
        promises.push(SearchPromise {
            text: format!("{figure:.2} {text} (at most {limit})"),
            kept: figure <= limit,
        });
    };
    let ratio = |figure: &dyn Fn(&SideFigures) -> f64| ratios(&pairs(rounds, figure));
    promise(ratio(&|side| side.indexing_cpu), INDEXING, "of tantivy's CPU time for indexing".to_owned());
    for (at, calls) in CONCURRENCY.iter().enumerate() {
        let cpu = ratio(&|side| searching(side, at, |one| one.cpu));
        promise(cpu, SEARCHING, format!("of its CPU time for a query, {calls} at once"));
    }
    // Tantivy reads its documents from mapped files, the service through its own cache. Neither figure
    // alone would be fair to both.
    let peak = ratio(&|side| side.after_searching.peak);
    promise(peak, MEMORY, "of its peak resident memory".to_owned());
    let own = ratio(&|side| side.after_searching.anonymous);
    promise(own, MEMORY, "of its private memory after searching".to_owned());
    let restarts = rounds.iter().map(|round| round.restart).collect();
    promise(restarts, RESTART, "s from a start after kill -9 to the response to a search".to_owned());
    promises
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn side(factor: f64) -> SideFigures {
        let memory = || ProcessMemory { peak: 100.0 * factor, anonymous: 50.0 * factor };
        let said = json!({"queries": 10, "median_us": 5.0, "rate": 1000.0, "found": 7});
        let searching = CONCURRENCY.map(|_| QueryFigures::parse(&said, factor).unwrap());
        SideFigures {
            indexing_cpu: factor,
            after_indexing: memory(),
            searching: searching.into(),
            after_searching: memory(),
        }
    }

    fn round(factor: f64, restart: f64) -> SearchRound {
        SearchRound { bare: side(1.0), ours: side(factor), restart }
    }

    #[test]
    fn the_median_of_the_rounds_decides() {
        let kept = |rounds: &[SearchRound]| -> Vec<bool> {
            promises(rounds).into_iter().map(|promise| promise.kept).collect()
        };
        assert_eq!(kept(&[round(2.0, 2.0), round(9.0, 9.0), round(1.0, 1.0)]), [true; 6]);
        assert_eq!(kept(&[round(2.5, 2.1)]), [true, true, true, false, false, false]);
    }

    #[test]
    fn each_row_compares_both_sides_and_shows_every_round() {
        let rows = rows(&[round(2.0, 1.0), round(4.0, 1.0), round(3.0, 1.0)]);
        assert_eq!(rows[0], ["indexing, CPU s", "1.00", "3.00", "3.00", "2.00 4.00 3.00"]);
        assert_eq!(rows.len(), 11);
    }
}
