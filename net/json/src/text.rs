//! Strings in JSON text: what must be escaped, decoding and writing.
//!
//! Most bytes of a JSON text are in strings, and few of those are escapes. These functions look at eight bytes at a
//! time.

use std::borrow::Cow;

/// Returns the length of the prefix without a quote, a backslash or a control character, which a JSON string must
/// escape.
#[inline]
pub fn plain_prefix(bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some(eight) = bytes[count..].first_chunk() {
        let special = special_bits(*eight);
        if special != 0 {
            return count + first_byte(special);
        }
        count += eight.len();
    }
    count + bytes[count..].iter().take_while(|&&byte| !is_special(byte)).count()
}

/// Returns how many of eight bytes come before the first special one.
#[inline]
fn plain_bytes(eight: [u8; 8]) -> usize {
    first_byte(special_bits(eight))
}

/// Sets the highest bit of the first special byte, and maybe of bytes after it.
#[inline]
fn special_bits(eight: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    // Sets the highest bit of each byte that is below `than`. A borrow can set it in more bytes, but only after one
    // of those.
    let below = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let word = u64::from_le_bytes(eight);
    let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
    let backslashes = below(word ^ (ONES * u64::from(b'\\')), 1);
    (below(word, 0x20) | quotes | backslashes) & HIGHS
}

#[inline]
fn first_byte(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the value of a JSON string. Returns `None` for any other text, and for half of a surrogate pair.
#[inline]
pub fn decode(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if plain_prefix(inside.as_bytes()) == inside.len() {
        return Some(Cow::Borrowed(inside));
    }
    decode_escaped(json, inside).map(Cow::Owned)
}

#[inline(never)]
fn decode_escaped(json: &str, inside: &str) -> Option<String> {
    without_escapes(inside).or_else(|| serde_json::from_str(json).ok())
}

/// Decodes the content of a string that has no `\u` escapes. JSON in JSON has many quotes and backslashes, which a
/// parser handles one at a time. This copies eight bytes at a time and then removes those that are not plain, which is
/// one store instead of a call for a few letters.
fn without_escapes(inside: &str) -> Option<String> {
    let mut text = Vec::with_capacity(inside.len());
    let mut rest = inside.as_bytes();
    while let Some((eight, after)) = rest.split_first_chunk() {
        text.extend_from_slice(eight);
        let plain = plain_bytes(*eight);
        if plain == eight.len() {
            rest = after;
        } else {
            text.truncate(text.len() + plain - eight.len());
            text.push(unescaped(rest.get(plain..plain + 2)?)?);
            rest = rest.get(plain + 2..)?;
        }
    }
    while let Some((first, after)) = rest.split_first() {
        if is_special(*first) {
            text.push(unescaped(rest.get(..2)?)?);
            rest = rest.get(2..)?;
        } else {
            text.push(*first);
            rest = after;
        }
    }
    String::from_utf8(text).ok()
}

/// Returns the character of a two-letter escape.
#[inline]
fn unescaped(escape: &[u8]) -> Option<u8> {
    Some(match escape {
        [b'\\', same @ (b'"' | b'\\' | b'/')] => *same,
        b"\\n" => b'\n',
        b"\\r" => b'\r',
        b"\\t" => b'\t',
        b"\\b" => 0x8,
        b"\\f" => 0xc,
        _ => return None,
    })
}

/// Writes a JSON string. JSON inside of a string has short words between quotes. The function always copies eight
/// bytes and then truncates from the first special byte. That is one store, while an exact copy would call `memcpy`.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some((eight, after)) = rest.split_first_chunk() {
        out.extend_from_slice(eight);
        let plain = plain_bytes(*eight);
        rest = match eight.get(plain) {
            None => after,
            Some(special) => {
                out.truncate(out.len() + plain - eight.len());
                write_escape(out, *special);
                rest.get(plain + 1..).unwrap_or_default()
            }
        };
    }
    for byte in rest {
        if is_special(*byte) {
            write_escape(out, *byte);
        } else {
            out.push(*byte);
        }
    }
    out.push(b'"');
}

#[inline]
fn write_escape(out: &mut Vec<u8>, special: u8) {
    match special {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', special]),
        control => out.extend_from_slice(control_escape(control).as_bytes()),
    }
}

/// Appends a JSON string to a text.
pub fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends the content of a JSON string, without quotes, to a text.
pub fn push_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some((plain, special)) = rest.split_at_checked(plain_prefix(rest.as_bytes())) {
        out.push_str(plain);
        match special.as_bytes() {
            [] => return,
            [b'"', ..] => out.push_str("\\\""),
            [b'\\', ..] => out.push_str("\\\\"),
            [control, ..] => out.push_str(control_escape(*control)),
        }
        rest = special.get(1..).unwrap_or_default();
    }
}

fn control_escape(control: u8) -> &'static str {
    #[rustfmt::skip]
    const ESCAPES: [&str; 32] = [
        "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007",
        "\\b",     "\\t",     "\\n",     "\\u000b", "\\f",     "\\r",     "\\u000e", "\\u000f",
        "\\u0010", "\\u0011", "\\u0012", "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017",
        "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
    ];
    ESCAPES.get(usize::from(control)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_json_in_json() {
        let inner = r#"{"a":"b\\c / \u00e9 \n"}"#;
        let outer = serde_json::to_string(inner).unwrap();
        assert_eq!(decode(&outer).as_deref(), Some(inner));
        assert_eq!(decode(r#""\b\f\/\t é""#).as_deref(), Some("\u{8}\u{c}/\t é"));
        for wrong in [r#""a"b""#, r#""a\""#, r#""\x""#, "\"", "7", r#""\ud83d""#] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn writes_every_control_character_as_an_escape() {
        let controls: String = (0..0x20_u8).map(char::from).collect();
        let mut json = String::new();
        push_string(&mut json, &controls);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), controls);
        assert!(!json.contains(char::is_control));
        assert!(json.contains("\\u001f"));
    }

    proptest! {
        #[test]
        fn plain_prefix_is_exact(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let naive = bytes.iter().take_while(|&&b| b != b'"' && b != b'\\' && b >= 0x20).count();
            prop_assert_eq!(plain_prefix(&bytes), naive);
        }

        #[test]
        fn finds_what_must_be_escaped(text in "[a-c\u{7f}é\u{0}\u{1f} !\"#\\\\]{0,40}") {
            let special = |letter: char| letter < ' ' || letter == '"' || letter == '\\';
            prop_assert_eq!(plain_prefix(text.as_bytes()), text.find(special).unwrap_or(text.len()));
        }

        #[test]
        fn writes_strings_like_serde_json(text in "[\\PC\"\\\\\\x00-\\x1f]{0,24}") {
            let expected = serde_json::to_string(&text).unwrap();
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert_eq!(&json, &expected);
            let mut json = Vec::new();
            write_string(&mut json, &text);
            prop_assert_eq!(json, expected.as_bytes());
        }

        #[test]
        fn reads_strings_like_serde_json(text in r#"("|\\\\|[a"é\\\\]|\\\\[nrtbfu"/x]|\\\\u(00e9|d83d)){0,12}"#) {
            let json = format!("\"{text}\"");
            let expected = serde_json::from_str::<String>(&json).ok();
            prop_assert_eq!(decode(&json).map(Cow::into_owned), expected);
        }
    }
}
