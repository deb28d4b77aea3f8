//! [`EventStream`]: a stream of messages as an SSE response body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bindpost_mcp_server::transport::{MessageStream, RunningCall, StreamRead};
use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, Sleep};

use crate::endpoint::pipes::PipeGuard;

/// Events are written together up to this size.
const GATHER: usize = 64 * 1024;

/// The events of one stream, read by one connection.
#[derive(Debug)]
pub(crate) struct EventStream {
    stream: Arc<MessageStream>,
    reader: u64,
    /// The number of the stream in its session. With a number, its events carry ids.
    number: Option<u32>,
    /// Bytes that are written first.
    opening: Option<Bytes>,
    /// The call that writes to the stream, if it is cancelled when the client disconnects.
    call: Option<RunningCall>,
    /// The pipe that is closed when the client disconnects.
    pipe: Option<PipeGuard>,
    over: bool,
    /// The time at which the credentials expire with which the stream was opened.
    expires: Option<Instant>,
    every: Duration,
    keep_alive: Pin<Box<Sleep>>,
}

impl EventStream {
    /// Reads a stream from its beginning, or after the message with this number. Returns `None` if that
    /// message is not known or no longer retained.
    pub(crate) fn attach(
        stream: Arc<MessageStream>,
        after: Option<u64>,
        keep_alive: Duration,
    ) -> Option<EventStream> {
        let reader = stream.attach(after)?;
        Some(EventStream {
            stream,
            reader,
            number: None,
            opening: None,
            call: None,
            pipe: None,
            over: false,
            expires: None,
            every: keep_alive,
            keep_alive: Box::pin(tokio::time::sleep(keep_alive)),
        })
    }

    /// Gives the events ids that contain the number of the stream.
    pub(crate) fn with_ids(mut self, number: u32) -> EventStream {
        self.number = Some(number);
        self
    }

    /// Starts with these bytes.
    pub(crate) fn opening(mut self, opening: Bytes) -> EventStream {
        self.opening = Some(opening);
        self
    }

    /// Runs this call. Its response is the last event. Dropping the body cancels it.
    pub(crate) fn driving(mut self, call: RunningCall) -> EventStream {
        self.call = Some(call);
        self
    }

    /// Ends the stream at this time, when the credentials of the caller expire. A subscription gets its
    /// last message. Any other call was authorized when it began and continues.
    pub(crate) fn expiring(mut self, at: Option<std::time::Instant>) -> EventStream {
        self.expires = at.map(Instant::from_std);
        self.reset_keep_alive();
        self
    }

    /// Closes this pipe when the client disconnects.
    pub(crate) fn guarding(mut self, pipe: PipeGuard) -> EventStream {
        self.pipe = Some(pipe);
        self
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Poll::Ready(Some(opening));
        }
        if self.over {
            self.pipe = None;
            return Poll::Ready(None);
        }
        if let Some(call) = &mut self.call
            && let Poll::Ready(answer) = Pin::new(call).poll(context)
        {
            self.call = None;
            match answer {
                Some(answer) => self.stream.finish(answer.into_bytes()),
                None => self.stream.end(),
            }
        }
        if self.expires.is_some() && self.has_expired() {
            return self.expire(context);
        }
        let mut gathered = BytesMut::new();
        while gathered.len() < GATHER {
            match self.stream.poll_pop(context, self.reader) {
                Poll::Ready(StreamRead::Message { number, message }) => {
                    let id = self.number.map(|stream| (stream, number));
                    write_event(&mut gathered, id, &message);
                }
                Poll::Ready(StreamRead::End | StreamRead::HangUp | StreamRead::Replaced) => {
                    self.over = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if !gathered.is_empty() {
            self.reset_keep_alive();
            return Poll::Ready(Some(gathered.freeze()));
        }
        if self.over {
            return Poll::Ready(None);
        }
        if self.keep_alive.as_mut().poll(context).is_ready() {
            if self.has_expired() {
                return self.expire(context);
            }
            self.reset_keep_alive();
            // The poll registers the waker with the new deadline.
            let _ = self.keep_alive.as_mut().poll(context);
            return Poll::Ready(Some(Bytes::from_static(b":\n\n")));
        }
        Poll::Pending
    }

    fn reset_keep_alive(&mut self) {
        let next = Instant::now() + self.every;
        self.keep_alive.as_mut().reset(self.expires.map_or(next, |expires| next.min(expires)));
    }

    fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| Instant::now() >= expires)
    }

    fn expire(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.expires = None;
        match &self.call {
            None => {
                self.over = true;
                self.pipe = None;
                Poll::Ready(None)
            }
            Some(call) => {
                call.canceller().end_listening();
                // Poll again immediately, because the call may now have a message to send.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.stream.detach(self.reader);
    }
}

/// Builds the first event of a stream of 2025-11-25. It has the id for a reconnect, the reconnection
/// delay, and no data.
pub(crate) fn priming_event(stream: u32, retry: Duration) -> Bytes {
    format!("id: {stream}::0\nretry: {}\ndata: \n\n", retry.as_millis()).into()
}

/// Parses an event id into the numbers of the stream and the message.
pub(crate) fn parse_event_id(id: &str) -> Option<(u32, u64)> {
    let (stream, message) = id.split_once("::")?;
    Some((stream.parse().ok()?, message.parse().ok()?))
}

/// Encodes one message as one SSE event.
pub fn encode_event(message: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    write_event(&mut out, None, message);
    out.freeze()
}

fn write_event(out: &mut BytesMut, id: Option<(u32, u64)>, message: &[u8]) {
    out.reserve(message.len() + 64);
    if let Some((stream, number)) = id {
        out.extend_from_slice(format!("id: {stream}::{number}\n").as_bytes());
    }
    out.extend_from_slice(b"event: message\n");
    // JSON may contain line breaks between its tokens. Each line needs its own `data` field. Otherwise
    // the text after a break would be read as another field.
    for line in message.split(|&byte| byte == b'\n' || byte == b'\r') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.extend_from_slice(b"\n");
    }
    out.extend_from_slice(b"\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_never_starts_a_field() {
        let event = encode_event(b"{\n\"a\":\r1,\r\n\"b\":2}");
        assert_eq!(
            event,
            "event: message\ndata: {\ndata: \"a\":\ndata: 1,\ndata: \ndata: \"b\":2}\n\n".as_bytes()
        );
    }

    #[test]
    fn an_invalid_event_id_is_rejected() {
        assert_eq!(parse_event_id("3::7"), Some((3, 7)));
        for bad in ["", "3", "::", "3::", "::7", "-1::7", "3::7::1", "3::x", "99999999999::1"] {
            assert_eq!(parse_event_id(bad), None, "{bad}");
        }
    }
}
