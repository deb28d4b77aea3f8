//! [`ProtocolMode`]: whether a message is modern (stateless, from 2026-07-28), belongs to a session of
//! a legacy revision (up to 2025-11-25), or is of a legacy revision without a session.

use std::sync::Arc;

use bindpost_mcp_protocol::jsonrpc::{INVALID_PARAMS, INVALID_REQUEST, SESSION_NOT_FOUND};
use bindpost_mcp_protocol::{ErrorObject, Request, RequestId, Revision};
use bindpost_mcp_server::ProtocolError;
use bindpost_mcp_server::transport::{EncodedResponse, Peer};
use http::StatusCode;
use serde_json::json;

use crate::endpoint::reply::{BoxedReply, answer_reply, refuse, refuse_object};
use crate::endpoint::request::AdmittedRequest;
use crate::endpoint::sessions::SessionEntry;
use crate::headers::{McpHeaders, VersionHeader};
use crate::settings::SessionMode;

/// The protocol mode of an accepted message.
pub(crate) enum ProtocolMode {
    /// The message is modern: stateless, as 2026-07-28 defines it.
    Alone(Peer),
    /// The message belongs to a session of a legacy revision.
    Session(Arc<SessionEntry>),
    /// The message is of a legacy revision and has no session.
    Sessionless(Revision),
}

impl ProtocolMode {
    pub(crate) fn stands_alone(&self) -> bool {
        matches!(self, ProtocolMode::Alone(_))
    }
}

/// Returns whether the version header names a modern revision, or an unknown revision without a session id.
pub(crate) fn claims_new_revision(version: VersionHeader<'_>, headers: &McpHeaders<'_>) -> bool {
    match version {
        VersionHeader::Absent => false,
        VersionHeader::Known(revision) => !revision.has_handshake(),
        VersionHeader::Unknown(_) => headers.session_id().is_none(),
    }
}

impl ProtocolMode {
    /// Determines the protocol mode of a request and runs the checks that the mode requires before dispatch.
    pub(crate) fn of_request(
        admitted: &AdmittedRequest<'_>,
        request: &Request,
    ) -> Result<ProtocolMode, BoxedReply> {
        let headers = &admitted.headers;
        let has_envelope = Peer::has_envelope(request.params());
        let claims_to_stand_alone = has_envelope
            || request.method() == "server/discover" && headers.session_id().is_none()
            || request.method() != "initialize" && claims_new_revision(headers.version(), headers);
        if claims_to_stand_alone {
            let refuse = |error: &ProtocolError| {
                let answer = EncodedResponse::from_error(&request.id, error, Revision::DISCOVERABLE[0]);
                Box::new(answer_reply(answer, true))
            };
            if has_envelope {
                headers.check_version(request).map_err(|error| refuse(&error))?;
            }
            let served = admitted.endpoint.server.revisions();
            let peer = match Peer::from_envelope(request.params(), served) {
                Ok(peer) => peer,
                Err(error) => {
                    // Without an envelope, the header is the only reason to treat the request as modern.
                    if !has_envelope && let VersionHeader::Unknown(version) = headers.version() {
                        return Err(admitted.refuse_version(Some(&request.id), INVALID_PARAMS, version));
                    }
                    return Err(refuse(&error));
                }
            };
            headers.check_method(request).map_err(|error| refuse(&error))?;
            return Ok(ProtocolMode::Alone(peer));
        }
        // The body negotiates the revision. An old session id in the header is ignored: the client
        // starts anew.
        if request.method() == "initialize" {
            return Ok(ProtocolMode::Sessionless(Revision::LATEST_WITH_HANDSHAKE));
        }
        match admitted.find_session(Some(&request.id))? {
            Some(entry) => Ok(ProtocolMode::Session(entry)),
            None => admitted.sessionless_revision(Some(&request.id)).map(ProtocolMode::Sessionless),
        }
    }
}

impl AdmittedRequest<'_> {
    /// Returns the revision of a message without a session, or a rejection if sessions are required or the
    /// version header names an unknown revision.
    pub(crate) fn sessionless_revision(&self, id: Option<&RequestId>) -> Result<Revision, BoxedReply> {
        let version = self.headers.version();
        if let VersionHeader::Unknown(version) = version {
            return Err(self.refuse_version(id, INVALID_REQUEST, version));
        }
        if self.endpoint.settings.sessions == SessionMode::Required {
            let reason = "the Mcp-Session-Id header is missing; send `initialize` first";
            return Err(Box::new(refuse(StatusCode::BAD_REQUEST, id, INVALID_REQUEST, reason)));
        }
        match version {
            VersionHeader::Known(revision) if revision.has_handshake() => Ok(revision),
            _ => Ok(self.endpoint.settings.without_header),
        }
    }

    /// Returns the session that the headers name, or `None` if they name none.
    pub(crate) fn find_session(
        &self,
        id: Option<&RequestId>,
    ) -> Result<Option<Arc<SessionEntry>>, BoxedReply> {
        if !self.endpoint.settings.sessions.has_sessions() {
            return Ok(None);
        }
        let Some(session_id) = self.headers.session_id() else { return Ok(None) };
        let Some(entry) = self.endpoint.sessions.find(session_id, &self.sender.caller) else {
            let reason = "unknown or expired session; send `initialize` again";
            return Err(self.refuse_not_found(id, reason));
        };
        match self.headers.version() {
            VersionHeader::Unknown(version) => Err(self.refuse_version(id, INVALID_REQUEST, version)),
            _ => Ok(Some(entry)),
        }
    }

    /// Rejects a version header that names no known revision.
    fn refuse_version(&self, id: Option<&RequestId>, code: i64, version: &str) -> BoxedReply {
        let supported: Vec<&str> =
            self.endpoint.server.revisions().iter().map(|revision| revision.as_str()).collect();
        let reason =
            format!("unsupported MCP-Protocol-Version {version:?}; supported: {}", supported.join(", "));
        let data = json!({"supported": supported, "requested": version});
        let error = ErrorObject::new(code, reason).with_data(data);
        Box::new(refuse_object(StatusCode::BAD_REQUEST, id, &error))
    }

    /// Rejects a request for a session or pipe that does not exist or belongs to another caller.
    pub(crate) fn refuse_not_found(&self, id: Option<&RequestId>, reason: &str) -> BoxedReply {
        let stranger = self
            .endpoint
            .gate
            .as_ref()
            .and_then(|gate| gate.refuse_invalid_credentials(self.http, &self.sender, id));
        stranger.unwrap_or_else(|| Box::new(refuse(StatusCode::NOT_FOUND, id, SESSION_NOT_FOUND, reason)))
    }
}
