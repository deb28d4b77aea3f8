//! [`RouteAccess`]: who may call a function with an HTTP trigger, by its level.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bindpost_mcp_http::{ApiKeys, Authorizer as _, HttpRequest};
use http::request::Parts;

use crate::function::AuthorizationLevel;
use crate::host::access::KeyRequirement;
use crate::host::keys::{self, KeyKind, KeysError};

/// Decides whether a request may call a function. The keys are opened when they are first needed.
#[derive(Debug)]
pub(crate) struct RouteAccess {
    requirement: KeyRequirement,
    folder: PathBuf,
    keys: Mutex<Option<Arc<ApiKeys>>>,
    /// Whether a system key, such as that of the MCP extension, opens the level `function`.
    accepts_system_keys: bool,
}

impl RouteAccess {
    /// `folder` is the folder of the key file.
    pub(crate) fn new(requirement: KeyRequirement, folder: PathBuf) -> RouteAccess {
        RouteAccess { requirement, folder, keys: Mutex::default(), accepts_system_keys: false }
    }

    /// Accepts system keys too: the routes of a self-hosted app are its MCP endpoint.
    pub(crate) fn with_system_keys(self) -> RouteAccess {
        RouteAccess { accepts_system_keys: true, ..self }
    }

    /// Returns the level that applies to a function of this level: none on a loopback address, and at least a key if the
    /// operator requires one.
    fn effective_level(&self, level: AuthorizationLevel) -> AuthorizationLevel {
        match (self.requirement, level) {
            (KeyRequirement::Never, _) => AuthorizationLevel::Anonymous,
            (KeyRequirement::Always, AuthorizationLevel::Anonymous) => AuthorizationLevel::Function,
            (_, level) => level,
        }
    }

    /// Opens the keys if a function of one of these levels needs them, so that a problem is reported at start.
    pub(crate) fn prepare(
        &self,
        levels: impl IntoIterator<Item = AuthorizationLevel>,
    ) -> Result<(), KeysError> {
        let needs_keys = |level| self.effective_level(level) != AuthorizationLevel::Anonymous;
        if levels.into_iter().any(needs_keys) { self.open_keys().map(drop) } else { Ok(()) }
    }

    /// Returns whether the request has a key for this function.
    pub(crate) async fn permits(&self, level: AuthorizationLevel, function: &str, request: &Parts) -> bool {
        let level = self.effective_level(level);
        if level == AuthorizationLevel::Anonymous {
            return true;
        }
        let keys = match self.open_keys() {
            Ok(keys) => keys,
            Err(error) => {
                tracing::error!(target: "host", "all callers of function {function} are rejected: {error}");
                return false;
            }
        };
        let head = HttpRequest { parts: request.clone(), peer: None };
        let Ok(caller) = keys.authorize(&head).await else { return false };
        match caller.id().and_then(keys::kind_of) {
            Some(KeyKind::Master) => true,
            Some(KeyKind::Host) => level == AuthorizationLevel::Function,
            Some(KeyKind::Function(name)) => {
                level == AuthorizationLevel::Function && name.eq_ignore_ascii_case(function)
            }
            Some(KeyKind::System) => self.accepts_system_keys && level == AuthorizationLevel::Function,
            None => false,
        }
    }

    fn open_keys(&self) -> Result<Arc<ApiKeys>, KeysError> {
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*known {
            return Ok(keys.clone());
        }
        let (keys, _) = keys::open(&self.folder)?;
        let keys = Arc::new(keys);
        *known = Some(keys.clone());
        Ok(keys)
    }
}
