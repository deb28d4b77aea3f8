//! What an endpoint allows, and its limits.

use std::time::Duration;

use bindpost_mcp_protocol::Revision;

use crate::auth::Auth;
use crate::listener;

/// How an [`Endpoint`](crate::Endpoint) behaves. The defaults are safe on a laptop and behind a proxy
/// that names its hosts.
#[derive(Clone)]
pub struct Settings {
    /// Where MCP is served; the same path with a slash behind it works too.
    pub path: String,
    /// Where HTTP+SSE (2024-11-05) is served: the stream, and where its client posts. `None` turns it off.
    pub sse_paths: Option<(String, String)>,
    /// How HTTP+SSE greets and keeps its clients.
    pub sse: SseOptions,
    /// Host names that are served besides those of the loopback: `example.com` for any port,
    /// `example.com:8443` for one, `*` for all (only behind a proxy that checks).
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call, besides those of the loopback: `https://example.com`. They
    /// get CORS headers; pages from the loopback get them only if listed.
    pub allowed_origins: Vec<String>,
    /// Refuses requests without an Origin: only web pages may call.
    pub require_origin: bool,
    /// Whether revisions with a handshake get sessions.
    pub sessions: SessionMode,
    /// The revision of a request that names neither a session nor a revision, where that is served. The
    /// specification says 2025-03-26.
    pub without_header: Revision,
    /// How many sessions, for how long.
    pub session_limits: SessionLimits,
    /// Answers are JSON only: no streams, no GET, no questions to the client.
    pub json_only: bool,
    /// The largest body, in bytes.
    pub max_body: usize,
    /// How long a body may take in all.
    pub body_timeout: Duration,
    /// A call that has not ended by then is answered by a stream, so that the connection stays alive.
    pub stream_after: Duration,
    /// How often a stream that has nothing to say says so.
    pub keep_alive: Duration,
    /// When a client should come back to a stream that was cut.
    pub retry: Duration,
    /// Which callers are let in. `None`: all of them. Then nothing is served that other machines can reach: on an
    /// address beyond the loopback, under a name of `allowed_hosts` beyond the loopback, or `behind_proxy`.
    pub auth: Option<Auth>,
    /// Serves without authentication, although other machines can reach it: every caller may call everything.
    pub open_to_all: bool,
    /// A proxy or a platform in front passes on what other machines send, so that an address of the loopback is
    /// no protection.
    pub behind_proxy: bool,
    /// Believes the headers by which a platform in front names the user (`X-MS-CLIENT-PRINCIPAL…`,
    /// `X-MS-TOKEN-…`). Without that platform anybody can send them, so they are removed unless this is set.
    pub trust_platform_identity: bool,
    /// Connections: timeouts and caps.
    pub connections: listener::ConnectionLimits,
}

/// How HTTP+SSE greets and keeps its clients.
#[derive(Clone, Debug, Default)]
pub struct SseOptions {
    /// Tells where to post by a whole address, scheme and host included, instead of a path: for clients that
    /// cannot put the two together. The host is the one the client asked for.
    pub absolute: bool,
    /// Parameters of the query that the address to post to repeats: a client that names itself by its
    /// address has no other way to do it in its posts.
    pub repeats: Vec<String>,
    /// How often the server pings its client by a request; never unless told.
    pub ping: Option<Duration>,
}

/// Whether revisions with a handshake get sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode {
    /// `initialize` opens one, and every request names it.
    Required,
    /// As `Required`, but a request that names none is served alone.
    Optional,
    /// No session ids: every request is served alone.
    Off,
    /// As `Off`, so that any instance can serve any request, but `initialize` hands out an id for logs.
    /// Whatever id a request names is taken and means nothing.
    Stateless,
}

impl SessionMode {
    /// Whether there are sessions.
    pub(crate) fn has_sessions(self) -> bool {
        matches!(self, SessionMode::Required | SessionMode::Optional)
    }
}

/// How many sessions are kept, and for how long.
#[derive(Clone, Debug)]
pub struct SessionLimits {
    /// At once.
    pub total: usize,
    /// Of one caller.
    pub per_caller: usize,
    /// Of callers we do not know.
    pub anonymous: usize,
    /// Without a request.
    pub idle: Duration,
    /// In all.
    pub absolute: Duration,
    /// Between `initialize` and the first message that follows it.
    pub opening: Duration,
    /// How long `initialize` is delayed while sessions are opened in a flood: the new one replaces one that was
    /// opened less than a second ago.
    pub flood_delay: Duration,
    /// Streams of one session that are open or can be taken up again.
    pub streams: usize,
    /// How long a stream that nobody reads can be taken up again.
    pub stream_kept: Duration,
    /// How often expired sessions are looked for.
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
            trust_platform_identity: false,
            connections: listener::ConnectionLimits::default(),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("path", &self.path).finish_non_exhaustive()
    }
}
