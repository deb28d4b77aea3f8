//! Responses that may be streams: which calls get a stream, and what happens to a call when its
//! client disconnects.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bindpost_mcp_protocol::jsonrpc::INVALID_PARAMS;
use bindpost_mcp_server::{Caller, EncodedResponse, MessageStream, RunningCall};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

use crate::endpoint::Endpoint;
use crate::endpoint::body::ReplyBody;
use crate::endpoint::events::{self, EventStream};
use crate::endpoint::protocol_mode::ProtocolMode;
use crate::endpoint::reply::{Reply, answer_reply, empty, json_reply, refuse};
use crate::endpoint::sessions::SessionEntry;
use crate::headers::AcceptedFormats;

/// Polls a call once. Most calls are complete after one poll and have sent no messages before the response.
#[expect(clippy::result_large_err, reason = "handed on to the stream, not an error")]
pub(crate) fn poll_once(
    mut running: RunningCall,
    context: &mut Context<'_>,
) -> Result<EncodedResponse, RunningCall> {
    match Pin::new(&mut running).poll(context) {
        Poll::Ready(Some(answer)) => match running.stream() {
            None => Ok(answer),
            Some(stream) => {
                stream.finish(answer.into_bytes());
                Err(running)
            }
        },
        _ => Err(running),
    }
}

impl Endpoint {
    /// Answers a call that is complete after one poll: with JSON, or with a stream if the client
    /// prefers streams.
    pub(crate) fn answer_finished(
        &self,
        answer: EncodedResponse,
        mode: &ProtocolMode,
        accepts: AcceptedFormats,
    ) -> Reply {
        if accepts != AcceptedFormats::StreamsFirst || answer.rejection_kind().is_some() {
            return answer_reply(answer, mode.stands_alone());
        }
        match mode {
            ProtocolMode::Session(entry) => {
                let stream = self.server.new_resumable_stream(&entry.session);
                let Some(number) = entry.keep_stream(&stream, true, self.settings.session_limits.streams)
                else {
                    return answer_reply(answer, false);
                };
                stream.finish(answer.into_bytes());
                self.session_stream_reply(entry, &stream, number, None, None)
            }
            ProtocolMode::Alone(_) | ProtocolMode::Sessionless(_) => {
                let stream = self.server.new_stream();
                stream.finish(answer.into_bytes());
                self.event_stream_reply(EventStream::attach(stream, None, self.settings.keep_alive))
            }
        }
    }

    /// Answers a call that is not complete after one poll: with JSON if it ends soon and sends no
    /// messages before, otherwise with a stream.
    pub(crate) async fn answer_running(
        self: &Arc<Self>,
        running: RunningCall,
        mode: ProtocolMode,
        accepts: AcceptedFormats,
        caller: &Caller,
    ) -> Reply {
        if accepts == AcceptedFormats::JsonOnly {
            let answer = match &mode {
                // A disconnect does not cancel a call of a session. Its result is discarded.
                ProtocolMode::Session(_) => tokio::spawn(running).await.ok().flatten(),
                ProtocolMode::Alone(_) | ProtocolMode::Sessionless(_) => running.await,
            };
            return match answer {
                Some(answer) => answer_reply(answer, mode.stands_alone()),
                None => empty(StatusCode::ACCEPTED),
            };
        }
        match mode {
            ProtocolMode::Session(entry) => self.stream_in_session(running, &entry).await,
            ProtocolMode::Alone(_) | ProtocolMode::Sessionless(_) => {
                self.stream_alone(running, mode.stands_alone(), caller).await
            }
        }
    }

    /// Answers a call that is cancelled when its client disconnects.
    async fn stream_alone(&self, mut running: RunningCall, stands_alone: bool, caller: &Caller) -> Reply {
        let mut patience = pin!(tokio::time::sleep(self.settings.stream_after));
        let ended = poll_fn(|context| {
            let polled = Pin::new(&mut running).poll(context);
            if running.stream().is_some() {
                // The response, if it is ready, follows the messages.
                return Poll::Ready(Some(polled));
            }
            match polled {
                Poll::Ready(answer) => Poll::Ready(Some(Poll::Ready(answer))),
                Poll::Pending => patience.as_mut().poll(context).map(|()| None),
            }
        })
        .await;
        match (ended, running.stream().cloned()) {
            (Some(Poll::Ready(Some(answer))), None) => answer_reply(answer, stands_alone),
            (Some(Poll::Ready(None)), None) => empty(StatusCode::ACCEPTED),
            (Some(Poll::Ready(answer)), Some(stream)) => {
                match answer {
                    Some(answer) => stream.finish(answer.into_bytes()),
                    None => stream.end(),
                }
                self.event_stream_reply(EventStream::attach(stream, None, self.settings.keep_alive))
            }
            (Some(Poll::Pending) | None, _) => {
                let stream = running.open_stream().cloned();
                if let Some(stream) = &stream {
                    self.track_stream(caller, stream);
                }
                let events =
                    stream.and_then(|stream| EventStream::attach(stream, None, self.settings.keep_alive));
                self.event_stream_reply(
                    events.map(|events| events.driving(running).expiring(caller.expires_at())),
                )
            }
        }
    }

    /// Answers a call that continues when its client disconnects. The client can resume the stream.
    async fn stream_in_session(&self, running: RunningCall, entry: &Arc<SessionEntry>) -> Reply {
        let Some(stream) = running.open_stream().cloned() else {
            return empty(StatusCode::ACCEPTED);
        };
        // If the session has no room for another resumable stream, this one cannot be resumed. The call has
        // begun, so a rejection could make a client send it twice.
        let number = entry.keep_stream(&stream, true, self.settings.session_limits.streams);
        let answered = stream.clone();
        tokio::spawn(async move {
            match running.await {
                Some(answer) => answered.finish(answer.into_bytes()),
                None => answered.end(),
            }
        });
        let ready = poll_fn(|context| stream.poll_ready(context));
        let _ = tokio::time::timeout(self.settings.stream_after, ready).await;
        if let Some(only) = stream.take_sole_answer() {
            if let Some(number) = number {
                entry.forget_stream(number);
            }
            return match only {
                Some(answer) => json_reply(StatusCode::OK, ReplyBody::shared(answer)),
                None => empty(StatusCode::ACCEPTED),
            };
        }
        match number {
            Some(number) => self.session_stream_reply(entry, &stream, number, None, None),
            None => self.event_stream_reply(EventStream::attach(stream, None, self.settings.keep_alive)),
        }
    }

    /// Builds the response for a stream of a session. `expires` ends it when the credentials of the
    /// caller expire.
    pub(crate) fn session_stream_reply(
        &self,
        entry: &SessionEntry,
        stream: &Arc<MessageStream>,
        number: u32,
        after: Option<u64>,
        expires: Option<Instant>,
    ) -> Reply {
        let hung_up = stream.is_hung_up() && after.is_none();
        let events = EventStream::attach(stream.clone(), after, self.settings.keep_alive);
        if hung_up {
            // Attaching resets the request of the call to close the connection, so it is repeated.
            stream.hang_up();
        }
        self.event_stream_reply(events.map(|events| {
            let events = events.with_ids(number).expiring(expires);
            match after {
                None if entry.session.revision().primes_streams() => {
                    events.opening(events::priming_event(number, self.settings.retry))
                }
                _ => events,
            }
        }))
    }

    pub(crate) fn event_stream_reply(&self, events: Option<EventStream>) -> Reply {
        let Some(events) = events else {
            let reason = "the event id is not known or no longer retained";
            return refuse(StatusCode::BAD_REQUEST, None, INVALID_PARAMS, reason);
        };
        let mut reply = Response::new(ReplyBody::events(events));
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        reply
    }
}
