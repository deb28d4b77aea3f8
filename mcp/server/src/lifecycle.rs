//! `initialize`, `server/discover`, `logging/setLevel`.

use bindpost_mcp_protocol::Revision;
use bindpost_mcp_protocol::lifecycle::{InitializeParams, LogLevel};
use serde_json::json;

use crate::call::answer::EncodedResponse;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::ProtocolError;
use crate::peer::session::Session;
use crate::transport::HeaderValues;

pub(crate) fn initialize(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    let params: InitializeParams = match inbound.request.params().decode() {
        Ok(params) => params,
        Err(error) => return inbound.refuse(&ProtocolError::invalid_params("initialize", error.to_string())),
    };
    let Some(revision) = Revision::negotiate(&params.protocol_version, &inbound.server.revisions) else {
        return inbound.refuse(&inbound.server.unsupported_revision(&params.protocol_version));
    };
    let caller = inbound.exchange.caller.clone();
    let session = match Session::open(revision, &params.client_info, &params.capabilities, caller) {
        Ok(session) => session,
        Err(error) => return inbound.refuse(&error),
    };
    tracing::info!(
        client = params.client_info.name,
        client_version = params.client_info.version,
        revision = revision.as_str(),
        "session opened"
    );
    let result = inbound.server.initialize_result(revision, inbound.exchange.abilities);
    DispatchOutcome::Opened(session, EncodedResponse::from_shared_result(&inbound.request.id, result))
}

pub(crate) fn discover(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    let result = inbound.server.discover_result(inbound.revision(), inbound.exchange.abilities);
    DispatchOutcome::Answer(EncodedResponse::from_shared_result(&inbound.request.id, result))
}

pub(crate) fn set_level(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    let level: Option<LogLevel> = inbound.request.params().get("level").and_then(|level| level.decode().ok());
    let Some(level) = level else {
        let reason = "`level` must be debug, info, notice, warning, error, critical, alert or emergency";
        return inbound.refuse(&ProtocolError::invalid_params("logging/setLevel", reason));
    };
    if let Some(session) = inbound.exchange.peer.session() {
        session.set_log_level(level);
    }
    inbound.answer(json!({}))
}
