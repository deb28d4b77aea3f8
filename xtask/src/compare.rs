//! `cargo xtask compare`: runs one test against the servers of `examples/compare`, each in its framework.
//!
//! It also checks that the code in `docs/compare.md` is code of these servers. `--measure` adds the
//! figures, all from one run. `cargo xtask compare features` probes features, and `cargo xtask compare
//! openapi` compares servers that convert OpenAPI documents to tools.

mod excerpts;
mod features;
mod measure;
mod openapi;

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{self, cargo};
use crate::{node, packages};

/// A server of the comparison.
struct Framework {
    name: &'static str,
    /// The source that a user writes, below `examples/compare`.
    source: &'static str,
    manifest: &'static str,
    language: FrameworkLanguage,
}

#[derive(Clone, Copy)]
enum FrameworkLanguage {
    Rust {
        package: &'static str,
        /// Other servers have their own lock file and build folder. Ours is a member of this workspace.
        is_peer: bool,
    },
    Node,
    Python,
}

static FRAMEWORKS: [Framework; 4] = [
    Framework {
        name: "bindpost",
        source: "bindpost/src/main.rs",
        manifest: "bindpost/Cargo.toml",
        language: FrameworkLanguage::Rust { package: "compare-bindpost", is_peer: false },
    },
    Framework {
        name: "rmcp",
        source: "rmcp/src/main.rs",
        manifest: "rmcp/Cargo.toml",
        language: FrameworkLanguage::Rust { package: "orders-compare", is_peer: true },
    },
    Framework {
        name: "TypeScript SDK",
        source: "typescript/server.ts",
        manifest: "typescript/package.json",
        language: FrameworkLanguage::Node,
    },
    Framework {
        name: "FastMCP",
        source: "python/server.py",
        manifest: "python/requirements.txt",
        language: FrameworkLanguage::Python,
    },
];

/// An arbitrary key. The servers read it from the environment.
const KEY: &str = "k3y-0f-the-c0mparis0n";

/// The timeout of a start. Python needs a few seconds to import its packages on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let measure = match args {
        [] => false,
        [what, options @ ..] if what == "openapi" => return openapi::run(options),
        [what] if what == "features" => return features::run(&node::node()?),
        [option] if option == "--measure" => true,
        _ => bail!("compare takes --measure, features, or openapi [--program FILE]"),
    };
    excerpts::check()?;
    // The measured server is the tested one.
    let build = if measure { FrameworkBuild::Release } else { FrameworkBuild::Debug };
    let folder = workspace::target().join("compare");
    fs::create_dir_all(&folder)?;
    let node = node::node()?;
    let mut installed = Vec::new();
    for framework in &FRAMEWORKS {
        let begin = Instant::now();
        installed.push(framework.install(&folder, &node, build)?);
        println!("{} is ready after {:.1} s", framework.name, begin.elapsed().as_secs_f64());
    }
    let mut failed = Vec::new();
    for server in &installed {
        println!("\n{}", server.framework.name);
        if !server.check(&node)? {
            failed.push(server.framework.name);
        }
    }
    ensure!(failed.is_empty(), "the test failed for {}", failed.join(" and "));
    features::check_ours(&node)?;
    if measure { measure::print(&installed) } else { Ok(()) }
}

#[derive(Clone, Copy, PartialEq)]
enum FrameworkBuild {
    Debug,
    Release,
}

impl Framework {
    fn install(&'static self, folder: &Path, node: &Path, build: FrameworkBuild) -> Result<InstalledServer> {
        let slot = match self.source.split_once('/') {
            Some((first, _)) => folder.join(first),
            None => folder.to_owned(),
        };
        let manifest = sources().join(self.manifest);
        let command = match self.language {
            FrameworkLanguage::Rust { package, is_peer } => {
                let target = if is_peer { slot.clone() } else { workspace::target() };
                vec![build_rust(&target, &manifest, package, build)?]
            }
            FrameworkLanguage::Node => {
                packages::npm(&slot, manifest.parent().unwrap_or(&manifest))?;
                vec![node.to_owned(), slot.join("server.ts")]
            }
            FrameworkLanguage::Python => {
                vec![packages::python(&slot, &manifest)?, sources().join(self.source)]
            }
        };
        Ok(InstalledServer { framework: self, command, folder: slot })
    }
}

fn build_rust(target: &Path, manifest: &Path, package: &str, build: FrameworkBuild) -> Result<PathBuf> {
    let mut command = cargo(&["build", "--locked", "--quiet", "--package", package, "--manifest-path"]);
    command.arg(manifest).env("CARGO_TARGET_DIR", target);
    // The release profile of the other servers has the settings of our `dist`.
    let is_ours = manifest.ends_with("bindpost/Cargo.toml");
    let folder = match build {
        FrameworkBuild::Release if is_ours => "dist",
        FrameworkBuild::Release => "release",
        _ => "debug",
    };
    if folder != "debug" {
        command.args(["--profile", folder]);
    }
    workspace::run(&mut command)?;
    Ok(target.join(folder).join(package))
}

fn sources() -> PathBuf {
    workspace::root().join("examples/compare")
}

/// A server that can be started.
struct InstalledServer {
    framework: &'static Framework,
    /// The program and its arguments, without the port.
    command: Vec<PathBuf>,
    /// The folder of its packages or of its build.
    folder: PathBuf,
}

impl InstalledServer {
    /// Runs `check.mjs` against a new server. The script prints the reason of a failure.
    fn check(&self, node: &Path) -> Result<bool> {
        let server = FrameworkServer::start(self, &[])?;
        let mut check = Command::new(node);
        check.arg(sources().join("check.mjs")).args([&server.url(), KEY]);
        let passed = check.status().context("could not start Node")?.success();
        if !passed {
            println!("-- the server's log:\n{}", fs::read_to_string(&server.log)?.trim_end());
        }
        Ok(passed)
    }
}

/// A running server. It is stopped on drop.
struct FrameworkServer {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl FrameworkServer {
    /// Starts it with `wrapper`, a program that executes another one in its place.
    fn start(installed: &InstalledServer, wrapper: &[&str]) -> Result<Self> {
        // Another process may bind the port first. Then the server exits with an error.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = installed.folder.with_extension("log");
        let words = wrapper.iter().map(PathBuf::from).chain(installed.command.iter().cloned());
        let words: Vec<PathBuf> = words.collect();
        let (program, arguments) = words.split_first().context("no program")?;
        let mut command = Command::new(program);
        command.args(arguments).arg(port.to_string()).env("ORDERS_KEY", KEY);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let name = installed.framework.name;
        let child = command.spawn().with_context(|| format!("could not start {name}"))?;
        let mut server = Self { child, port, log };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait()?;
            if ended.is_some() || begin.elapsed() > PATIENCE {
                bail!("{name} does not listen:\n{}", fs::read_to_string(&server.log)?);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for FrameworkServer {
    fn drop(&mut self) {
        // It may have exited already. In that case the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
