//! Starts scripted workers for the other tests.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bindpost_azure_functions::datum::Datum;
use bindpost_azure_functions::function::{Function, FunctionSource, ToolTrigger, Trigger};
use bindpost_azure_functions::invocation::{Invocation, InvocationOutcome};
use bindpost_azure_functions::worker::*;

use super::worker_scripted::{SCRIPT, Script, Step};

pub(crate) const BOTH: [Framing; 2] = [Framing::Grpc, Framing::Frames];
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The events of the workers besides answers.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl WorkerEvents for Heard {
    fn worker_started(&self, worker: WorkerNumber, about: &WorkerDetails) {
        self.add(format!("started {worker}: {}", about.runtime));
    }
    fn worker_exited(&self, worker: WorkerNumber, reason: &str) {
        self.add(format!("exited {worker}: {reason}"));
    }
    fn worker_restarting(&self, reason: &str, delay: Duration) {
        self.add(format!("restarting in {delay:?}: {reason}"));
    }
    fn workers_failed(&self, reason: &str) {
        self.add(format!("failed: {reason}"));
    }
    fn console(&self, _: WorkerNumber, line: ConsoleLine<'_>) {
        if !line.text.starts_with("xxx") {
            self.add(format!("{:?} {}: {}", line.from, if line.stderr { "err" } else { "out" }, line.text));
        }
    }
    fn log(&self, _: WorkerNumber, log: LogRecord) {
        self.add(format!("log: {}", log.message));
    }
    fn dropped(&self, _: WorkerNumber, lines: u64) {
        self.add(format!("dropped {lines}"));
    }
}

/// A folder for one test, deleted after it.
pub(crate) struct Scratch {
    folder: PrivateFolder,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { folder: PrivateFolder::create().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn notes(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns the ids of the processes, in the order of their starts.
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.notes("starts").iter().map(|pid| pid.parse().unwrap()).collect()
    }
}

pub(crate) fn script(functions: &[(&str, &[Step])]) -> Script {
    Script {
        functions: functions.iter().map(|(name, steps)| ((*name).to_owned(), steps.to_vec())).collect(),
        capabilities: ["WorkerStatus", "HandlesWorkerTerminateMessage", "HandlesInvocationCancelMessage"]
            .map(|name| (name.to_owned(), "true".to_owned()))
            .into(),
        ..Script::default()
    }
}

pub(crate) fn launch(framing: Framing, scratch: &Scratch, mut script: Script) -> WorkerLaunch {
    script.notes = scratch.path();
    WorkerLaunch {
        has_unix_sockets: true,
        launcher: Vec::new(),
        program: std::env::current_exe().unwrap().into(),
        arguments: ["--exact", "--nocapture", "--test-threads=1", "--"].map(Into::into).to_vec(),
        worker_path: Some("worker_scripted::process".into()),
        framing,
        app_directory: scratch.path(),
        worker_directory: scratch.path(),
        environment: vec![(SCRIPT.into(), serde_json::to_string(&script).unwrap().into())],
        language: "scripted".into(),
        runtime_version: None,
        host_version: "4.1037.0".into(),
        indexes: true,
        processes: 1,
        folder: None,
    }
}

/// Returns short limits, so that tests of faults are fast.
pub(crate) fn quick() -> WorkerLimits {
    WorkerLimits {
        terminate: Duration::from_secs(2),
        sigterm: Duration::from_millis(500),
        cancel_grace: Duration::from_millis(500),
        start_spacing: Duration::from_millis(50),
        restart_delay: Duration::from_millis(100),
        restart_delay_max: Duration::from_millis(200),
        ..WorkerLimits::default()
    }
}

/// Running workers and their functions.
pub(crate) struct Running {
    pub(crate) workers: Arc<WorkerPool>,
    pub(crate) functions: Vec<Arc<Function>>,
    pub(crate) loaded: LoadResults,
    pub(crate) heard: Arc<Heard>,
    pub(crate) scratch: Scratch,
}

pub(crate) async fn start(framing: Framing, script: Script) -> Running {
    start_with(framing, script, quick(), 1).await
}

pub(crate) async fn start_with(
    framing: Framing,
    script: Script,
    limits: WorkerLimits,
    processes: usize,
) -> Running {
    let scratch = Scratch::new();
    let launch = WorkerLaunch { processes, ..launch(framing, &scratch, script) };
    let heard = Arc::new(Heard::default());
    let (workers, indexing) = WorkerPool::start(launch, limits, heard.clone()).await.unwrap();
    let functions = functions(&indexing);
    let loaded = workers.load(functions.clone()).await.unwrap();
    let running = Running { workers: Arc::new(workers), functions, loaded, heard, scratch };
    until("all processes serve", || running.workers.worker_details().len() == processes).await;
    running
}

/// Returns the functions that a worker found, as the host would build them.
pub(crate) fn functions(indexing: &IndexingResult) -> Vec<Arc<Function>> {
    let IndexingResult::Functions(indexed) = indexing else { panic!("{indexing:?}") };
    let source = |it: &IndexedFunction| FunctionSource {
        directory: it.directory.clone(),
        script_file: it.script_file.clone(),
        entry_point: it.entry_point.clone(),
        language: it.language.clone(),
        properties: it.properties.clone(),
        bindings: Vec::new(),
    };
    indexed.iter().map(|it| function(&it.name, &it.id, source(it))).collect()
}

/// Returns a function for which only the data for workers matters.
pub(crate) fn function(name: &str, id: &str, source: FunctionSource) -> Arc<Function> {
    let tool = serde_json::json!({"name": name, "inputSchema": {"type": "object"}});
    Arc::new(Function {
        name: name.into(),
        id: id.into(),
        trigger: Trigger::Tool(ToolTrigger {
            parameter: "context".into(),
            tool: serde_json::from_value(tool).unwrap(),
            required: Vec::new(),
            uses_result_schema: false,
            task_support: None,
        }),
        inputs: Vec::new(),
        outputs: Vec::new(),
        source,
        warnings: Vec::new(),
    })
}

impl Running {
    pub(crate) fn invocation(&self, function: &str, input: &str) -> Invocation {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let function = self.functions.iter().find(|it| it.name == function).unwrap();
        Invocation {
            id: NEXT.fetch_add(1, Ordering::Relaxed).to_string().into(),
            function: Arc::clone(function),
            inputs: vec![("context".into(), Datum::Text(input.into()))],
            metadata: Vec::new(),
            trace_parent: None,
            trace_state: None,
            stream: None,
        }
    }

    pub(crate) async fn invoke(
        &self,
        function: &str,
        input: &str,
    ) -> Result<InvocationOutcome, InvocationError> {
        self.workers.invoke(self.invocation(function, input), LONG, |_| {}).await
    }

    pub(crate) async fn text(&self, function: &str, input: &str) -> String {
        match self.invoke(function, input).await {
            Ok(InvocationOutcome { returned: Datum::Text(text), .. }) => text,
            other => panic!("{function}: {other:?}"),
        }
    }

    /// Starts an invocation in the background.
    pub(crate) fn spawn(
        &self,
        function: &str,
        input: &str,
        timeout: Duration,
    ) -> tokio::task::JoinHandle<Result<InvocationOutcome, InvocationError>> {
        let (workers, invocation) = (Arc::clone(&self.workers), self.invocation(function, input));
        tokio::spawn(async move { workers.invoke(invocation, timeout, |_| {}).await })
    }
}

/// Waits until the condition holds. Fails after a long time.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LONG, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Stops a process, and waits until all its threads are stopped.
pub(crate) async fn stop(pid: i32) {
    signal(pid, rustix::process::Signal::STOP);
    until("it is stopped", || state(pid) == Some('T')).await;
}

pub(crate) fn is_alive(pid: i32) -> bool {
    // A zombie has exited and only waits to be reaped.
    state(pid).is_some_and(|state| state != 'Z')
}

fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
