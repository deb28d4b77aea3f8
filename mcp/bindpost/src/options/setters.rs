//! The methods that set options, one per option name.

use std::time::Duration;

use bindpost_mcp_http::{AnyAuthorizer, Authorizer, SessionLimits, SessionMode, listener};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{CacheScope, ServerLimits};

use super::{AuthOptions, HttpOptions, Options, TaskOptions, TlsOptions};

/// Defines the method of each option: its documentation, its parameter, the field and the new value.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($value:ident: $kind:ty) => $($field:ident).+ = $new:expr;)*) => {
        impl Options {
            $($(#[$doc])*
            pub fn $name(mut self, $value: $kind) -> Options {
                self.$($field).+ = $new;
                self
            })*
        }
    };
}

setters! {
    /// Sets the server's identifier, for use by programs.
    server_name(name: impl Into<String>) => server_name = name.into();
    /// Sets the server's version.
    server_version(version: impl Into<String>) => server_version = version.into();
    /// Sets the server's display name.
    title(title: impl Into<String>) => title = Some(title.into());
    /// Sets the description of the server.
    description(description: impl Into<String>) => description = Some(description.into());
    /// Sets the URL of the server's website.
    website_url(url: impl Into<String>) => website_url = Some(url.into());
    /// Sets the instructions on how to use the server, for the model.
    instructions(instructions: impl Into<String>) => instructions = Some(instructions.into());
    /// Sets the supported revisions. Default: all.
    supported_protocol_versions(revisions: impl IntoIterator<Item = Revision>) => supported_protocol_versions = revisions.into_iter().collect();
    /// Sets whether the server offers its tools.
    enable_tools(enable: bool) => enable_tools = enable;
    /// Sets whether the server offers its resources.
    enable_resources(enable: bool) => enable_resources = enable;
    /// Sets whether the server offers its prompts.
    enable_prompts(enable: bool) => enable_prompts = enable;
    /// Sets the maximum number of entries on one page of a list. Default: 1,000.
    page_size(size: usize) => page_size = size;
    /// Sets how long clients may cache lists and resources (2026-07-28). Default: not at all.
    cache_ttl(ttl: Duration) => cache_ttl = ttl;
    /// Sets who may share a cached list or resource.
    cache_scope(scope: CacheScope) => cache_scope = scope;
    /// Sets the key that encrypts the state between two rounds of a request. Instances that share work
    /// need the same key. By default a random key is created at start. In a file the key is written as
    /// 64 hexadecimal digits.
    state_key(key: [u8; 32]) => state_key = Some(key);
    /// Sets the address to listen on: a host and a port, or `unix:` and the path of a Unix domain socket.
    /// `systemd`, or `systemd:` and a name, takes a socket that systemd has passed (feature `systemd`).
    /// Default: 127.0.0.1:7071. An address that other machines can reach requires authentication or
    /// [`open_to_all`](Options::open_to_all).
    address(address: impl Into<String>) => address = address.into();
    /// Sets the permissions of the file of a Unix domain socket. A client needs the permission to write.
    /// Default: 0o600, so that only programs of the same user can connect.
    socket_mode(mode: u32) => socket_mode = mode;
    /// Sets the path of the MCP endpoint. Default: `/mcp`.
    path(path: impl Into<String>) => settings.path = path.into();
    /// Sets whether HTTP+SSE (2024-11-05) is served too. Default: true.
    sse(sse: bool) => sse = sse;
    /// Sets the path of the HTTP+SSE stream. Default: `/sse`.
    sse_path(path: impl Into<String>) => sse_path = path.into();
    /// Sets the path to which HTTP+SSE clients post messages. Default: `/message`.
    sse_message_path(path: impl Into<String>) => sse_message_path = path.into();
    /// Answers health probes at `/_/healthz` and `/_/readyz`, without authentication. Default: false.
    health(health: bool) => settings.health = health;
    /// Sets whether legacy revisions (up to 2025-11-25) get sessions. Default: required.
    sessions(mode: SessionMode) => settings.sessions = mode;
    /// Sends JSON responses only: no streams, no GET, no requests to the client.
    json_only(json_only: bool) => settings.json_only = json_only;
    /// Sets the origins of web pages that may send requests, like `https://example.com`. Origins of the
    /// loopback interface may always send them.
    allowed_origins(origins: impl IntoIterator<Item = impl Into<String>>) => settings.allowed_origins = origins.into_iter().map(Into::into).collect();
    /// Sets the accepted host names, besides those of the loopback interface: `example.com`,
    /// `example.com:8443`, or `*` for all. Other names
    /// require authentication or [`open_to_all`](Options::open_to_all).
    allowed_hosts(hosts: impl IntoIterator<Item = impl Into<String>>) => settings.allowed_hosts = hosts.into_iter().map(Into::into).collect();
    /// Rejects requests without an `Origin` header, so that only web pages may send requests.
    require_origin_header(require: bool) => settings.require_origin = require;
    /// Serves without authentication even if other machines can reach the server. Every caller may then
    /// call everything.
    open_to_all(open: bool) => settings.open_to_all = open;
    /// Declares that a proxy or platform forwards requests of other machines to the server. This
    /// requires authentication or [`open_to_all`](Options::open_to_all).
    behind_proxy(behind: bool) => settings.behind_proxy = behind;
    /// Sets the headers in which a platform in front of the server names the user, each as the beginning
    /// of its name. They are removed from requests unless `trust_platform_identity` is set.
    identity_headers(names: impl IntoIterator<Item = impl Into<String>>) => settings.identity_headers = names.into_iter().map(Into::into).collect();
    /// Trusts the identity headers: a platform in front of the server sets them. Without such a platform
    /// any client can send them.
    trust_platform_identity(trust: bool) => settings.trust_platform_identity = trust;
}

impl Options {
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
        change(&mut self.settings.session_limits);
        self
    }

    /// Changes `[connections]`: timeouts and limits of connections.
    pub fn connections(mut self, change: impl FnOnce(&mut listener::ConnectionLimits)) -> Options {
        change(&mut self.settings.connections);
        self
    }

    /// Changes `[tasks]`: the tasks extension.
    pub fn tasks(mut self, change: impl FnOnce(&mut TaskOptions)) -> Options {
        change(&mut self.tasks);
        self
    }

    /// Changes `[tls]`: the certificate with which the server serves HTTPS. Requires the feature `tls`.
    pub fn tls(mut self, change: impl FnOnce(&mut TlsOptions)) -> Options {
        change(&mut self.tls);
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
