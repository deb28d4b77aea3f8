//! The bytes of a worker, after one byte that says how they arrive → messages: the same ones, however the bytes are cut,
//! and those that serde_json or prost reads where nothing is refused.

#![cfg_attr(fuzzing, no_main)]

use bindpost_azure_functions::worker::proto::StreamingMessage;
use bindpost_azure_functions::worker::{Framing, cut_frames};
use prost::Message as _;

/// Small, so that the fuzzer writes messages that are too large.
const LIMIT: usize = 2_000;

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let framing = if first & 1 == 0 { Framing::Frames } else { Framing::Grpc };
    let piece = usize::from(first >> 1).max(1);
    let whole = cut_frames(framing, LIMIT, std::iter::once(bytes));
    assert_eq!(cut_frames(framing, LIMIT, bytes.chunks(piece)), whole, "the cut changes the messages");

    let mut rest = bytes;
    for message in &whole.0 {
        let (frame, after) = next_frame(framing, rest).expect("each message has a frame");
        rest = after;
        if let Some(message) = message {
            assert_eq!(Some(message), decode(framing, frame).as_ref(), "another reader sees something else");
        }
    }
}

/// The first frame without its header. One that is too large is reported before its end has arrived.
fn next_frame(framing: Framing, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = if framing == Framing::Grpc { 5 } else { 4 };
    let length = u32::from_be_bytes(bytes.get(header - 4..header)?.try_into().ok()?);
    let bytes = bytes.get(header..)?;
    Some(bytes.split_at(bytes.len().min(usize::try_from(length).ok()?)))
}

fn decode(framing: Framing, frame: &[u8]) -> Option<StreamingMessage> {
    match framing {
        Framing::Grpc => StreamingMessage::decode(frame).ok(),
        Framing::Frames => serde_json::from_slice(frame).ok(),
    }
}
