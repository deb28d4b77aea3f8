//! [`Pipe`]: one client on a bidirectional connection.
//!
//! stdin and stdout, HTTP+SSE and the in-memory client of the tests are pipes. Legacy and modern revisions
//! can share a pipe: `initialize` opens a session for all requests without an envelope, and a request with
//! an envelope is stateless, before or after that.

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
use crate::transport::{
    DeliveryTarget, HttpRequest, ListVisibility, NoHeaders, RequestOrigin, TransportAbilities,
};

/// The maximum number of messages in one batch. Its responses are sent together and can be far larger.
const MAX_BATCH: usize = 100;

/// One client on a bidirectional connection.
#[derive(Debug)]
pub struct Pipe {
    server: Server,
    out: Arc<MessageStream>,
    caller: Caller,
    listing: ListVisibility,
    guarded: bool,
    /// The HTTP request that carried the current message, on HTTP transports.
    http: Option<Arc<HttpRequest>>,
    session: Option<Arc<Session>>,
    running: JoinSet<()>,
    cancellers: Vec<CallCanceller>,
}

impl Pipe {
    /// Returns a pipe that sends its responses and other messages to `out`.
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

    /// Receives one message, or a batch if the revision has batches.
    pub async fn receive(&mut self, line: Bytes) {
        self.receive_decoded(jsonrpc::decode(line)).await;
    }

    /// Receives a message that came in its own HTTP request. `caller` equals the caller of the pipe, but
    /// its rights may have changed.
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

    /// Sets which entries lists show, whether access rules apply, and the HTTP request of the next messages.
    #[cfg(feature = "testing")]
    pub(crate) fn set_access(
        &mut self,
        listing: ListVisibility,
        guarded: bool,
        http: Option<Arc<HttpRequest>>,
    ) {
        self.listing = listing;
        self.guarded = guarded;
        self.http = http;
    }

    pub(crate) async fn receive_decoded(&mut self, decoded: Result<DecodedBody, DecodeError>) {
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
                        // Most calls finish at the first poll. The others run in a task of their own.
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

    /// Receives a batch of 2025-03-26. One array with all responses is sent when they are complete.
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
            match Peer::from_envelope(request.params(), self.server.revisions()) {
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
            abilities: TransportAbilities::ALL,
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

    /// Returns the client of requests without an envelope: the session, once it is open.
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

    /// Sends an error without an id, which answers no request.
    pub async fn send_error(&self, error: &ErrorObject) {
        self.out.send(jsonrpc::encode_error(None, error).into()).await;
    }

    /// Ends the pipe after the end of its input. Requests to the client fail, listeners end, and running
    /// calls may finish within this time.
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

/// Polls a call once and returns.
async fn poll_once(running: &mut RunningCall) -> Poll<Option<EncodedResponse>> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *running).poll(context))).await
}

/// Returns why a batch is rejected as a whole, or `None` if it is accepted.
pub fn refuse_batch(revision: Revision, batch: &[Result<Message, DecodeError>]) -> Option<&'static str> {
    let mut requests = batch.iter().filter_map(|message| match message {
        Ok(Message::Request(request)) => Some(request),
        _ => None,
    });
    if revision.allows_batches() && batch.len() > MAX_BATCH {
        return Some("invalid request: a batch holds at most 100 messages");
    }
    if !revision.allows_batches() {
        return Some("invalid request: only revision 2025-03-26 supports batches");
    }
    requests.find_map(|request| {
        if Peer::has_envelope(request.params()) {
            Some("invalid request: a request with an envelope must not be part of a batch")
        } else if request.method() == "initialize" {
            Some("invalid request: `initialize` must not be part of a batch")
        } else {
            None
        }
    })
}

/// Joins several responses into one JSON array.
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
