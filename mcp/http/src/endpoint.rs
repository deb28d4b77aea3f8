//! [`Endpoint`]: serves an MCP server over HTTP. Its requests are answered in `request.rs`. In a server of
//! another library it is a tower service (`mount.rs`).

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod events;
pub(crate) mod mount;
pub(crate) mod pipes;
pub(crate) mod protocol_mode;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod sessions;
pub(crate) mod streaming;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bindpost_mcp_server::transport::TransportAbilities;
use bindpost_mcp_server::{ListVisibility, Server};
use http::request::Parts;
use http::{HeaderMap, Method};
use tokio::time::Interval;

use self::pipes::PipeStore;
use self::sessions::SessionStore;
use crate::auth::gate::AuthGate;
use crate::auth::identity::IdentityHeaders;
use crate::exposure;
use crate::guard::Guard;
use crate::listener::ListenerAddress;
use crate::serve::check_settings;
use crate::settings::Settings;

/// Serves an MCP server over HTTP. Clones share the same state.
///
/// It is a [`tower_service::Service`], so it can be mounted in a server of axum, warp or plain hyper:
///
/// ```ignore
/// let endpoint = Endpoint::new(server, Settings::default());
/// let app = axum::Router::new()
///     .route("/health", axum::routing::get(async || "ok"))
///     .nest_service("/mcp", endpoint.clone());
/// axum::serve(listener, app).with_graceful_shutdown(async move {
///     let _ = tokio::signal::ctrl_c().await;
///     endpoint.drain();
/// }).await?;
/// ```
///
/// [`Settings::path`] is the public path of the endpoint, also if the router removes it from the request
/// (`nest_service`). Every other path of the endpoint must be below it: a mounted endpoint serves HTTP+SSE
/// only if [`Settings::sse_paths`] are, for instance `/mcp/sse` and `/mcp/message`. The metadata of OAuth
/// is at [`Endpoint::metadata_path`], which needs a route of its own.
///
/// Without authentication, an endpoint that is declared public answers every request with the status 503
/// ([`Endpoint::exposure_problem`]). A mounted endpoint does not know the address on which the app listens. If that
/// is not of the loopback interface, set [`Settings::auth`] or [`Settings::behind_proxy`].
#[derive(Clone, Debug)]
pub struct Endpoint(pub(crate) Arc<EndpointState>);

/// The state that all requests of an endpoint share.
#[derive(Debug)]
pub(crate) struct EndpointState {
    pub(crate) server: Server,
    pub(crate) settings: Settings,
    pub(crate) abilities: TransportAbilities,
    pub(crate) guard: Arc<Guard>,
    pub(crate) gate: Option<AuthGate>,
    pub(crate) identity_headers: IdentityHeaders,
    /// Why no request is served, if there is a reason.
    pub(crate) exposure: Option<String>,
    pub(crate) sessions: SessionStore,
    pub(crate) pipes: PipeStore,
    pub(crate) draining: AtomicBool,
    closed: AtomicBool,
    /// Whether the sweep of a mounted endpoint has started.
    sweeps: AtomicBool,
    /// Whether the app that mounts the endpoint has called [`Endpoint::check_address`], or the warnings are logged.
    pub(crate) is_mount_checked: AtomicBool,
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
    Alive,
    Ready,
    Options(&'static str),
    NotAllowed(&'static str),
    Unknown,
}

impl Route {
    /// Returns the operation of a method on the path of the endpoint.
    fn of_endpoint(method: &Method) -> Route {
        match *method {
            Method::POST => Route::Post,
            Method::GET => Route::Get,
            Method::DELETE => Route::Delete,
            Method::OPTIONS => Route::Options("GET, POST, DELETE, OPTIONS"),
            _ => Route::NotAllowed("GET, POST, DELETE, OPTIONS"),
        }
    }

    /// Returns whether this is a health probe. Probes often name the server by its address.
    pub(crate) fn is_probe(self) -> bool {
        matches!(self, Route::Alive | Route::Ready)
    }
}

/// The paths of the health probes, if they are enabled.
const ALIVE_PATH: &str = "/_/healthz";
const READY_PATH: &str = "/_/readyz";

/// The minimum interval of sweeps. A shorter setting is raised to this.
const SHORTEST_SWEEP: Duration = Duration::from_millis(10);

impl Endpoint {
    /// Creates an endpoint that serves `server` with these settings. If [`exposure_problem`](Endpoint::exposure_problem)
    /// returns a problem, it is logged, and no request is served.
    pub fn new(server: Server, mut settings: Settings) -> Endpoint {
        // The path works with and without a trailing slash. It is compared without one.
        settings.path.truncate(settings.path.trim_end_matches('/').len());
        if !settings.path.starts_with('/') {
            settings.path.insert(0, '/');
        }
        let exposure = exposure::settings_problem(&settings);
        if let Some(problem) = &exposure {
            tracing::error!("{problem}");
        }
        let guard = Arc::new(Guard::new(&settings));
        let gate = settings.auth.clone();
        Endpoint(Arc::new(EndpointState {
            identity_headers: IdentityHeaders::removed_by(&settings),
            abilities: TransportAbilities {
                sessions: settings.sessions.has_sessions(),
                streams: !settings.json_only,
            },
            gate: gate.map(|auth| AuthGate::new(auth, &settings.path, guard.clone(), &server)),
            guard,
            exposure,
            sessions: SessionStore::new(settings.session_limits.clone()),
            pipes: PipeStore::default(),
            draining: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            sweeps: AtomicBool::new(false),
            is_mount_checked: AtomicBool::new(false),
            server,
            settings,
        }))
    }

    /// Periodically ends expired sessions, and the sessions and streams of callers whose credentials are no
    /// longer valid. Runs until it is dropped. An endpoint that is mounted in another server does this
    /// by itself.
    pub async fn sweep(&self) {
        let mut ticks = self.0.sweep_interval();
        loop {
            ticks.tick().await;
            self.0.sweep_once();
        }
    }

    /// Begins a graceful shutdown: ends the streams that would stay open indefinitely, that is, streams
    /// without a call and subscriptions.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::SeqCst);
        self.0.server.shut_down();
        self.0.sessions.end_streams();
        self.0.pipes.drain(self.0.settings.connections.drain);
    }

    /// Closes the endpoint, because another one with different settings replaces it. Streams end as in
    /// [`drain`](Endpoint::drain). Running calls are still answered. A request whose body has not been
    /// received completely gets 503 and has no effect.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.drain();
    }

    /// Returns whether the endpoint has been closed. This is one atomic load, cheap enough for every request.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns why the endpoint serves no request, and how to change that: it has no authentication, but its settings
    /// or the environment say that other machines can reach it ([`Settings::auth`]). An app that mounts the endpoint
    /// should check this before it listens.
    ///
    /// ```
    /// use bindpost_mcp_http::{Endpoint, Settings};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = bindpost_mcp_server::Server::builder("orders", "1.0.0").build()?;
    /// let allowed_hosts = vec!["orders.example".to_owned()];
    /// let endpoint = Endpoint::new(server, Settings { allowed_hosts, ..Settings::default() });
    /// assert!(endpoint.exposure_problem().is_some_and(|problem| problem.contains("Settings::auth")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn exposure_problem(&self) -> Option<&str> {
        self.0.exposure.as_deref()
    }

    /// Checks the address on which the app listens that mounts the endpoint. It is an error if other machines can
    /// reach an endpoint without authentication, if its authorizer has a mistake, and if [`Settings::tls`] is set,
    /// because the app accepts the connections. [`bind`](crate::bind) and `serve` check the address by themselves.
    ///
    /// ```no_run
    /// use bindpost_mcp_http::{Endpoint, Settings};
    ///
    /// # async fn run(server: bindpost_mcp_server::Server) -> std::io::Result<()> {
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:7071").await?;
    /// let endpoint = Endpoint::new(server, Settings::default());
    /// endpoint.check_address(&listener.local_addr()?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_address(&self, address: &impl ListenerAddress) -> std::io::Result<()> {
        self.0.is_mount_checked.store(true, Ordering::Relaxed);
        if let Some(problem) = exposure::mount_problem(&self.0.settings) {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, problem));
        }
        check_settings(address, &self.0.settings)
    }

    /// Removes the identity headers of a platform that a client has forged, from a request that the app answers itself.
    /// Requests to the endpoint need no such call.
    pub fn remove_identity_headers(&self, headers: &mut HeaderMap) {
        self.0.identity_headers.remove_from(headers);
    }

    /// Returns why a request that the app answers itself should be rejected because of its `Host` header: a web page may
    /// have made the browser send it under a name of its own (DNS rebinding). The endpoint checks its own requests.
    ///
    /// ```
    /// use bindpost_mcp_http::{Endpoint, Settings};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = bindpost_mcp_server::Server::builder("orders", "1.0.0").build()?;
    /// let endpoint = Endpoint::new(server, Settings::default());
    /// let (parts, ()) = http::Request::get("/orders").header("host", "evil.example").body(())?.into_parts();
    /// assert!(endpoint.host_problem(&parts).is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn host_problem(&self, parts: &Parts) -> Option<&'static str> {
        self.0.guard.host_problem(parts)
    }

    /// Returns the path of the metadata that refers clients to the authorization servers (RFC 9728). `None`
    /// if the authorizer has no authorization servers.
    pub fn metadata_path(&self) -> Option<String> {
        self.0.gate.as_ref()?.metadata_path()
    }
}

impl EndpointState {
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn sweep_interval(&self) -> Interval {
        tokio::time::interval(self.settings.session_limits.sweep.max(SHORTEST_SWEEP))
    }

    fn sweep_once(&self) {
        self.sessions.sweep();
        if let Some(gate) = &self.gate {
            gate.end_unknown_callers(&self.sessions, &self.pipes);
        }
    }

    /// Returns which entries lists show.
    pub(crate) fn listing(&self) -> ListVisibility {
        self.gate.as_ref().map_or(ListVisibility::All, |gate| gate.auth.listing)
    }

    /// Finds the operation of a request. `is_mounted` says that another server received it.
    pub(crate) fn route(&self, parts: &Parts, is_mounted: bool) -> Route {
        let path = parts.uri.path();
        let path = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
        if path == self.settings.path {
            Route::of_endpoint(&parts.method)
        } else if is_mounted {
            self.mounted_route(path, &parts.method)
        } else {
            self.other_route(path, &parts.method)
        }
    }

    /// Finds the operation of a path other than that of the endpoint.
    fn other_route(&self, path: &str, method: &Method) -> Route {
        match (&self.settings.sse_paths, method) {
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
            (_, method) if self.settings.health && (path == ALIVE_PATH || path == READY_PATH) => {
                match *method {
                    Method::GET | Method::HEAD if path == ALIVE_PATH => Route::Alive,
                    Method::GET | Method::HEAD => Route::Ready,
                    _ => Route::NotAllowed("GET, HEAD"),
                }
            }
            _ => Route::Unknown,
        }
    }
}
