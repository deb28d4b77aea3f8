//! Checks the performance targets with the results that `bench/run.py` saved.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::table;

/// Our modes, each with the limit server that reads the same request bytes.
const MODES: [(&str, &str); 3] = [
    ("bindpost 2026", "limit hyper-parse 2026"),
    ("bindpost stateless", "limit hyper-parse"),
    ("bindpost stateful", "limit hyper-parse"),
];

/// The prefixes of the names of the other Rust servers.
const PEERS: [&str; 5] = ["rmcp", "rust-mcp-sdk", "pmcp", "turbomcp", "tower-mcp"];

/// The maximum instructions of our server, relative to the limit.
const INSTRUCTIONS: [(&str, f64); 2] = [("echo", 1.5), ("list", 1.15)];

/// The minimum requests per second of our server, relative to the best other Rust server in its best mode,
/// with 32 connections.
const THROUGHPUT: [(&str, f64); 2] = [("echo", 2.0), ("list", 6.0)];

/// The tolerance of system calls per request between runs of the same server.
const SYSTEM_CALLS_NOISE: f64 = 0.1;

/// Prints one row per target, and fails if one is missed.
pub(super) fn print(out: &Path) -> Result<()> {
    let saved = SavedResults {
        bench: read(out, "bench.json")?,
        instr: read(out, "instr.json")?,
        syscalls: read(out, "syscalls.json")?,
    };
    let promises = promises(&saved);
    let rows: Vec<Vec<String>> = promises.iter().map(ServerPromise::row).collect();
    println!();
    table::print(&["promise", "bindpost", "against", "ratio", "wanted", "verdict"], &rows);
    let count = |kept| promises.iter().filter(|promise| promise.kept() == kept).count();
    let (kept, broken, unknown) = (count(Some(true)), count(Some(false)), count(None));
    println!("\n{kept} promises kept");
    ensure!(broken + unknown == 0, "{broken} promises broken, {unknown} without numbers");
    Ok(())
}

/// The results that `run.py` saved: one object per file, by server.
struct SavedResults {
    bench: Value,
    instr: Value,
    syscalls: Value,
}

impl SavedResults {
    fn instructions(&self, server: &str, operation: &str) -> Option<f64> {
        self.instr[server][operation].as_f64()
    }

    fn system_calls(&self, server: &str, operation: &str) -> Option<f64> {
        self.syscalls[server][operation].as_f64()
    }

    /// The median round at 32 connections.
    fn throughput(&self, server: &str, operation: &str) -> Option<f64> {
        let rounds = self.bench[server]["runs"][format!("{operation}/32")].as_array()?;
        // Wrong responses may be fast.
        let right = rounds.iter().filter(|round| round["errors"].as_u64().unwrap_or_default() == 0);
        let mut rounds: Vec<f64> = right.filter_map(|round| round["rps"].as_f64()).collect();
        rounds.sort_by(f64::total_cmp);
        match rounds.len() {
            0 => None,
            n if n % 2 == 1 => Some(rounds[n / 2]),
            n => Some((rounds[n / 2 - 1] + rounds[n / 2]) / 2.0),
        }
    }

    fn best_peer(&self, operation: &str) -> Option<(&str, f64)> {
        let servers = self.bench.as_object()?.keys();
        let peers = servers.filter(|name| PEERS.iter().any(|peer| name.split(' ').next() == Some(*peer)));
        let measured = peers.filter_map(|name| Some((name.as_str(), self.throughput(name, operation)?)));
        measured.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

struct ServerPromise {
    name: String,
    ours: Option<f64>,
    /// The server to compare with, and its number.
    against: Option<(String, f64)>,
    wanted: PromisedBound,
}

#[derive(Clone, Copy)]
enum PromisedBound {
    RatioAtMost(f64),
    RatioAtLeast(f64),
    /// The target: at most the other number plus this.
    NoMoreThan(f64),
}

fn promises(saved: &SavedResults) -> Vec<ServerPromise> {
    let mut promises = Vec::new();
    let limit = |server: &str, number: Option<f64>| number.map(|number| (server.to_owned(), number));
    for (operation, most) in INSTRUCTIONS {
        promises.extend(MODES.map(|(ours, server)| ServerPromise {
            name: format!("instructions {operation}, {ours}"),
            ours: saved.instructions(ours, operation),
            against: limit(server, saved.instructions(server, operation)),
            wanted: PromisedBound::RatioAtMost(most),
        }));
    }
    for (operation, least) in THROUGHPUT {
        promises.extend(MODES.map(|(ours, _)| ServerPromise {
            name: format!("requests/s {operation}, {ours}"),
            ours: saved.throughput(ours, operation),
            against: saved.best_peer(operation).map(|(name, number)| (name.to_owned(), number)),
            wanted: PromisedBound::RatioAtLeast(least),
        }));
    }
    for operation in ["echo/1", "echo/32"] {
        promises.extend(MODES.map(|(ours, server)| ServerPromise {
            name: format!("system calls {operation}, {ours}"),
            ours: saved.system_calls(ours, operation),
            against: limit(server, saved.system_calls(server, operation)),
            wanted: PromisedBound::NoMoreThan(SYSTEM_CALLS_NOISE),
        }));
    }
    promises
}

impl ServerPromise {
    /// Returns `None` unless both numbers exist.
    fn kept(&self) -> Option<bool> {
        let (ours, theirs) = (self.ours?, self.against.as_ref()?.1);
        Some(match self.wanted {
            PromisedBound::RatioAtMost(most) => ours / theirs <= most,
            PromisedBound::RatioAtLeast(least) => ours / theirs >= least,
            PromisedBound::NoMoreThan(noise) => ours <= theirs + noise,
        })
    }

    fn row(&self) -> Vec<String> {
        let ratio = self.ours.zip(self.against.as_ref()).map(|(ours, (_, theirs))| ours / theirs);
        let wanted = match self.wanted {
            PromisedBound::RatioAtMost(most) => format!("<= {most}"),
            PromisedBound::RatioAtLeast(least) => format!(">= {least}"),
            PromisedBound::NoMoreThan(noise) => format!("<= +{noise}"),
        };
        let verdict = match self.kept() {
            Some(true) => "kept",
            Some(false) => "BROKEN",
            None => "no numbers",
        };
        vec![
            self.name.clone(),
            self.ours.map_or("-".into(), number),
            self.against
                .as_ref()
                .map_or("-".into(), |(name, theirs)| format!("{} ({name})", number(*theirs))),
            ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")),
            wanted,
            verdict.into(),
        ]
    }
}

/// Formats small numbers with decimals, large ones without.
fn number(value: f64) -> String {
    if value < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// Reads a result file. A step that did not run has no file, which is not an error.
fn read(out: &Path, name: &str) -> Result<Value> {
    let file = out.join(name);
    if !file.exists() {
        return Ok(Value::Null);
    }
    let text = fs::read_to_string(&file)?;
    serde_json::from_str(&text).with_context(|| format!("could not parse {}", file.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{SavedResults, promises};

    fn saved() -> SavedResults {
        let runs = |rps: &[f64]| json!({"runs": {"echo/32": rps.iter().map(|rps| json!({"rps": rps})).collect::<Vec<_>>()}});
        SavedResults {
            bench: json!({
                "limit hyper-parse": runs(&[90_000.0]),
                "rmcp stateless": runs(&[21_000.0, 30_000.0, 9_000.0]),
                "turbomcp stateful": runs(&[25_000.0, 26_000.0]),
                "bindpost stateless": runs(&[60_000.0]),
                "bindpost stateful": runs(&[50_000.0]),
            }),
            instr: json!({"limit hyper-parse": {"echo": 20_000.0}, "bindpost stateless": {"echo": 31_000.0}}),
            syscalls: json!({"limit hyper-parse": {"echo/1": 3.0}, "bindpost stateless": {"echo/1": 3.05}}),
        }
    }

    #[test]
    fn compares_with_the_best_peer_and_never_with_a_limit() {
        assert_eq!(saved().best_peer("echo"), Some(("turbomcp stateful", 25_500.0)));
        assert_eq!(saved().best_peer("list"), None);
    }

    #[test]
    fn judges_each_promise() {
        let judged: Vec<_> =
            promises(&saved()).into_iter().filter_map(|p| Some((p.name.clone(), p.kept()?))).collect();
        let expected = [
            ("instructions echo, bindpost stateless", false),
            ("requests/s echo, bindpost stateless", true),
            ("requests/s echo, bindpost stateful", false),
            ("system calls echo/1, bindpost stateless", true),
        ];
        assert_eq!(judged, expected.map(|(name, kept)| (name.to_owned(), kept)));
    }
}
