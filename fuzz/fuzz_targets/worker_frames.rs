//! Decodes the bytes of a worker. The first byte selects how they are split. The messages do not depend on
//! the split, and serde_json or prost decodes the same ones if none is rejected.

#![cfg_attr(fuzzing, no_main)]

use bindpost_azure_functions::worker::proto::StreamingMessage;
use bindpost_azure_functions::worker::{Framing, cut_frames};
use prost::Message as _;

/// The maximum message size. It is small, so that the fuzzer generates messages that are too large.
const LIMIT: usize = 2_000;

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let framing = if first & 1 == 0 { Framing::Frames } else { Framing::Grpc };
    let piece = usize::from(first >> 1).max(1);
    let whole = cut_frames(framing, LIMIT, std::iter::once(bytes));
    assert_eq!(cut_frames(framing, LIMIT, bytes.chunks(piece)), whole, "the split changes the messages");

    let mut rest = bytes;
    for message in &whole.0 {
        let (frame, after) = next_frame(framing, rest).expect("each message has a frame");
        rest = after;
        if let Some(message) = message {
            assert_eq!(Some(message), decode(framing, frame).as_ref(), "another reader differs");
        }
    }
}

/// Returns the first frame without its header. A frame that is too large is reported before it is complete.
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
