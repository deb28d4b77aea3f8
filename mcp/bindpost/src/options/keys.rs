//! The table of options: name, slot and meaning of each.
//!
//! The TOML file, the variables and `docs/options.md` all follow this table. The name of a key is that
//! of the method that sets it. The part before the last dot is a table of the file.

use std::ops::RangeInclusive;
use std::time::Duration;

use bindpost_mcp_http::{AnonymousAccess, SessionMode};
use bindpost_mcp_server::{CacheScope, ListVisibility};

use super::app::APP;
use super::form::{
    COUNT, PAUSE, SIZE, SOME, SOME_BYTES, TIME, choice, count, flag, name, revision, size, time,
};
use super::slot::{OptionSlot, slot};
use super::text::{
    ADDRESS, API_KEY, HEADER, HOST, ISSUER, ORIGIN, PATH, REALM, RESOURCE, TEXT, WORD, file, mode, secret,
    secret_key, text,
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

/// Returns all tables of options.
fn tables_of_options() -> Vec<&'static str> {
    let mut tables: Vec<&str> = all().filter_map(OptionDefinition::table).collect();
    tables.dedup();
    tables
}

/// Returns all tables, with that of the program.
pub(super) fn tables() -> Vec<&'static str> {
    let mut tables = tables_of_options();
    tables.push(APP);
    tables
}

/// Returns whether a table of options with this name exists.
pub(super) fn is_table(name: &str) -> bool {
    tables_of_options().contains(&name)
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

/// hyper reserves space for all of them in every request.
const HEADERS: RangeInclusive<u64> = 1..=10_000;
/// hyper rejects a smaller buffer.
const HEAD: RangeInclusive<u64> = 8 << 10..=1 << 30;
/// A window has 31 bits (RFC 9113).
const WINDOW: RangeInclusive<u64> = 1..=(1 << 31) - 1;
const H2_SIZE: RangeInclusive<u64> = 1..=1 << 30;
const LEEWAY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(300);

const SESSIONS: &[(&str, SessionMode)] = &[
    ("required", SessionMode::Required),
    ("optional", SessionMode::Optional),
    ("stateless", SessionMode::Stateless),
    ("off", SessionMode::Off),
];
const SCOPES: &[(&str, CacheScope)] = &[("public", CacheScope::Public), ("private", CacheScope::Private)];
const OPENINGS: &[(&str, AnonymousAccess)] =
    &[("auto", AnonymousAccess::Auto), ("open", AnonymousAccess::Open), ("closed", AnonymousAccess::Closed)];
const LISTINGS: &[(&str, ListVisibility)] =
    &[("all", ListVisibility::All), ("permitted", ListVisibility::Permitted)];

/// The asymmetric JWS algorithms.
pub(super) const ALGORITHMS: &[&str] =
    &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

#[rustfmt::skip]
const KEYS: &[OptionDefinition] = &[
    key("server_name", |o| slot(&mut o.server_name, text(WORD)), "The server's identifier, for use by programs."),
    key("server_version", |o| slot(&mut o.server_version, text(WORD)), "The server's version."),
    key("title", |o| slot(&mut o.title, text(TEXT)), "The server's display name."),
    key("description", |o| slot(&mut o.description, text(TEXT)), "A description of the server."),
    key("website_url", |o| slot(&mut o.website_url, text(TEXT)), "The URL of the server's website."),
    key("instructions", |o| slot(&mut o.instructions, text(TEXT)), "Instructions on how to use the server, for the model."),
    key("supported_protocol_versions", |o| slot(&mut o.supported_protocol_versions, revision()), "The supported protocol revisions."),
    key("enable_tools", |o| slot(&mut o.enable_tools, flag()), "Whether the server offers its tools."),
    key("enable_resources", |o| slot(&mut o.enable_resources, flag()), "Whether the server offers its resources."),
    key("enable_prompts", |o| slot(&mut o.enable_prompts, flag()), "Whether the server offers its prompts."),
    key("page_size", |o| slot(&mut o.page_size, count(SOME)), "The maximum number of entries on one page of a list."),
    key("cache_ttl", |o| slot(&mut o.cache_ttl, time(TIME)), "How long clients may cache lists and resources (2026-07-28)."),
    key("cache_scope", |o| slot(&mut o.cache_scope, choice(SCOPES)), "Who may share a cached list or resource: all callers (`public`) or one caller (`private`)."),
    key("state_key", |o| slot(&mut o.state_key, secret_key()), "The key that encrypts the state between two rounds of a request. Instances that share work need the same key. By default a random key is created at start."),
    key("address", |o| slot(&mut o.address, text(ADDRESS)), "The address to listen on: a host and a port, or `unix:` and the path of a Unix domain socket. `systemd`, or `systemd:` and a name, takes a socket that systemd has passed (feature `systemd`). An address that other machines can reach requires `[auth]` or `open_to_all`."),
    key("socket_mode", |o| slot(&mut o.socket_mode, mode()), "The permissions of the file of a Unix domain socket. A client needs the permission to write: `600` admits the same user only, `660` also the group."),
    key("path", |o| slot(&mut o.settings.path, text(PATH)), "The path of the MCP endpoint."),
    key("sse", |o| slot(&mut o.sse, flag()), "Whether HTTP+SSE (2024-11-05) is served too."),
    key("sse_path", |o| slot(&mut o.sse_path, text(PATH)), "The path of the HTTP+SSE stream."),
    key("sse_message_path", |o| slot(&mut o.sse_message_path, text(PATH)), "The path to which HTTP+SSE clients post messages."),
    key("health", |o| slot(&mut o.settings.health, flag()), "Answers health probes without authentication and for any `Host` header: `/_/healthz` with 200, `/_/readyz` with 200, or 503 while the server shuts down."),
    key("sessions", |o| slot(&mut o.settings.sessions, choice(SESSIONS)), "Whether legacy revisions (up to 2025-11-25) get sessions. `required`: every request must have a session id. `optional`: requests without one are served without a session. `stateless`: no sessions, but `initialize` returns an id. `off`: no sessions."),
    key("json_only", |o| slot(&mut o.settings.json_only, flag()), "Sends JSON responses only: no streams, no GET, no requests to the client."),
    key("allowed_origins", |o| slot(&mut o.settings.allowed_origins, text(ORIGIN)), "Origins of web pages that may send requests, besides those of the loopback interface."),
    key("allowed_hosts", |o| slot(&mut o.settings.allowed_hosts, text(HOST)), "Accepted host names, besides those of the loopback interface. Use `*` for all hosts only behind a proxy that checks the `Host` header. Requires `[auth]` or `open_to_all`."),
    key("require_origin_header", |o| slot(&mut o.settings.require_origin, flag()), "Rejects requests without an `Origin` header, so that only web pages may send requests."),
    key("open_to_all", |o| slot(&mut o.settings.open_to_all, flag()), "Serves without `[auth]` even if other machines can reach the server. Every caller may then call everything."),
    key("behind_proxy", |o| slot(&mut o.settings.behind_proxy, flag()), "A proxy or platform forwards requests of other machines to the server. Requires `[auth]` or `open_to_all`. The client's host is read from `X-Forwarded-Host`."),
    key("identity_headers", |o| slot(&mut o.settings.identity_headers, text(HEADER)), "Beginnings of the names of headers in which a platform in front of the server names the user, like `x-user-`. They are removed from requests unless `trust_platform_identity` is set. Headers that the authorizer reads are included."),
    key("trust_platform_identity", |o| slot(&mut o.settings.trust_platform_identity, flag()), "Trusts the identity headers (`identity_headers`): a platform in front of the server sets them. Without such a platform any client can send them."),

    key("limits.call_timeout", |o| slot(&mut o.limits.call_timeout, time(PAUSE)), "The timeout of a call. An entry can set its own."),
    key("limits.running_calls", |o| slot(&mut o.limits.running_calls, count(SOME)), "The maximum number of concurrent calls."),
    key("limits.waiting_calls", |o| slot(&mut o.limits.waiting_calls, count(COUNT)), "The maximum number of queued calls. Further calls are rejected."),
    key("limits.calls_per_session", |o| slot(&mut o.limits.calls_per_session, count(SOME)), "The maximum number of concurrent calls of one session."),
    key("limits.held_bytes", |o| slot(&mut o.limits.held_bytes, size(SIZE)), "The maximum number of bytes held for all clients together: request bodies, unread and retained messages of streams, results of tasks, large responses."),
    key("limits.listeners", |o| slot(&mut o.limits.listeners, count(COUNT)), "The maximum number of concurrent `subscriptions/listen` requests."),
    key("limits.listeners_per_caller", |o| slot(&mut o.limits.listeners_per_caller, count(COUNT)), "The maximum number of concurrent `subscriptions/listen` requests of one authenticated caller."),
    key("limits.state_lifetime", |o| slot(&mut o.limits.state_lifetime, time(TIME)), "The maximum time between two rounds of one request."),
    key("limits.stream.unread_messages", |o| slot(&mut o.limits.stream.unread_messages, count(SOME)), "The maximum number of unread messages of one stream."),
    key("limits.stream.unread_bytes", |o| slot(&mut o.limits.stream.unread_bytes, size(SOME_BYTES)), "The maximum size of the unread messages of one stream."),
    key("limits.stream.kept_messages", |o| slot(&mut o.limits.stream.kept_messages, count(COUNT)), "The maximum number of messages that all streams of one session retain for resumption."),
    key("limits.stream.kept_bytes", |o| slot(&mut o.limits.stream.kept_bytes, size(SIZE)), "The maximum size of the messages that all streams of one session retain for resumption."),
    key("limits.stream.blocked", |o| slot(&mut o.limits.stream.blocked, time(TIME)), "How long a writer waits for a slow reader."),

    key("http.max_body", |o| slot(&mut o.http.max_body, size(SOME_BYTES)), "The maximum size of a request body."),
    key("http.body_timeout", |o| slot(&mut o.http.body_timeout, time(PAUSE)), "The timeout for receiving a whole request body."),
    key("http.stream_after", |o| slot(&mut o.http.stream_after, time(TIME)), "The response to a call that runs longer than this becomes a stream."),
    key("http.keep_alive", |o| slot(&mut o.http.keep_alive, time(PAUSE)), "The interval at which an idle stream sends a keep-alive comment."),
    key("http.retry", |o| slot(&mut o.http.retry, time(TIME)), "The delay after which a client should reconnect to an interrupted stream."),

    key("session_limits.total", |o| slot(&mut o.settings.session_limits.total, count(COUNT)), "The maximum number of sessions."),
    key("session_limits.per_caller", |o| slot(&mut o.settings.session_limits.per_caller, count(COUNT)), "The maximum number of sessions of one authenticated caller."),
    key("session_limits.anonymous", |o| slot(&mut o.settings.session_limits.anonymous, count(COUNT)), "The maximum number of sessions of all unauthenticated callers together."),
    key("session_limits.idle", |o| slot(&mut o.settings.session_limits.idle, time(PAUSE)), "A session expires after this time without a request."),
    key("session_limits.absolute", |o| slot(&mut o.settings.session_limits.absolute, time(PAUSE)), "The maximum lifetime of a session."),
    key("session_limits.opening", |o| slot(&mut o.settings.session_limits.opening, time(PAUSE)), "A session expires if no message follows `initialize` within this time."),
    key("session_limits.flood_delay", |o| slot(&mut o.settings.session_limits.flood_delay, time(TIME)), "How long `initialize` is delayed when it evicts a session that was opened less than a second ago."),
    key("session_limits.streams", |o| slot(&mut o.settings.session_limits.streams, count(COUNT)), "The maximum number of streams of one session that are open or can be resumed."),
    key("session_limits.stream_kept", |o| slot(&mut o.settings.session_limits.stream_kept, time(TIME)), "How long a stream can be resumed after its client disconnected."),
    key("session_limits.sweep", |o| slot(&mut o.settings.session_limits.sweep, time(PAUSE)), "The interval at which expired sessions are removed."),

    key("connections.header_read", |o| slot(&mut o.settings.connections.header_read, time(PAUSE)), "The timeout for the first byte of a connection, and then for a whole request head."),
    key("connections.keep_alive_idle", |o| slot(&mut o.settings.connections.keep_alive_idle, time(PAUSE)), "The timeout of a connection without a request."),
    key("connections.blocked_write", |o| slot(&mut o.settings.connections.blocked_write, time(PAUSE)), "The timeout for a client that reads nothing while response bytes are pending."),
    key("connections.sweep", |o| slot(&mut o.settings.connections.sweep, time(PAUSE)), "The interval at which the three timeouts above are checked."),
    key("connections.max_header_bytes", |o| slot(&mut o.settings.connections.max_header_bytes, size(HEAD)), "The maximum size of an HTTP/1 request head."),
    key("connections.max_headers", |o| slot(&mut o.settings.connections.max_headers, count(HEADERS)), "The maximum number of header fields in one HTTP/1 request. Any other value than the default costs an allocation per request."),
    key("connections.h2_streams", |o| slot(&mut o.settings.connections.h2_streams, count(SOME)), "The maximum number of concurrent HTTP/2 streams of one connection."),
    key("connections.h2_stream_window", |o| slot(&mut o.settings.connections.h2_stream_window, size(WINDOW)), "The maximum number of unread request bytes of one HTTP/2 stream (flow control)."),
    key("connections.h2_connection_window", |o| slot(&mut o.settings.connections.h2_connection_window, size(WINDOW)), "The maximum number of unread request bytes of one HTTP/2 connection (flow control)."),
    key("connections.h2_send_buffer", |o| slot(&mut o.settings.connections.h2_send_buffer, size(H2_SIZE)), "The maximum number of response bytes of one HTTP/2 stream that are buffered in memory."),
    key("connections.h2_header_bytes", |o| slot(&mut o.settings.connections.h2_header_bytes, size(H2_SIZE)), "The maximum size of an HTTP/2 header list."),
    key("connections.h2_pending_resets", |o| slot(&mut o.settings.connections.h2_pending_resets, count(COUNT)), "The maximum number of HTTP/2 streams that the client resets before the service has accepted them."),
    key("connections.h2_local_resets", |o| slot(&mut o.settings.connections.h2_local_resets, count(COUNT)), "The maximum number of HTTP/2 streams that the server resets because of the client's errors."),
    key("connections.h2_ping", |o| slot(&mut o.settings.connections.h2_ping, time(PAUSE)), "The interval at which an HTTP/2 client is pinged."),
    key("connections.h2_ping_answer", |o| slot(&mut o.settings.connections.h2_ping_answer, time(PAUSE)), "The timeout for an HTTP/2 client's response to a ping."),
    key("connections.connections", |o| slot(&mut o.settings.connections.connections, count(SOME)), "The maximum number of open connections. Further connections get a 503 response."),
    key("connections.connections_per_address", |o| slot(&mut o.settings.connections.connections_per_address, count::<usize>(SOME)), "The maximum number of open connections from one IPv4 address or one IPv6 /64 network. Set `none` behind a proxy."),
    key("connections.drain", |o| slot(&mut o.settings.connections.drain, time(TIME)), "How long a shutdown waits for running requests."),
    key("connections.drain_idle", |o| slot(&mut o.settings.connections.drain_idle, time(TIME)), "How long a shutdown keeps idle connections open."),

    key("tasks.enabled", |o| slot(&mut o.tasks.enabled, flag()), "Enables the tasks extension. A tool that runs as a task enables it too."),
    key("tasks.tasks", |o| slot(&mut o.tasks.tasks, count(COUNT)), "The maximum number of tasks."),
    key("tasks.tasks_per_caller", |o| slot(&mut o.tasks.tasks_per_caller, count(COUNT)), "The maximum number of tasks of one caller."),
    key("tasks.lifetime", |o| slot(&mut o.tasks.lifetime, time(PAUSE)), "How long a task is kept after its creation."),
    key("tasks.poll_interval", |o| slot(&mut o.tasks.poll_interval, time(TIME)), "The interval at which a client should poll a task."),

    key("tls.certificate", |o| slot(&mut o.tls.certificate, file()), "A PEM file with the certificate of the server, followed by the intermediate certificates. The server then serves HTTPS. Changes are applied while the server runs. Requires `tls.key` and the feature `tls`."),
    key("tls.key", |o| slot(&mut o.tls.key, file()), "A PEM file with the private key of the certificate, without a passphrase."),
    key("tls.look_every", |o| slot(&mut o.tls.look_every, time(PAUSE)), "The interval at which both files are checked for changes."),

    key("auth.api_keys", |o| slot(&mut o.auth.api_keys, secret(API_KEY)), "API keys, each a line `name = secret` or `name = secret scope1 scope2`."),
    key("auth.api_keys_file", |o| slot(&mut o.auth.api_keys_file, file()), "A file with such lines. Changes are applied while the server runs. A relative path starts at the working directory."),
    key("auth.api_keys_look_every", |o| slot(&mut o.auth.api_keys_look_every, time(PAUSE)), "The interval at which the file is checked for changes."),
    key("auth.api_key_header", |o| slot(&mut o.auth.api_key_header, text(HEADER)), "The header that carries the API key."),
    key("auth.api_key_bearer", |o| slot(&mut o.auth.api_key_bearer, flag()), "Also accepts API keys in `Authorization: Bearer …`."),
    key("auth.api_key_query", |o| slot(&mut o.auth.api_key_query, text(WORD)), "Also accepts API keys in this query parameter. URLs are often logged, and the key with them."),
    key("auth.issuers", |o| slot(&mut o.auth.issuers, text(ISSUER)), "OAuth issuers whose access tokens are accepted, spelled exactly as in the `iss` of their tokens."),
    key("auth.audiences", |o| slot(&mut o.auth.audiences, text(WORD)), "The accepted values of `aud` in a token. Default: `auth.resource`."),
    key("auth.authorization_servers", |o| slot(&mut o.auth.authorization_servers, text(ISSUER)), "The authorization servers from which clients get tokens. Default: the issuers."),
    key("auth.algorithms", |o| slot(&mut o.auth.algorithms, name(ALGORITHMS)), "The accepted signature algorithms. Default: RS256, ES256, PS256 and EdDSA."),
    key("auth.require_token_type", |o| slot(&mut o.auth.require_token_type, flag()), "Accepts only tokens whose `typ` is `at+jwt`."),
    key("auth.leeway", |o| slot(&mut o.auth.leeway, time(LEEWAY)), "The tolerated clock difference."),
    key("auth.resource", |o| slot(&mut o.auth.resource, text(RESOURCE)), "The public URL of the endpoint, for which clients request tokens. By default it is built from the `Host` header."),
    key("auth.scopes_supported", |o| slot(&mut o.auth.scopes_supported, text(WORD)), "The scopes listed in the protected resource metadata. Default: the scopes of all entries."),
    key("auth.opening", |o| slot(&mut o.auth.opening, choice(OPENINGS)), "Whether unauthenticated callers may connect: while at least one entry allows them (`auto`), always (`open`) or never (`closed`)."),
    key("auth.listing", |o| slot(&mut o.auth.listing, choice(LISTINGS)), "Which entries lists show: all of them (`all`) or those the caller may use (`permitted`)."),
    key("auth.realm", |o| slot(&mut o.auth.realm, text(REALM)), "The realm of an authentication challenge."),
    key("auth.timeout", |o| slot(&mut o.auth.timeout, time(PAUSE)), "The timeout of the authorizer."),
];
