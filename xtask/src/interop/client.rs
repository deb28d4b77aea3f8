//! The clients: their list, the installation of their packages, and how one is run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::report::ClientReport;
use crate::workspace::{self, cargo};
use crate::{node, packages};

/// One run of a client: the package, its mode, and the transport.
pub(super) struct InteropClient {
    pub(super) name: &'static str,
    package: ClientPackage,
    args: &'static [&'static str],
    transport: ClientTransport,
}

#[derive(Clone, Copy)]
enum ClientPackage {
    Npm,
    Python1,
    Python2,
    Rmcp,
}

enum ClientTransport {
    Http,
    Stdio,
}

use ClientPackage::{Npm, Python1, Python2, Rmcp};

pub(super) static CLIENTS: [InteropClient; 16] = [
    http("npm client, 2025-11-25", Npm, &["client.mjs", "legacy"]),
    http("npm client, 2026-07-28", Npm, &["client.mjs", "auto"]),
    http("npm sdk, 2025-11-25", Npm, &["sdk-http.mjs"]),
    stdio("npm sdk, 2025-11-25, stdio", Npm, &["sdk-stdio.mjs"]),
    http("inspector, 2025-11-25", Npm, &["inspector.mjs", "legacy"]),
    http("inspector, 2026-07-28", Npm, &["inspector.mjs", "modern"]),
    http("mcp-remote, 2025-11-25", Npm, &["mcp-remote.mjs", "legacy"]),
    http("mcp-remote, 2026-07-28", Npm, &["mcp-remote.mjs", "auto"]),
    http("python 1, 2025-11-25", Python1, &["client_1.py"]),
    http("python 2, 2025-11-25", Python2, &["client_2.py", "legacy", "http"]),
    http("python 2, 2026-07-28", Python2, &["client_2.py", "auto", "http"]),
    stdio("python 2, 2026-07-28, stdio", Python2, &["client_2.py", "auto", "stdio"]),
    http("rmcp, 2025-11-25", Rmcp, &["initialize", "http"]),
    http("rmcp, 2026-07-28", Rmcp, &["discover", "http"]),
    stdio("rmcp, 2025-11-25, stdio", Rmcp, &["initialize", "stdio"]),
    stdio("rmcp, 2026-07-28, stdio", Rmcp, &["discover", "stdio"]),
];

const fn http(name: &'static str, package: ClientPackage, args: &'static [&'static str]) -> InteropClient {
    InteropClient { name, package, args, transport: ClientTransport::Http }
}

const fn stdio(name: &'static str, package: ClientPackage, args: &'static [&'static str]) -> InteropClient {
    InteropClient { name, package, args, transport: ClientTransport::Stdio }
}

/// The timeout of a client. Clients stop after 60 s by themselves, unless they hang while they exit.
const PATIENCE: Duration = Duration::from_secs(90);

/// The arguments of a client that describe a server.
pub(super) struct InteropTarget {
    /// `conformance`, or the file of a scenario.
    pub(super) what: PathBuf,
    /// The program that a client on stdio starts.
    pub(super) program: PathBuf,
    /// The addresses for a client on HTTP.
    pub(super) urls: [String; 2],
}

impl InteropClient {
    pub(super) fn is_on_http(&self) -> bool {
        matches!(self.transport, ClientTransport::Http)
    }

    /// Runs the client until it exits, and prints and parses its output.
    pub(super) fn run(
        &self,
        programs: &InteropPrograms,
        task: &InteropTarget,
        folder: &Path,
    ) -> Result<ClientReport> {
        let mut command = programs.command(self.package);
        command.args(self.args).arg(&task.what);
        match self.transport {
            ClientTransport::Http => command.args(&task.urls),
            ClientTransport::Stdio => command.arg(&task.program),
        };
        ClientReport::run_client(self.name, &mut command, PATIENCE, folder)
    }
}

/// The folders of the installed packages.
pub(super) struct InteropPrograms {
    node: PathBuf,
    npm: PathBuf,
    python1: PathBuf,
    python2: PathBuf,
    rmcp: PathBuf,
}

impl InteropPrograms {
    pub(super) fn install(folder: &Path) -> Result<Self> {
        let npm = folder.join("node");
        packages::npm(&npm, &sources().join("node"))?;
        let requirements = |name: &str| sources().join("python").join(name);
        Ok(Self {
            node: node::node()?,
            npm,
            python1: packages::python(&folder.join("python-1"), &requirements("requirements-1.txt"))?,
            python2: packages::python(&folder.join("python-2"), &requirements("requirements-2.txt"))?,
            rmcp: build_rmcp(&folder.join("rmcp-target"))?,
        })
    }

    fn command(&self, package: ClientPackage) -> Command {
        let (program, current) = match package {
            Npm => (&self.node, self.npm.clone()),
            Python1 => (&self.python1, sources().join("python")),
            Python2 => (&self.python2, sources().join("python")),
            Rmcp => (&self.rmcp, sources()),
        };
        let mut command = Command::new(program);
        command.current_dir(current);
        command
    }
}

pub(super) fn sources() -> PathBuf {
    workspace::root().join("interop")
}

fn build_rmcp(folder: &Path) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--locked", "--manifest-path", "interop/rmcp/Cargo.toml"]);
    workspace::run(build.env("CARGO_TARGET_DIR", folder))?;
    Ok(folder.join("debug/interop-rmcp"))
}
