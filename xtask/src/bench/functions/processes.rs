//! The programs that call a worker. Each runs until it is dropped.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{ARGUMENTS, LoadFigures, MARKER, TOOL};
use crate::workspace;

/// Returns the command that starts `bench/worker` with its own worker.
pub(super) fn driver(driver: &Path, program: &Path, worker: &Path, app: &Path) -> Command {
    let mut command = Command::new(driver);
    command.arg("--program").arg(program).arg("--worker").arg(worker).arg("--app").arg(app);
    // The path of a unix socket must be short, so it is relative to the working folder, which the driver
    // and the worker share. The socket is deleted as soon as the worker has connected.
    command.current_dir(app).args(["--socket", "driver.socket"]);
    command.args(["--tool", TOOL, "--arguments", ARGUMENTS, "--marker", MARKER]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A worker that `bench/worker` drives.
pub(super) struct DirectWorker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl DirectWorker {
    pub(super) fn start(mut driver: Command) -> Result<Self> {
        let mut child = driver.spawn().context("could not start the driver")?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let mut direct = Self { child, input, output: BufReader::new(output) };
        // After its first response, the path of its socket is free for the next worker.
        direct.measure(1, 0.0, 0.1)?;
        Ok(direct)
    }

    pub(super) fn measure(&mut self, calls: usize, warmup: f64, secs: f64) -> Result<LoadFigures> {
        writeln!(self.input, "{calls} {warmup} {secs}").context("the driver has ended")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        LoadFigures::parse(&line)
    }
}

impl Drop for DirectWorker {
    fn drop(&mut self) {
        // The worker ends when its stream ends.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP server with a worker.
pub(super) struct WorkerServer {
    child: Child,
    port: String,
    path: String,
}

impl WorkerServer {
    /// Starts `bindpost run` with the app and further arguments.
    pub(super) fn host(bindpost: &Path, app: &Path, arguments: &[String]) -> Result<Self> {
        let log = app.join("host.log");
        let mut command = Command::new(bindpost);
        command
            .arg("run")
            .arg(app)
            .args(["--json", "--port", "0", "--no-watch", "--no-install"])
            .args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let (mut server, line) = Self::start(command)?;
        let ready: Value = serde_json::from_str(&line)
            .with_context(|| format!("bindpost did not start; see {}", log.display()))?;
        let address = ready["mcp"].as_str().and_then(|url| url.strip_prefix("http://127.0.0.1:"));
        let Some((port, path)) = address.and_then(|address| address.split_once('/')) else {
            bail!("bindpost does not print its address: {line}");
        };
        (server.port, server.path) = (port.to_owned(), format!("/{path}"));
        Ok(server)
    }

    /// Returns the id of the process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts the relay of `bench/worker`.
    pub(super) fn relay(mut driver: Command) -> Result<Self> {
        driver.args(["--relay", "yes"]);
        let (mut server, line) = Self::start(driver)?;
        (server.port, server.path) = (line.trim().to_owned(), "/".to_owned());
        Ok(server)
    }

    /// Starts the program and waits for its first line.
    fn start(mut command: Command) -> Result<(Self, String)> {
        let mut child = command.spawn().context("could not start the server")?;
        let output = child.stdout.take().context("no pipe")?;
        let server = Self { child, port: String::new(), path: String::new() };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        Ok((server, line))
    }

    pub(super) fn measure(
        &self,
        load: &Path,
        profile: &str,
        calls: usize,
        warmup: f64,
        secs: f64,
    ) -> Result<LoadFigures> {
        let mut command = Command::new(load);
        command.args(["--port", &self.port, "--path", &self.path, "--profile", profile]);
        command.args(["--op", "call", "--tool", TOOL, "--arguments", ARGUMENTS, "--marker", MARKER]);
        command.args(["--conns", &calls.to_string()]);
        command.args(["--warmup", &warmup.to_string(), "--secs", &secs.to_string()]);
        LoadFigures::parse(&workspace::output(&mut command)?)
    }
}

impl Drop for WorkerServer {
    fn drop(&mut self) {
        // A graceful stop also stops the worker and deletes its files.
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        if told.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
