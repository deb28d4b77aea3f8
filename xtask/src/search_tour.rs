//! `cargo xtask search-tour`: runs the official clients of Azure AI Search, each from its package, against
//! `bindpost search-service`, and an official client of MCP against `bindpost search`.
//!
//! A tour is a program in `interop/search` or `interop/search-mcp` that prints one line per check, as those
//! of `cargo xtask interop` do. The packages are installed below `target/search-tour`. Each run has its own
//! service with an empty folder, and each tour of MCP starts its servers itself.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::interop::report::{ClientReport, Verdict};
use crate::workspace::{self, cargo};
use crate::{node, packages, table};

/// The timeout of a tour. Tours stop after 240 s by themselves, unless they hang while they exit.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn run() -> Result<()> {
    let folder = workspace::target().join("search-tour");
    fs::create_dir_all(&folder)?;
    workspace::run(cargo(&["build"]).args(["--package", "bindpost-cli"]))?;
    let programs = TourPrograms::install(&folder)?;
    let service = TourService::start(&folder)?;

    let mut reports = Vec::new();
    for tour in &TOURS {
        println!("\n{}", tour.name);
        let report =
            ClientReport::run_client(tour.name, &mut programs.command(tour, &service)?, PATIENCE, &folder)?;
        if report.count(Verdict::Failed) > 0 {
            println!("-- the client's log:\n{}", report.log.trim_end());
            // Servers that a tour starts write into its log.
            if !matches!(tour.client, TourClient::Mcp { .. }) {
                println!("-- the service's log:\n{}", fs::read_to_string(&service.log)?.trim_end());
            }
        }
        reports.push(report);
    }

    let row = |report: &ClientReport| {
        let counts =
            [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(|it| report.count(it).to_string());
        let took = format!("{:.1}", report.took.as_secs_f32());
        std::iter::once(report.client.to_owned()).chain(counts).chain([took]).collect()
    };
    println!();
    table::print(
        &["client", "passed", "failed", "skipped", "seconds"],
        &reports.iter().map(row).collect::<Vec<_>>(),
    );
    let failed: usize = reports.iter().map(|report| report.count(Verdict::Failed)).sum();
    ensure!(failed == 0, "{failed} checks failed");
    Ok(())
}

struct SearchTour {
    name: &'static str,
    client: TourClient,
}

/// The client of a tour. The older Python package rejects plain HTTP, so it uses TLS. The modes of MCP are
/// those of the package.
enum TourClient {
    Python11 { mode: &'static str },
    Python12 { mode: &'static str },
    Node,
    Mcp { mode: &'static str },
}

const TOURS: [SearchTour; 7] = [
    SearchTour { name: "python 12.0.0", client: TourClient::Python12 { mode: "sync" } },
    SearchTour { name: "python 12.0.0, async", client: TourClient::Python12 { mode: "async" } },
    SearchTour { name: "python 11.7.0b1, TLS", client: TourClient::Python11 { mode: "sync" } },
    SearchTour { name: "python 11.7.0b1, TLS, async", client: TourClient::Python11 { mode: "async" } },
    SearchTour { name: "javascript 13.0.0", client: TourClient::Node },
    SearchTour { name: "mcp 2025-11-25", client: TourClient::Mcp { mode: "legacy" } },
    SearchTour { name: "mcp 2026-07-28", client: TourClient::Mcp { mode: "auto" } },
];

/// The folders of the installed packages.
struct TourPrograms {
    python11: PathBuf,
    python12: PathBuf,
    node: PathBuf,
    npm: PathBuf,
    mcp: PathBuf,
}

impl TourPrograms {
    fn install(folder: &Path) -> Result<Self> {
        let (npm, mcp) = (folder.join("node"), folder.join("mcp"));
        packages::npm(&npm, &sources())?;
        packages::npm(&mcp, &workspace::root().join("interop/search-mcp"))?;
        for folder in [&npm, &mcp] {
            // The tours print their lines as the other clients on Node do.
            fs::copy(workspace::root().join("interop/node/report.mjs"), folder.join("report.mjs"))?;
        }
        let python = |version: &str| {
            let requirements = sources().join(format!("requirements-{version}.txt"));
            packages::python(&folder.join(format!("python-{version}")), &requirements)
        };
        Ok(Self { python11: python("11")?, python12: python("12")?, node: node::node()?, npm, mcp })
    }

    fn command(&self, tour: &SearchTour, service: &TourService) -> Result<Command> {
        let (program, script, folder) = match tour.client {
            TourClient::Python11 { .. } => (&self.python11, "tour.py", sources()),
            TourClient::Python12 { .. } => (&self.python12, "tour.py", sources()),
            TourClient::Node => (&self.node, "tour.mjs", self.npm.clone()),
            TourClient::Mcp { .. } => (&self.node, "tour.mjs", self.mcp.clone()),
        };
        let mut command = Command::new(program);
        // Compiled files must not be written to the source folder.
        command.arg(script).current_dir(folder).env("PYTHONDONTWRITEBYTECODE", "1");
        match tour.client {
            TourClient::Python11 { mode } => {
                command.args([mode, &service.tls_url]);
                command
                    .env("REQUESTS_CA_BUNDLE", &service.authority)
                    .env("SSL_CERT_FILE", &service.authority);
            }
            TourClient::Python12 { mode } => {
                command.args([mode, &service.url]);
            }
            TourClient::Node => {
                command.arg(&service.url);
            }
            TourClient::Mcp { mode } => {
                let data = create_empty(self.mcp.join("data").join(mode))?;
                command.arg(mode).arg(bindpost()).arg(data);
                return Ok(command);
            }
        }
        command.args([&service.admin_key, &service.query_key]).arg(&service.blobs);
        Ok(command)
    }
}

fn sources() -> PathBuf {
    workspace::root().join("interop/search")
}

fn bindpost() -> PathBuf {
    workspace::target().join("debug/bindpost")
}

/// Returns the folder after emptying it.
fn create_empty(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// `bindpost search-service` with an empty folder. It is stopped on drop.
struct TourService {
    child: Child,
    log: PathBuf,
    url: String,
    tls_url: String,
    authority: String,
    admin_key: String,
    query_key: String,
    blobs: PathBuf,
}

impl TourService {
    fn start(folder: &Path) -> Result<Self> {
        let (data, log) = (create_empty(folder.join("data"))?, folder.join("service.log"));
        let mut command = Command::new(bindpost());
        command.args(["search-service", "--port", "0", "--tls", "--json", "--data"]).arg(&data);
        command.env("RUST_LOG", "info").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut child = command.spawn().context("could not start `bindpost search-service`")?;
        let said = Self::first_line(&mut child);
        let mut service = Self {
            child,
            log,
            url: String::new(),
            tls_url: String::new(),
            authority: String::new(),
            admin_key: String::new(),
            query_key: String::new(),
            blobs: data.join("blobs"),
        };
        let said = said.with_context(|| fs::read_to_string(&service.log).unwrap_or_default())?;
        let text = |pointer: &str| {
            let text = said.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            text.with_context(|| format!("the output of the service has no {pointer}"))
        };
        service.url = text("/url")?;
        service.tls_url = text("/tlsUrl")?;
        service.authority = text("/certificateAuthority")?;
        service.admin_key = text("/newKeys/admin/0")?;
        service.query_key = text("/newKeys/query/0")?;
        Ok(service)
    }

    /// Reads the JSON line that the service prints when it listens.
    fn first_line(child: &mut Child) -> Result<Value> {
        let stdout = child.stdout.take().context("the service has no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        serde_json::from_str(&line).context("the service exited before it printed its address")
    }
}

impl Drop for TourService {
    fn drop(&mut self) {
        // It may have exited already. In that case the tours have failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
