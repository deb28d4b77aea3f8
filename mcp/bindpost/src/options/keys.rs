//! The table: every option once, with its name, where its value goes, and what it means.
//!
//! The TOML file, the variables and `docs/options.md` all follow it. The name of a key is the path of its
//! field in [`Options`]; a part before a dot is a table of the file.

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

/// One option.
pub(super) struct OptionDefinition {
    pub(super) name: &'static str,
    pub(super) slot: for<'a> fn(&'a mut Options) -> Box<dyn OptionSlot + 'a>,
    pub(super) meaning: &'static str,
}

impl OptionDefinition {
    /// The variable that sets it.
    pub(super) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.replace('.', "__").to_ascii_uppercase())
    }

    /// The table it is in.
    pub(super) fn table(&self) -> Option<&'static str> {
        self.name.rsplit_once('.').map(|(table, _)| table)
    }
}

/// Every option, in the order of the documentation.
pub(super) fn all() -> impl Iterator<Item = &'static OptionDefinition> {
    KEYS.iter().chain(tokens::KEYS)
}

/// The option of this name.
pub(super) fn find(name: &str) -> Option<&'static OptionDefinition> {
    all().find(|key| key.name == name)
}

/// Every table.
pub(super) fn tables() -> Vec<&'static str> {
    let mut tables: Vec<&str> = all().filter_map(OptionDefinition::table).collect();
    tables.dedup();
    tables
}

/// Whether a table has this name.
pub(super) fn is_table(name: &str) -> bool {
    tables().contains(&name)
}

/// What a table has, or the file outside of all tables.
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

/// At least one, or nothing would be served.
const SOME: CountFormat = COUNT.at_least(1);
/// hyper makes room for all of them in every request.
const HEADERS: CountFormat = COUNT.at_least(1).at_most(10_000);
/// hyper refuses a smaller buffer.
const HEAD: SizeFormat = SIZE.at_least(8 << 10).at_most(1 << 30);
/// RFC 9113: a window has 31 bits.
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

/// JWS algorithms whose two sides have keys of their own.
pub(super) const ALGORITHMS: &[&str] =
    &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

#[rustfmt::skip]
const KEYS: &[OptionDefinition] = &[
    key("server_name", |o| one(&mut o.server_name, WORD), "Its name, for programs."),
    key("server_version", |o| one(&mut o.server_version, WORD), "Its version."),
    key("title", |o| maybe(&mut o.title, TEXT), "Its name, for people."),
    key("description", |o| maybe(&mut o.description, TEXT), "What it is for."),
    key("website_url", |o| maybe(&mut o.website_url, TEXT), "Its home on the web."),
    key("instructions", |o| maybe(&mut o.instructions, TEXT), "How to use it, for the model."),
    key("supported_protocol_versions", |o| some(&mut o.supported_protocol_versions, RevisionFormat), "The revisions it speaks."),
    key("enable_tools", |o| one(&mut o.enable_tools, FlagFormat), "Offers its tools."),
    key("enable_resources", |o| one(&mut o.enable_resources, FlagFormat), "Offers its resources."),
    key("enable_prompts", |o| one(&mut o.enable_prompts, FlagFormat), "Offers its prompts."),
    key("page_size", |o| one(&mut o.page_size, SOME), "How many entries one page of a list shows."),
    key("cache_ttl", |o| one(&mut o.cache_ttl, TIME), "How long lists and resources may be kept (2026-07-28)."),
    key("cache_scope", |o| one(&mut o.cache_scope, SCOPES), "For whom they may be kept: everybody, or one caller."),
    key("state_key", |o| maybe(&mut o.state_key, SecretKeyFormat), "Seals states between two rounds of a request. Servers that share work share it; without one, a key is made at start."),
    key("address", |o| one(&mut o.address, ADDRESS), "Where it listens. Other machines are served only with `[auth]` or `open_to_all`."),
    key("path", |o| one(&mut o.path, PATH), "Where MCP is served."),
    key("sse", |o| one(&mut o.sse, FlagFormat), "Serves HTTP+SSE (2024-11-05) too."),
    key("sse_path", |o| one(&mut o.sse_path, PATH), "Where its stream is."),
    key("sse_message_path", |o| one(&mut o.sse_message_path, PATH), "Where its client posts."),
    key("sessions", |o| one(&mut o.sessions, SESSIONS), "Whether revisions with a handshake get sessions: every request names one; those that name none are served alone; none, but `initialize` hands out an id; none."),
    key("json_only", |o| one(&mut o.json_only, FlagFormat), "Answers are JSON only: no streams, no GET, no questions to the client."),
    key("allowed_origins", |o| list(&mut o.allowed_origins, ORIGIN), "Web pages that may call, besides those of the loopback."),
    key("allowed_hosts", |o| list(&mut o.allowed_hosts, HOST), "Host names that are served, besides those of the loopback; `*` for all, behind a proxy that checks. Served only with `[auth]` or `open_to_all`."),
    key("require_origin_header", |o| one(&mut o.require_origin_header, FlagFormat), "Refuses requests without an Origin: only web pages may call."),
    key("open_to_all", |o| one(&mut o.open_to_all, FlagFormat), "Serves without `[auth]`, although other machines can reach it: every caller may call everything."),
    key("behind_proxy", |o| one(&mut o.behind_proxy, FlagFormat), "A proxy or platform in front passes on what other machines send. Served only with `[auth]` or `open_to_all`."),
    key("trust_platform_identity", |o| one(&mut o.trust_platform_identity, FlagFormat), "Believes the headers by which a platform in front names the user. Without that platform anybody can send them."),

    key("limits.call_timeout", |o| maybe(&mut o.limits.call_timeout, PAUSE), "How long a call may take, unless its entry says otherwise."),
    key("limits.running_calls", |o| one(&mut o.limits.running_calls, SOME), "Calls that run at once."),
    key("limits.waiting_calls", |o| one(&mut o.limits.waiting_calls, COUNT), "Calls that wait for their turn; more are refused."),
    key("limits.calls_per_session", |o| one(&mut o.limits.calls_per_session, SOME), "Calls of one session that are under way at once."),
    key("limits.held_bytes", |o| one(&mut o.limits.held_bytes, SIZE), "Bytes kept for clients, all together: bodies, streams with their pasts, results of tasks, large answers."),
    key("limits.listeners", |o| one(&mut o.limits.listeners, COUNT), "Requests that listen for changes at once."),
    key("limits.listeners_per_caller", |o| one(&mut o.limits.listeners_per_caller, COUNT), "Of one caller we know."),
    key("limits.state_lifetime", |o| one(&mut o.limits.state_lifetime, TIME), "How long a client may take between two rounds of one request."),
    key("limits.stream.unread_messages", |o| one(&mut o.limits.stream.unread_messages, SOME), "Messages of a stream that wait for its reader."),
    key("limits.stream.unread_bytes", |o| one(&mut o.limits.stream.unread_bytes, SIZE.at_least(1)), "Their bytes."),
    key("limits.stream.kept_messages", |o| one(&mut o.limits.stream.kept_messages, COUNT), "Messages kept for reading again, by all streams of a session."),
    key("limits.stream.kept_bytes", |o| one(&mut o.limits.stream.kept_bytes, SIZE), "Their bytes."),
    key("limits.stream.blocked", |o| one(&mut o.limits.stream.blocked, TIME), "How long a writer waits for a reader that is behind."),

    key("http.max_body", |o| one(&mut o.http.max_body, SIZE.at_least(1)), "The largest body."),
    key("http.body_timeout", |o| one(&mut o.http.body_timeout, PAUSE), "How long a body may take in all."),
    key("http.stream_after", |o| one(&mut o.http.stream_after, TIME), "A call that has not ended by then is answered by a stream."),
    key("http.keep_alive", |o| one(&mut o.http.keep_alive, PAUSE), "How often a stream that has nothing to say says so."),
    key("http.retry", |o| one(&mut o.http.retry, TIME), "When a client should come back to a stream that was cut."),

    key("session_limits.total", |o| one(&mut o.session_limits.total, COUNT), "Sessions at once."),
    key("session_limits.per_caller", |o| one(&mut o.session_limits.per_caller, COUNT), "Of one caller."),
    key("session_limits.anonymous", |o| one(&mut o.session_limits.anonymous, COUNT), "Of callers we do not know."),
    key("session_limits.idle", |o| one(&mut o.session_limits.idle, PAUSE), "How long one lives without a request."),
    key("session_limits.absolute", |o| one(&mut o.session_limits.absolute, PAUSE), "How long one lives in all."),
    key("session_limits.opening", |o| one(&mut o.session_limits.opening, PAUSE), "For the first message after `initialize`."),
    key("session_limits.flood_delay", |o| one(&mut o.session_limits.flood_delay, TIME), "How long `initialize` is delayed when it evicts a session that was opened less than a second ago."),
    key("session_limits.streams", |o| one(&mut o.session_limits.streams, COUNT), "Streams of one session that are open or can be taken up again."),
    key("session_limits.stream_kept", |o| one(&mut o.session_limits.stream_kept, TIME), "How long a stream that nobody reads can be taken up again."),
    key("session_limits.sweep", |o| one(&mut o.session_limits.sweep, PAUSE), "How often expired sessions are looked for."),

    key("connections.header_read", |o| one(&mut o.connections.header_read, PAUSE), "For the first byte of a connection, and then for a whole request head."),
    key("connections.keep_alive_idle", |o| one(&mut o.connections.keep_alive_idle, PAUSE), "For a connection without a request."),
    key("connections.blocked_write", |o| one(&mut o.connections.blocked_write, PAUSE), "For a client that takes nothing while bytes wait for it."),
    key("connections.sweep", |o| one(&mut o.connections.sweep, PAUSE), "How often the three above are looked at."),
    key("connections.max_header_bytes", |o| one(&mut o.connections.max_header_bytes, HEAD), "The largest HTTP/1 request head."),
    key("connections.max_headers", |o| one(&mut o.connections.max_headers, HEADERS), "Header fields in one HTTP/1 request; any other number costs an allocation per request."),
    key("connections.h2_streams", |o| one(&mut o.connections.h2_streams, SOME), "Concurrent HTTP/2 streams of one connection."),
    key("connections.h2_stream_window", |o| one(&mut o.connections.h2_stream_window, WINDOW), "Unread request bytes of one HTTP/2 stream."),
    key("connections.h2_connection_window", |o| one(&mut o.connections.h2_connection_window, WINDOW), "Unread request bytes of one HTTP/2 connection."),
    key("connections.h2_send_buffer", |o| one(&mut o.connections.h2_send_buffer, H2_SIZE), "Response bytes of one HTTP/2 stream that wait in memory."),
    key("connections.h2_header_bytes", |o| one(&mut o.connections.h2_header_bytes, H2_SIZE), "The largest HTTP/2 header list."),
    key("connections.h2_pending_resets", |o| one(&mut o.connections.h2_pending_resets, COUNT), "HTTP/2 streams reset by the client before the service saw them."),
    key("connections.h2_local_resets", |o| one(&mut o.connections.h2_local_resets, COUNT), "HTTP/2 streams reset by us because of the client's mistakes."),
    key("connections.h2_ping", |o| one(&mut o.connections.h2_ping, PAUSE), "How often an HTTP/2 client is pinged."),
    key("connections.h2_ping_answer", |o| one(&mut o.connections.h2_ping_answer, PAUSE), "For its answer to a ping."),
    key("connections.connections", |o| one(&mut o.connections.connections, SOME), "Open connections; one more is answered 503."),
    key("connections.connections_per_address", |o| maybe(&mut o.connections.connections_per_address, SOME), "Of one IPv4 address or one IPv6 /64 network; `none` behind a proxy."),
    key("connections.drain", |o| one(&mut o.connections.drain, TIME), "For requests under way when the drain begins."),
    key("connections.drain_idle", |o| one(&mut o.connections.drain_idle, TIME), "How long a drain leaves idle connections open."),

    key("tasks.enabled", |o| one(&mut o.tasks.enabled, FlagFormat), "Turns on the tasks extension."),
    key("tasks.tasks", |o| one(&mut o.tasks.tasks, COUNT), "Tasks kept at once."),
    key("tasks.tasks_per_caller", |o| one(&mut o.tasks.tasks_per_caller, COUNT), "Of one caller."),
    key("tasks.lifetime", |o| one(&mut o.tasks.lifetime, PAUSE), "How long a task is kept from its creation on."),
    key("tasks.poll_interval", |o| one(&mut o.tasks.poll_interval, TIME), "How often a client should ask."),

    key("auth.api_keys", |o| list(&mut o.auth.api_keys, API_KEY), "API keys, each a line `name = secret` or `name = secret scope1 scope2`."),
    key("auth.api_keys_file", |o| maybe(&mut o.auth.api_keys_file, PathFormat), "A file with such lines, looked at while the server serves. A relative path begins in the working directory."),
    key("auth.api_keys_look_every", |o| one(&mut o.auth.api_keys_look_every, PAUSE), "How often that file is looked at."),
    key("auth.api_key_header", |o| one(&mut o.auth.api_key_header, HEADER), "The header that keys are sent in."),
    key("auth.api_key_bearer", |o| one(&mut o.auth.api_key_bearer, FlagFormat), "Reads keys from `Authorization: Bearer …` as well."),
    key("auth.api_key_query", |o| maybe(&mut o.auth.api_key_query, WORD), "Reads keys from this parameter of the query as well. What is in an address ends up in logs."),
    key("auth.issuers", |o| list(&mut o.auth.issuers, ISSUER), "OAuth issuers whose access tokens are taken, spelled as their tokens spell them."),
    key("auth.audiences", |o| list(&mut o.auth.audiences, WORD), "What `aud` of a token may be; `auth.resource` unless told."),
    key("auth.authorization_servers", |o| list(&mut o.auth.authorization_servers, ISSUER), "Where clients get tokens, instead of the issuers."),
    key("auth.algorithms", |o| list(&mut o.auth.algorithms, NameFormat(ALGORITHMS)), "How tokens may be signed; RS256, ES256, PS256 and EdDSA unless told."),
    key("auth.require_token_type", |o| one(&mut o.auth.require_token_type, FlagFormat), "Takes only tokens that say they are access tokens: `typ` is `at+jwt`."),
    key("auth.leeway", |o| one(&mut o.auth.leeway, TIME.at_most(Duration::from_secs(300))), "By how much clocks may differ."),
    key("auth.resource", |o| maybe(&mut o.auth.resource, RESOURCE), "The public address of the endpoint, which clients ask tokens for. Made up from the Host header unless told."),
    key("auth.scopes_supported", |o| list(&mut o.auth.scopes_supported, WORD), "The scopes that are named in the metadata; those of all entries unless told."),
    key("auth.opening", |o| one(&mut o.auth.opening, OPENINGS), "Whether strangers may open a conversation: while an entry is for anybody, always, or never."),
    key("auth.listing", |o| one(&mut o.auth.listing, LISTINGS), "What lists show: everything, or what the caller may use."),
    key("auth.realm", |o| one(&mut o.auth.realm, REALM), "What a challenge says it is for."),
    key("auth.timeout", |o| one(&mut o.auth.timeout, PAUSE), "How long the authorizer may take."),
];
