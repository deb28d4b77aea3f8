//! `cargo xtask bench functions --app DIR --workers DIR`: compares the built-in worker with a public one, behind the same
//! host, with the same app. They take turns. The figures are the start of the host, the latency, and the memory of the
//! worker. Public workers cannot be installed by this program.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use super::processes::WorkerServer;
use super::{ALONE, CROWD, FIRST_WARMUP, FunctionsBenchOptions, LoadFigures, WARMUP, median};
use crate::{table, workspace};

/// The app with the tool of the benchmark, and the folder of the public workers.
pub(super) struct PublicComparison {
    pub(super) app: PathBuf,
    pub(super) workers: PathBuf,
}

/// One of the two workers, behind its host.
struct ComparedWorker {
    name: &'static str,
    arguments: Vec<String>,
    /// The milliseconds from the start of the host until it serves.
    starts: Vec<f64>,
    alone: Vec<LoadFigures>,
    crowd: Vec<LoadFigures>,
    /// The resident memory of the worker in MiB, before and after the load.
    memory: [f64; 2],
}

impl PublicComparison {
    pub(super) fn run(&self, options: &FunctionsBenchOptions, load: &Path) -> Result<()> {
        let bindpost = workspace::target().join("dist/bindpost");
        let workers = self.workers.display().to_string();
        let mut both = [("built-in", Vec::new()), ("public", vec!["--workers".to_owned(), workers])]
            .map(|(name, arguments)| ComparedWorker::new(name, arguments));
        // The first start may compile the worker.
        drop(WorkerServer::host(&bindpost, &self.app, &[])?);
        for _ in 0..options.rounds {
            for worker in &mut both {
                let begin = Instant::now();
                drop(WorkerServer::host(&bindpost, &self.app, &worker.arguments).inspect(|_| {
                    worker.starts.push(begin.elapsed().as_secs_f64() * 1000.0);
                })?);
            }
        }
        let mut hosts = Vec::new();
        for worker in &mut both {
            let host = WorkerServer::host(&bindpost, &self.app, &worker.arguments)?;
            worker.memory[0] = worker_memory(host.id())?;
            host.measure(load, "modern", CROWD, FIRST_WARMUP, WARMUP)?;
            hosts.push(host);
        }
        for round in 1..=options.rounds {
            println!("public worker: round {round} of {}", options.rounds);
            for (worker, host) in both.iter_mut().zip(&hosts) {
                worker.alone.push(host.measure(load, "modern", ALONE, WARMUP, options.secs)?);
                worker.crowd.push(host.measure(load, "modern", CROWD, WARMUP, options.secs)?);
            }
        }
        for (worker, host) in both.iter_mut().zip(&hosts) {
            worker.memory[1] = worker_memory(host.id())?;
        }
        println!();
        let heads = [
            "worker",
            "start ms",
            "p50 µs, 1",
            "p99 µs, 1",
            "p50 µs, 32",
            "p99 µs, 32",
            "calls/s, 32",
            "MiB",
            "MiB after",
        ];
        table::print(&heads, &both.iter().map(ComparedWorker::row).collect::<Vec<_>>());
        Ok(())
    }
}

impl ComparedWorker {
    fn new(name: &'static str, arguments: Vec<String>) -> Self {
        Self { name, arguments, starts: Vec::new(), alone: Vec::new(), crowd: Vec::new(), memory: [0.0; 2] }
    }

    /// Returns the medians of the rounds.
    fn row(&self) -> Vec<String> {
        let of = |rounds: &[LoadFigures], figure: fn(&LoadFigures) -> f64| {
            format!("{:.0}", median(rounds.iter().map(figure).collect()))
        };
        vec![
            self.name.to_owned(),
            format!("{:.0}", median(self.starts.clone())),
            of(&self.alone, |round| round.p50),
            of(&self.alone, |round| round.p99),
            of(&self.crowd, |round| round.p50),
            of(&self.crowd, |round| round.p99),
            of(&self.crowd, |round| round.rate),
            format!("{:.0}", self.memory[0]),
            format!("{:.0}", self.memory[1]),
        ]
    }
}

/// Returns the resident memory of the only child of a process, in MiB.
fn worker_memory(host: u32) -> Result<f64> {
    for entry in fs::read_dir("/proc").context("the memory of a process is known only on Linux")? {
        let Ok(status) = fs::read_to_string(entry?.path().join("status")) else { continue };
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        if value("PPid:") == Some(f64::from(host))
            && let Some(kib) = value("VmRSS:")
        {
            return Ok(kib / 1024.0);
        }
    }
    anyhow::bail!("the host has no worker")
}
