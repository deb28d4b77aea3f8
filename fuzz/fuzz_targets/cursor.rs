//! Decodes text with [`ListCursor::decode`]. Only the output of `encode` is accepted, and only for
//! its own list.
//!
//! A fuzzer cannot guess a checksum, so the same bytes also describe changes to a valid cursor.

#![cfg_attr(fuzzing, no_main)]

use bindpost_mcp_server::{ListCursor, ListKind};

const KINDS: [ListKind; 4] = [ListKind::Tools, ListKind::Resources, ListKind::Templates, ListKind::Prompts];

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        only_our_own(text);
    }
    if let Some((header, changes)) = data.split_first_chunk::<9>() {
        let [kind, after @ ..] = *header;
        let cursor = ListCursor { kind: KINDS[usize::from(kind) % 4], after: u64::from_be_bytes(after) };
        let written = cursor.encode();
        for kind in KINDS {
            let expected = (kind == cursor.kind).then_some(cursor);
            assert_eq!(ListCursor::decode(kind, &written), expected, "{written}");
        }
        let mut text = written.clone();
        for change in changes.chunks_exact(3) {
            edit(&mut text, change);
        }
        if text != written {
            for kind in KINDS {
                assert_eq!(ListCursor::decode(kind, &text), None, "{text:?} passes for {written}");
            }
        }
    }
}

fn only_our_own(text: &str) {
    for kind in KINDS {
        if let Some(cursor) = ListCursor::decode(kind, text) {
            assert_eq!(cursor.kind, kind);
            assert_eq!(cursor.encode(), text);
        }
    }
}

/// One change: the operation, the position, and the character.
fn edit(text: &mut String, change: &[u8]) {
    let at = usize::from(change[1]) % (text.chars().count() + 1);
    let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
    let new = char::from(change[2]);
    match change[0] % 3 {
        0 => text.insert(at, new),
        1 if at < text.len() => drop(text.remove(at)),
        2 if at < text.len() => {
            text.remove(at);
            text.insert(at, new);
        }
        _ => {}
    }
}
