//! Replies without a stream: JSON, empty bodies and errors.

use bindpost_mcp_protocol::jsonrpc::{self, INTERNAL_ERROR, INVALID_REQUEST};
use bindpost_mcp_protocol::{ErrorObject, RequestId};
use bindpost_mcp_server::transport::{EncodedResponse, RejectionKind};
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

use crate::endpoint::body::ReplyBody;

/// An HTTP response.
pub(crate) type Reply = Response<ReplyBody>;

/// An error response. It is boxed because it is rare and large.
pub(crate) type BoxedReply = Box<Reply>;

/// Builds the reply for an encoded response, with the status that its revision requires.
pub(crate) fn answer_reply(answer: EncodedResponse, stands_alone: bool) -> Reply {
    let status = match answer.rejection_kind() {
        None | Some(RejectionKind::InBand) => StatusCode::OK,
        Some(RejectionKind::BadRequest) => StatusCode::BAD_REQUEST,
        // From 2026-07-28 on the status is significant. Before, clients read only the body.
        Some(RejectionKind::UnknownMethod) if stands_alone => StatusCode::NOT_FOUND,
        Some(RejectionKind::UnknownMethod) => StatusCode::OK,
        Some(RejectionKind::Busy { .. }) => StatusCode::TOO_MANY_REQUESTS,
        Some(RejectionKind::Overloaded { .. }) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let retry_after = match answer.rejection_kind() {
        Some(
            RejectionKind::Busy { retry_after_seconds } | RejectionKind::Overloaded { retry_after_seconds },
        ) => Some(retry_after_seconds),
        _ => None,
    };
    let mut reply = json_reply(status, ReplyBody::answer(answer));
    if let Some(seconds) = retry_after {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

pub(crate) fn json_reply(status: StatusCode, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Builds the reply to a health probe.
pub(crate) fn health_reply(health: Result<(), &str>) -> Reply {
    let (status, body) = match health {
        Ok(()) => (StatusCode::OK, json!({"status": "ok"})),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "unavailable", "reason": reason})),
    };
    let mut reply = json_reply(status, ReplyBody::once(body.to_string().into_bytes()));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ReplyBody::empty());
    *reply.status_mut() = status;
    reply
}

/// Builds an error reply with a JSON-RPC body.
pub(crate) fn refuse(
    status: StatusCode,
    id: Option<&RequestId>,
    code: i64,
    reason: impl Into<String>,
) -> Reply {
    refuse_object(status, id, &ErrorObject::new(code, reason))
}

pub(crate) fn refuse_object(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Reply {
    json_reply(status, ReplyBody::once(jsonrpc::encode_error(id, error)))
}

/// The reply to every request of a server that other machines can reach and that has no authentication.
pub(crate) fn not_served() -> Reply {
    let reason = "the server is not served, because it is public and has no authentication; its log says how to add it";
    refuse(StatusCode::SERVICE_UNAVAILABLE, None, INTERNAL_ERROR, reason)
}

pub(crate) fn not_allowed(allow: &'static str) -> Reply {
    let reason = format!("the HTTP method is not allowed here; use {allow}");
    let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, None, INVALID_REQUEST, reason);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    reply
}

pub(crate) fn too_many_streams(id: Option<&RequestId>) -> Reply {
    let mut reply = refuse(StatusCode::TOO_MANY_REQUESTS, id, 429, "too many streams in this session");
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

pub(crate) fn too_many_sessions(id: Option<&RequestId>) -> Reply {
    let reason = "too many sessions are open; try again later";
    let mut reply = refuse(StatusCode::SERVICE_UNAVAILABLE, id, 503, reason);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    reply
}

/// Rejects a body because the memory budget of the server is exhausted.
pub(crate) fn budget_exhausted() -> Reply {
    let reason = "the memory budget of the server is exhausted; try again in 5 s";
    let mut reply = refuse(StatusCode::SERVICE_UNAVAILABLE, None, 503, reason);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    // The rest of the body would be read as the next request.
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

/// Rejects a message because the endpoint was closed before it was received completely.
pub(crate) fn endpoint_closed() -> Reply {
    let reason = "the server's settings have changed; send the request again";
    let mut reply = refuse(StatusCode::SERVICE_UNAVAILABLE, None, 503, reason);
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}
