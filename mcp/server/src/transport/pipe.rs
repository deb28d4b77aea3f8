//! [`Pipe`]: one client at the other end of anything that carries messages both ways.
//!
//! stdin and stdout, HTTP+SSE and the in-memory client of the tests are pipes. Both eras share one:
//! `initialize` opens a session for what follows without an envelope, and a request with an envelope
//! stands alone, before or after.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::{self, INVALID_REQUEST};
use bindpost_mcp_protocol::{
    DecodeError, DecodedBody, ErrorObject, Message, Notification, Request, Revision,
};
use bytes::Bytes;
use tokio::task::JoinSet;

use crate::auth::Caller;
use crate::call::answer::EncodedResponse;
use crate::call::{CallCanceller, RunningCall};
use crate::dispatch::DispatchOutcome;
use crate::peer::Peer;
use crate::peer::session::Session;
use crate::peer::stream::MessageStream;
use crate::server::Server;
use crate::transport::{DeliveryTarget, HttpRequest, ListVisibility, NoHeaders, RequestOrigin};

/// The most messages of one batch: its answers come together, and can be far larger than it is.
const MAX_BATCH: usize = 100;

/// One client at the other end of a pipe.
#[derive(Debug)]
pub struct Pipe {
    server: Server,
    out: Arc<MessageStream>,
    caller: Caller,
    listing: ListVisibility,
    guarded: bool,
    /// The HTTP request that brought the message at hand, if one did.
    http: Option<Arc<HttpRequest>>,
    session: Option<Arc<Session>>,
    running: JoinSet<()>,
    cancellers: Vec<CallCanceller>,
}

impl Pipe {
    /// A pipe whose answers and other messages go to `out`.
    pub fn new(server: Server, out: Arc<MessageStream>, caller: Caller) -> Pipe {
        Pipe {
            server,
            out,
            caller,
            listing: ListVisibility::All,
            guarded: false,
            http: None,
            session: None,
            running: JoinSet::new(),
            cancellers: Vec::new(),
        }
    }

    /// Takes one message, or a batch where the revision has them.
    pub async fn receive(&mut self, line: Bytes) {
        self.receive_decoded(jsonrpc::decode(line)).await;
    }

    /// Takes what came in an HTTP request of its own: `caller` is the same as the pipe's, but its rights
    /// may have changed.
    pub async fn receive_posted(
        &mut self,
        decoded: Result<DecodedBody, DecodeError>,
        caller: Caller,
        listing: ListVisibility,
        guarded: bool,
        http: Arc<HttpRequest>,
    ) {
        self.caller = caller;
        self.listing = listing;
        self.guarded = guarded;
        self.http = Some(http);
        self.receive_decoded(decoded).await;
    }

    async fn receive_decoded(&mut self, decoded: Result<DecodedBody, DecodeError>) {
        while self.running.try_join_next().is_some() {}
        match decoded {
            Ok(DecodedBody::One(message)) => self.receive_message(message).await,
            Ok(DecodedBody::Batch(batch)) => self.receive_batch(batch).await,
            Err(error) => {
                self.out.send(jsonrpc::encode_error(error.id.as_ref(), &error.error).into()).await;
            }
        }
    }

    async fn receive_message(&mut self, message: Message) {
        match message {
            Message::Request(request) => {
                let out = self.out.clone();
                match self.start(request) {
                    StartedRequest::Answer(answer) => drop(out.send(answer.into_bytes()).await),
                    StartedRequest::Running(mut running) => {
                        // Most are done when they are polled once; the others count as running from here on.
                        if let Poll::Ready(answer) = poll_once(&mut running).await {
                            if let Some(answer) = answer {
                                out.send(answer.into_bytes()).await;
                            }
                            return;
                        }
                        self.running.spawn(async move {
                            if let Some(answer) = running.await {
                                out.send(answer.into_bytes()).await;
                            }
                        });
                    }
                }
            }
            Message::Notification(notification) => self.receive_notification(&notification),
            Message::Response(response) => {
                if let Some(session) = &self.session {
                    session.receive_response(response);
                }
            }
        }
    }

    /// A batch of 2025-03-26: one array with all answers, when all are there.
    async fn receive_batch(&mut self, batch: Vec<Result<Message, DecodeError>>) {
        if let Some(reason) = refuse_batch(self.peer().revision(), &batch) {
            return self.send_error(&ErrorObject::new(INVALID_REQUEST, reason)).await;
        }
        let mut answers = Vec::new();
        let mut later = Vec::new();
        for message in batch {
            match message {
                Ok(Message::Request(request)) => match self.start(request) {
                    StartedRequest::Answer(answer) => answers.push(answer.into_bytes()),
                    StartedRequest::Running(mut running) => match poll_once(&mut running).await {
                        Poll::Ready(answer) => answers.extend(answer.map(EncodedResponse::into_bytes)),
                        Poll::Pending => later.push(running),
                    },
                },
                Ok(message) => Box::pin(self.receive_message(message)).await,
                Err(error) => {
                    answers.push(jsonrpc::encode_error(error.id.as_ref(), &error.error).into());
                }
            }
        }
        let out = self.out.clone();
        self.running.spawn(async move {
            for answer in futures_util::future::join_all(later).await.into_iter().flatten() {
                answers.push(answer.into_bytes());
            }
            if !answers.is_empty() {
                out.send(join_batch(&answers)).await;
            }
        });
    }

    fn start(&mut self, request: Request) -> StartedRequest {
        let alone = Peer::has_envelope(request.params())
            || request.method() == "server/discover" && self.session.is_none();
        let peer = if alone {
            match Peer::from_envelope(request.params()) {
                Ok(peer) => peer,
                Err(error) => {
                    let revision = Revision::DISCOVERABLE[0];
                    return StartedRequest::Answer(EncodedResponse::from_error(
                        &request.id,
                        &error,
                        revision,
                    ));
                }
            }
        } else {
            self.peer()
        };
        let exchange = RequestOrigin {
            peer,
            caller: self.caller.clone(),
            delivery: DeliveryTarget::Shared(self.out.clone()),
            listing: self.listing,
            guarded: self.guarded,
            http: self.http.clone(),
        };
        match self.server.dispatch(request, exchange, &NoHeaders) {
            DispatchOutcome::Answer(answer) => StartedRequest::Answer(answer),
            DispatchOutcome::Opened(session, answer) => {
                let session = Arc::new(session);
                self.server.attach_stream(&session, &self.out);
                self.session = Some(session);
                StartedRequest::Answer(answer)
            }
            DispatchOutcome::Running(running) => {
                self.cancellers.retain(|canceller| !canceller.is_over());
                self.cancellers.push(running.canceller());
                StartedRequest::Running(running)
            }
        }
    }

    /// What follows without an envelope belongs to the session; before there is one, we know nothing.
    fn peer(&self) -> Peer {
        match &self.session {
            Some(session) => Peer::Session(session.clone()),
            None => Peer::Alone(Revision::LATEST_WITH_HANDSHAKE),
        }
    }

    fn receive_notification(&mut self, notification: &Notification) {
        if notification.method() == "notifications/cancelled"
            && let Some(id) = notification.params().get("requestId").and_then(|id| id.decode().ok())
        {
            self.cancellers.iter().any(|canceller| canceller.cancel_if(&id));
        }
        self.server.handle_notification(notification, &self.peer());
    }

    /// Sends an error that answers no request.
    pub async fn send_error(&self, error: &ErrorObject) {
        self.out.send(jsonrpc::encode_error(None, error).into()).await;
    }

    /// The input has ended: nobody answers questions any more, listeners end, calls may finish.
    pub async fn drain(&mut self, most: Duration) {
        if let Some(session) = &self.session {
            session.stop_asking();
        }
        self.cancellers.iter().for_each(CallCanceller::end_listening);
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(most, all).await.is_err() {
            tracing::warn!("calls were still running {} s after the input ended", most.as_secs());
            self.running.abort_all();
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.close();
        }
    }
}

enum StartedRequest {
    Answer(EncodedResponse),
    Running(RunningCall),
}

/// Polls a call once.
async fn poll_once(running: &mut RunningCall) -> Poll<Option<EncodedResponse>> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *running).poll(context))).await
}

/// Why a batch is refused as a whole, if it is.
pub fn refuse_batch(revision: Revision, batch: &[Result<Message, DecodeError>]) -> Option<&'static str> {
    let mut requests = batch.iter().filter_map(|message| match message {
        Ok(Message::Request(request)) => Some(request),
        _ => None,
    });
    if revision.allows_batches() && batch.len() > MAX_BATCH {
        return Some("invalid request: a batch holds at most 100 messages");
    }
    if !revision.allows_batches() {
        return Some("invalid request: batches belong to revision 2025-03-26 only");
    }
    requests.find_map(|request| {
        if Peer::has_envelope(request.params()) {
            Some("invalid request: a request that stands alone must not be part of a batch")
        } else if request.method() == "initialize" {
            Some("invalid request: `initialize` must not be part of a batch")
        } else {
            None
        }
    })
}

/// Several answers as one JSON array.
pub fn join_batch(answers: &[Bytes]) -> Bytes {
    let mut joined = Vec::with_capacity(answers.iter().map(|answer| answer.len() + 1).sum::<usize>() + 1);
    joined.push(b'[');
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            joined.push(b',');
        }
        joined.extend_from_slice(answer);
    }
    joined.push(b']');
    joined.into()
}
