//! `cargo xtask cost`: measures the cost of authentication, in instructions of one `tools/call`.
//!
//! `examples/orders` handles `get_order` under callgrind, once without authentication and once with API
//! keys. Each configuration runs twice with different numbers of calls, so that the costs of start and end
//! cancel out.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// The maximum cost of a call with a key, relative to a call without.
const MOST: f64 = 1.3;
const FEW: u64 = 500;
const MANY: u64 = 2_500;
/// The timeout of a start. Programs run fifty times slower under callgrind.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<()> {
    workspace::build_dist(&["orders"])?;
    let load = workspace::build_bench(&["load"])?.join("load");
    let folder = workspace::target().join("cost");
    fs::create_dir_all(&folder)?;
    let keys = folder.join("keys.txt");
    fs::write(&keys, "till = till-secret-0123456789abcdef orders.write\n")?;

    let mut worst: f64 = 0.0;
    println!("{:<10} {:>12} {:>12} {:>7}", "revision", "open", "with a key", "ratio");
    for (revision, profile) in [("2025-11-25", "legacy"), ("2026-07-28", "modern")] {
        let open = per_call(&folder, &load, profile, None)?;
        let known = per_call(&folder, &load, profile, Some(&keys))?;
        println!("{revision:<10} {open:>12.0} {known:>12.0} {:>7.3}", known / open);
        worst = worst.max(known / open);
    }
    ensure!(
        worst <= MOST,
        "a call with a key costs {worst:.2} times as much as one without; the maximum is {MOST}"
    );
    Ok(())
}

/// Returns the instructions of one call.
fn per_call(folder: &Path, load: &Path, profile: &str, keys: Option<&Path>) -> Result<f64> {
    let few = total(folder, load, profile, keys, FEW)?;
    let many = total(folder, load, profile, keys, MANY)?;
    Ok((many - few) / (MANY - FEW) as f64)
}

/// Returns the instructions of the whole program with this many calls.
fn total(folder: &Path, load: &Path, profile: &str, keys: Option<&Path>, calls: u64) -> Result<f64> {
    let profiled = folder.join("callgrind.out");
    let _ = fs::remove_file(&profiled);
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = Command::new("valgrind");
    command.args(["-q", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", profiled.display()));
    command.arg(workspace::target().join("dist/orders")).args(["--port", &port.to_string()]);
    if let Some(keys) = keys {
        command.arg("--keys").arg(keys);
    }
    // One worker thread has fewer wake-ups that differ from run to run.
    command.env("TOKIO_WORKER_THREADS", "1").stderr(Stdio::null());
    let server = CallgrindServer(command.spawn().context("valgrind is needed: apt-get install valgrind")?);
    wait_for(port)?;
    let mut load = Command::new(load);
    load.args(["--port", &port.to_string(), "--profile", profile, "--conns", "1"]);
    load.args(["--requests", &calls.to_string(), "--op", "call", "--tool", "get_order"]);
    load.args(["--arguments", r#"{"orderId":"123"}"#, "--marker", "18.5"]);
    if keys.is_some() {
        load.args(["--header", "x-api-key:till-secret-0123456789abcdef"]);
    }
    let output = load.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && said.contains("\"errors\":0"), "the load failed: {said}");
    server.end()?;
    let counted = fs::read_to_string(&profiled).context("callgrind wrote nothing")?;
    let line = counted.lines().find_map(|line| line.strip_prefix("totals: ")).context("no totals")?;
    Ok(line.trim().parse()?)
}

fn wait_for(port: u16) -> Result<()> {
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if begin.elapsed() > PATIENCE {
            bail!("orders did not start within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The program under callgrind.
struct CallgrindServer(Child);

impl CallgrindServer {
    /// Lets the program drain, so that callgrind writes its result.
    fn end(mut self) -> Result<()> {
        let id = self.0.id().to_string();
        workspace::run(Command::new("kill").args(["-TERM", &id]))?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for CallgrindServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
