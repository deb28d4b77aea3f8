//! [`Host`]: runs an app, with functions or self-hosted.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use bindpost_mcp_http::BoundListener;
use bindpost_mcp_http::listener::{Drain, DrainTrigger, drain_on_signal};

use super::access::AccessPolicy;
use super::report::AppReport;
use super::{FunctionsHost, HostOptions};
use crate::app::App;
use crate::error::HostError;
use crate::self_hosted::SelfHostedApp;
use crate::setup::SetupProgress;

/// A running app.
#[derive(Debug)]
pub struct Host(AppHost);

enum AppHost {
    /// An app with functions, which this host serves.
    Functions(Box<FunctionsHost>),
    /// An app that is a server of its own, to which this host forwards requests.
    SelfHosted(Box<SelfHostedApp>),
}

impl std::fmt::Debug for AppHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AppHost::Functions(host) => host.fmt(f),
            AppHost::SelfHosted(_) => f.write_str("SelfHosted"),
        }
    }
}

impl Host {
    /// Prepares the app and starts its workers or its server. Discovers what it offers.
    pub async fn start(
        app: App,
        options: HostOptions,
        progress: &dyn SetupProgress,
    ) -> Result<Host, HostError> {
        Ok(Host(match app.self_hosted() {
            None => AppHost::Functions(Box::new(FunctionsHost::start(app, options, progress).await?)),
            Some(_) => AppHost::SelfHosted(Box::new(SelfHostedApp::start(app, options, progress).await?)),
        }))
    }

    /// Returns what the app offers and which problems it has.
    pub fn report(&self) -> AppReport {
        match &self.0 {
            AppHost::Functions(host) => host.report(),
            AppHost::SelfHosted(app) => app.report(),
        }
    }

    /// Serves HTTP until SIGTERM or SIGINT, and then until every accepted call is answered. A second signal
    /// stops the host at once. `ready` is called when the keys exist, if they are required, and the signal
    /// handlers are installed.
    pub async fn serve(
        self,
        bound: BoundListener,
        door: AccessPolicy,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), HostError> {
        match self.0 {
            AppHost::Functions(host) => {
                let endpoint = host.endpoint(&door)?;
                let serve = |trigger, drain| host.serve_endpoint(bound, door, endpoint, trigger, drain);
                until_signalled(ready, serve).await
            }
            AppHost::SelfHosted(app) => {
                let router = app.router(door)?;
                until_signalled(ready, |trigger, drain| app.serve_until(bound, router, trigger, drain)).await
            }
        }
    }

    /// Serves HTTP until `drain` begins or the workers have failed permanently.
    pub async fn serve_until(
        self,
        bound: BoundListener,
        door: AccessPolicy,
        trigger: DrainTrigger,
        drain: Drain,
    ) -> Result<(), HostError> {
        match self.0 {
            AppHost::Functions(host) => {
                let endpoint = host.endpoint(&door)?;
                host.serve_endpoint(bound, door, endpoint, trigger, drain).await
            }
            AppHost::SelfHosted(app) => {
                let router = app.router(door)?;
                app.serve_until(bound, router, trigger, drain).await
            }
        }
    }

    /// Serves stdin and stdout until the client disconnects or the workers have failed permanently.
    pub async fn serve_stdio(self) -> Result<(), HostError> {
        match self.0 {
            AppHost::Functions(host) => host.serve_stdio().await,
            AppHost::SelfHosted(app) => {
                app.stop().await;
                Err(HostError::SelfHostedStdio)
            }
        }
    }

    /// Stops the workers or the server.
    pub async fn stop(self) {
        match self.0 {
            AppHost::Functions(host) => host.stop().await,
            AppHost::SelfHosted(app) => app.stop().await,
        }
    }
}

/// Installs the signal handlers, calls `ready`, and serves. A signal begins the drain.
async fn until_signalled<F: Future<Output = Result<(), HostError>>>(
    ready: impl FnOnce() -> io::Result<()>,
    serve: impl FnOnce(DrainTrigger, Drain) -> F,
) -> Result<(), HostError> {
    let (trigger, drain) = Drain::new();
    let mut signals = Box::pin(drain_on_signal(trigger.clone()));
    // The first poll installs the signal handlers.
    if let Poll::Ready(failed) = poll_fn(|context| Poll::Ready(signals.as_mut().poll(context))).await {
        return Ok(failed?);
    }
    let signals = tokio::spawn(signals);
    ready()?;
    let served = serve(trigger, drain).await;
    signals.abort();
    served
}
