//! The options by their names, as methods.

use std::time::Duration;

use bindpost_mcp_http::{AnyAuthorizer, Authorizer, SessionLimits, SessionMode, listener};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{CacheScope, ServerLimits};

use super::{AuthOptions, HttpOptions, Options, TaskOptions};

impl Options {
    /// Its name, for programs.
    pub fn server_name(mut self, name: impl Into<String>) -> Options {
        self.server_name = name.into();
        self
    }

    /// Its version.
    pub fn server_version(mut self, version: impl Into<String>) -> Options {
        self.server_version = version.into();
        self
    }

    /// Its name, for people.
    pub fn title(mut self, title: impl Into<String>) -> Options {
        self.title = Some(title.into());
        self
    }

    /// What it is for.
    pub fn description(mut self, description: impl Into<String>) -> Options {
        self.description = Some(description.into());
        self
    }

    /// Its home on the web.
    pub fn website_url(mut self, url: impl Into<String>) -> Options {
        self.website_url = Some(url.into());
        self
    }

    /// How to use it, for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Options {
        self.instructions = Some(instructions.into());
        self
    }

    /// The revisions it speaks; all unless told.
    pub fn supported_protocol_versions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Options {
        self.supported_protocol_versions = revisions.into_iter().collect();
        self
    }

    /// Whether it offers its tools.
    pub fn enable_tools(mut self, enable: bool) -> Options {
        self.enable_tools = enable;
        self
    }

    /// Whether it offers its resources.
    pub fn enable_resources(mut self, enable: bool) -> Options {
        self.enable_resources = enable;
        self
    }

    /// Whether it offers its prompts.
    pub fn enable_prompts(mut self, enable: bool) -> Options {
        self.enable_prompts = enable;
        self
    }

    /// How many entries one page of a list shows; 1,000 unless told.
    pub fn page_size(mut self, size: usize) -> Options {
        self.page_size = size;
        self
    }

    /// How long lists and resources may be kept (2026-07-28); not at all unless told.
    pub fn cache_ttl(mut self, ttl: Duration) -> Options {
        self.cache_ttl = ttl;
        self
    }

    /// For whom they may be kept.
    pub fn cache_scope(mut self, scope: CacheScope) -> Options {
        self.cache_scope = scope;
        self
    }

    /// The key that seals states between two rounds of a request. Servers that share work share it;
    /// without one, a key is made at start. In a file it is written as 64 hexadecimal digits.
    pub fn state_key(mut self, key: [u8; 32]) -> Options {
        self.state_key = Some(key);
        self
    }

    /// Where it listens; default: 127.0.0.1:7071. Other machines are served only with authentication, or if it is
    /// [open to all](Options::open_to_all).
    pub fn address(mut self, address: impl Into<String>) -> Options {
        self.address = address.into();
        self
    }

    /// Where MCP is served; `/mcp` unless told.
    pub fn path(mut self, path: impl Into<String>) -> Options {
        self.path = path.into();
        self
    }

    /// Whether HTTP+SSE (2024-11-05) is served too; it is unless told.
    pub fn sse(mut self, sse: bool) -> Options {
        self.sse = sse;
        self
    }

    /// Where the stream of HTTP+SSE is; `/sse` unless told.
    pub fn sse_path(mut self, path: impl Into<String>) -> Options {
        self.sse_path = path.into();
        self
    }

    /// Where clients of HTTP+SSE post; `/message` unless told.
    pub fn sse_message_path(mut self, path: impl Into<String>) -> Options {
        self.sse_message_path = path.into();
        self
    }

    /// Whether revisions with a handshake get sessions; required unless told.
    pub fn sessions(mut self, mode: SessionMode) -> Options {
        self.sessions = mode;
        self
    }

    /// Answers are JSON only: no streams, no GET, no questions to the client.
    pub fn json_only(mut self, json_only: bool) -> Options {
        self.json_only = json_only;
        self
    }

    /// Web pages that may call, besides those of the loopback: `https://example.com`.
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Options {
        self.allowed_origins = origins.into_iter().map(Into::into).collect();
        self
    }

    /// Host names that are served, besides those of the loopback: `example.com`, `example.com:8443`, or `*`
    /// for all. They are served only with authentication, or if it is [open to all](Options::open_to_all).
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Options {
        self.allowed_hosts = hosts.into_iter().map(Into::into).collect();
        self
    }

    /// Refuses requests without an Origin: only web pages may call.
    pub fn require_origin_header(mut self, require: bool) -> Options {
        self.require_origin_header = require;
        self
    }

    /// Serves without authentication, although other machines can reach it: every caller may call everything.
    pub fn open_to_all(mut self, open: bool) -> Options {
        self.open_to_all = open;
        self
    }

    /// A proxy or a platform in front passes on what other machines send: it is served only with
    /// authentication, or if it is [open to all](Options::open_to_all).
    pub fn behind_proxy(mut self, behind: bool) -> Options {
        self.behind_proxy = behind;
        self
    }

    /// Believes the headers by which a platform in front names the user. Without that platform anybody can
    /// send them.
    pub fn trust_platform_identity(mut self, trust: bool) -> Options {
        self.trust_platform_identity = trust;
        self
    }

    /// Changes `[limits]`: how much it does at once, and for how long.
    pub fn limits(mut self, change: impl FnOnce(&mut ServerLimits)) -> Options {
        change(&mut self.limits);
        self
    }

    /// Changes `[http]`: how bodies and streams are handled.
    pub fn http(mut self, change: impl FnOnce(&mut HttpOptions)) -> Options {
        change(&mut self.http);
        self
    }

    /// Changes `[session_limits]`: how many sessions are kept, and for how long.
    pub fn session_limits(mut self, change: impl FnOnce(&mut SessionLimits)) -> Options {
        change(&mut self.session_limits);
        self
    }

    /// Changes `[connections]`: what clients are allowed before they have said anything of MCP.
    pub fn connections(mut self, change: impl FnOnce(&mut listener::ConnectionLimits)) -> Options {
        change(&mut self.connections);
        self
    }

    /// Changes `[tasks]`: the tasks extension.
    pub fn tasks(mut self, change: impl FnOnce(&mut TaskOptions)) -> Options {
        change(&mut self.tasks);
        self
    }

    /// Changes `[auth]`: who may come in.
    pub fn auth(mut self, change: impl FnOnce(&mut AuthOptions)) -> Options {
        change(&mut self.auth);
        self
    }

    /// An authorizer of the program's. It is asked first; API keys and issuers that are configured count too.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Options {
        self.authorizer = Some(AnyAuthorizer::new(authorizer));
        self
    }
}
