//! The servers: examples of this repository, each in its own process.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::read;
use crate::workspace;

/// An example on HTTP. It is stopped on drop.
pub(super) struct InteropServer {
    child: Child,
    pub(super) url: String,
    log: PathBuf,
}

impl InteropServer {
    /// Returns the path of an example that cargo has built.
    pub(super) fn program(example: &str) -> PathBuf {
        workspace::target().join("debug").join(example)
    }

    pub(super) fn start(example: &str, args: &[&str], log: PathBuf) -> Result<Self> {
        let mut command = Command::new(Self::program(example));
        // Detailed logs help to explain a failure.
        command.env("RUST_LOG", "info").env("NO_COLOR", "1").current_dir(workspace::root());
        command.args(args).args(["--port", "0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?);
        let child = command.spawn().with_context(|| format!("could not start examples/{example}"))?;
        let mut server = Self { child, url: String::new(), log };
        // A function app installs its packages first.
        for _ in 0..1800 {
            thread::sleep(Duration::from_millis(100));
            if let Some(status) = server.child.try_wait()? {
                bail!("{example} exited with {status} before it printed its address:\n{}", server.log()?);
            }
            if let Some(url) = server.log()?.lines().find_map(parse_url) {
                server.url = url.to_owned();
                return Ok(server);
            }
        }
        bail!("examples/{example} does not print its address:\n{}", server.log()?);
    }

    pub(super) fn address(&self) -> Result<SocketAddr> {
        let address = self.url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        address.and_then(|address| address.parse().ok()).with_context(|| format!("{} is not ours", self.url))
    }

    pub(super) fn log(&self) -> Result<String> {
        read(&self.log)
    }
}

impl Drop for InteropServer {
    fn drop(&mut self) {
        // It may have exited already. In that case the clients have failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses the address in a line such as `listening on http://127.0.0.1:8080/mcp`.
fn parse_url(line: &str) -> Option<&str> {
    line.split_whitespace().find(|word| word.starts_with("http://") && word.ends_with("/mcp"))
}

#[cfg(test)]
mod tests {
    use super::parse_url;

    #[test]
    fn finds_the_address() {
        assert_eq!(parse_url("listening on http://127.0.0.1:8080/mcp"), Some("http://127.0.0.1:8080/mcp"));
        assert_eq!(parse_url("orders: http://127.0.0.1:8080/mcp"), Some("http://127.0.0.1:8080/mcp"));
        // An incomplete line.
        assert_eq!(parse_url("orders: http://127.0.0.1:80"), None);
    }
}
