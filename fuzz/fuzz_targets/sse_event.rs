//! Encodes a message with [`encode_event`] and reads it back: one event, the same data, no other field.

#![cfg_attr(fuzzing, no_main)]

use bindpost_mcp_http::encode_event;

bindpost_fuzz::target!(run);

fn run(message: &[u8]) {
    let encoded = encode_event(message);
    // JSON allows line breaks only as white space outside of strings, so any line break is equivalent.
    let data: Vec<u8> = message.iter().map(|&byte| if byte == b'\r' { b'\n' } else { byte }).collect();
    let expected = Event { kind: b"message".to_vec(), data };
    assert_eq!(read(&encoded), std::slice::from_ref(&expected));

    // Two events follow each other. An incomplete event is discarded.
    assert_eq!(read(&[&encoded[..], &encoded[..]].concat()), [expected.clone(), expected]);
    assert_eq!(read(&encoded[..encoded.len() - 1]), []);
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Event {
    kind: Vec<u8>,
    data: Vec<u8>,
}

/// Reads a stream as the HTML standard defines it ("Interpreting an event stream"). Allows only the fields
/// `event` and `data`, with `event` once and first in each event.
fn read(stream: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut event = Event::default();
    let mut rest = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        let line = &rest[..end];
        let break_length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + break_length..];
        if line.is_empty() {
            let Event { kind, mut data } = std::mem::take(&mut event);
            if data.pop().is_some() {
                events.push(Event { kind, data });
            }
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => {
                assert_eq!(event, Event::default(), "`event` is not the first field");
                event.kind = value.to_vec();
            }
            b"data" => {
                event.data.extend_from_slice(value);
                event.data.push(b'\n');
            }
            other => panic!("an unexpected field: {:?}", String::from_utf8_lossy(other)),
        }
    }
    events
}
