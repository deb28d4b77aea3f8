//! What a request belongs to: it stands alone, it names a session, or neither.

use std::sync::Arc;

use bindpost_mcp_protocol::jsonrpc::{INVALID_REQUEST, SESSION_NOT_FOUND};
use bindpost_mcp_protocol::{Request, RequestId, Revision};
use bindpost_mcp_server::{Answer, Peer, ProtocolError};
use http::StatusCode;

use crate::endpoint::{Endpoint, Visit};
use crate::headers::{McpHeaders, Version};
use crate::reply::{No, json, refuse};
use crate::sessions::Entry;
use crate::settings::SessionMode;

/// What an accepted message belongs to.
pub(crate) enum Era {
    /// It stands alone, as 2026-07-28 defines it.
    Alone(Peer),
    /// It belongs to a session.
    Session(Arc<Entry>),
    /// It is of a revision with a handshake, but there is no session.
    Sessionless(Revision),
}

impl Era {
    pub(crate) fn stands_alone(&self) -> bool {
        matches!(self, Era::Alone(_))
    }
}

/// Whether the version header names a revision without a handshake, or one nobody knows and no session.
pub(crate) fn claims_new_revision(version: Version<'_>, headers: &McpHeaders<'_>) -> bool {
    match version {
        Version::Absent => false,
        Version::Known(revision) => !revision.has_handshake(),
        Version::Unknown(_) => headers.session_id().is_none(),
    }
}

impl Endpoint {
    /// Tells the eras apart, and checks what each demands before dispatch.
    pub(crate) fn era(&self, visit: &Visit<'_>, request: &Request) -> Result<Era, No> {
        let headers = &visit.headers;
        let version = headers.version();
        let has_envelope = Peer::has_envelope(request.params());
        let claims_to_stand_alone = has_envelope
            || request.method() == "server/discover" && headers.session_id().is_none()
            || request.method() != "initialize" && claims_new_revision(version, headers);
        if claims_to_stand_alone {
            let refuse = |error: &ProtocolError| {
                let answer = Answer::refused(&request.id, error, Revision::DISCOVERABLE[0]);
                Box::new(json(answer, true))
            };
            if has_envelope {
                headers.check_version(request).map_err(|error| refuse(&error))?;
            }
            let peer = Peer::from_envelope(request.params()).map_err(|error| refuse(&error))?;
            headers.check_method(request).map_err(|error| refuse(&error))?;
            return Ok(Era::Alone(peer));
        }
        // Negotiation happens in the body; a client that comes back with an old session id starts anew.
        if request.method() == "initialize" {
            return Ok(Era::Sessionless(Revision::LATEST_WITH_HANDSHAKE));
        }
        match self.session_of(visit, Some(&request.id))? {
            Some(entry) => Ok(Era::Session(entry)),
            None => self.sessionless(headers, Some(&request.id)).map(Era::Sessionless),
        }
    }

    /// The revision of a message without a session, where that is allowed.
    pub(crate) fn sessionless(
        &self,
        headers: &McpHeaders<'_>,
        id: Option<&RequestId>,
    ) -> Result<Revision, No> {
        if self.settings.sessions == SessionMode::Required {
            let reason = "the Mcp-Session-Id header is missing; send `initialize` first";
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, reason)));
        }
        match headers.version() {
            Version::Known(revision) if revision.has_handshake() => Ok(revision),
            _ => Ok(self.settings.without_header),
        }
    }

    /// The session the headers name; `None` if they name none.
    pub(crate) fn session_of(
        &self,
        visit: &Visit<'_>,
        id: Option<&RequestId>,
    ) -> Result<Option<Arc<Entry>>, No> {
        if !self.settings.sessions.has_sessions() {
            return Ok(None);
        }
        let Some(session_id) = visit.headers.session_id() else { return Ok(None) };
        let Some(entry) = self.sessions.find(session_id, &visit.sender.caller) else {
            let reason = "unknown or expired session; send `initialize` again";
            return Err(self.not_theirs(visit, id, reason));
        };
        match visit.headers.version() {
            Version::Unknown(version) => {
                let known = Revision::ALL.map(Revision::as_str).join(", ");
                let reason = format!("unsupported MCP-Protocol-Version {version:?}; known: {known}");
                Err(Box::new(refuse(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, reason)))
            }
            _ => Ok(Some(entry)),
        }
    }

    /// The sender names something that is not there, or is not its own.
    pub(crate) fn not_theirs(&self, visit: &Visit<'_>, id: Option<&RequestId>, reason: &str) -> No {
        let stranger = self.gate.as_ref().and_then(|gate| gate.refuse_stranger(visit.http, visit.sender, id));
        stranger.unwrap_or_else(|| Box::new(refuse(StatusCode::NOT_FOUND, id, SESSION_NOT_FOUND, reason)))
    }
}
