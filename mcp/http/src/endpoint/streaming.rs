//! Responses that may be streams: which calls get a stream, and what happens to a call when its
//! client disconnects.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Instant;

use bindpost_mcp_protocol::jsonrpc::{INVALID_PARAMS, INVALID_REQUEST};
use bindpost_mcp_server::transport::{EncodedResponse, MessageStream, RunningCall};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

use crate::endpoint::EndpointState;
use crate::endpoint::body::ReplyBody;
use crate::endpoint::events::{self, EventStream};
use crate::endpoint::protocol_mode::{ProtocolMode, claims_new_revision};
use crate::endpoint::reply::{
    BoxedReply, Reply, answer_reply, empty, json_reply, not_allowed, refuse, too_many_streams,
};
use crate::endpoint::request::AdmittedRequest;
use crate::endpoint::sessions::SessionEntry;
use crate::headers::AcceptedFormats;

/// Polls a call once. Returns its response if the call is complete and has sent no messages before, as most
/// calls are.
pub(crate) async fn poll_once(running: &mut RunningCall) -> Option<EncodedResponse> {
    match poll_fn(|context| Poll::Ready(Pin::new(&mut *running).poll(context))).await {
        Poll::Ready(Some(answer)) => match running.stream() {
            None => Some(answer),
            Some(stream) => {
                stream.finish(answer.into_bytes());
                None
            }
        },
        _ => None,
    }
}

/// Handles `GET`: opens a stream for messages that belong to no call, or resumes an interrupted stream after its
/// last event.
pub(crate) fn open_session_stream(admitted: &AdmittedRequest<'_>) -> Result<Reply, BoxedReply> {
    let (endpoint, headers) = (admitted.endpoint, &admitted.headers);
    if !endpoint.settings.sessions.has_sessions() {
        return Ok(not_allowed("POST, OPTIONS"));
    }
    if endpoint.settings.json_only || claims_new_revision(headers.version(), headers) {
        return Ok(not_allowed("POST, DELETE, OPTIONS"));
    }
    let Some(entry) = admitted.find_session(None)? else {
        let reason = "the Mcp-Session-Id header is missing; send `initialize` first";
        return Ok(refuse(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, reason));
    };
    if headers.accepts() == AcceptedFormats::JsonOnly {
        let reason = "GET returns text/event-stream; the Accept header must allow it";
        return Ok(refuse(StatusCode::NOT_ACCEPTABLE, None, INVALID_REQUEST, reason));
    }
    let expires = admitted.sender.caller.expires_at();
    if let Some(id) = headers.last_event_id() {
        let found = events::parse_event_id(id)
            .and_then(|(number, after)| entry.stream(number).map(|stream| (number, stream, after)));
        let Some((number, stream, after)) = found else { return Ok(event_stream_reply(None)) };
        if stream.has_nothing_after(after) {
            // All messages were delivered, or the call was cancelled. Clients retry after any
            // other status.
            return Ok(not_allowed("POST, DELETE, OPTIONS"));
        }
        return Ok(session_stream_reply(endpoint, &entry, &stream, number, Some(after), expires));
    }
    // Every GET gets a new stream. If it replaced an open one, two connections of a client would
    // close each other in turn. The newest stream gets the messages.
    let stream = endpoint.server.new_resumable_stream(&entry.session);
    let Some(number) = entry.keep_stream(&stream, false, endpoint.settings.session_limits.streams) else {
        return Ok(too_many_streams(None));
    };
    endpoint.server.attach_stream(&entry.session, &stream);
    // A shutdown or a change of the owner may have happened while the stream was created.
    if endpoint.draining.load(Ordering::SeqCst) || *entry.owner() != admitted.sender.caller {
        stream.end();
    }
    Ok(session_stream_reply(endpoint, &entry, &stream, number, None, expires))
}

/// Answers a call that is complete after one poll: with JSON, or with a stream if the client
/// prefers streams.
pub(crate) fn answer_finished(
    endpoint: &EndpointState,
    answer: EncodedResponse,
    mode: &ProtocolMode,
    accepts: AcceptedFormats,
) -> Reply {
    if accepts != AcceptedFormats::StreamsFirst || answer.rejection_kind().is_some() {
        return answer_reply(answer, mode.stands_alone());
    }
    match mode {
        ProtocolMode::Session(entry) => {
            let stream = endpoint.server.new_resumable_stream(&entry.session);
            let Some(number) = entry.keep_stream(&stream, true, endpoint.settings.session_limits.streams)
            else {
                return answer_reply(answer, false);
            };
            stream.finish(answer.into_bytes());
            session_stream_reply(endpoint, entry, &stream, number, None, None)
        }
        ProtocolMode::Alone(_) | ProtocolMode::Sessionless(_) => {
            let stream = endpoint.server.new_stream();
            stream.finish(answer.into_bytes());
            event_stream_reply(EventStream::attach(stream, None, endpoint.settings.keep_alive))
        }
    }
}

/// Answers a call that is not complete after one poll: with JSON if it ends soon and sends no
/// messages before, otherwise with a stream.
pub(crate) async fn answer_running(
    admitted: &AdmittedRequest<'_>,
    running: RunningCall,
    mode: ProtocolMode,
    accepts: AcceptedFormats,
) -> Reply {
    let endpoint = admitted.endpoint;
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
        ProtocolMode::Session(entry) => stream_in_session(endpoint, running, &entry).await,
        ProtocolMode::Alone(_) | ProtocolMode::Sessionless(_) => {
            stream_alone(admitted, running, mode.stands_alone()).await
        }
    }
}

/// Answers a call that is cancelled when its client disconnects.
async fn stream_alone(admitted: &AdmittedRequest<'_>, mut running: RunningCall, stands_alone: bool) -> Reply {
    let (endpoint, caller) = (admitted.endpoint, &admitted.sender.caller);
    let mut patience = pin!(tokio::time::sleep(endpoint.settings.stream_after));
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
            event_stream_reply(EventStream::attach(stream, None, endpoint.settings.keep_alive))
        }
        (Some(Poll::Pending) | None, _) => {
            let stream = running.open_stream().cloned();
            if let (Some(gate), Some(stream)) = (&endpoint.gate, &stream) {
                gate.track_stream(caller, stream);
            }
            let events =
                stream.and_then(|stream| EventStream::attach(stream, None, endpoint.settings.keep_alive));
            event_stream_reply(events.map(|events| events.driving(running).expiring(caller.expires_at())))
        }
    }
}

/// Answers a call that continues when its client disconnects. The client can resume the stream.
async fn stream_in_session(
    endpoint: &EndpointState,
    running: RunningCall,
    entry: &Arc<SessionEntry>,
) -> Reply {
    let Some(stream) = running.open_stream().cloned() else {
        return empty(StatusCode::ACCEPTED);
    };
    // If the session has no room for another resumable stream, this one cannot be resumed. The call has
    // begun, so a rejection could make a client send it twice.
    let number = entry.keep_stream(&stream, true, endpoint.settings.session_limits.streams);
    let answered = stream.clone();
    tokio::spawn(async move {
        match running.await {
            Some(answer) => answered.finish(answer.into_bytes()),
            None => answered.end(),
        }
    });
    let ready = poll_fn(|context| stream.poll_ready(context));
    let _ = tokio::time::timeout(endpoint.settings.stream_after, ready).await;
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
        Some(number) => session_stream_reply(endpoint, entry, &stream, number, None, None),
        None => event_stream_reply(EventStream::attach(stream, None, endpoint.settings.keep_alive)),
    }
}

/// Builds the response for a stream of a session. `expires` ends it when the credentials of the
/// caller expire.
fn session_stream_reply(
    endpoint: &EndpointState,
    entry: &SessionEntry,
    stream: &Arc<MessageStream>,
    number: u32,
    after: Option<u64>,
    expires: Option<Instant>,
) -> Reply {
    let hung_up = stream.is_hung_up() && after.is_none();
    let events = EventStream::attach(stream.clone(), after, endpoint.settings.keep_alive);
    if hung_up {
        // Attaching resets the request of the call to close the connection, so it is repeated.
        stream.hang_up();
    }
    event_stream_reply(events.map(|events| {
        let events = events.with_ids(number).expiring(expires);
        match after {
            None if entry.session.revision().primes_streams() => {
                events.opening(events::priming_event(number, endpoint.settings.retry))
            }
            _ => events,
        }
    }))
}

pub(crate) fn event_stream_reply(events: Option<EventStream>) -> Reply {
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
