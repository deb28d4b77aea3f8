//! [`Endpoint`]: serves an MCP server over HTTP. Its requests are answered in `request.rs`.

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod events;
pub(crate) mod pipes;
pub(crate) mod protocol_mode;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod sessions;
pub(crate) mod streaming;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bindpost_mcp_server::{ListVisibility, Server};
use http::Method;
use http::request::Parts;

use self::pipes::PipeStore;
use self::sessions::SessionStore;
use crate::auth::gate::AuthGate;
use crate::auth::identity::IdentityHeaders;
use crate::guard::Guard;
use crate::settings::Settings;

/// Serves an MCP server over HTTP.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) server: Server,
    pub(crate) settings: Settings,
    pub(crate) guard: Arc<Guard>,
    pub(crate) gate: Option<AuthGate>,
    pub(crate) identity_headers: IdentityHeaders,
    pub(crate) sessions: SessionStore,
    pub(crate) pipes: PipeStore,
    pub(crate) draining: AtomicBool,
    closed: AtomicBool,
}

/// The operation that an HTTP method and a path select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Post,
    Get,
    Delete,
    OpenPipe,
    PostToPipe,
    Metadata,
    Options(&'static str),
    NotAllowed(&'static str),
    Unknown,
}

/// The minimum interval of sweeps. A shorter setting is raised to this.
const SHORTEST_SWEEP: Duration = Duration::from_millis(10);

impl Endpoint {
    /// Creates an endpoint that serves `server` with these settings.
    pub fn new(server: Server, mut settings: Settings) -> Arc<Endpoint> {
        // The path works with and without a trailing slash. It is compared without one.
        settings.path.truncate(settings.path.trim_end_matches('/').len());
        if !settings.path.starts_with('/') {
            settings.path.insert(0, '/');
        }
        let guard = Arc::new(Guard::new(&settings));
        let gate = settings.auth.clone();
        Arc::new(Endpoint {
            identity_headers: IdentityHeaders::removed_by(&settings),
            gate: gate.map(|auth| AuthGate::new(auth, &settings.path, guard.clone())),
            guard,
            sessions: SessionStore::new(settings.session_limits.clone()),
            pipes: PipeStore::default(),
            draining: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            server,
            settings,
        })
    }

    /// Periodically ends expired sessions, and the sessions and streams of callers whose credentials are no
    /// longer valid. Runs until it is dropped.
    pub async fn sweep(&self) {
        let mut ticks = tokio::time::interval(self.settings.session_limits.sweep.max(SHORTEST_SWEEP));
        loop {
            ticks.tick().await;
            self.sessions.sweep();
            if let Some(gate) = &self.gate {
                gate.end_unknown_callers(&self.sessions, &self.pipes);
            }
        }
    }

    /// Begins a graceful shutdown: ends the streams that would stay open indefinitely, that is, streams
    /// without a call and subscriptions.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        self.server.shut_down();
        self.sessions.end_streams();
        self.pipes.drain(self.settings.connections.drain);
    }

    /// Closes the endpoint, because another one with different settings replaces it. Streams end as in
    /// [`drain`](Endpoint::drain). Running calls are still answered. A request whose body has not been
    /// received completely gets 503 and has no effect.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.drain();
    }

    /// Returns whether the endpoint has been closed. This is one atomic load, cheap enough for every request.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns which entries lists show.
    pub(crate) fn listing(&self) -> ListVisibility {
        self.gate.as_ref().map_or(ListVisibility::All, |gate| gate.auth.listing)
    }

    pub(crate) fn route(&self, parts: &Parts) -> Route {
        let path = parts.uri.path();
        let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
        if path == self.settings.path {
            return match parts.method {
                Method::POST => Route::Post,
                Method::GET => Route::Get,
                Method::DELETE => Route::Delete,
                Method::OPTIONS => Route::Options("GET, POST, DELETE, OPTIONS"),
                _ => Route::NotAllowed("GET, POST, DELETE, OPTIONS"),
            };
        }
        match (&self.settings.sse_paths, &parts.method) {
            (Some((sse, _)), &Method::GET) if path == sse => Route::OpenPipe,
            (Some((sse, _)), &Method::OPTIONS) if path == sse => Route::Options("GET, OPTIONS"),
            (Some((sse, _)), _) if path == sse => Route::NotAllowed("GET, OPTIONS"),
            (Some((_, message)), &Method::POST) if path == message => Route::PostToPipe,
            (Some((_, message)), &Method::OPTIONS) if path == message => Route::Options("POST, OPTIONS"),
            (Some((_, message)), _) if path == message => Route::NotAllowed("POST, OPTIONS"),
            (_, method) if self.gate.as_ref().is_some_and(|gate| gate.has_metadata_at(path)) => match *method
            {
                Method::GET | Method::OPTIONS => Route::Metadata,
                _ => Route::NotAllowed("GET, OPTIONS"),
            },
            _ => Route::Unknown,
        }
    }
}
