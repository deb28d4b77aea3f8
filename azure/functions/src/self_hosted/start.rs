//! Prepares a self-hosted app, starts its server, and describes it for the start screen.

use std::ffi::OsString;
use std::sync::Arc;

use tokio::sync::watch;

use super::discovery::ServerDiscovery;
use crate::app::{App, CustomHandlerConfig};
use crate::custom_handler::{HandlerLaunch, HandlerStartError, HandlerSupervisor, sockets};
use crate::error::HostError;
use crate::host::HostOptions;
use crate::host::console::EventLogger;
use crate::host::file_watch::{FileWatcher, WatchAdditions};
use crate::host::report::{AppReport, AppWarning, WorkerKind, WorkerRow};
use crate::problem::{AppError, Problem};
use crate::setup::{self, PreparedServer, ServerCommand, SetupOptions, SetupProgress};
use crate::worker::WorkerLimits;

/// What the program is, for messages.
const WHAT: &str = "the server of the app";

/// A self-hosted app that is ready to start.
pub(super) struct PreparedStart {
    prepared: PreparedServer,
    launch: HandlerLaunch,
}

/// Rejects options and folders that do not go with a self-hosted app.
pub(super) fn check(app: &App, options: &HostOptions) -> Result<(), AppError> {
    if let Some(count) = options.processes.filter(|count| *count > 1) {
        let problem = Problem::new(format!(
            "--processes {count} is not possible: the app is a server of its own, with one process"
        ));
        return Err(problem.fix("remove --processes").into());
    }
    let names = app.function_names();
    if let Some(first) = names.first() {
        let message = format!(
            "requests are forwarded to a server, but the app also has functions: {first}/function.json"
        );
        let fix = "delete the folders with a function.json, or remove configurationProfile and customHandler.http.routes";
        return Err(Problem::new(message).in_file("host.json").fix(fix).into());
    }
    Ok(())
}

/// Installs and builds what is missing, and finds the program.
pub(super) async fn prepare(
    app: &App,
    options: &HostOptions,
    progress: &dyn SetupProgress,
) -> Result<PreparedStart, HostError> {
    let handler = app.self_hosted().ok_or(HostError::NoHandler)?;
    let environment = |name: &str| app.settings.get(name).map(OsString::from);
    let setup = SetupOptions { install: options.install, ..SetupOptions::new(&environment) };
    let command = ServerCommand {
        program: &handler.default_executable_path,
        arguments: handler.all_arguments().collect(),
        directory: handler.directory(&app.folder),
    };
    let prepared = setup::prepare_server(&app.folder, &command, &setup, progress).await?;
    let launch = launch(app, handler, options, &prepared);
    Ok(PreparedStart { prepared, launch })
}

fn launch(
    app: &App,
    handler: &CustomHandlerConfig,
    options: &HostOptions,
    prepared: &PreparedServer,
) -> HandlerLaunch {
    let mut environment: Vec<(OsString, OsString)> =
        app.settings.iter().map(|(name, value)| (name.into(), value.into())).collect();
    environment.extend(prepared.environment.iter().map(|(name, value)| (name.into(), value.clone())));
    HandlerLaunch {
        what: WHAT,
        launcher: options.launcher.clone(),
        program: prepared.program.clone().into(),
        arguments: handler.all_arguments().map(OsString::from).collect(),
        directory: handler.directory(&app.folder),
        app: app.folder.clone(),
        environment,
        port: handler.port,
        // With a fixed port the platform sets it neither, and the server may have its own reason for another one.
        port_variable: handler.port.is_none().then_some("PORT"),
        patience: handler.initialization_timeout,
    }
}

impl PreparedStart {
    /// Starts the server, and waits until it listens.
    pub(super) async fn start(
        &self,
        app: &App,
        failed: &watch::Sender<Option<String>>,
    ) -> Result<HandlerSupervisor, HandlerStartError> {
        let events = Arc::new(EventLogger::new(failed.clone(), app.host.log_levels.clone()));
        HandlerSupervisor::start(self.launch.clone(), WorkerLimits::default(), events).await
    }

    /// Watches the files of the app, and those that the command names.
    pub(super) fn watcher(&self, app: &App) -> FileWatcher {
        let files = self.prepared.files.clone();
        FileWatcher::new(&app.folder, WatchAdditions { files, packaged: None }, &app.read_first)
    }

    /// Returns the problems that do not prevent the start.
    pub(super) fn warnings(&self, app: &App, supervisor: &HandlerSupervisor) -> Vec<AppWarning> {
        let mut warnings: Vec<AppWarning> = app.host.warnings.iter().map(AppWarning::from).collect();
        warnings.extend(
            self.prepared
                .notices
                .iter()
                .map(|notice| AppWarning { message: notice.message.clone(), fix: notice.fix.clone() }),
        );
        let port = supervisor.serving().map(|process| process.address().port());
        if let Some(address) = port.and_then(sockets::exposed_address) {
            let message = format!(
                "the server also listens on {address}: other machines reach it there without a key, not through bindpost"
            );
            warnings.push(AppWarning::new(message).fix("make it listen on 127.0.0.1 only"));
        }
        warnings
    }

    /// Describes the app for the start screen.
    pub(super) fn report(
        &self,
        app: &App,
        supervisor: &HandlerSupervisor,
        found: &ServerDiscovery,
    ) -> AppReport {
        let command = [&self.launch.program].into_iter().chain(&self.launch.arguments);
        let command: Vec<String> = command.map(|word| word.to_string_lossy().into_owned()).collect();
        let mut report = AppReport {
            app: app.folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            runtime: app.runtime.as_str().to_owned(),
            worker: WorkerRow { kind: WorkerKind::SelfHosted, place: Some(command.join(" ")) },
            interpreter: self.prepared.interpreter_origin.clone(),
            server: Some(found.server.clone()),
            tools: found.tools.clone(),
            warnings: self.warnings(app, supervisor),
            ..AppReport::default()
        };
        if found.has_sessions {
            report.notices.push(super::discovery::SESSIONS_NOTICE.to_owned());
        }
        report
    }
}
