//! `cargo xtask interop`: runs published clients, each from its package, against `examples/conformance`,
//! `examples/orders` and the function apps `examples/snippets-python` and `examples/snippets-node`.
//!
//! A client is a program in `interop/` that prints one line per check: `ok`, `skip` or `FAIL`. This
//! command installs the packages below `target/interop`, runs the clients one after another and
//! collects their results.

mod client;
mod proxy;
pub(crate) mod report;
mod server;

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use self::client::{CLIENTS, InteropClient, InteropPrograms, InteropTarget};
use self::proxy::DisconnectingProxy;
use self::report::{ClientReport, Verdict};
use self::server::InteropServer;
use crate::table;
use crate::workspace::{self, cargo};

/// The columns of a table. A client omits checks that do not apply.
const CONFORMANCE: [&str; 10] =
    ["connect", "list", "call", "progress", "elicitation", "read", "prompt", "cancel", "hang-up", "cut"];
const ORDERS: [&str; 13] = [
    "connect", "list", "call", "create", "broken", "unknown", "read", "no-such", "prompt", "complete", "key",
    "no-key", "open",
];

const SNIPPETS: [&str; 18] = [
    "connect",
    "list",
    "save",
    "count",
    "badge",
    "read",
    "prompt",
    "missing",
    "unknown",
    "node-connect",
    "node-list",
    "node-save",
    "node-count",
    "node-badge",
    "node-read",
    "node-prompt",
    "node-missing",
    "node-unknown",
];

pub(crate) fn run() -> Result<()> {
    let folder = workspace::target().join("interop");
    fs::create_dir_all(&folder)?;
    let packages = ["--package", "conformance", "--package", "orders", "--package", "bindpost-cli"];
    workspace::run(cargo(&["build"]).args(packages))?;
    let programs = InteropPrograms::install(&folder)?;

    let conformance = against_conformance(&programs, &folder, "conformance", &[])?;
    let axum = against_conformance(&programs, &folder, "conformance-axum", &["--axum"])?;
    let orders = against_orders(&programs, &folder)?;
    let snippets = against_snippets(&programs, &folder)?;

    print("conformance", &CONFORMANCE, &conformance);
    print("conformance in an axum app", &CONFORMANCE, &axum);
    print("orders", &ORDERS, &orders);
    print("snippets", &SNIPPETS, &snippets);
    let all = [&conformance, &axum, &orders, &snippets];
    let count = |verdict| all.into_iter().flatten().map(|it| it.count(verdict)).sum();
    let (passed, failed, skipped): (usize, usize, usize) =
        (count(Verdict::Passed), count(Verdict::Failed), count(Verdict::Skipped));
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    ensure!(failed == 0, "{failed} checks failed");
    Ok(())
}

fn against_conformance(
    programs: &InteropPrograms,
    folder: &Path,
    name: &str,
    args: &[&str],
) -> Result<Vec<ClientReport>> {
    let server = InteropServer::start("conformance", args, folder.join(format!("{name}.log")))?;
    let clients = CLIENTS.iter().filter(|client| args.is_empty() || client.is_on_http());
    each_client(name, clients, &[&server], |client| {
        let proxy = DisconnectingProxy::start(server.address()?)?;
        let task = InteropTarget {
            what: "conformance".into(),
            program: InteropServer::program("conformance"),
            urls: [server.url.clone(), proxy.url.clone()],
        };
        let mut report = client.run(programs, &task, folder)?;
        proxy.verify_report(&mut report);
        Ok(report)
    })
}

fn against_orders(programs: &InteropPrograms, folder: &Path) -> Result<Vec<ClientReport>> {
    let open = InteropServer::start("orders", &[], folder.join("orders.log"))?;
    let keys =
        InteropServer::start("orders", &["--keys", "interop/orders.keys"], folder.join("orders-keys.log"))?;
    let task = InteropTarget {
        what: client::sources().join("orders.json"),
        program: InteropServer::program("orders"),
        urls: [open.url.clone(), keys.url.clone()],
    };
    each_client("orders", &CLIENTS, &[&open, &keys], |client| client.run(programs, &task, folder))
}

/// Runs the function apps, one of them with its key. A client on stdio can only start a
/// program without arguments.
fn against_snippets(programs: &InteropPrograms, folder: &Path) -> Result<Vec<ClientReport>> {
    let app = |name: &str| -> Result<String> {
        let copy = folder.join(name);
        workspace::copy(&workspace::root().join("examples").join(name), &copy)?;
        fs::create_dir_all(copy.join(".bindpost"))?;
        fs::write(copy.join(".bindpost/keys"), "mcp_extension = interop\n")?;
        Ok(copy.display().to_string())
    };
    let (python, node) = (app("snippets-python")?, app("snippets-node")?);
    let open = InteropServer::start(
        "bindpost",
        &["run", &python, "--no-watch"],
        folder.join("snippets-python.log"),
    )?;
    let keys = ["run", &node, "--no-watch", "--require-key"];
    let keys = InteropServer::start("bindpost", &keys, folder.join("snippets-node.log"))?;
    let task = InteropTarget {
        what: client::sources().join("snippets.json"),
        program: InteropServer::program("bindpost"),
        urls: [open.url.clone(), keys.url.clone()],
    };
    let clients = CLIENTS.iter().filter(|client| client.is_on_http());
    each_client("snippets", clients, &[&open, &keys], |client| client.run(programs, &task, folder))
}

/// Returns one report per client. If a check fails, the logs of both sides are printed.
fn each_client<'a>(
    name: &str,
    clients: impl IntoIterator<Item = &'a InteropClient>,
    servers: &[&InteropServer],
    run: impl Fn(&InteropClient) -> Result<ClientReport>,
) -> Result<Vec<ClientReport>> {
    let mut reports = Vec::new();
    for client in clients {
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

fn print(name: &str, checks: &[&str], reports: &[ClientReport]) {
    let row = |report: &ClientReport| {
        let cells = checks.iter().map(|check| report.verdict(check).map_or("-", Verdict::word).to_owned());
        let took = format!("{:.1}", report.took.as_secs_f32());
        std::iter::once(report.client.to_owned()).chain(cells).chain([took]).collect()
    };
    println!();
    table::print(&[&[name], checks, &["seconds"]].concat(), &reports.iter().map(row).collect::<Vec<_>>());
}

/// Reads a log. It may end within a character if its writer was killed.
fn read(log: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(log)?).into_owned())
}
