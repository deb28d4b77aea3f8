//! The methods that set options, one per option name.

use std::time::Duration;

use bindpost_mcp_http::{AnyAuthorizer, Authorizer, SessionLimits, SessionMode, listener};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{CacheScope, ServerLimits};

use super::{AuthOptions, HttpOptions, Options, TaskOptions};

impl Options {
    /// Sets the server's identifier, for use by programs.
    pub fn server_name(mut self, name: impl Into<String>) -> Options {
        self.server_name = name.into();
        self
    }

    /// Sets the server's version.
    pub fn server_version(mut self, version: impl Into<String>) -> Options {
        self.server_version = version.into();
        self
    }

    /// Sets the server's display name.
    pub fn title(mut self, title: impl Into<String>) -> Options {
        self.title = Some(title.into());
        self
    }

    /// Sets the description of the server.
    pub fn description(mut self, description: impl Into<String>) -> Options {
        self.description = Some(description.into());
        self
    }

    /// Sets the URL of the server's website.
    pub fn website_url(mut self, url: impl Into<String>) -> Options {
        self.website_url = Some(url.into());
        self
    }

    /// Sets the instructions on how to use the server, for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Options {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the supported revisions. Default: all.
    pub fn supported_protocol_versions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Options {
        self.supported_protocol_versions = revisions.into_iter().collect();
        self
    }

    /// Sets whether the server offers its tools.
    pub fn enable_tools(mut self, enable: bool) -> Options {
        self.enable_tools = enable;
        self
    }

    /// Sets whether the server offers its resources.
    pub fn enable_resources(mut self, enable: bool) -> Options {
        self.enable_resources = enable;
        self
    }

    /// Sets whether the server offers its prompts.
    pub fn enable_prompts(mut self, enable: bool) -> Options {
        self.enable_prompts = enable;
        self
    }

    /// Sets the maximum number of entries on one page of a list. Default: 1,000.
    pub fn page_size(mut self, size: usize) -> Options {
        self.page_size = size;
        self
    }

    /// Sets how long clients may cache lists and resources (2026-07-28). Default: not at all.
    pub fn cache_ttl(mut self, ttl: Duration) -> Options {
        self.cache_ttl = ttl;
        self
    }

    /// Sets who may share a cached list or resource.
    pub fn cache_scope(mut self, scope: CacheScope) -> Options {
        self.cache_scope = scope;
        self
    }

    /// Sets the key that encrypts the state between two rounds of a request. Instances that share work
    /// need the same key. By default a random key is created at start. In a file the key is written as
    /// 64 hexadecimal digits.
    pub fn state_key(mut self, key: [u8; 32]) -> Options {
        self.state_key = Some(key);
        self
    }

    /// Sets the address to listen on. Default: 127.0.0.1:7071. An address that other machines can reach
    /// requires authentication or [`open_to_all`](Options::open_to_all).
    pub fn address(mut self, address: impl Into<String>) -> Options {
        self.address = address.into();
        self
    }

    /// Sets the path of the MCP endpoint. Default: `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Options {
        self.path = path.into();
        self
    }

    /// Sets whether HTTP+SSE (2024-11-05) is served too. Default: true.
    pub fn sse(mut self, sse: bool) -> Options {
        self.sse = sse;
        self
    }

    /// Sets the path of the HTTP+SSE stream. Default: `/sse`.
    pub fn sse_path(mut self, path: impl Into<String>) -> Options {
        self.sse_path = path.into();
        self
    }

    /// Sets the path to which HTTP+SSE clients post messages. Default: `/message`.
    pub fn sse_message_path(mut self, path: impl Into<String>) -> Options {
        self.sse_message_path = path.into();
        self
    }

    /// Sets whether legacy revisions (up to 2025-11-25) get sessions. Default: required.
    pub fn sessions(mut self, mode: SessionMode) -> Options {
        self.sessions = mode;
        self
    }

    /// Sends JSON responses only: no streams, no GET, no requests to the client.
    pub fn json_only(mut self, json_only: bool) -> Options {
        self.json_only = json_only;
        self
    }

    /// Sets the origins of web pages that may send requests, like `https://example.com`. Origins of the
    /// loopback interface may always send them.
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Options {
        self.allowed_origins = origins.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the accepted host names, besides those of the loopback interface: `example.com`,
    /// `example.com:8443`, or `*` for all. Other names
    /// require authentication or [`open_to_all`](Options::open_to_all).
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Options {
        self.allowed_hosts = hosts.into_iter().map(Into::into).collect();
        self
    }

    /// Rejects requests without an `Origin` header, so that only web pages may send requests.
    pub fn require_origin_header(mut self, require: bool) -> Options {
        self.require_origin_header = require;
        self
    }

    /// Serves without authentication even if other machines can reach the server. Every caller may then
    /// call everything.
    pub fn open_to_all(mut self, open: bool) -> Options {
        self.open_to_all = open;
        self
    }

    /// Declares that a proxy or platform forwards requests of other machines to the server. This
    /// requires authentication or [`open_to_all`](Options::open_to_all).
    pub fn behind_proxy(mut self, behind: bool) -> Options {
        self.behind_proxy = behind;
        self
    }

    /// Trusts the headers in which a platform in front of the server names the user. Without such a
    /// platform any client can send these headers.
    pub fn trust_platform_identity(mut self, trust: bool) -> Options {
        self.trust_platform_identity = trust;
        self
    }

    /// Changes `[limits]`: limits on calls, streams and memory.
    pub fn limits(mut self, change: impl FnOnce(&mut ServerLimits)) -> Options {
        change(&mut self.limits);
        self
    }

    /// Changes `[http]`: how request bodies and streams are handled.
    pub fn http(mut self, change: impl FnOnce(&mut HttpOptions)) -> Options {
        change(&mut self.http);
        self
    }

    /// Changes `[session_limits]`: limits on the number of sessions and on their lifetime.
    pub fn session_limits(mut self, change: impl FnOnce(&mut SessionLimits)) -> Options {
        change(&mut self.session_limits);
        self
    }

    /// Changes `[connections]`: timeouts and limits of connections.
    pub fn connections(mut self, change: impl FnOnce(&mut listener::ConnectionLimits)) -> Options {
        change(&mut self.connections);
        self
    }

    /// Changes `[tasks]`: the tasks extension.
    pub fn tasks(mut self, change: impl FnOnce(&mut TaskOptions)) -> Options {
        change(&mut self.tasks);
        self
    }

    /// Changes `[auth]`: the authentication options.
    pub fn auth(mut self, change: impl FnOnce(&mut AuthOptions)) -> Options {
        change(&mut self.auth);
        self
    }

    /// Adds an authorizer of the program. It runs first. Configured API keys and issuers stay valid.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Options {
        self.authorizer = Some(AnyAuthorizer::new(authorizer));
        self
    }
}
