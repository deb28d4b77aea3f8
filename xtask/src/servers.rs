//! Server processes that a command starts, watches and stops.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::workspace;

/// The timeout until a server prints its address. A function app starts its workers first.
const PATIENCE: Duration = Duration::from_secs(60);

/// The build of the servers: the release build, or a debug build to test a command.
#[derive(Clone, Copy)]
pub(crate) enum BuildProfile {
    Dist,
    Dev,
}

impl BuildProfile {
    /// Builds packages of the product, and returns the folder of their programs.
    pub(crate) fn build(self, packages: &[&str]) -> Result<PathBuf> {
        let profile = match self {
            Self::Dist => "dist",
            Self::Dev => "dev",
        };
        workspace::build(profile, packages)
    }
}

/// A server. It is stopped on drop.
pub(crate) struct ServerProcess {
    name: &'static str,
    child: Child,
    log: PathBuf,
    port: String,
    path: String,
}

impl ServerProcess {
    /// Starts a server and waits until it prints a line with `http://…` on stdout or stderr. Its output
    /// goes to a log in the folder.
    pub(crate) fn start(name: &'static str, mut command: Command, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let log = folder.join(format!("{name}.log"));
        command.env_remove("RUST_LOG").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("could not start the server {name}"))?;
        let (said, listening) = mpsc::channel();
        let copy = File::create(&log)?;
        if let Some(output) = child.stdout.take() {
            copy_output(output, copy.try_clone()?, said.clone());
        }
        if let Some(output) = child.stderr.take() {
            copy_output(output, copy, said);
        }
        let mut server = Self { name, child, log, port: String::new(), path: String::new() };
        let address = listening.recv_timeout(PATIENCE).ok();
        (server.port, server.path) = address.with_context(|| {
            let said = fs::read_to_string(&server.log).unwrap_or_default();
            format!("the server {name} does not print its address; its output:\n{}", said.trim_end())
        })?;
        Ok(server)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn port(&self) -> &str {
        &self.port
    }

    /// Returns the path of its endpoint.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Stops it. Returns an error message if it had already exited.
    pub(crate) fn stop(mut self) -> Option<String> {
        let ended = self.child.try_wait().ok().flatten()?;
        Some(format!("the server {} exited unexpectedly ({ended}); see {}", self.name, self.log.display()))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // A function host stops its workers only if it is stopped gracefully.
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        if !told.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Copies an output to the log until its end, because a full pipe would block the server.
fn copy_output(
    output: impl std::io::Read + Send + 'static,
    mut log: File,
    said: mpsc::Sender<(String, String)>,
) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = writeln!(log, "{line}");
            if let Some(address) = parse_address(&line) {
                let _ = said.send(address);
            }
        }
    });
}

/// Parses the port and the path of a line: `listening on http://127.0.0.1:3000/mcp`, or the
/// JSON of `bindpost`.
fn parse_address(line: &str) -> Option<(String, String)> {
    let url = match serde_json::from_str::<Value>(line) {
        Ok(said) => said["mcp"].as_str().or(said["url"].as_str())?.to_owned(),
        Err(_) => format!("http://{}", line.split_once("listening on http://")?.1),
    };
    let rest = url.strip_prefix("http://127.0.0.1:")?;
    let (port, path) = rest.split_once('/').unwrap_or((rest, ""));
    Some((port.to_owned(), format!("/{}", path.split_whitespace().next().unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn reads_where_a_server_listens() {
        let found = |port: &str, path: &str| Some((port.to_owned(), path.to_owned()));
        assert_eq!(parse_address("listening on http://127.0.0.1:3000/mcp"), found("3000", "/mcp"));
        assert_eq!(parse_address(r#"{"url":"http://127.0.0.1:8181"}"#), found("8181", "/"));
        let line = r#"{"mcp":"http://127.0.0.1:7071/runtime/webhooks/mcp","url":"http://127.0.0.1:7071"}"#;
        assert_eq!(parse_address(line), found("7071", "/runtime/webhooks/mcp"));
        assert_eq!(parse_address("starting"), None);
    }
}
