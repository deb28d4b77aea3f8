//! Batches (2025-03-26 only): several messages in one POST.

use std::sync::Arc;
use std::task::Context;

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST};
use bindpost_mcp_protocol::{DecodeError, Message, Revision};
use bindpost_mcp_server::{DeliveryTarget, DispatchOutcome, EncodedResponse, Peer, join_batch, refuse_batch};
use bytes::Bytes;
use http::StatusCode;

use crate::endpoint::body::ReplyBody;
use crate::endpoint::reply::{empty, json_reply, refuse};
use crate::endpoint::request::BodyOutcome;
use crate::endpoint::streaming::poll_once;
use crate::endpoint::{AdmittedRequest, Endpoint};

impl Endpoint {
    /// Handles a batch. The response is one array with all responses.
    pub(crate) fn handle_batch(
        self: &Arc<Self>,
        visit: &AdmittedRequest<'_>,
        batch: Vec<Result<Message, DecodeError>>,
        context: &mut Context<'_>,
    ) -> BodyOutcome {
        let entry = match self.find_session(visit, None) {
            Ok(entry) => entry,
            Err(no) => return BodyOutcome::Reply(*no),
        };
        let revision = match (&entry, self.sessionless_revision(&visit.headers, None)) {
            (Some(entry), _) => entry.session.revision(),
            (None, Ok(revision)) => revision,
            (None, Err(_)) => Revision::LATEST_WITH_HANDSHAKE,
        };
        if let Some(reason) = refuse_batch(revision, &batch) {
            return BodyOutcome::Reply(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
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
                    let exchange = self.exchange(visit, peer, DeliveryTarget::None);
                    match self.server.dispatch(request, exchange, &visit.headers) {
                        DispatchOutcome::Answer(answer) | DispatchOutcome::Opened(_, answer) => {
                            answers.push(answer.into_bytes());
                        }
                        DispatchOutcome::Running(running) => match poll_once(running, context) {
                            Ok(answer) => answers.push(answer.into_bytes()),
                            Err(running) => later.push(running),
                        },
                    }
                }
                Ok(Message::Notification(notification)) => {
                    if let Some(entry) = &entry {
                        self.server.handle_notification(&notification, &Peer::Session(entry.session.clone()));
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
        BodyOutcome::Later(Box::pin(async move {
            let later = futures_util::future::join_all(later);
            let ended = match entry {
                // A disconnect does not cancel a call of a session.
                Some(_) => tokio::spawn(later).await.unwrap_or_default(),
                None => later.await,
            };
            answers.extend(ended.into_iter().flatten().map(EncodedResponse::into_bytes));
            if answers.is_empty() {
                return empty(StatusCode::ACCEPTED);
            }
            json_reply(StatusCode::OK, ReplyBody::shared(join_batch(&answers)))
        }))
    }
}
