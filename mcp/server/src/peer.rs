//! [`Peer`]: what we know of the client for one request.

pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod subscriptions;

use std::sync::Arc;

use bindpost_mcp_protocol::lifecycle::LogLevel;
use bindpost_mcp_protocol::{Params, Revision, meta};

use self::session::Session;
use crate::error::ProtocolError;

/// What we know of the client for one request.
#[derive(Clone, Debug)]
pub enum Peer {
    /// It opened a session by a handshake.
    Session(Arc<Session>),
    /// The request stands alone: in 2026-07-28 it says of itself what we need to know; in an older
    /// revision without a session we know nothing and cannot ask.
    Alone(Revision),
}

impl Peer {
    /// The revision the client speaks.
    pub fn revision(&self) -> Revision {
        match self {
            Peer::Session(session) => session.revision(),
            Peer::Alone(revision) => *revision,
        }
    }

    /// The session, if there is one.
    pub fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Peer::Session(session) => Some(session),
            Peer::Alone(_) => None,
        }
    }

    /// Whether the parameters claim to stand alone: they name their revision.
    pub fn has_envelope(params: &Params) -> bool {
        params.meta(meta::PROTOCOL_VERSION).is_some()
    }

    /// Reads what a request that stands alone says of itself (2026-07-28): the revision, and that the
    /// capabilities are there.
    pub fn from_envelope(params: &Params) -> Result<Peer, ProtocolError> {
        let broken = |reason: String| Err(ProtocolError::BrokenEnvelope(reason));
        let Some(version) = params.meta(meta::PROTOCOL_VERSION) else {
            return broken(format!("_meta[{:?}] is missing", meta::PROTOCOL_VERSION));
        };
        let Some(version) = version.as_text() else {
            return broken(format!("_meta[{:?}] must be a string", meta::PROTOCOL_VERSION));
        };
        match params.meta(meta::CLIENT_CAPABILITIES) {
            None => return broken(format!("_meta[{:?}] is missing", meta::CLIENT_CAPABILITIES)),
            Some(capabilities) if !capabilities.is_object() => {
                return broken(format!("_meta[{:?}] must be an object", meta::CLIENT_CAPABILITIES));
            }
            Some(_) => {}
        }
        match Revision::parse(&version).filter(|revision| !revision.has_handshake()) {
            Some(revision) => Ok(Peer::Alone(revision)),
            None => Err(ProtocolError::UnsupportedVersion(version.into_owned())),
        }
    }

    /// The log level a request that stands alone asks for; `None` means no log messages.
    pub(crate) fn log_level_of(params: &Params) -> Result<Option<LogLevel>, ProtocolError> {
        match params.meta(meta::LOG_LEVEL) {
            None => Ok(None),
            Some(level) => level.decode().map(Some).map_err(|_| {
                ProtocolError::BrokenEnvelope(format!(
                    "_meta[{:?}]: {} is no log level; use debug, info, notice, warning, error, critical, alert or emergency",
                    meta::LOG_LEVEL,
                    level.as_json()
                ))
            }),
        }
    }
}
