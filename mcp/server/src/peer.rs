//! [`Peer`]: the client of one request.

pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod subscriptions;

use std::sync::Arc;

use bindpost_mcp_protocol::lifecycle::LogLevel;
use bindpost_mcp_protocol::{Params, Revision, meta};

use self::session::Session;
use crate::error::ProtocolError;

/// The client of one request.
#[derive(Clone, Debug)]
pub enum Peer {
    /// The client opened a session by a handshake.
    Session(Arc<Session>),
    /// The request has no session. In modern revisions it carries the client's data in its envelope. In
    /// legacy revisions the data is unknown, and the client cannot be sent requests.
    Alone(Revision),
}

impl Peer {
    /// Returns the revision that the client uses.
    pub fn revision(&self) -> Revision {
        match self {
            Peer::Session(session) => session.revision(),
            Peer::Alone(revision) => *revision,
        }
    }

    /// Returns the session, if the request has one.
    pub fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Peer::Session(session) => Some(session),
            Peer::Alone(_) => None,
        }
    }

    /// Returns whether the parameters have an envelope, which names the revision.
    pub fn has_envelope(params: &Params) -> bool {
        params.meta(meta::PROTOCOL_VERSION).is_some()
    }

    /// Parses the envelope of a stateless request (2026-07-28). It must name the revision and the
    /// capabilities of the client. `served` are the revisions of the [server](crate::Server::revisions),
    /// for the error that lists them.
    pub fn from_envelope(params: &Params, served: &[Revision]) -> Result<Peer, ProtocolError> {
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
            None => Err(ProtocolError::unsupported_version(version, served)),
        }
    }

    /// Returns the log level that a stateless request asks for. `None` means no log messages.
    pub(crate) fn log_level_of(params: &Params) -> Result<Option<LogLevel>, ProtocolError> {
        match params.meta(meta::LOG_LEVEL) {
            None => Ok(None),
            Some(level) => level.decode().map(Some).map_err(|_| {
                ProtocolError::BrokenEnvelope(format!(
                    "_meta[{:?}]: {} is not a log level; use debug, info, notice, warning, error, critical, alert or emergency",
                    meta::LOG_LEVEL,
                    level.as_json()
                ))
            }),
        }
    }
}
