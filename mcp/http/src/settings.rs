//! The settings of an endpoint: what it serves, which requests it accepts, and its limits.

use std::path::PathBuf;
use std::time::Duration;

use bindpost_mcp_protocol::Revision;

use crate::auth::Auth;
use crate::listener;

/// The settings of an [`Endpoint`](crate::Endpoint).
///
/// The defaults are safe on a development machine. A server behind a proxy also has to list its host
/// names in `allowed_hosts`.
#[derive(Clone)]
pub struct Settings {
    /// The path of the MCP endpoint. The same path with a trailing slash works too.
    pub path: String,
    /// The two paths of HTTP+SSE (2024-11-05): that of the stream, and that to which its client posts
    /// messages. `None` turns the transport off.
    pub sse_paths: Option<(String, String)>,
    /// Options of HTTP+SSE.
    pub sse: SseOptions,
    /// Values of the `Host` header that are accepted besides the names of the loopback interface:
    /// `example.com` with any port, `example.com:8443` with one port, or `*` for all hosts. Use `*`
    /// only behind a proxy that checks the header.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests, like `https://example.com`. Origins of the loopback
    /// interface may always send them. Only the origins in this list get CORS headers.
    pub allowed_origins: Vec<String>,
    /// Rejects requests without an `Origin` header, so that only web pages may send requests.
    pub require_origin: bool,
    /// Whether legacy revisions (up to 2025-11-25) get sessions.
    pub sessions: SessionMode,
    /// The revision of a request that has neither a session id nor an `MCP-Protocol-Version` header, if
    /// sessions are not required. The default, 2025-03-26, follows the specification.
    pub without_header: Revision,
    /// Limits on the number of sessions and on their lifetime.
    pub session_limits: SessionLimits,
    /// Sends JSON responses only. There are no streams, GET is rejected, and the server cannot send
    /// requests to the client.
    pub json_only: bool,
    /// The maximum size of a request body, in bytes.
    pub max_body: usize,
    /// The timeout for receiving a whole request body.
    pub body_timeout: Duration,
    /// The response to a call that runs longer than this becomes a stream, so that the connection
    /// stays alive.
    pub stream_after: Duration,
    /// The interval at which an idle stream sends a keep-alive comment.
    pub keep_alive: Duration,
    /// The delay after which a client should reconnect to an interrupted stream (the SSE field `retry`).
    pub retry: Duration,
    /// Authentication and authorization. `None` disables them: every caller may call everything. The
    /// server then does not start if other machines can reach it: if its address or a name in
    /// `allowed_hosts` is not of the loopback interface, if `behind_proxy` is set, or if the program is a custom
    /// handler (`FUNCTIONS_CUSTOMHANDLER_PORT` is set). `open_to_all` overrides this check.
    pub auth: Option<Auth>,
    /// Serves without authentication even if other machines can reach the server. Every caller may then
    /// call everything.
    pub open_to_all: bool,
    /// A proxy or a platform forwards requests of other machines to this server. Listening on the loopback
    /// interface is then no protection. If the proxy replaces the `Host` header by a name of the loopback
    /// interface, the URL in the OAuth metadata has the host of `X-Forwarded-Host`, if `allowed_hosts` lists it.
    pub behind_proxy: bool,
    /// The headers in which a platform in front of the server names the user, each as the beginning of
    /// its name, in lower case. Without such a platform any client can send these headers, so they are
    /// removed from requests unless `trust_platform_identity` is set. Those that the authorizer reads are
    /// always included ([`Authorizer::identity_headers`](crate::Authorizer::identity_headers)).
    pub identity_headers: Vec<String>,
    /// Trusts the identity headers: a platform in front of the server sets them and removes those of clients.
    pub trust_platform_identity: bool,
    /// Answers health probes: `GET /_/healthz` gets 200 while the process answers, `GET /_/readyz` gets 200,
    /// and 503 while the server shuts down. Probes need no credentials, and any `Host` header is accepted,
    /// because orchestrators probe by address. The responses are constant.
    pub health: bool,
    /// Timeouts and limits of connections.
    pub connections: listener::ConnectionLimits,
    /// The certificate and the key with which [`BoundListener`](crate::BoundListener) serves HTTPS. `None`
    /// serves plain HTTP. Requires the feature `tls`.
    pub tls: Option<TlsFiles>,
}

/// The PEM files with which a server serves HTTPS.
///
/// They are read again when they change, and new connections then use the new pair. If the new pair cannot
/// be used, a warning is logged and the previous pair stays in use.
///
/// ```no_run
/// use bindpost_mcp_http::{Settings, TlsFiles, bind};
/// # use bindpost_mcp_http::{ApiKeys, Auth};
///
/// # async fn run(server: bindpost_mcp_server::Server) -> std::io::Result<()> {
/// let settings = Settings {
///     tls: Some(TlsFiles::new("/etc/orders/cert.pem", "/etc/orders/key.pem")),
///     allowed_hosts: vec!["orders.example".to_owned()],
///     auth: Some(Auth::new(ApiKeys::from_file("/etc/orders/keys")?)),
///     ..Settings::default()
/// };
/// bind("0.0.0.0:8443").await?.serve(server, settings).await
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by the intermediate certificates.
    pub certificate: PathBuf,
    /// The private key of the certificate, without a passphrase.
    pub key: PathBuf,
    /// The interval at which the files are checked for changes. A change takes effect when both files have
    /// been the same for a second.
    pub look_every: Duration,
}

impl TlsFiles {
    /// Names the files of the certificate and the key. They are checked every 5 s.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> TlsFiles {
        TlsFiles { certificate: certificate.into(), key: key.into(), look_every: Duration::from_secs(5) }
    }
}

/// Options of HTTP+SSE, the transport of 2024-11-05.
#[derive(Clone, Debug, Default)]
pub struct SseOptions {
    /// Sends the address for messages as an absolute URL instead of one that is relative to the stream, for clients
    /// that cannot resolve relative references. The host is that of the client's request. The address then lacks a
    /// path prefix that a proxy in front has removed.
    pub absolute: bool,
    /// Query parameters of the stream's URL that are copied into the address for messages. Clients
    /// that identify themselves by a query parameter need this, because they cannot add it to the
    /// address themselves.
    pub repeats: Vec<String>,
    /// The interval at which the server sends `ping` requests to the client. `None`, the default, sends none.
    pub ping: Option<Duration>,
}

/// Whether legacy revisions (up to 2025-11-25), which begin with a handshake, get sessions.
///
/// The server declares only the capabilities that the mode and [`Settings::json_only`] can deliver:
///
/// | | `Required`, `Optional` | `Off`, `Stateless` | any mode with `json_only` |
/// |---|---|---|---|
/// | `listChanged` of tools, resources and prompts | yes | modern revisions only | no |
/// | `subscribe` of resources | yes | modern revisions only | no |
/// | `logging` | yes | modern revisions only | no |
/// | `tools`, `resources`, `prompts`, `completions`, extensions | yes | yes | yes |
/// | progress, and streams for long calls | yes | yes | no |
/// | questions to the client (`elicit`, `sample`) | yes | modern revisions only | modern revisions only |
///
/// A legacy client gets notifications on the stream of its session, a modern one (2026-07-28) on the stream
/// of `subscriptions/listen` or of its call. Without a capability, its methods are unknown (-32601):
/// `resources/subscribe`, `resources/unsubscribe` and `logging/setLevel`, or `subscriptions/listen`. Over
/// HTTP+SSE and stdio everything is delivered, whatever the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode {
    /// `initialize` opens a session, and every later request has to carry its id.
    Required,
    /// Like `Required`, but a request without a session id is served without a session.
    Optional,
    /// The server assigns no session ids. Every request is served without a session.
    Off,
    /// Like `Off`, so that any instance can serve any request, but `initialize` returns an id for logs.
    /// The session id of a request is ignored.
    Stateless,
}

impl SessionMode {
    /// Returns whether `initialize` opens sessions.
    pub(crate) fn has_sessions(self) -> bool {
        matches!(self, SessionMode::Required | SessionMode::Optional)
    }
}

/// Limits on the number of sessions and on their lifetime.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    /// The maximum number of sessions that are open at the same time.
    pub total: usize,
    /// The maximum number of sessions of one authenticated caller.
    pub per_caller: usize,
    /// The maximum number of sessions of all unauthenticated callers together.
    pub anonymous: usize,
    /// A session expires after this time without a request.
    pub idle: Duration,
    /// The maximum lifetime of a session.
    pub absolute: Duration,
    /// A session expires if no message follows `initialize` within this time.
    pub opening: Duration,
    /// The delay of the response to `initialize` while sessions are opened too fast, that is, when a
    /// new session replaces one that was opened less than a second ago.
    pub flood_delay: Duration,
    /// The maximum number of streams of one session that are open or can be resumed.
    pub streams: usize,
    /// How long a stream can be resumed after its client disconnected.
    pub stream_kept: Duration,
    /// The interval at which expired sessions are removed.
    pub sweep: Duration,
}

impl Default for SessionLimits {
    fn default() -> SessionLimits {
        SessionLimits {
            total: 10_000,
            per_caller: 100,
            anonymous: 1_000,
            idle: Duration::from_secs(30 * 60),
            absolute: Duration::from_secs(24 * 60 * 60),
            opening: Duration::from_secs(60),
            flood_delay: Duration::from_millis(100),
            streams: 20,
            stream_kept: Duration::from_secs(10 * 60),
            sweep: Duration::from_secs(5),
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            path: "/mcp".to_owned(),
            sse_paths: Some(("/sse".to_owned(), "/message".to_owned())),
            sse: SseOptions::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            require_origin: false,
            sessions: SessionMode::Required,
            without_header: Revision::WITHOUT_HEADER,
            session_limits: SessionLimits::default(),
            json_only: false,
            max_body: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            stream_after: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(3),
            auth: None,
            open_to_all: false,
            behind_proxy: false,
            identity_headers: Vec::new(),
            trust_platform_identity: false,
            health: false,
            connections: listener::ConnectionLimits::default(),
            tls: None,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("path", &self.path).finish_non_exhaustive()
    }
}
