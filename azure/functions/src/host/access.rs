//! [`AccessPolicy`]: the access settings of the operator. [`ServerProfile`]: the settings of an app that
//! clients see before they use any function.

use std::path::Path;
use std::time::Duration;

use bindpost_azure_hosting::IDENTITY_HEADERS;
use bindpost_mcp_http::listener::ConnectionLimits as Connections;
use bindpost_mcp_http::{Auth, SessionMode, Settings, SseOptions};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{Entry, Server, ServerLimits as CallLimits, TaskLimits};

use crate::app::{App, CustomHandlerConfig};
use crate::entries;
use crate::error::HostError;
use crate::function::AuthorizationLevel;
use crate::host::front::{MCP_PATH, SSE_PATHS};
use crate::host::keys::{self, KeysError};

/// How often HTTP+SSE clients are pinged. The platform uses the same interval.
const PING: Duration = Duration::from_secs(25);

/// The access settings: keys, hosts, origins and the platform's identity headers.
#[derive(Clone, Debug, Default)]
pub struct AccessPolicy {
    /// Whether callers need a key.
    pub keys: KeyRequirement,
    /// Host names that are allowed besides those of the loopback.
    pub allowed_hosts: Vec<String>,
    /// Origins that are allowed besides those that `local.settings.json` names.
    pub allowed_origins: Vec<String>,
    /// Trusts the identity headers that a platform in front sets. Otherwise functions do not see them.
    pub trusts_platform: bool,
}

/// Whether callers need a key. If they do not, every client that reaches the address may call every function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyRequirement {
    /// No key is required. `host.json` is ignored.
    #[default]
    Never,
    /// `webhookAuthorizationLevel` of `host.json` decides. A change applies at once.
    AsTheLevelSays,
    /// A key is always required. `host.json` is ignored.
    Always,
}

impl AccessPolicy {
    /// Returns whether callers of this app need a key.
    pub fn requires_key(&self, app: &App) -> bool {
        match self.keys {
            KeyRequirement::Never => false,
            KeyRequirement::AsTheLevelSays => match app.self_hosted() {
                Some(server) => {
                    server.routes.iter().any(|route| route.level != AuthorizationLevel::Anonymous)
                }
                None => !app.host.mcp.is_anonymous(),
            },
            KeyRequirement::Always => true,
        }
    }
}

impl AccessPolicy {
    /// Returns whether every request to a self-hosted app needs a key.
    pub(crate) fn requires_key_everywhere(&self, app: &App) -> bool {
        let is_anonymous = |server: &CustomHandlerConfig| {
            server.routes.iter().any(|route| route.level == AuthorizationLevel::Anonymous)
        };
        match self.keys {
            KeyRequirement::Never => false,
            KeyRequirement::AsTheLevelSays => !app.self_hosted().is_some_and(is_anonymous),
            KeyRequirement::Always => true,
        }
    }
}

/// The settings of an app that clients see before they use any function: the server's name and the access
/// settings. Two equal profiles can be served by one endpoint. When the profile changes, clients must
/// reconnect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerProfile {
    server_name: String,
    server_version: String,
    instructions: Option<String>,
    requires_key: bool,
    uses_absolute_uri: bool,
    max_body: u64,
    /// The origins that `local.settings.json` names.
    origins: Vec<String>,
    /// The lifetime of tasks, if a tool runs as a task.
    task_lifetime: Option<Duration>,
}

impl ServerProfile {
    /// Returns the profile of an app. `uses_tasks` is whether a tool of the app runs as a task.
    pub(crate) fn new(app: &App, door: &AccessPolicy, uses_tasks: bool) -> ServerProfile {
        let mcp = &app.host.mcp;
        ServerProfile {
            server_name: mcp.server_name.clone(),
            server_version: mcp.server_version.clone(),
            instructions: mcp.instructions.clone(),
            requires_key: door.requires_key(app),
            uses_absolute_uri: mcp.use_absolute_uri_for_endpoint,
            max_body: mcp.max_request_body_bytes,
            origins: app.local.cors.clone(),
            task_lifetime: uses_tasks.then_some(mcp.tasks.lifetime),
        }
    }

    /// Returns the members of `host.json` and `local.settings.json` in which two profiles differ. With
    /// `over_http` false, it returns only those that also apply to stdio.
    pub(crate) fn differences(&self, other: &ServerProfile, over_http: bool) -> Vec<&'static str> {
        let ServerProfile { server_name, server_version, instructions, .. } = other;
        let ServerProfile { requires_key, uses_absolute_uri, max_body, origins, task_lifetime, .. } = other;
        let always = [
            ("serverName", self.server_name != *server_name),
            ("serverVersion", self.server_version != *server_version),
            ("instructions", self.instructions != *instructions),
            ("tasks", self.task_lifetime != *task_lifetime),
        ];
        let with_http = [
            ("webhookAuthorizationLevel", self.requires_key != *requires_key),
            ("useAbsoluteUriForEndpoint", self.uses_absolute_uri != *uses_absolute_uri),
            ("maxRequestBodyBytes", self.max_body != *max_body),
            ("CORS", self.origins != *origins),
        ];
        let members = always.into_iter().chain(with_http.into_iter().filter(|_| over_http));
        members.filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    pub(crate) fn requires_key(&self) -> bool {
        self.requires_key
    }

    pub(crate) fn has_tasks(&self) -> bool {
        self.task_lifetime.is_some()
    }

    /// Returns limits that allow a few bodies of the maximum size at once. A body needs up to twice its size
    /// while it is received.
    fn limits(&self) -> CallLimits {
        const LARGEST_BODIES: u64 = 5;
        let defaults = CallLimits::default();
        let held_bytes = usize::try_from(self.max_body.saturating_mul(LARGEST_BODIES)).unwrap_or(usize::MAX);
        let held_bytes = held_bytes.max(defaults.held_bytes);
        CallLimits { call_timeout: None, calls_per_session: 100, held_bytes, ..defaults }
    }

    /// Builds a server with this profile.
    pub(crate) fn server(&self, entries: Vec<Entry>) -> Result<Server, HostError> {
        let mut builder = Server::builder(&self.server_name, &self.server_version)
            .ignore_case()
            .map_not_found(entries::unknown_entry_error)
            .offer_all()
            .limits(self.limits())
            .add(entries);
        if let Some(instructions) = &self.instructions {
            builder = builder.instructions(instructions);
        }
        if let Some(lifetime) = self.task_lifetime {
            builder = builder.tasks(TaskLimits { lifetime, ..TaskLimits::default() });
        }
        builder.build().map_err(|error| HostError::Server(error.to_string()))
    }

    /// Returns the authentication by keys, if keys are required. Creates the keys in the state folder of the app
    /// if they do not exist.
    pub(crate) fn auth(&self, state_folder: &Path) -> Result<Option<Auth>, KeysError> {
        if !self.requires_key {
            return Ok(None);
        }
        let (keys, _) = keys::open(state_folder)?;
        Ok(Some(Auth::new(keys.accept_names(keys::is_for_endpoint))))
    }

    /// Returns the HTTP settings for this profile and this access policy. `drain` is how long running calls
    /// may continue when the server stops.
    pub(crate) fn settings(&self, door: &AccessPolicy, auth: Option<Auth>, drain: Duration) -> Settings {
        let mut allowed_hosts = door.allowed_hosts.clone();
        if auth.is_some() && allowed_hosts.is_empty() {
            // A key is required anyway, so any host name is allowed.
            allowed_hosts.push("*".to_owned());
        }
        Settings {
            path: MCP_PATH.to_owned(),
            sse_paths: Some((SSE_PATHS.0.to_owned(), SSE_PATHS.1.to_owned())),
            sse: SseOptions {
                absolute: self.uses_absolute_uri,
                repeats: vec![keys::PARAMETER.to_owned()],
                ping: Some(PING),
            },
            allowed_hosts,
            allowed_origins: door.allowed_origins.iter().chain(&self.origins).cloned().collect(),
            // The platform's own clients call tools without a handshake.
            sessions: SessionMode::Optional,
            without_header: Revision::V2025_06_18,
            identity_headers: IDENTITY_HEADERS.map(str::to_owned).into(),
            trust_platform_identity: door.trusts_platform,
            connections: Connections { drain, header_names: true, ..Connections::default() },
            max_body: usize::try_from(self.max_body).unwrap_or(usize::MAX),
            open_to_all: auth.is_none(),
            auth,
            ..Settings::default()
        }
    }
}
