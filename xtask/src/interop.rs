//! `cargo xtask interop`: real clients, each from its package, against `examples/conformance` and `examples/orders`.
//!
//! A client is a program in `interop/` that prints one line per check: `ok`, `skip` or `FAIL`. This chore installs
//! the packages below `target/interop`, starts the clients one after another and adds up their lines.

mod client;
mod proxy;
mod report;
mod server;

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use self::client::{CLIENTS, Client, Programs, Task};
use self::proxy::Proxy;
use self::report::{Report, Verdict};
use self::server::Server;
use crate::table;
use crate::workspace::{self, cargo};

/// The columns of a table. Where a check does not apply, a client leaves it out.
const CONFORMANCE: [&str; 10] =
    ["connect", "list", "call", "progress", "elicitation", "read", "prompt", "cancel", "hang-up", "cut"];
const ORDERS: [&str; 13] = [
    "connect", "list", "call", "create", "broken", "unknown", "read", "no-such", "prompt", "complete", "key",
    "no-key", "open",
];

pub(crate) fn run() -> Result<()> {
    let folder = workspace::target().join("interop");
    fs::create_dir_all(&folder)?;
    workspace::run(&mut cargo(&["build", "--package", "conformance", "--package", "orders"]))?;
    let programs = Programs::install(&folder)?;

    let conformance = against_conformance(&programs, &folder)?;
    let orders = against_orders(&programs, &folder)?;

    print("conformance", &CONFORMANCE, &conformance);
    print("orders", &ORDERS, &orders);
    let count = |verdict| [&conformance, &orders].into_iter().flatten().map(|it| it.count(verdict)).sum();
    let (passed, failed, skipped): (usize, usize, usize) =
        (count(Verdict::Passed), count(Verdict::Failed), count(Verdict::Skipped));
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    ensure!(failed == 0, "{failed} checks failed");
    Ok(())
}

fn against_conformance(programs: &Programs, folder: &Path) -> Result<Vec<Report>> {
    let server = Server::start("conformance", &[], folder.join("conformance.log"))?;
    each_client("conformance", &[&server], |client| {
        let proxy = Proxy::start(server.address()?)?;
        let task = Task {
            what: "conformance".into(),
            program: Server::program("conformance"),
            urls: [server.url.clone(), proxy.url.clone()],
        };
        let mut report = client.run(programs, &task, folder)?;
        proxy.confirm(&mut report);
        Ok(report)
    })
}

fn against_orders(programs: &Programs, folder: &Path) -> Result<Vec<Report>> {
    let open = Server::start("orders", &[], folder.join("orders.log"))?;
    let keys = Server::start("orders", &["--keys", "interop/orders.keys"], folder.join("orders-keys.log"))?;
    let task = Task {
        what: client::sources().join("orders.json"),
        program: Server::program("orders"),
        urls: [open.url.clone(), keys.url.clone()],
    };
    each_client("orders", &[&open, &keys], |client| client.run(programs, &task, folder))
}

/// One report per client; where a check fails, the logs of both sides are shown.
fn each_client(
    name: &str,
    servers: &[&Server],
    run: impl Fn(&Client) -> Result<Report>,
) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for client in &CLIENTS {
        println!("\n{name}: {}", client.name);
        let before = servers.iter().map(|server| Ok(server.log()?.len())).collect::<Result<Vec<_>>>()?;
        let report = run(client)?;
        if report.count(Verdict::Failed) > 0 {
            println!("-- the client's log:\n{}", report.log.trim_end());
            for (server, before) in servers.iter().zip(before) {
                println!(
                    "-- the server's log:\n{}",
                    server.log()?.get(before..).unwrap_or_default().trim_end()
                );
            }
        }
        reports.push(report);
    }
    Ok(reports)
}

fn print(name: &str, checks: &[&str], reports: &[Report]) {
    let row = |report: &Report| {
        let cells = checks.iter().map(|check| report.verdict(check).map_or("-", Verdict::word).to_owned());
        let took = format!("{:.1}", report.took.as_secs_f32());
        std::iter::once(report.client.to_owned()).chain(cells).chain([took]).collect()
    };
    println!();
    table::print(&[&[name], checks, &["seconds"]].concat(), &reports.iter().map(row).collect::<Vec<_>>());
}

/// A log may end in the middle of a character, when its writer was killed.
fn read(log: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(log)?).into_owned())
}
