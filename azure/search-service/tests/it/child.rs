//! A service in its own process, with its own resource limits and its own crash.
//!
//! The process is this test program, which runs only [`the_service_in_a_process_of_its_own`].

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use bindpost_azure_search_service::{SearchService, ServiceOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::server::{Answer, PATIENCE, VERSION};

/// The data folder of the service in the process.
const FOLDER: &str = "SEARCH_SERVICE_OF_A_TEST";
/// The maximum virtual memory of the process, in bytes.
const MEMORY: &str = "SEARCH_SERVICE_MEMORY";
/// The time limit of a request, in milliseconds.
const TIME_LIMIT: &str = "SEARCH_SERVICE_TIME_LIMIT";

pub(crate) struct Child {
    process: std::process::Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    folder: PathBuf,
    keeps_folder: bool,
    port: u16,
    key: String,
    pub(crate) query_key: String,
    pub(crate) client: reqwest::Client,
}

/// Creates a folder for the files of a child process.
pub(crate) fn new_folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("bindpost-search-{:016x}", getrandom::u64().unwrap()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

/// The limits of the process and of its requests.
#[derive(Clone, Copy, Default)]
pub(crate) struct ChildLimits {
    /// The maximum virtual memory of the process, in bytes.
    pub(crate) memory: Option<u64>,
    /// The time limit of a request, if it is not the default.
    pub(crate) time: Option<Duration>,
}

impl Child {
    pub(crate) fn start(limits: ChildLimits) -> Self {
        let mut child = Self::start_in(&new_folder(), limits);
        child.keeps_folder = false;
        child
    }

    /// Starts a service in a folder that is kept when the process ends.
    pub(crate) fn start_in(folder: &Path, limits: ChildLimits) -> Self {
        // A file size limit must give an error and not end the process by a signal. The shell passes this
        // setting on.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "child::the_service_in_a_process_of_its_own", "--nocapture"]);
        command.env(FOLDER, folder).env("MALLOC_ARENA_MAX", "2");
        if let Some(memory) = limits.memory {
            command.env(MEMORY, memory.to_string());
        }
        if let Some(time) = limits.time {
            command.env(TIME_LIMIT, time.as_millis().to_string());
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = process.stdin.take().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let ready = said(&mut stdout, "ready ");
        let ready: Value = serde_json::from_str(&ready).unwrap();
        Self {
            process,
            stdin,
            stdout,
            folder: folder.to_owned(),
            keeps_folder: true,
            port: ready["port"].as_u64().unwrap().try_into().unwrap(),
            key: ready["key"].as_str().unwrap().to_owned(),
            query_key: ready["queryKey"].as_str().unwrap().to_owned(),
            client: bindpost_net_upstream::client_builder().no_proxy().build().unwrap(),
        }
    }

    pub(crate) async fn send(&self, method: &str, target: &str, body: Option<Value>) -> Answer {
        self.try_send(&self.key, method, target, body).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends a request. An error usually means that the service has crashed.
    pub(crate) async fn try_send(
        &self,
        key: &str,
        method: &str,
        target: &str,
        body: Option<Value>,
    ) -> Result<Answer, String> {
        let separator = if target.contains('?') { '&' } else { '?' };
        let target = format!("http://127.0.0.1:{}{target}{separator}{VERSION}", self.port);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = self.client.request(method.parse().unwrap(), target).header("api-key", key).body(body);
        let answered = tokio::time::timeout(PATIENCE * 2, async {
            let response = request.send().await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Ok(Answer { status, headers, text: response.text().await? })
        });
        let answered = answered.await.map_err(|_| "no answer in time".to_owned())?;
        answered.map_err(|error: reqwest::Error| format!("{error:?}"))
    }

    /// Uploads documents in batches of a thousand.
    pub(crate) async fn upload(&self, index: &str, documents: &[Value]) {
        for batch in documents.chunks(1000) {
            let target = format!("/indexes('{index}')/docs/search.index");
            let answer = self.send("POST", &target, Some(json!({ "value": batch }))).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }

    /// Returns the maximum memory that the process has used, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap()
    }

    /// Returns the processor time of the process.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        // The program name is in parentheses and may contain spaces.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    /// Limits the size of files. `None` removes the limit.
    pub(crate) fn limit_files(&mut self, bytes: Option<u64>) {
        let bytes = bytes.map_or("any".to_owned(), |bytes| bytes.to_string());
        writeln!(self.stdin, "{bytes}").unwrap();
        said(&mut self.stdout, "limited");
    }

    /// Returns whether the process has ended, for example because of missing memory.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !self.keeps_folder {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Returns the rest of the first line that contains `start`.
fn said(stdout: &mut BufReader<ChildStdout>, start: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the process ended before it printed {start:?}");
        // The test program may have printed the name of its test on the same line.
        if let Some((_, rest)) = line.split_once(start) {
            return rest.trim().to_owned();
        }
    }
}

fn set_soft_limit(resource: Resource, bytes: Option<u64>) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

/// Not a test. [`Child::start`] runs it. It serves until its input ends.
#[test]
fn the_service_in_a_process_of_its_own() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    if let Ok(memory) = std::env::var(MEMORY) {
        set_soft_limit(Resource::As, Some(memory.parse().unwrap()));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut options = ServiceOptions::new(PathBuf::from(folder));
        if let Ok(time) = std::env::var(TIME_LIMIT) {
            options.limits.time = Duration::from_millis(time.parse().unwrap());
        }
        let service = SearchService::open(options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let keys = service.keys().unwrap();
        let (key, query_key) = (&keys.admin_keys()[0], &keys.query_keys()[0]);
        let ready = json!({"port": listener.local_addr().unwrap().port(), "key": key, "queryKey": query_key});
        writeln!(io::stdout(), "ready {ready}").unwrap();
        let commands = tokio::task::spawn_blocking(|| {
            for line in io::stdin().lines().map_while(Result::ok) {
                set_soft_limit(Resource::Fsize, line.parse().ok());
                writeln!(io::stdout(), "limited").unwrap();
            }
        });
        let until = async {
            let _ = commands.await;
        };
        service.serve(listener, until).await.unwrap();
    });
}
