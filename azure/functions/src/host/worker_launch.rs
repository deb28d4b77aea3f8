//! How the processes of an app are started: those of a public worker, of a built-in one, or of a custom handler.

use std::ffi::OsString;
use std::path::Path;

use crate::app::{App, CustomHandlerConfig as HandlerConfig, WorkerConfig, WorkerRuntime};
use crate::custom_handler::HandlerLaunch;
use crate::error::HostError;
use crate::host::HostOptions;
use crate::setup::{JavaWorkerClasses, PreparedApp};
use crate::worker::{BundledWorker, Framing, WorkerLaunch};

/// The version that the Functions host reports. Public workers check it.
pub(crate) const HOST_VERSION: &str = "4.1037.0";
/// The setting with the number of worker processes.
const PROCESS_COUNT: &str = "FUNCTIONS_WORKER_PROCESS_COUNT";
/// Flags of the Java virtual machine that make it start faster, and that all apps on the platform have.
const JAVA_FLAGS: [&str; 3] =
    ["-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", "-Dfile.encoding=UTF-8"];
const JAVA_MAIN_CLASS: &str = "bindpost.worker.Main";
/// The first version of Java with unix sockets.
const JAVA_UNIX_SOCKETS: u32 = 16;

/// Returns how the workers of an app are started.
pub(super) fn launch(
    app: &App,
    options: &HostOptions,
    prepared: &PreparedApp,
    worker_config: Option<&WorkerConfig>,
) -> Result<WorkerLaunch, HostError> {
    let mut environment: Vec<(OsString, OsString)> =
        app.settings.iter().map(|(name, value)| (name.into(), value.into())).collect();
    environment.extend(prepared.environment.iter().map(|(name, value)| (name.into(), value.clone())));
    let from_settings = app.settings.get(PROCESS_COUNT).and_then(|count| count.trim().parse().ok());
    let processes = options.processes.or(from_settings).unwrap_or(1);
    let interpreter = prepared.interpreter.as_ref();
    let common = WorkerLaunch {
        launcher: options.launcher.clone(),
        program: interpreter.map(|found| found.path.clone().into()).unwrap_or_default(),
        arguments: Vec::new(),
        worker_path: None,
        framing: Framing::Grpc,
        has_unix_sockets: true,
        app_directory: app.folder.clone(),
        worker_directory: app.folder.clone(),
        environment,
        language: app.runtime.as_str().to_owned(),
        runtime_version: interpreter.map(|found| found.version.clone()),
        host_version: HOST_VERSION.to_owned(),
        indexes: true,
        processes,
        folder: None,
    };
    if let Some(config) = worker_config {
        return Ok(WorkerLaunch {
            program: match interpreter {
                // A worker may bring a Java of its own, or name one for a version.
                Some(_) if app.runtime == WorkerRuntime::Java && names_java(app, config) => {
                    config.executable.clone().into()
                }
                // The app's own virtual environment has the app's packages.
                Some(found) => found.path.clone().into(),
                None => config.executable.clone().into(),
            },
            arguments: config.arguments.iter().map(OsString::from).collect(),
            worker_path: config.worker_path.clone(),
            worker_directory: config.directory.clone(),
            indexes: config.worker_indexing,
            runtime_version: config.runtime_version.clone(),
            ..common
        });
    }
    if let Some(worker) = &prepared.java_worker {
        return Ok(java_launch(app, prepared, worker, common));
    }
    let own = match &app.runtime {
        WorkerRuntime::Python => BundledWorker::Python,
        WorkerRuntime::Node => BundledWorker::Node,
        other => return Err(HostError::NoWorker { language: other.as_str().to_owned() }),
    };
    let unpacked = own.unpack().map_err(HostError::Unpack)?;
    Ok(WorkerLaunch {
        worker_path: Some(unpacked.entry),
        framing: Framing::Frames,
        worker_directory: unpacked.folder.path().to_owned(),
        folder: Some(unpacked.folder),
        ..common
    })
}

/// Returns whether a public worker names a Java that is not simply that of the machine.
fn names_java(app: &App, config: &WorkerConfig) -> bool {
    let executable = Path::new(&config.executable);
    let in_home = app.settings.get("JAVA_HOME").map(|home| Path::new(home).join("bin").join("java"));
    executable.is_absolute() && executable.is_file() && in_home.is_none_or(|in_home| executable != in_home)
}

/// Returns how our own Java worker is started.
fn java_launch(
    app: &App,
    prepared: &PreparedApp,
    worker: &JavaWorkerClasses,
    common: WorkerLaunch,
) -> WorkerLaunch {
    let classes = worker.worker();
    let mut arguments: Vec<OsString> = JAVA_FLAGS.map(OsString::from).to_vec();
    arguments.extend(app.java_arguments().into_iter().map(OsString::from));
    arguments.extend(["-cp".into(), classes.clone().into_os_string(), JAVA_MAIN_CLASS.into()]);
    let mut environment = common.environment;
    environment.push(("BINDPOST_JAVA_API".into(), worker.api().into()));
    environment.push(("BINDPOST_JAVA_GSON".into(), worker.gson().into()));
    WorkerLaunch {
        arguments,
        framing: Framing::Frames,
        has_unix_sockets: prepared.interpreter.as_ref().is_none_or(|java| java.major() >= JAVA_UNIX_SOCKETS),
        worker_directory: classes,
        environment,
        indexes: false,
        folder: worker.private_folder(),
        ..common
    }
}

/// Returns how a custom handler is started.
pub(super) fn handler_launch(app: &App, handler: &HandlerConfig, options: &HostOptions) -> HandlerLaunch {
    HandlerLaunch {
        what: "the custom handler",
        launcher: options.launcher.clone(),
        program: handler.program(&app.folder).into(),
        arguments: handler.all_arguments().map(OsString::from).collect(),
        directory: handler.directory(&app.folder),
        app: app.folder.clone(),
        environment: app.settings.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        port: handler.port,
        port_variable: None,
        patience: handler.initialization_timeout,
    }
}
