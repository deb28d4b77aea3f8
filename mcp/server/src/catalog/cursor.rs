//! [`ListCursor`]: the opaque pagination cursor of a list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// Which list a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// `tools/list`
    Tools = 1,
    /// `resources/list`
    Resources = 2,
    /// `resources/templates/list`
    Templates = 3,
    /// `prompts/list`
    Prompts = 4,
}

/// A position in a list, after the entry with this number. Numbers do not change when entries are added or
/// removed, so a cursor stays valid when the list changes between two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// The list that the cursor belongs to.
    pub kind: ListKind,
    /// The number of the last entry of the page before.
    pub after: u64,
}

const CHECK: usize = 6;

impl ListCursor {
    /// Encodes the cursor as opaque text for clients.
    pub fn encode(self) -> String {
        encode_position(self.kind as u8, self.after)
    }

    /// Decodes a cursor of this list. Returns `None` for text that [`ListCursor::encode`] did not write.
    pub fn decode(kind: ListKind, text: &str) -> Option<ListCursor> {
        decode_position(kind as u8, text).map(|after| ListCursor { kind, after })
    }
}

/// Encodes a position in the list with this tag. The tags up to 15 are those of [`ListKind`].
pub(crate) fn encode_position(tag: u8, after: u64) -> String {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&after.to_be_bytes());
    bytes.extend_from_slice(&check(&bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes what [`encode_position`] wrote for the same tag.
pub(crate) fn decode_position(tag: u8, text: &str) -> Option<u64> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (data, tail) = bytes.split_at_checked(9)?;
    if tail != check(data) || *data.first()? != tag {
        return None;
    }
    data.get(1..9)?.try_into().ok().map(u64::from_be_bytes)
}

/// Returns a checksum that detects invalid cursors. It needs no secret, because a cursor grants no access.
fn check(data: &[u8]) -> [u8; CHECK] {
    let digest = Sha256::new().chain_update(b"bindpost cursor").chain_update(data).finalize();
    let mut check = [0; CHECK];
    check.copy_from_slice(&digest[..CHECK]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rejects_the_cursor_of_another_list() {
        let text = ListCursor { kind: ListKind::Tools, after: 7 }.encode();
        assert_eq!(ListCursor::decode(ListKind::Prompts, &text), None);
    }

    proptest! {
        #[test]
        fn round_trips(after: u64) {
            let cursor = ListCursor { kind: ListKind::Prompts, after };
            prop_assert_eq!(ListCursor::decode(ListKind::Prompts, &cursor.encode()), Some(cursor));
        }

        #[test]
        fn rejects_arbitrary_text(text in ".{0,40}") {
            prop_assert_eq!(ListCursor::decode(ListKind::Tools, &text), None);
        }
    }
}
