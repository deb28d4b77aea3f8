//! Serves function apps, each by a host in this process.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bindpost_azure_functions::app::App;
use bindpost_azure_functions::setup::SetupProgress;
use bindpost_azure_functions::{AccessPolicy, AppReport, Host, HostOptions, KeyRequirement};
use bindpost_mcp_http::bind;
use bindpost_mcp_http::listener::{Drain, DrainTrigger};

use crate::client::{Client, Way};
use crate::packages;
use crate::scratch::Scratch;

/// The libraries that the fixture apps and the examples use.
const PYTHON_LIBRARY: &str = "1.25.0";
const NODE_LIBRARY: &str = "4.16.5";

/// The language of a fixture app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Node,
    Java,
}

/// An app that is about to be served: a copy of its folder, and its environment.
pub(crate) struct Launch {
    folder: Scratch,
    environment: Vec<(String, String)>,
    options: HostOptions,
    door: AccessPolicy,
}

/// A running app. It stops when this is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) report: AppReport,
    folder: Arc<Scratch>,
    end: DrainTrigger,
    thread: Option<JoinHandle<()>>,
}

impl Language {
    /// Returns the fixture app in this language, not served yet.
    pub(crate) fn launch(self) -> Launch {
        match self {
            Language::Python => Launch::copy_of("tests/apps/python").python(PYTHON_LIBRARY),
            Language::Node => Launch::copy_of("tests/apps/node").node(NODE_LIBRARY),
            Language::Java => Launch::packaged("tests/apps/java"),
        }
    }

    /// Returns the fixture app, served for all tests that run at the same time.
    pub(crate) fn shared(self) -> Arc<Served> {
        static PYTHON: Mutex<Weak<Served>> = Mutex::new(Weak::new());
        static NODE: Mutex<Weak<Served>> = Mutex::new(Weak::new());
        static JAVA: Mutex<Weak<Served>> = Mutex::new(Weak::new());
        let shared = match self {
            Language::Python => &PYTHON,
            Language::Node => &NODE,
            Language::Java => &JAVA,
        };
        let mut shared = shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        shared.upgrade().unwrap_or_else(|| {
            let served = Arc::new(self.launch().serve());
            *shared = Arc::downgrade(&served);
            served
        })
    }
}

impl Launch {
    /// Copies a folder. The path is relative to this crate's folder.
    pub(crate) fn copy_of(app: &str) -> Launch {
        let launch = Launch::of_files(&[]);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(app), launch.folder.path());
        launch
    }

    /// Packages a project of Maven and copies the packaged app. The path is relative to this crate's folder.
    pub(crate) fn packaged(app: &str) -> Launch {
        let launch = Launch::of_files(&[]).java();
        copy(&packages::maven(app), launch.folder.path());
        launch
    }

    /// Creates a folder with these files.
    pub(crate) fn of_files(files: &[(&str, &str)]) -> Launch {
        let path = std::env::var("PATH").unwrap();
        let launch = Launch {
            folder: Scratch::new(),
            environment: vec![("PATH".to_owned(), path)],
            options: HostOptions { install: false, ..HostOptions::default() },
            door: AccessPolicy::default(),
        };
        files.iter().fold(launch, |launch, (name, text)| launch.file(name, text))
    }

    /// Runs it with this version of `azure-functions`.
    pub(crate) fn python(self, version: &str) -> Launch {
        self.python_with(&[("azure-functions", version)])
    }

    /// Runs it with these packages from PyPI.
    pub(crate) fn python_with(self, packages: &[(&str, &str)]) -> Launch {
        let python = packages::pip(packages);
        self.setting("languageWorkers__python__defaultExecutablePath", python.to_str().unwrap())
    }

    /// Keeps the compiled worker for other tests. `BINDPOST_TEST_JAVA_WORKERS` names a folder of public workers to test
    /// instead.
    pub(crate) fn java(self) -> Launch {
        let workers = std::env::var_os("BINDPOST_TEST_JAVA_WORKERS").map(PathBuf::from);
        self.setting("XDG_CACHE_HOME", packages::cache().to_str().unwrap())
            .options(|options| options.workers = workers)
    }

    /// Runs it in the virtual environment of this interpreter.
    pub(crate) fn virtual_env(self, python: &Path) -> Launch {
        let folder = python.ancestors().nth(2).unwrap().to_owned();
        self.setting("VIRTUAL_ENV", folder.to_str().unwrap())
    }

    /// Runs it with this version of `@azure/functions`.
    pub(crate) fn node(self, version: &str) -> Launch {
        self.node_with(&[("@azure/functions", version)])
    }

    /// Runs it with these packages from npm.
    pub(crate) fn node_with(self, packages: &[(&str, &str)]) -> Launch {
        symlink(packages::npm_modules(packages), self.folder.path().join("node_modules")).unwrap();
        self
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn setting(mut self, name: &str, value: &str) -> Launch {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a file to the folder.
    pub(crate) fn file(self, name: &str, text: &str) -> Launch {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Copies a file to the folder.
    pub(crate) fn copy(self, file: &Path, name: &str) -> Launch {
        fs::copy(file, self.folder.path().join(name)).unwrap();
        self
    }

    pub(crate) fn options(mut self, change: impl FnOnce(&mut HostOptions)) -> Launch {
        change(&mut self.options);
        self
    }

    pub(crate) fn door(mut self, change: impl FnOnce(&mut AccessPolicy)) -> Launch {
        change(&mut self.door);
        self
    }

    pub(crate) fn with_keys(mut self) -> Launch {
        self.door.keys = KeyRequirement::Always;
        self
    }

    pub(crate) fn trusting_platform(mut self) -> Launch {
        self.door.trusts_platform = true;
        self
    }

    /// Starts a host for it on a separate thread, because it outlives the runtime of the test that starts it.
    pub(crate) fn serve(self) -> Served {
        let Launch { folder, environment, options, door } = self;
        let (tell, told) = mpsc::channel();
        let app = App::open(folder.path(), environment).unwrap_or_else(|error| panic!("{error}"));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            runtime.unwrap().block_on(async {
                let host = Host::start(app, options, &Silent).await;
                let host = host.unwrap_or_else(|error| panic!("the app does not start: {error}"));
                let bound = bind("127.0.0.1:0").await.unwrap();
                let (trigger, drain) = Drain::new();
                tell.send((bound.local_addr(), host.report(), trigger.clone())).unwrap();
                host.serve_until(bound, door, trigger, drain).await.unwrap();
            });
        });
        let (address, report, end) = told.recv().expect("the host starts");
        Served { address, report, folder: Arc::new(folder), end, thread: Some(thread) }
    }
}

impl Launch {
    /// Returns the error with which the app does not start.
    pub(crate) async fn refusal(self) -> String {
        let Launch { folder, environment, options, .. } = self;
        let app = match App::open(folder.path(), environment) {
            Ok(app) => app,
            Err(error) => return error.to_string(),
        };
        match Host::start(app, options, &Silent).await {
            Err(error) => error.to_string(),
            Ok(host) => {
                host.stop().await;
                panic!("the app starts");
            }
        }
    }
}

impl Served {
    /// Returns the path of a file in the app's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Stops the host. Returns the app's folder.
    pub(crate) fn stop(self) -> Arc<Scratch> {
        self.folder.clone()
    }

    pub(crate) async fn client(&self, way: Way) -> Client {
        Client::connect(self.address, way).await
    }

    /// Connects one client for each way to talk to a server.
    pub(crate) async fn clients(&self) -> Vec<Client> {
        self.clients_by(&Way::ALL).await
    }

    pub(crate) async fn clients_by(&self, ways: &[Way]) -> Vec<Client> {
        let mut clients = Vec::new();
        for way in ways {
            clients.push(self.client(*way).await);
        }
        clients
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end.pull();
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            panic!("the host failed");
        }
    }
}

/// Copies the files of an app, but not files that running it has created.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if [".venv", "node_modules", ".bindpost", "__pycache__"].iter().any(|left| name == *left) {
            continue;
        }
        let target = to.join(name);
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

struct Silent;

impl SetupProgress for Silent {
    fn started(&self, _step: &str) {}
    fn output(&self, _line: &str) {}
    fn done(&self, _step: &str, _took: Duration) {}
}
