//! The clients: which there are, how their packages are installed, and how one is run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::report::ClientReport;
use crate::workspace::{self, cargo};
use crate::{node, packages};

/// One conversation: which package, in which of its modes, over which transport.
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

/// Clients give up by themselves after 60 s; this is for those that hang on their way out.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a client is told about a server.
pub(super) struct InteropTarget {
    /// `conformance`, or the file of a scenario.
    pub(super) what: PathBuf,
    /// What a client on stdio starts.
    pub(super) program: PathBuf,
    /// Where a client on HTTP connects, and where else.
    pub(super) urls: [String; 2],
}

impl InteropClient {
    pub(super) fn is_on_http(&self) -> bool {
        matches!(self.transport, ClientTransport::Http)
    }

    /// Runs the client to its end; what it printed is shown and understood.
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

/// Where the installed packages are.
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
