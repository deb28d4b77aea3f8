//! The server under test: `examples/conformance`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::workspace::{self, cargo};

/// What accepts the connections of the server.
#[derive(Clone, Copy)]
pub(super) enum ServerHost {
    OwnListener,
    /// The router and the layers of `examples/axum-app`.
    Axum,
}

impl ServerHost {
    pub(super) const ALL: [ServerHost; 2] = [ServerHost::OwnListener, ServerHost::Axum];

    pub(super) fn name(self) -> &'static str {
        match self {
            ServerHost::OwnListener => "bindpost",
            ServerHost::Axum => "axum",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            ServerHost::OwnListener => &[],
            ServerHost::Axum => &["--axum"],
        }
    }
}

/// A running server. It is stopped on drop.
pub(super) struct ConformanceServer {
    child: Child,
    url: String,
    log: PathBuf,
}

impl ConformanceServer {
    /// Builds the server in the dev profile, so that CI compiles it once, and waits until it listens.
    pub(super) fn start(host: ServerHost) -> Result<Self> {
        workspace::run(&mut cargo(&["build", "--package", "conformance"]))?;
        let program = workspace::target().join("debug/conformance");
        let log = workspace::target().join("conformance").join(format!("{}.log", host.name()));
        fs::create_dir_all(workspace::target().join("conformance"))?;
        let mut copy = File::create(&log)?;

        let mut child = Command::new(&program)
            .args(["--port", "0"])
            .args(host.options())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        let stderr = child.stderr.take().context("the server has no stderr")?;
        let (sender, receiver) = mpsc::channel();
        // Reads until the server ends, because a full pipe would block it.
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _ = writeln!(copy, "{line}");
                if let Some(url) = announced_url(&line) {
                    let _ = sender.send(url);
                }
            }
        });

        let mut server = Self { child, url: String::new(), log };
        match receiver.recv_timeout(Duration::from_secs(20)) {
            Ok(url) => server.url = url,
            Err(_) => bail!(
                "{} did not print `listening on http://…`; it printed:\n{}",
                program.display(),
                fs::read_to_string(&server.log)?
            ),
        }
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server. Returns an error message if it had already exited.
    pub(super) fn stop(mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(Some(status)) => {
                Some(format!("the server exited unexpectedly ({status}); see {}", self.log.display()))
            }
            _ => None,
        }
    }
}

impl Drop for ConformanceServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses the address in the server's first line. The suite requires the name localhost.
fn announced_url(line: &str) -> Option<String> {
    let address = line.split_once("listening on http://")?.1.split_whitespace().next()?;
    Some(format!("http://{}", address.replace("127.0.0.1", "localhost")))
}

#[cfg(test)]
mod tests {
    use super::announced_url;

    #[test]
    fn finds_the_address_the_server_announces() {
        let line = "INFO listening on http://127.0.0.1:41234/mcp (7 tools)";
        assert_eq!(announced_url(line).as_deref(), Some("http://localhost:41234/mcp"));
        assert_eq!(announced_url("starting"), None);
    }
}
