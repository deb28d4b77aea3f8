//! Encodes messages as frames and splits a stream into frames, for both framings.
//!
//! In gRPC, a flag and a length precede each protobuf message. The frames of our own workers are a length and
//! JSON. Both announce the size of a message before its content. A message that is too large or cannot be
//! decoded therefore fails only the invocation that it answers, not the stream.

use bytes::{Buf, Bytes, BytesMut};
use prost::Message as _;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::invocation_json;
use super::parts;
use super::proto::streaming_message::Content;
use super::proto::{InvocationResponse, StreamingMessage};
use crate::invocation::Invocation;
use crate::worker::channel::invoke::wire_request;

/// How messages are written on the stream to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// gRPC, for public workers.
    Grpc,
    /// Length and JSON on a local socket, for our own workers.
    Frames,
}

/// The maximum size of a message that public workers can write.
const LONGEST: usize = i32::MAX as usize;

/// How many bytes of a message that is too large are searched for the id of its invocation.
const PEEK: usize = 4 << 10;

impl Framing {
    fn header(self) -> usize {
        match self {
            Self::Grpc => 5,
            Self::Frames => 4,
        }
    }

    /// Encodes a message with its header. Returns its size as an error if it exceeds `limit`.
    pub(crate) fn encode(self, message: &StreamingMessage, limit: usize) -> Result<Vec<u8>, usize> {
        let header = self.header();
        let mut frame;
        match self {
            Self::Grpc => {
                let size = message.encoded_len();
                if size > limit {
                    return Err(size);
                }
                frame = Vec::with_capacity(header + size);
                frame.resize(header, 0);
                message.encode_raw(&mut frame);
            }
            Self::Frames => {
                frame = Vec::with_capacity(256);
                frame.resize(header, 0);
                // Strings, numbers and lists always have a JSON form, and writing to a Vec does not fail.
                let _ = serde_json::to_writer(&mut frame, message);
            }
        }
        self.finish(frame, limit)
    }

    /// Encodes the request of an invocation in the same way.
    pub(crate) fn encode_invocation(self, invocation: Invocation, limit: usize) -> Result<Vec<u8>, usize> {
        match self {
            Self::Grpc => {
                // The Functions host leaves the request id empty here.
                let content = Content::InvocationRequest(wire_request(invocation));
                self.encode(&StreamingMessage { request_id: String::new(), content: Some(content) }, limit)
            }
            Self::Frames => {
                let header = self.header();
                let mut frame = Vec::with_capacity(header + invocation_json::likely_size(&invocation));
                frame.resize(header, 0);
                invocation_json::push_request(&mut frame, &invocation);
                self.finish(frame, limit)
            }
        }
    }

    /// Writes the length into the header of a frame.
    fn finish(self, mut frame: Vec<u8>, limit: usize) -> Result<Vec<u8>, usize> {
        let header = self.header();
        let size = frame.len() - header;
        let length = u32::try_from(size).ok().filter(|_| size <= limit).ok_or(size)?;
        if let Some(place) = frame.get_mut(header - 4..header) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        Ok(frame)
    }

    /// Returns the id of the invocation that a message answers, read from its first bytes.
    fn peek_invocation_id(self, frame: &[u8]) -> Option<String> {
        match self {
            Self::Grpc => peek_protobuf(frame),
            Self::Frames => peek_json(frame),
        }
    }
}

/// A message from the stream.
#[derive(Debug)]
pub(crate) enum IncomingMessage {
    Message(Box<StreamingMessage>),
    /// The response of an invocation, which is the most frequent message.
    Answer(Box<InvocationResponse>),
    /// A message that is too large or cannot be decoded, with the id of its invocation, if that
    /// could be read.
    Spoiled {
        invocation: Option<String>,
        reason: String,
    },
}

/// Decodes the messages in a stream that arrives in the given pieces. A rejected message is `None`. The
/// result is an error if the rest of the stream cannot be read. For the fuzz target `worker_frames`.
#[doc(hidden)]
pub fn cut_frames<'a>(
    framing: Framing,
    limit: usize,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Option<StreamingMessage>>, Result<(), String>) {
    let (mut inbox, mut messages) = (WorkerInbox::new(framing, limit), Vec::new());
    for piece in pieces {
        inbox.push(piece);
        loop {
            messages.push(match inbox.next() {
                Ok(Some(IncomingMessage::Message(message))) => Some(*message),
                Ok(Some(IncomingMessage::Answer(answer))) => Some(StreamingMessage {
                    request_id: String::new(),
                    content: Some(Content::InvocationResponse(*answer)),
                }),
                Ok(Some(IncomingMessage::Spoiled { .. })) => None,
                Ok(None) => break,
                Err(broken) => return (messages, Err(broken.to_string())),
            });
        }
    }
    (messages, Ok(()))
}

/// Why the rest of a stream cannot be split into messages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FramingError {
    #[error("the worker sent a compressed message, which is not supported")]
    Compressed,
    /// All following bytes would be read as a part of this message.
    #[error("the worker announced a message of {0} bytes, but the maximum is {LONGEST}")]
    Impossible(usize),
}

/// Splits the bytes from a worker into messages.
pub(crate) struct WorkerInbox {
    framing: Framing,
    limit: usize,
    buffer: BytesMut,
    /// The number of bytes of a rejected message that are still to be skipped.
    skip: usize,
}

impl WorkerInbox {
    pub(crate) fn new(framing: Framing, limit: usize) -> Self {
        Self { framing, limit, buffer: BytesMut::new(), skip: 0 }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns the buffer for the next bytes. It has space for at least 16 KiB, or for the rest of
    /// the current message.
    pub(crate) fn read_buffer(&mut self) -> &mut BytesMut {
        let missing = self.announced().map_or(0, |size| size.saturating_sub(self.buffer.len()));
        let wanted = if missing > self.limit { 16 << 10 } else { missing.max(16 << 10) };
        self.buffer.reserve(wanted);
        &mut self.buffer
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let skipped = self.skip.min(chunk.len());
        self.skip -= skipped;
        self.buffer.extend_from_slice(chunk.get(skipped..).unwrap_or_default());
    }

    /// Returns the size of the current message with its header, if the header has been received.
    fn announced(&self) -> Option<usize> {
        let header = self.framing.header();
        let length = self.buffer.get(header - 4..header)?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        Some(usize::try_from(length).ok()?.saturating_add(header))
    }

    /// Returns the next message, if it has been received completely.
    pub(crate) fn next(&mut self) -> Result<Option<IncomingMessage>, FramingError> {
        let skipped = self.skip.min(self.buffer.len());
        self.buffer.advance(skipped);
        self.skip -= skipped;

        let Some(size) = self.announced() else { return Ok(None) };
        let header = self.framing.header();
        if self.framing == Framing::Grpc && self.buffer.first() != Some(&0) {
            return Err(FramingError::Compressed);
        }
        let length = size - header;
        if length > LONGEST {
            return Err(FramingError::Impossible(length));
        }
        if length > self.limit {
            if self.buffer.len() < size.min(header + PEEK) {
                return Ok(None);
            }
            let seen = self.buffer.get(header..).unwrap_or_default();
            let invocation =
                self.framing.peek_invocation_id(seen.get(..PEEK.min(seen.len())).unwrap_or_default());
            self.skip = size;
            let reason = format!(
                "the worker's answer has {length} bytes, but the limit for one message is {}",
                self.limit
            );
            return Ok(Some(IncomingMessage::Spoiled { invocation, reason }));
        }
        if self.buffer.len() < size {
            return Ok(None);
        }
        self.buffer.advance(header);
        let item = match self.framing {
            Framing::Grpc => decode_protobuf(self.buffer.split_to(length).freeze()),
            Framing::Frames => {
                let item = decode_json(self.buffer.get(..length).unwrap_or_default());
                self.buffer.advance(length);
                item
            }
        };
        Ok(Some(item))
    }
}

fn decode_protobuf(frame: Bytes) -> IncomingMessage {
    if let Err(error) = parts::check_protobuf(&frame) {
        return spoiled(peek_protobuf(&frame), &error);
    }
    match StreamingMessage::decode(frame.clone()) {
        Ok(message) => IncomingMessage::Message(Box::new(message)),
        Err(error) => spoiled(peek_protobuf(&frame), &error),
    }
}

fn decode_json(frame: &[u8]) -> IncomingMessage {
    if let Some(response) = invocation_json::read_answer(frame) {
        return IncomingMessage::Answer(Box::new(response));
    }
    match serde_json::from_slice(frame) {
        Ok(message) => IncomingMessage::Message(Box::new(message)),
        Err(error) => spoiled(peek_json(frame), &error),
    }
}

fn spoiled(invocation: Option<String>, error: &dyn std::error::Error) -> IncomingMessage {
    IncomingMessage::Spoiled { invocation, reason: format!("the worker's answer cannot be read: {error}") }
}

/// Reads the invocation id from a protobuf message. Field 5 of a message is the response of an invocation,
/// and field 1 of the response is the id.
fn peek_protobuf(mut frame: &[u8]) -> Option<String> {
    loop {
        let (field, wire) = decode_key(&mut frame).ok()?;
        if wire != WireType::LengthDelimited {
            return None;
        }
        let length = usize::try_from(decode_varint(&mut frame).ok()?).ok()?;
        if field == 5 {
            let (field, wire) = decode_key(&mut frame).ok()?;
            if field != 1 || wire != WireType::LengthDelimited {
                return None;
            }
            let length = usize::try_from(decode_varint(&mut frame).ok()?).ok()?;
            return String::from_utf8(frame.get(..length)?.to_vec()).ok();
        }
        frame = frame.get(length..)?;
    }
}

/// Reads the invocation id from JSON such as `…"invocationResponse":{"invocationId":"7"…`. Our workers write
/// the id first.
fn peek_json(frame: &[u8]) -> Option<String> {
    // The text may end within a character.
    let start = frame.get(..PEEK.min(frame.len()))?;
    let text = String::from_utf8_lossy(start);
    let (_, answer) = text.split_once("\"invocationResponse\"")?;
    let (_, id) = answer.split_once("\"invocationId\"")?;
    let id = id.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let (id, _) = id.split_once('"')?;
    Some(id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::proto::streaming_message::Content;
    use super::super::proto::typed_data::Data;
    use super::super::proto::{InvocationResponse, StartStream, TypedData};
    use super::*;

    const BOTH: [Framing; 2] = [Framing::Grpc, Framing::Frames];

    fn answer(id: &str, size: usize) -> StreamingMessage {
        StreamingMessage {
            request_id: "r".into(),
            content: Some(Content::InvocationResponse(InvocationResponse {
                invocation_id: id.into(),
                return_value: Some(TypedData { data: Some(Data::String("x".repeat(size))) }),
                ..InvocationResponse::default()
            })),
        }
    }

    fn hello() -> StreamingMessage {
        StreamingMessage {
            request_id: String::new(),
            content: Some(Content::StartStream(StartStream { worker_id: "w".into() })),
        }
    }

    #[test]
    fn messages_are_decoded_from_any_chunks() {
        for framing in BOTH {
            let mut bytes = framing.encode(&hello(), 1_000).unwrap();
            bytes.extend(framing.encode(&answer("7", 20), 1_000).unwrap());
            let mut inbox = WorkerInbox::new(framing, 1_000);
            let mut seen = Vec::new();
            for byte in bytes {
                inbox.push(&[byte]);
                while let Some(IncomingMessage::Message(message)) = inbox.next().unwrap() {
                    seen.push(*message);
                }
            }
            assert_eq!(seen, [hello(), answer("7", 20)]);
        }
    }

    #[test]
    fn an_oversize_answer_does_not_affect_other_messages() {
        for framing in BOTH {
            let mut bytes = framing.encode(&answer("7", 50_000), 1 << 20).unwrap();
            bytes.extend(framing.encode(&hello(), 1_000).unwrap());
            let mut inbox = WorkerInbox::new(framing, 1_000);
            let mut seen = Vec::new();
            for chunk in bytes.chunks(999) {
                inbox.push(chunk);
                while let Some(item) = inbox.next().unwrap() {
                    seen.push(item);
                }
                assert!(inbox.buffer.len() < 8 << 10, "the message is not buffered");
            }
            let [IncomingMessage::Spoiled { invocation, reason }, IncomingMessage::Message(next)] = &seen[..]
            else {
                panic!("{framing:?}: {seen:?}")
            };
            assert_eq!(invocation.as_deref(), Some("7"));
            assert!(reason.contains("limit"), "{reason}");
            assert_eq!(**next, hello());
        }
    }

    #[test]
    fn an_unreadable_answer_does_not_affect_other_messages() {
        let mut inbox = WorkerInbox::new(Framing::Frames, 1_000);
        let lone_surrogate =
            br#"{"invocationResponse":{"invocationId":"9","returnValue":{"string":"\ud800"}}}"#;
        inbox.push(&u32::try_from(lone_surrogate.len()).unwrap().to_be_bytes());
        inbox.push(lone_surrogate);
        let Some(IncomingMessage::Spoiled { invocation, .. }) = inbox.next().unwrap() else { panic!() };
        assert_eq!(invocation.as_deref(), Some("9"));
    }

    #[test]
    fn a_request_above_the_limit_is_not_encoded() {
        for framing in BOTH {
            assert!(framing.encode(&answer("7", 2_000), 1_000).is_err());
        }
    }

    #[test]
    fn a_compressed_message_breaks_the_stream() {
        let mut inbox = WorkerInbox::new(Framing::Grpc, 1_000);
        inbox.push(&[1, 0, 0, 0, 0]);
        assert_eq!(inbox.next().err(), Some(FramingError::Compressed));
    }
}
