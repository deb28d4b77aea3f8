//! Batches (2025-03-26 only): several messages in one POST.

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST};
use bindpost_mcp_protocol::{DecodeError, Message, Revision};
use bindpost_mcp_server::transport::{
    DeliveryTarget, DispatchOutcome, EncodedResponse, Peer, join_batch, refuse_batch,
};
use bytes::Bytes;
use http::StatusCode;

use crate::endpoint::body::ReplyBody;
use crate::endpoint::reply::{BoxedReply, Reply, empty, json_reply, refuse};
use crate::endpoint::request::AdmittedRequest;
use crate::endpoint::streaming::poll_once;
use crate::headers::VersionHeader;

/// Handles a batch. The response is one array with all responses.
pub(crate) async fn answer_batch(
    admitted: &AdmittedRequest<'_>,
    batch: Vec<Result<Message, DecodeError>>,
) -> Result<Reply, BoxedReply> {
    let server = &admitted.endpoint.server;
    let entry = admitted.find_session(None)?;
    let revision = match (&entry, admitted.sessionless_revision(None)) {
        (Some(entry), _) => entry.session.revision(),
        (None, Ok(revision)) => revision,
        (None, Err(refusal)) if matches!(admitted.headers.version(), VersionHeader::Unknown(_)) => {
            return Err(refusal);
        }
        (None, Err(_)) => Revision::LATEST_WITH_HANDSHAKE,
    };
    if let Some(reason) = refuse_batch(revision, &batch) {
        return Ok(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
    }
    let mut answers: Vec<Bytes> = Vec::new();
    let mut later = Vec::new();
    for message in batch {
        match message {
            Ok(Message::Request(request)) => {
                let peer = match &entry {
                    Some(entry) => Peer::Session(entry.session.clone()),
                    None => Peer::Alone(revision),
                };
                // The response is one array, so no message can be sent before it.
                let origin = admitted.origin(peer, DeliveryTarget::None);
                match server.dispatch(request, origin, &admitted.headers) {
                    DispatchOutcome::Answer(answer) | DispatchOutcome::Opened(_, answer) => {
                        answers.push(answer.into_bytes());
                    }
                    DispatchOutcome::Running(mut running) => match poll_once(&mut running).await {
                        Some(answer) => answers.push(answer.into_bytes()),
                        None => later.push(running),
                    },
                }
            }
            Ok(Message::Notification(notification)) => {
                if let Some(entry) = &entry {
                    server.handle_notification(&notification, &Peer::Session(entry.session.clone()));
                }
            }
            Ok(Message::Response(response)) => {
                if let Some(entry) = &entry {
                    entry.session.receive_response(response);
                }
            }
            Err(error) => answers.push(jsonrpc::encode_error(error.id.as_ref(), &error.error).into()),
        }
    }
    let later = futures_util::future::join_all(later);
    let ended = match entry {
        // A disconnect does not cancel a call of a session.
        Some(_) => tokio::spawn(later).await.unwrap_or_default(),
        None => later.await,
    };
    answers.extend(ended.into_iter().flatten().map(EncodedResponse::into_bytes));
    if answers.is_empty() {
        return Ok(empty(StatusCode::ACCEPTED));
    }
    Ok(json_reply(StatusCode::OK, ReplyBody::shared(join_batch(&answers))))
}
