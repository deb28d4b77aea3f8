//! Prepares apps with the machine's real Python, pip, Node and npm, and with stubs on a private PATH where a
//! version, a failure or a choice matters.

mod interrupted;
mod java;
mod java_projects;
mod java_worker;
mod node;
mod packages;
mod python;
mod python_versions;
mod server;
mod virtual_env;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindpost_azure_functions::setup::{
    PreparedApp, SetupError, SetupOptions, SetupProgress, WorkerRuntime, prepare,
};

/// A folder of a test, deleted after it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // The space tests the quoting of paths.
        let path = std::env::temp_dir().join(format!("bindpost setup {}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a program. Another process copies it: a file that this process had open for writing may still
    /// be open in a child that another test just started, and then it cannot be executed.
    fn stub(&self, name: &str, script: &str) -> PathBuf {
        let source = self.write(&format!("{name}.source"), &format!("#!/bin/sh\n{script}\n"));
        let path = self.path(name);
        run("cp", &[source.as_ref(), path.as_ref()]);
        run("chmod", &["755".as_ref(), path.as_ref()]);
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(program: &str, arguments: &[&Path]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

async fn until_exists(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Records the progress.
#[derive(Default)]
struct Kept {
    started: Mutex<Vec<String>>,
    output: Mutex<Vec<String>>,
    done: Mutex<Vec<String>>,
}

impl SetupProgress for Kept {
    fn started(&self, step: &str) {
        self.started.lock().unwrap().push(step.to_owned());
    }
    fn output(&self, line: &str) {
        self.output.lock().unwrap().push(line.to_owned());
    }
    fn done(&self, step: &str, _took: Duration) {
        self.done.lock().unwrap().push(step.to_owned());
    }
}

/// One call of `prepare`, with an environment that has only a PATH.
struct Preparation {
    runtime: WorkerRuntime,
    app: PathBuf,
    install: bool,
    executable: Option<PathBuf>,
    built_in_worker: bool,
    java_folders: Vec<PathBuf>,
    time_limit: Duration,
    environment: Vec<(&'static str, OsString)>,
}

struct Outcome {
    result: Result<PreparedApp, SetupError>,
    /// The steps that completed.
    steps: Vec<String>,
    started: Vec<String>,
    output: Vec<String>,
}

impl Preparation {
    fn of(runtime: WorkerRuntime, app: &Folder) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        let (install, executable, time_limit) = (true, None, Duration::from_secs(300));
        Self {
            runtime,
            app: app.0.clone(),
            install,
            executable,
            built_in_worker: true,
            java_folders: Vec::new(),
            time_limit,
            environment: vec![("PATH", path)],
        }
    }

    fn no_install(mut self) -> Self {
        self.install = false;
        self
    }

    fn executable(mut self, path: impl Into<PathBuf>) -> Self {
        self.executable = Some(path.into());
        self
    }

    /// Prepares the app for a public worker.
    fn public_worker(mut self) -> Self {
        self.built_in_worker = false;
        self
    }

    /// Sets the folder with installations of Java, instead of those of the system.
    fn java_folder(mut self, folder: PathBuf) -> Self {
        self.java_folders.push(folder);
        self
    }

    fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
        self
    }

    fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    async fn run(self) -> Outcome {
        let kept = Kept::default();
        let lookup = |name: &str| {
            self.environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        let mut options = SetupOptions::new(&lookup);
        options.install = self.install;
        options.executable = self.executable.clone();
        options.built_in_worker = self.built_in_worker;
        options.java_folders = self.java_folders.clone();
        options.time_limit = self.time_limit;
        let result = prepare(self.runtime, &self.app, &options, &kept).await;
        let [steps, started, output] =
            [kept.done, kept.started, kept.output].map(|lines| lines.into_inner().unwrap());
        Outcome { result, steps, started, output }
    }

    /// Runs and expects success, of every step.
    async fn ready(self) -> (PreparedApp, Vec<String>) {
        let outcome = self.run().await;
        match outcome.result {
            Ok(prepared) => {
                assert_eq!(outcome.started, outcome.steps);
                (prepared, outcome.steps)
            }
            Err(error) => panic!("{error}\nfix: {:?}", error.fix()),
        }
    }

    /// Runs and expects an error. Returns it with its fix.
    async fn refused(self) -> (SetupError, String) {
        let error = self.run().await.result.unwrap_err();
        let fix = error.fix().unwrap_or_default().into_owned();
        (error, fix)
    }
}

fn variable<'a>(prepared: &'a PreparedApp, name: &str) -> Option<&'a OsString> {
    prepared.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

#[tokio::test]
async fn a_custom_handler_needs_nothing() {
    let app = Folder::new();
    let (prepared, steps) = Preparation::of(WorkerRuntime::Custom, &app).variable("PATH", "").ready().await;
    assert!(prepared.interpreter.is_none() && prepared.environment.is_empty() && steps.is_empty());
}

#[test]
fn an_app_can_be_prepared_on_any_thread() {
    fn is_send(_: impl Send) {}
    let options = SetupOptions::new(&|_| None);
    assert_eq!(options.time_limit, Duration::from_secs(900));
    is_send(prepare(WorkerRuntime::Python, Path::new("app"), &options, &Kept::default()));
}
