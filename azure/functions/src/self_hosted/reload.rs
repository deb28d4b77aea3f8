//! [`ServerReloader`]: applies changes to the files of a self-hosted app.

use std::sync::Arc;
use std::time::Instant;

use super::router::ServerRouter;
use super::{RunningServer, SelfHostedState, ServerState, start};
use crate::app::App;
use crate::error::HostError;
use crate::host::changes::{ProgressLogger, wait_for_change};
use crate::host::file_watch::FileWatcher;
use crate::problem::Problem;

/// Starts the server again when files of the app change.
pub(super) struct ServerReloader {
    shared: Arc<SelfHostedState>,
    router: Arc<ServerRouter>,
}

impl ServerReloader {
    pub(super) fn new(shared: Arc<SelfHostedState>, router: Arc<ServerRouter>) -> ServerReloader {
        ServerReloader { shared, router }
    }

    /// Applies every change from now on. Never returns.
    pub(super) async fn follow_changes(self, mut watch: FileWatcher) {
        loop {
            let files = wait_for_change(&mut watch).await;
            let begin = Instant::now();
            match self.apply_change(&mut watch).await {
                Ok(()) => {
                    let ms = begin.elapsed().as_millis();
                    tracing::info!(target: "host", "{files} changed: started again in {ms} ms");
                }
                Err(error) => tracing::error!(target: "host", "{files} changed, but {error}"),
            }
        }
    }

    async fn apply_change(&self, watch: &mut FileWatcher) -> Result<(), ServerReloadError> {
        const KEEPS: &str = "the previous server keeps running";
        let shared = &self.shared;
        let keeps = |error: HostError| ServerReloadError { what: KEEPS, error };
        let app = App::open(&shared.app.folder, shared.app.settings.environment());
        let app = app.map_err(|error| keeps(error.into()))?;
        if app.self_hosted().is_none() {
            let problem = Problem::new("the app is no longer a server of its own").in_file("host.json");
            let problem = problem.fix("restart bindpost to apply the change");
            return Err(keeps(HostError::App(problem.into())));
        }
        start::check(&app, &shared.options).map_err(|error| keeps(error.into()))?;
        // Keys and origins do not wait for the server, and apply even if its code is broken.
        self.router.replace_rules(&app).map_err(|error| keeps(error.into()))?;
        let prepared = start::prepare(&app, &shared.options, &ProgressLogger).await.map_err(keeps)?;
        *watch = prepared.watcher(&app);
        // Two servers cannot listen on one port, and both might write the same files: the old one stops first.
        if let ServerState::Running(old) =
            shared.replace(ServerState::Stopped("its files have changed, and it is being started again"))
        {
            old.supervisor.stop().await;
        }
        match prepared.start(&app, &shared.failed).await {
            Ok(supervisor) => {
                for warning in prepared.warnings(&app, &supervisor) {
                    tracing::warn!(target: "host", "{}", warning.message);
                }
                shared.replace(ServerState::Running(Arc::new(RunningServer::new(supervisor))));
                Ok(())
            }
            Err(error) => {
                shared.replace(ServerState::Stopped(error.brief()));
                Err(ServerReloadError {
                    what: "the server does not run until the next change",
                    error: error.into(),
                })
            }
        }
    }
}

/// The reason why a change is not served.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
struct ServerReloadError {
    /// What runs instead.
    what: &'static str,
    error: HostError,
}
