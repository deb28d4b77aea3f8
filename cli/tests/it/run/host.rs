//! `bindpost run` as a child process.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::ops::Deref;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::app::App;
use super::client::Client;
use super::{PATIENCE, eventually};

/// Returns the command `bindpost run` for an app, without environment variables of other apps.
pub(crate) fn command(app: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindpost"));
    command.arg("run").arg(app.as_ref()).stdin(Stdio::null());
    for name in
        ["FUNCTIONS_WORKER_RUNTIME", "FUNCTIONS_WORKER_PROCESS_COUNT", "AzureWebJobsStorage", "RUST_LOG"]
    {
        command.env_remove(name);
    }
    command
}

/// Runs the program. It must end soon.
pub(crate) fn run_to_end(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bindpost runs");
    let pid = child.id();
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(PATIENCE) {
        Ok(output) => output.expect("its output"),
        Err(_) => {
            signal(i32::try_from(pid).expect("a pid"), Signal::KILL);
            panic!("it did not end within {PATIENCE:?}");
        }
    }
}

/// An app that is served. It dereferences to a client of the app.
pub(crate) struct Host {
    child: Child,
    /// The line of JSON that the host prints when it is ready.
    pub(crate) ready: Value,
    said: Arc<Mutex<String>>,
    client: Client,
}

impl Deref for Host {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Host {
    /// Starts an app on a free port and waits until it is ready.
    pub(crate) fn start(app: &App, arguments: &[&str]) -> Host {
        Host::start_with(command(app.path()).args(["--port", "0"]).args(arguments))
    }

    pub(crate) fn start_with(command: &mut Command) -> Host {
        let command = command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("bindpost runs");
        let said = Arc::new(Mutex::new(String::new()));
        let (stderr, heard) = (BufReader::new(child.stderr.take().expect("piped")), said.clone());
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut said = heard.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&line);
                said.push('\n');
            }
        });
        let (mut stdout, (sender, first)) =
            (BufReader::new(child.stdout.take().expect("piped")), mpsc::channel());
        thread::spawn(move || {
            let mut line = String::new();
            let _ = stdout.read_line(&mut line);
            let _ = sender.send(line);
        });
        let mut host = Host { child, ready: Value::Null, said, client: Client { address: String::new() } };
        // A host that does not start prints nothing on stdout. Its error is on stderr.
        let line = first.recv_timeout(PATIENCE).unwrap_or_default();
        host.ready =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line}{}", host.said()));
        let address = host.ready["mcp"].as_str().expect("an address").trim_start_matches("http://");
        let port = address.split('/').next().and_then(|address| address.rsplit(':').next()).expect("a port");
        host.client = Client { address: format!("127.0.0.1:{port}") };
        host
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Returns its stderr so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn wait_until_it_says(&self, text: &str) {
        eventually(PATIENCE, text, || self.said().contains(text).then_some(()));
    }

    pub(crate) fn signal(&self, what: Signal) {
        signal(self.pid(), what);
    }

    /// Waits for the end of the host.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> ExitStatus {
        eventually(limit, "the end of the host", || self.child.try_wait().expect("it is ours"))
    }

    /// Waits until a process other than these runs functions.
    pub(crate) fn worker_besides(&self, pids: &[i32], limit: Duration) -> i32 {
        let other = || self.worker().filter(|pid| !pids.contains(pid));
        eventually(limit, "another worker", other)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // After two signals the host ends at once. Unlike a killed host it deletes its temporary files.
        for what in [Signal::TERM, Signal::INT] {
            if matches!(self.child.try_wait(), Ok(None)) {
                self.signal(what);
            }
        }
        let deadline = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("stderr of the host:\n{}", self.said());
        }
    }
}

/// Sends a signal to a process that this test or its host started.
pub(crate) fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a pid");
    // The process may have ended already. The test detects that.
    let _ = kill_process(pid, signal);
}

/// Returns whether a process runs. A zombie does not run.
pub(crate) fn is_running(pid: i32) -> bool {
    if cfg!(target_os = "linux") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The line is `123 (name) S …`, and the name may contain any character.
        return stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']));
    }
    rustix::process::test_kill_process(Pid::from_raw(pid).expect("a pid")).is_ok()
}

/// Fails if the process still runs after the time limit.
pub(crate) fn must_end_within(pid: i32, limit: Duration) {
    eventually(limit, &format!("the end of process {pid}"), || (!is_running(pid)).then_some(()));
}
