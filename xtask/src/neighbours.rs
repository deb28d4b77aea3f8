//! `cargo xtask neighbours`: runs 64 clients of which one misbehaves. The 99th percentile of the others'
//! calls must be at most three times that of quiet phases of the same run, and none of their
//! calls may fail.
//!
//! `bench/crowd` is the load generator, and `examples/soak-server` the server. Each has its own core.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::bench::median;
use crate::servers::{BuildProfile, ServerProcess};
use crate::{table, workspace};

/// The maximum p99 of the well-behaved clients during a misbehaviour, relative to quiet phases.
const MOST: f64 = 3.0;
const QUIET: &str = "quiet";
const KEYS: &str = "64";
const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = NeighboursOptions::parse(args)?;
    let bin = options.profile.build(&["soak-server"])?;
    let load = workspace::build_bench(&["crowd-load"])?.join("crowd-load");
    let mut server = on_core(SERVER_CORE);
    server.arg(bin.join("soak-server")).args(["--port", "0", "--keys", KEYS]);
    let server = ServerProcess::start("mcp", server, &workspace::target().join("neighbours"))?;

    let mut command = on_core(LOAD_CORE);
    command.arg(load).args(["neighbours", "--mcp", server.port()]);
    command.args(["--rounds", &options.rounds.to_string(), "--phase-seconds", &options.seconds.to_string()]);
    let line = workspace::output(command.stderr(std::process::Stdio::inherit()))?;
    let report: Value = serde_json::from_str(&line).with_context(|| format!("no report: {line:?}"))?;
    let mut complaints: Vec<String> = server.stop().into_iter().collect();

    let phases = report["phases"].as_array().context("the report has no phases")?;
    let phases = phases.iter().map(MeasuredPhase::parse).collect::<Result<Vec<_>>>()?;
    let summaries = summarize(&phases);
    let rows: Vec<Vec<String>> = summaries.iter().map(MisbehaviourSummary::row).collect();
    println!();
    table::print(
        &["misbehaviour", "calls", "p50 quiet", "p50 with it", "p99 quiet", "p99 with it", "ratio", "failed"],
        &rows,
    );
    println!(
        "\nMicroseconds; medians of {} rounds. Failed calls are those of the well-behaved clients.",
        options.rounds
    );
    complaints.extend(summaries.iter().filter_map(MisbehaviourSummary::complaint));
    let failed = report["failed"].as_u64().context("the report has no number of failed calls")?;
    if failed > 0 {
        println!("\nfailed calls");
        for (failure, count) in report["failures"].as_object().into_iter().flatten() {
            println!("  {count} × {failure}");
        }
        complaints.push(format!("{failed} calls of well-behaved clients failed"));
    }
    println!();
    ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    println!("one misbehaving client increases the p99 of the others at most {MOST} times");
    Ok(())
}

/// Returns a command that starts a program on one core.
fn on_core(core: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]);
    command
}

struct NeighboursOptions {
    rounds: usize,
    /// The duration of one phase.
    seconds: f64,
    profile: BuildProfile,
}

impl NeighboursOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self { rounds: 3, seconds: 6.0, profile: BuildProfile::Dist };
        let mut words = args.iter();
        while let Some(name) = words.next() {
            let mut value = || words.next().with_context(|| format!("{name} needs a value"));
            match name.as_str() {
                "--rounds" => options.rounds = value()?.parse().context("--rounds needs a number")?,
                "--seconds" => options.seconds = value()?.parse().context("--seconds needs a number")?,
                "--dev" => options.profile = BuildProfile::Dev,
                other => bail!("no such option: {other} (there are --rounds N, --seconds S and --dev)"),
            }
        }
        ensure!(options.rounds > 0 && options.seconds >= 1.0, "--rounds and --seconds must be at least 1");
        Ok(options)
    }
}

/// The measurements of the well-behaved clients in one phase. Times are in microseconds.
struct MeasuredPhase {
    name: String,
    calls: f64,
    p50: f64,
    p99: f64,
    failed: f64,
}

impl MeasuredPhase {
    fn parse(said: &Value) -> Result<Self> {
        let figure = |name: &str| said[name].as_f64().with_context(|| format!("no {name} in {said}"));
        Ok(Self {
            name: said["name"].as_str().context("a phase without a name")?.to_owned(),
            calls: figure("calls")?,
            p50: figure("p50_us")?,
            p99: figure("p99_us")?,
            failed: figure("failed")?,
        })
    }
}

/// One misbehaviour over all rounds.
struct MisbehaviourSummary<'a> {
    name: &'a str,
    calls: f64,
    /// The quiet phases, and those with the misbehaviour.
    p50: (f64, f64),
    p99: (f64, f64),
    /// The median of the rounds, each relative to the quiet phases before and after it.
    ratio: f64,
    failed: f64,
}

/// Each phase with a misbehaviour is between two quiet ones.
fn summarize(phases: &[MeasuredPhase]) -> Vec<MisbehaviourSummary<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for phase in phases.iter().filter(|phase| phase.name != QUIET) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let summary = |name| {
        let of_name: Vec<&[MeasuredPhase]> =
            phases.windows(3).filter(|three| three[1].name == name).collect();
        let over = |figure: &dyn Fn(&[MeasuredPhase]) -> f64| {
            median(of_name.iter().map(|three| figure(three)).collect())
        };
        let quiet = |three: &[MeasuredPhase], figure: fn(&MeasuredPhase) -> f64| {
            f64::midpoint(figure(&three[0]), figure(&three[2]))
        };
        MisbehaviourSummary {
            name,
            calls: of_name.iter().map(|three| three[1].calls).sum(),
            p50: (over(&|three| quiet(three, |phase| phase.p50)), over(&|three| three[1].p50)),
            p99: (over(&|three| quiet(three, |phase| phase.p99)), over(&|three| three[1].p99)),
            ratio: over(&|three| three[1].p99 / quiet(three, |phase| phase.p99)),
            failed: of_name.iter().map(|three| three[1].failed).sum(),
        }
    };
    names.into_iter().map(summary).collect()
}

impl MisbehaviourSummary<'_> {
    fn row(&self) -> Vec<String> {
        let whole = [self.calls, self.p50.0, self.p50.1, self.p99.0, self.p99.1].map(|it| format!("{it:.0}"));
        let rest = [format!("{:.2}", self.ratio), format!("{:.0}", self.failed)];
        std::iter::once(self.name.to_owned()).chain(whole).chain(rest).collect()
    }

    fn complaint(&self) -> Option<String> {
        // Without measurements the ratio is NaN, which is also a failure.
        if self.ratio <= MOST {
            return None;
        }
        Some(format!("{}: p99 is {:.2} times the quiet one, {MOST} at most", self.name, self.ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::{MeasuredPhase, summarize};

    fn phase(name: &str, p99: f64) -> MeasuredPhase {
        MeasuredPhase { name: name.to_owned(), calls: 10.0, p50: 1.0, p99, failed: 0.0 }
    }

    #[test]
    fn a_misbehaviour_is_compared_with_the_quiet_phases_around_it() {
        let phases = [
            phase("quiet", 100.0),
            phase("flood", 240.0),
            phase("quiet", 140.0),
            phase("flood", 800.0),
            phase("quiet", 260.0),
            phase("flood", 520.0),
            phase("quiet", 260.0),
        ];
        let summaries = summarize(&phases);
        let [flood] = &summaries[..] else { panic!("one misbehaviour") };
        assert_eq!((flood.ratio, flood.calls, flood.p99), (2.0, 30.0, (200.0, 520.0)));
        assert_eq!(flood.complaint(), None);
    }

    #[test]
    fn more_than_three_times_is_told() {
        let phases = [phase("quiet", 100.0), phase("flood", 301.0), phase("quiet", 100.0)];
        let complaint = summarize(&phases)[0].complaint();
        assert_eq!(complaint.as_deref(), Some("flood: p99 is 3.01 times the quiet one, 3 at most"));
    }
}
