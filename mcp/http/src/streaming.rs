//! Answers that may be streams: which calls get one, and what becomes of a call whose client is gone.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bindpost_mcp_protocol::jsonrpc::INVALID_PARAMS;
use bindpost_mcp_server::{Answer, Caller, Running, Stream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};

use crate::body::ReplyBody;
use crate::endpoint::Endpoint;
use crate::era::Era;
use crate::events::{self, Events};
use crate::headers::Accepts;
use crate::reply::{Reply, empty, json, json_reply, refuse};
use crate::sessions::Entry;

/// Polls a call once: most are done by then, and have said nothing before.
#[expect(clippy::result_large_err, reason = "handed on to the stream, not an error")]
pub(crate) fn run_once(mut running: Running, context: &mut Context<'_>) -> Result<Answer, Running> {
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
    /// Answers what was done at once: by JSON, unless the client would rather have a stream.
    pub(crate) fn answer(&self, answer: Answer, era: &Era, accepts: Accepts) -> Reply {
        if accepts != Accepts::StreamsFirst || answer.refusal().is_some() {
            return json(answer, era.stands_alone());
        }
        match era {
            Era::Session(entry) => {
                let stream = self.server.kept_stream(&entry.session);
                let Some(number) = entry.keep_stream(&stream, true, self.settings.session_limits.streams)
                else {
                    return json(answer, false);
                };
                stream.finish(answer.into_bytes());
                self.session_events(entry, &stream, number, None, None)
            }
            Era::Alone(_) | Era::Sessionless(_) => {
                let stream = self.server.new_stream();
                stream.finish(answer.into_bytes());
                self.events(Events::attach(stream, None, self.settings.keep_alive))
            }
        }
    }

    /// Answers a call that was not done at once: by JSON if it ends soon without a word, else by a stream.
    pub(crate) async fn stream(
        self: &Arc<Self>,
        running: Running,
        era: Era,
        accepts: Accepts,
        caller: &Caller,
    ) -> Reply {
        if accepts == Accepts::JsonOnly {
            let answer = match &era {
                // A disconnect cancels no call of a session; there is only nobody to tell the result.
                Era::Session(_) => tokio::spawn(running).await.ok().flatten(),
                Era::Alone(_) | Era::Sessionless(_) => running.await,
            };
            return match answer {
                Some(answer) => json(answer, era.stands_alone()),
                None => empty(StatusCode::ACCEPTED),
            };
        }
        match era {
            Era::Session(entry) => self.stream_in_session(running, &entry).await,
            Era::Alone(_) | Era::Sessionless(_) => {
                self.stream_alone(running, era.stands_alone(), caller).await
            }
        }
    }

    /// The call lives and dies with the connection.
    async fn stream_alone(&self, mut running: Running, stands_alone: bool, caller: &Caller) -> Reply {
        let mut patience = pin!(tokio::time::sleep(self.settings.stream_after));
        let ended = poll_fn(|context| {
            let polled = Pin::new(&mut running).poll(context);
            if running.stream().is_some() {
                // The answer, if it is there already, follows the messages.
                return Poll::Ready(Some(polled));
            }
            match polled {
                Poll::Ready(answer) => Poll::Ready(Some(Poll::Ready(answer))),
                Poll::Pending => patience.as_mut().poll(context).map(|()| None),
            }
        })
        .await;
        match (ended, running.stream().cloned()) {
            (Some(Poll::Ready(Some(answer))), None) => json(answer, stands_alone),
            (Some(Poll::Ready(None)), None) => empty(StatusCode::ACCEPTED),
            (Some(Poll::Ready(answer)), Some(stream)) => {
                match answer {
                    Some(answer) => stream.finish(answer.into_bytes()),
                    None => stream.end(),
                }
                self.events(Events::attach(stream, None, self.settings.keep_alive))
            }
            (Some(Poll::Pending) | None, _) => {
                let stream = running.open_stream().cloned();
                if let Some(stream) = &stream {
                    self.note_stream(caller, stream);
                }
                let events = stream.and_then(|stream| Events::attach(stream, None, self.settings.keep_alive));
                self.events(events.map(|events| events.driving(running).expiring(caller.expires_at())))
            }
        }
    }

    /// The call goes on without the connection; whoever comes back gets the rest.
    async fn stream_in_session(&self, running: Running, entry: &Arc<Entry>) -> Reply {
        let Some(stream) = running.open_stream().cloned() else {
            return empty(StatusCode::ACCEPTED);
        };
        // Without a place among those that can be taken up again, it is a stream like any other: the call
        // has begun, and refusing it now could make a client do it twice.
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
        if let Some(only) = stream.take_only() {
            if let Some(number) = number {
                entry.forget_stream(number);
            }
            return match only {
                Some(answer) => json_reply(StatusCode::OK, ReplyBody::shared(answer)),
                None => empty(StatusCode::ACCEPTED),
            };
        }
        match number {
            Some(number) => self.session_events(entry, &stream, number, None, None),
            None => self.events(Events::attach(stream, None, self.settings.keep_alive)),
        }
    }

    /// A stream of a session as an answer; of a GET, until the credentials of its caller expire.
    pub(crate) fn session_events(
        &self,
        entry: &Entry,
        stream: &Arc<Stream>,
        number: u32,
        after: Option<u64>,
        expires: Option<Instant>,
    ) -> Reply {
        let hung_up = stream.is_hung_up() && after.is_none();
        let events = Events::attach(stream.clone(), after, self.settings.keep_alive);
        if hung_up {
            // Attaching begins a new visit; the call asked for the visit before to end.
            stream.hang_up();
        }
        self.events(events.map(|events| {
            let events = events.with_ids(number).expiring(expires);
            match after {
                None if entry.session.revision().primes_streams() => {
                    events.opening(events::priming(number, self.settings.retry))
                }
                _ => events,
            }
        }))
    }

    pub(crate) fn events(&self, events: Option<Events>) -> Reply {
        let Some(events) = events else {
            let reason = "the event id is not known (any more)";
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
