//! The table of options: name, slot and meaning of each.
//!
//! The TOML file, the variables and `docs/options.md` all follow this table. The name of a key is the
//! path of its field in [`Options`]. The part before the last dot is a table of the file.

use std::time::Duration;

use bindpost_mcp_http::{AnonymousAccess, SessionMode};
use bindpost_mcp_server::{CacheScope, ListVisibility};

use super::form::{
    COUNT, ChoiceFormat, CountFormat, FlagFormat, NameFormat, PAUSE, RevisionFormat, SIZE, SizeFormat, TIME,
};
use super::slot::{OptionSlot, list, maybe, one, some};
use super::text::{
    ADDRESS, API_KEY, HEADER, HOST, ISSUER, ORIGIN, PATH, PathFormat, REALM, RESOURCE, SecretKeyFormat, TEXT,
    WORD,
};
use super::{Options, PREFIX, tokens};

/// The definition of one option.
pub(super) struct OptionDefinition {
    pub(super) name: &'static str,
    pub(super) slot: for<'a> fn(&'a mut Options) -> Box<dyn OptionSlot + 'a>,
    pub(super) meaning: &'static str,
}

impl OptionDefinition {
    /// Returns the environment variable that sets the option.
    pub(super) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "__").to_ascii_uppercase())
    }

    /// Returns the table of the option.
    pub(super) fn table(&self) -> Option<&'static str> {
        self.name.rsplit_once('.').map(|(table, _)| table)
    }
}

/// Returns all options, in the order of the documentation.
pub(super) fn all() -> impl Iterator<Item = &'static OptionDefinition> {
    KEYS.iter().chain(tokens::KEYS)
}

/// Returns the option with this name.
pub(super) fn find(name: &str) -> Option<&'static OptionDefinition> {
    all().find(|key| key.name == name)
}

/// Returns all tables.
pub(super) fn tables() -> Vec<&'static str> {
    let mut tables: Vec<&str> = all().filter_map(OptionDefinition::table).collect();
    tables.dedup();
    tables
}

/// Returns whether a table with this name exists.
pub(super) fn is_table(name: &str) -> bool {
    tables().contains(&name)
}

/// Returns the keys and tables in a table, or at the top level of the file.
pub(super) fn names_in_table(table: Option<&str>) -> Vec<&'static str> {
    let keys = all().filter(|key| key.table() == table).map(|key| key.name);
    let tables = tables().into_iter().filter(|name| name.rsplit_once('.').map(|(outer, _)| outer) == table);
    keys.chain(tables).collect()
}

pub(super) const fn key(
    name: &'static str,
    slot: for<'a> fn(&'a mut Options) -> Box<dyn OptionSlot + 'a>,
    meaning: &'static str,
) -> OptionDefinition {
    OptionDefinition { name, slot, meaning }
}

/// The minimum is one, because zero would disable the server.
const SOME: CountFormat = COUNT.at_least(1);
/// hyper reserves space for all of them in every request.
const HEADERS: CountFormat = COUNT.at_least(1).at_most(10_000);
/// hyper rejects a smaller buffer.
const HEAD: SizeFormat = SIZE.at_least(8 << 10).at_most(1 << 30);
/// A window has 31 bits (RFC 9113).
const WINDOW: SizeFormat = SIZE.at_least(1).at_most((1 << 31) - 1);
const H2_SIZE: SizeFormat = SIZE.at_least(1).at_most(1 << 30);

const SESSIONS: ChoiceFormat<SessionMode> = ChoiceFormat(&[
    ("required", SessionMode::Required),
    ("optional", SessionMode::Optional),
    ("stateless", SessionMode::Stateless),
    ("off", SessionMode::Off),
]);
const SCOPES: ChoiceFormat<CacheScope> =
    ChoiceFormat(&[("public", CacheScope::Public), ("private", CacheScope::Private)]);
const OPENINGS: ChoiceFormat<AnonymousAccess> = ChoiceFormat(&[
    ("auto", AnonymousAccess::Auto),
    ("open", AnonymousAccess::Open),
    ("closed", AnonymousAccess::Closed),
]);
const LISTINGS: ChoiceFormat<ListVisibility> =
    ChoiceFormat(&[("all", ListVisibility::All), ("permitted", ListVisibility::Permitted)]);

/// The asymmetric JWS algorithms.
pub(super) const ALGORITHMS: &[&str] =
    &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

#[rustfmt::skip]
const KEYS: &[OptionDefinition] = &[
    key("server_name", |o| one(&mut o.server_name, WORD), "The server's identifier, for use by programs."),
    key("server_version", |o| one(&mut o.server_version, WORD), "The server's version."),
    key("title", |o| maybe(&mut o.title, TEXT), "The server's display name."),
    key("description", |o| maybe(&mut o.description, TEXT), "A description of the server."),
    key("website_url", |o| maybe(&mut o.website_url, TEXT), "The URL of the server's website."),
    key("instructions", |o| maybe(&mut o.instructions, TEXT), "Instructions on how to use the server, for the model."),
    key("supported_protocol_versions", |o| some(&mut o.supported_protocol_versions, RevisionFormat), "The supported protocol revisions."),
    key("enable_tools", |o| one(&mut o.enable_tools, FlagFormat), "Whether the server offers its tools."),
    key("enable_resources", |o| one(&mut o.enable_resources, FlagFormat), "Whether the server offers its resources."),
    key("enable_prompts", |o| one(&mut o.enable_prompts, FlagFormat), "Whether the server offers its prompts."),
    key("page_size", |o| one(&mut o.page_size, SOME), "The maximum number of entries on one page of a list."),
    key("cache_ttl", |o| one(&mut o.cache_ttl, TIME), "How long clients may cache lists and resources (2026-07-28)."),
    key("cache_scope", |o| one(&mut o.cache_scope, SCOPES), "Who may share a cached list or resource: all callers (`public`) or one caller (`private`)."),
    key("state_key", |o| maybe(&mut o.state_key, SecretKeyFormat), "The key that encrypts the state between two rounds of a request. Instances that share work need the same key. By default a random key is created at start."),
    key("address", |o| one(&mut o.address, ADDRESS), "The address to listen on. An address that other machines can reach requires `[auth]` or `open_to_all`."),
    key("path", |o| one(&mut o.path, PATH), "The path of the MCP endpoint."),
    key("sse", |o| one(&mut o.sse, FlagFormat), "Whether HTTP+SSE (2024-11-05) is served too."),
    key("sse_path", |o| one(&mut o.sse_path, PATH), "The path of the HTTP+SSE stream."),
    key("sse_message_path", |o| one(&mut o.sse_message_path, PATH), "The path to which HTTP+SSE clients post messages."),
    key("sessions", |o| one(&mut o.sessions, SESSIONS), "Whether legacy revisions (up to 2025-11-25) get sessions. `required`: every request must have a session id. `optional`: requests without one are served without a session. `stateless`: no sessions, but `initialize` returns an id. `off`: no sessions."),
    key("json_only", |o| one(&mut o.json_only, FlagFormat), "Sends JSON responses only: no streams, no GET, no requests to the client."),
    key("allowed_origins", |o| list(&mut o.allowed_origins, ORIGIN), "Origins of web pages that may send requests, besides those of the loopback interface."),
    key("allowed_hosts", |o| list(&mut o.allowed_hosts, HOST), "Accepted host names, besides those of the loopback interface. Use `*` for all hosts only behind a proxy that checks the `Host` header. Requires `[auth]` or `open_to_all`."),
    key("require_origin_header", |o| one(&mut o.require_origin_header, FlagFormat), "Rejects requests without an `Origin` header, so that only web pages may send requests."),
    key("open_to_all", |o| one(&mut o.open_to_all, FlagFormat), "Serves without `[auth]` even if other machines can reach the server. Every caller may then call everything."),
    key("behind_proxy", |o| one(&mut o.behind_proxy, FlagFormat), "A proxy or platform forwards requests of other machines to the server. Requires `[auth]` or `open_to_all`."),
    key("trust_platform_identity", |o| one(&mut o.trust_platform_identity, FlagFormat), "Trusts the headers in which a platform in front of the server names the user. Without such a platform any client can send these headers."),

    key("limits.call_timeout", |o| maybe(&mut o.limits.call_timeout, PAUSE), "The timeout of a call. An entry can set its own."),
    key("limits.running_calls", |o| one(&mut o.limits.running_calls, SOME), "The maximum number of concurrent calls."),
    key("limits.waiting_calls", |o| one(&mut o.limits.waiting_calls, COUNT), "The maximum number of queued calls. Further calls are rejected."),
    key("limits.calls_per_session", |o| one(&mut o.limits.calls_per_session, SOME), "The maximum number of concurrent calls of one session."),
    key("limits.held_bytes", |o| one(&mut o.limits.held_bytes, SIZE), "The maximum number of bytes held for all clients together: request bodies, unread and retained messages of streams, results of tasks, large responses."),
    key("limits.listeners", |o| one(&mut o.limits.listeners, COUNT), "The maximum number of concurrent `subscriptions/listen` requests."),
    key("limits.listeners_per_caller", |o| one(&mut o.limits.listeners_per_caller, COUNT), "The maximum number of concurrent `subscriptions/listen` requests of one authenticated caller."),
    key("limits.state_lifetime", |o| one(&mut o.limits.state_lifetime, TIME), "The maximum time between two rounds of one request."),
    key("limits.stream.unread_messages", |o| one(&mut o.limits.stream.unread_messages, SOME), "The maximum number of unread messages of one stream."),
    key("limits.stream.unread_bytes", |o| one(&mut o.limits.stream.unread_bytes, SIZE.at_least(1)), "The maximum size of the unread messages of one stream."),
    key("limits.stream.kept_messages", |o| one(&mut o.limits.stream.kept_messages, COUNT), "The maximum number of messages that all streams of one session retain for resumption."),
    key("limits.stream.kept_bytes", |o| one(&mut o.limits.stream.kept_bytes, SIZE), "The maximum size of the messages that all streams of one session retain for resumption."),
    key("limits.stream.blocked", |o| one(&mut o.limits.stream.blocked, TIME), "How long a writer waits for a slow reader."),

    key("http.max_body", |o| one(&mut o.http.max_body, SIZE.at_least(1)), "The maximum size of a request body."),
    key("http.body_timeout", |o| one(&mut o.http.body_timeout, PAUSE), "The timeout for receiving a whole request body."),
    key("http.stream_after", |o| one(&mut o.http.stream_after, TIME), "The response to a call that runs longer than this becomes a stream."),
    key("http.keep_alive", |o| one(&mut o.http.keep_alive, PAUSE), "The interval at which an idle stream sends a keep-alive comment."),
    key("http.retry", |o| one(&mut o.http.retry, TIME), "The delay after which a client should reconnect to an interrupted stream."),

    key("session_limits.total", |o| one(&mut o.session_limits.total, COUNT), "The maximum number of sessions."),
    key("session_limits.per_caller", |o| one(&mut o.session_limits.per_caller, COUNT), "The maximum number of sessions of one authenticated caller."),
    key("session_limits.anonymous", |o| one(&mut o.session_limits.anonymous, COUNT), "The maximum number of sessions of all unauthenticated callers together."),
    key("session_limits.idle", |o| one(&mut o.session_limits.idle, PAUSE), "A session expires after this time without a request."),
    key("session_limits.absolute", |o| one(&mut o.session_limits.absolute, PAUSE), "The maximum lifetime of a session."),
    key("session_limits.opening", |o| one(&mut o.session_limits.opening, PAUSE), "A session expires if no message follows `initialize` within this time."),
    key("session_limits.flood_delay", |o| one(&mut o.session_limits.flood_delay, TIME), "How long `initialize` is delayed when it evicts a session that was opened less than a second ago."),
    key("session_limits.streams", |o| one(&mut o.session_limits.streams, COUNT), "The maximum number of streams of one session that are open or can be resumed."),
    key("session_limits.stream_kept", |o| one(&mut o.session_limits.stream_kept, TIME), "How long a stream can be resumed after its client disconnected."),
    key("session_limits.sweep", |o| one(&mut o.session_limits.sweep, PAUSE), "The interval at which expired sessions are removed."),

    key("connections.header_read", |o| one(&mut o.connections.header_read, PAUSE), "The timeout for the first byte of a connection, and then for a whole request head."),
    key("connections.keep_alive_idle", |o| one(&mut o.connections.keep_alive_idle, PAUSE), "The timeout of a connection without a request."),
    key("connections.blocked_write", |o| one(&mut o.connections.blocked_write, PAUSE), "The timeout for a client that reads nothing while response bytes are pending."),
    key("connections.sweep", |o| one(&mut o.connections.sweep, PAUSE), "The interval at which the three timeouts above are checked."),
    key("connections.max_header_bytes", |o| one(&mut o.connections.max_header_bytes, HEAD), "The maximum size of an HTTP/1 request head."),
    key("connections.max_headers", |o| one(&mut o.connections.max_headers, HEADERS), "The maximum number of header fields in one HTTP/1 request. Any other value than the default costs an allocation per request."),
    key("connections.h2_streams", |o| one(&mut o.connections.h2_streams, SOME), "The maximum number of concurrent HTTP/2 streams of one connection."),
    key("connections.h2_stream_window", |o| one(&mut o.connections.h2_stream_window, WINDOW), "The maximum number of unread request bytes of one HTTP/2 stream (flow control)."),
    key("connections.h2_connection_window", |o| one(&mut o.connections.h2_connection_window, WINDOW), "The maximum number of unread request bytes of one HTTP/2 connection (flow control)."),
    key("connections.h2_send_buffer", |o| one(&mut o.connections.h2_send_buffer, H2_SIZE), "The maximum number of response bytes of one HTTP/2 stream that are buffered in memory."),
    key("connections.h2_header_bytes", |o| one(&mut o.connections.h2_header_bytes, H2_SIZE), "The maximum size of an HTTP/2 header list."),
    key("connections.h2_pending_resets", |o| one(&mut o.connections.h2_pending_resets, COUNT), "The maximum number of HTTP/2 streams that the client resets before the service has accepted them."),
    key("connections.h2_local_resets", |o| one(&mut o.connections.h2_local_resets, COUNT), "The maximum number of HTTP/2 streams that the server resets because of the client's errors."),
    key("connections.h2_ping", |o| one(&mut o.connections.h2_ping, PAUSE), "The interval at which an HTTP/2 client is pinged."),
    key("connections.h2_ping_answer", |o| one(&mut o.connections.h2_ping_answer, PAUSE), "The timeout for an HTTP/2 client's response to a ping."),
    key("connections.connections", |o| one(&mut o.connections.connections, SOME), "The maximum number of open connections. Further connections get a 503 response."),
    key("connections.connections_per_address", |o| maybe(&mut o.connections.connections_per_address, SOME), "The maximum number of open connections from one IPv4 address or one IPv6 /64 network. Set `none` behind a proxy."),
    key("connections.drain", |o| one(&mut o.connections.drain, TIME), "How long a shutdown waits for running requests."),
    key("connections.drain_idle", |o| one(&mut o.connections.drain_idle, TIME), "How long a shutdown keeps idle connections open."),

    key("tasks.enabled", |o| one(&mut o.tasks.enabled, FlagFormat), "Enables the tasks extension."),
    key("tasks.tasks", |o| one(&mut o.tasks.tasks, COUNT), "The maximum number of tasks."),
    key("tasks.tasks_per_caller", |o| one(&mut o.tasks.tasks_per_caller, COUNT), "The maximum number of tasks of one caller."),
    key("tasks.lifetime", |o| one(&mut o.tasks.lifetime, PAUSE), "How long a task is kept after its creation."),
    key("tasks.poll_interval", |o| one(&mut o.tasks.poll_interval, TIME), "The interval at which a client should poll a task."),

    key("auth.api_keys", |o| list(&mut o.auth.api_keys, API_KEY), "API keys, each a line `name = secret` or `name = secret scope1 scope2`."),
    key("auth.api_keys_file", |o| maybe(&mut o.auth.api_keys_file, PathFormat), "A file with such lines. Changes are applied while the server runs. A relative path starts at the working directory."),
    key("auth.api_keys_look_every", |o| one(&mut o.auth.api_keys_look_every, PAUSE), "The interval at which the file is checked for changes."),
    key("auth.api_key_header", |o| one(&mut o.auth.api_key_header, HEADER), "The header that carries the API key."),
    key("auth.api_key_bearer", |o| one(&mut o.auth.api_key_bearer, FlagFormat), "Also accepts API keys in `Authorization: Bearer …`."),
    key("auth.api_key_query", |o| maybe(&mut o.auth.api_key_query, WORD), "Also accepts API keys in this query parameter. URLs are often logged, and the key with them."),
    key("auth.issuers", |o| list(&mut o.auth.issuers, ISSUER), "OAuth issuers whose access tokens are accepted, spelled exactly as in the `iss` of their tokens."),
    key("auth.audiences", |o| list(&mut o.auth.audiences, WORD), "The accepted values of `aud` in a token. Default: `auth.resource`."),
    key("auth.authorization_servers", |o| list(&mut o.auth.authorization_servers, ISSUER), "The authorization servers from which clients get tokens. Default: the issuers."),
    key("auth.algorithms", |o| list(&mut o.auth.algorithms, NameFormat(ALGORITHMS)), "The accepted signature algorithms. Default: RS256, ES256, PS256 and EdDSA."),
    key("auth.require_token_type", |o| one(&mut o.auth.require_token_type, FlagFormat), "Accepts only tokens whose `typ` is `at+jwt`."),
    key("auth.leeway", |o| one(&mut o.auth.leeway, TIME.at_most(Duration::from_secs(300))), "The tolerated clock difference."),
    key("auth.resource", |o| maybe(&mut o.auth.resource, RESOURCE), "The public URL of the endpoint, for which clients request tokens. By default it is built from the `Host` header."),
    key("auth.scopes_supported", |o| list(&mut o.auth.scopes_supported, WORD), "The scopes listed in the protected resource metadata. Default: the scopes of all entries."),
    key("auth.opening", |o| one(&mut o.auth.opening, OPENINGS), "Whether unauthenticated callers may connect: while at least one entry allows them (`auto`), always (`open`) or never (`closed`)."),
    key("auth.listing", |o| one(&mut o.auth.listing, LISTINGS), "Which entries lists show: all of them (`all`) or those the caller may use (`permitted`)."),
    key("auth.realm", |o| one(&mut o.auth.realm, REALM), "The realm of an authentication challenge."),
    key("auth.timeout", |o| one(&mut o.auth.timeout, PAUSE), "The timeout of the authorizer."),
];
