//! [`AccessPolicy`]: who may come in. [`ServerProfile`]: what clients meet of an app before any of its functions.

use std::path::Path;
use std::time::Duration;

use bindpost_mcp_http::listener::ConnectionLimits as Connections;
use bindpost_mcp_http::{Auth, SessionMode, Settings, SseOptions};
use bindpost_mcp_protocol::Revision;
use bindpost_mcp_server::{Entry, Server, ServerLimits as CallLimits};

use crate::app::App;
use crate::entries;
use crate::error::HostError;
use crate::front_door::{MCP_PATH, SSE_PATHS};
use crate::keys::{self, KeysError};

/// How often HTTP+SSE clients are pinged, as on the platform.
const PING: Duration = Duration::from_secs(25);

/// Who may come in.
#[derive(Clone, Debug, Default)]
pub struct AccessPolicy {
    /// Whether callers need a key.
    pub keys: KeyRequirement,
    /// Host names that are served besides those of the loopback.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call, besides those that `local.settings.json` names.
    pub allowed_origins: Vec<String>,
    /// Believes the headers by which a platform in front names the user; otherwise functions do not see them.
    pub trusts_platform: bool,
}

/// Whether callers need a key. Without one, all who reach the address may call everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyRequirement {
    /// They do not, whatever `host.json` says.
    #[default]
    Never,
    /// As `webhookAuthorizationLevel` of `host.json` says, from the moment on that it is changed.
    AsTheLevelSays,
    /// They do, whatever `host.json` says.
    Always,
}

impl AccessPolicy {
    /// Whether callers of this app need a key.
    pub fn requires_key(&self, app: &App) -> bool {
        match self.keys {
            KeyRequirement::Never => false,
            KeyRequirement::AsTheLevelSays => !app.host.mcp.is_anonymous(),
            KeyRequirement::Always => true,
        }
    }
}

/// What clients meet of an app before any of its functions, as its files say: the server's name, and who may
/// come in. Two that are equal can be served by one endpoint; a client that met another one connects again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerProfile {
    server_name: String,
    server_version: String,
    instructions: Option<String>,
    requires_key: bool,
    uses_absolute_uri: bool,
    max_body: u64,
    /// Origins that `local.settings.json` names.
    origins: Vec<String>,
}

impl ServerProfile {
    pub(crate) fn new(app: &App, door: &AccessPolicy) -> ServerProfile {
        let mcp = &app.host.mcp;
        ServerProfile {
            server_name: mcp.server_name.clone(),
            server_version: mcp.server_version.clone(),
            instructions: mcp.instructions.clone(),
            requires_key: door.requires_key(app),
            uses_absolute_uri: mcp.use_absolute_uri_for_endpoint,
            max_body: mcp.max_request_body_bytes,
            origins: app.local.cors.clone(),
        }
    }

    /// The members of `host.json` and `local.settings.json` in which the other one differs. With
    /// `over_http` false, only those that count without HTTP too.
    pub(crate) fn differences(&self, other: &ServerProfile, over_http: bool) -> Vec<&'static str> {
        let ServerProfile { server_name, server_version, instructions, .. } = other;
        let ServerProfile { requires_key, uses_absolute_uri, max_body, origins, .. } = other;
        let always = [
            ("serverName", self.server_name != *server_name),
            ("serverVersion", self.server_version != *server_version),
            ("instructions", self.instructions != *instructions),
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

    /// Room for a few bodies of the largest size at once: one takes up to twice its size while it is received.
    fn limits(&self) -> CallLimits {
        const LARGEST_BODIES: u64 = 5;
        let defaults = CallLimits::default();
        let held_bytes = usize::try_from(self.max_body.saturating_mul(LARGEST_BODIES)).unwrap_or(usize::MAX);
        let held_bytes = held_bytes.max(defaults.held_bytes);
        CallLimits { call_timeout: None, calls_per_session: 100, held_bytes, ..defaults }
    }

    /// A server with this face.
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
        builder.build().map_err(|error| HostError::Server(error.to_string()))
    }

    /// What asks for keys, if they are asked for. Makes those of the app in this folder if there are none yet.
    pub(crate) fn auth(&self, folder: &Path) -> Result<Option<Auth>, KeysError> {
        if !self.requires_key {
            return Ok(None);
        }
        let (keys, _) = keys::open(&folder.join(".bindpost"))?;
        Ok(Some(Auth::new(keys)))
    }

    /// How such a server is served through this door. `drain` is how long calls may go on at the end.
    pub(crate) fn settings(&self, door: &AccessPolicy, auth: Option<Auth>, drain: Duration) -> Settings {
        let mut allowed_hosts = door.allowed_hosts.clone();
        if auth.is_some() && allowed_hosts.is_empty() {
            // A caller that knows the key may use any name of this host.
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
            trust_platform_identity: door.trusts_platform,
            connections: Connections { drain, ..Connections::default() },
            max_body: usize::try_from(self.max_body).unwrap_or(usize::MAX),
            open_to_all: auth.is_none(),
            auth,
            ..Settings::default()
        }
    }
}
