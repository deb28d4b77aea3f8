//! A strict validation pass over a JSON text.
//!
//! This pass runs before `serde_json` decodes values. It guarantees three things that no single crate
//! offers:
//! - The text is valid JSON of bounded depth.
//! - No object has two members with the same name. Parsers disagree on which of the two is valid, which
//!   allows attackers to bypass checks.
//! - The positions of the members of the message, of `params` and of `params._meta` are known. Each
//!   member is decoded once or passed on unchanged.
//!
//! It shares the search for the end of a string with the cutters of `net/json`. Those trust a checked text and skip
//! values by their brackets. This pass checks every byte.
//!
//! Property tests and fuzzing compare the result with `serde_json`.

use std::borrow::Cow;

use bindpost_net_json::text::plain_prefix;

/// The maximum nesting depth. It equals the limit of `serde_json`.
pub(crate) const MAX_DEPTH: u8 = 127;

/// Objects with more members than this are checked for duplicates by sorting instead of comparing pairs.
const FEW_MEMBERS: usize = 12;

/// A part of the text, as byte offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl ByteSpan {
    /// Returns whether the span is not empty. No JSON value is empty.
    pub(crate) fn is_present(self) -> bool {
        self.end > self.start
    }
}

/// The object that contains a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberLevel {
    /// The message itself.
    Top,
    /// The object `params`.
    Params,
    /// The object `params._meta`.
    Meta,
    /// Any deeper object. Its members are checked but not recorded.
    Below,
}

/// One recorded member. `key` excludes the quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonMember {
    pub(crate) level: MemberLevel,
    pub(crate) key_escaped: bool,
    pub(crate) key: ByteSpan,
    pub(crate) value: ByteSpan,
}

/// The result of the pass.
#[derive(Debug, Default)]
pub(crate) struct MessageOutline {
    pub(crate) jsonrpc: ByteSpan,
    pub(crate) id: ByteSpan,
    pub(crate) method: ByteSpan,
    pub(crate) params: ByteSpan,
    pub(crate) result: ByteSpan,
    pub(crate) error: ByteSpan,
    /// Members of `params` and `params._meta`, in order of appearance.
    pub(crate) members: Vec<JsonMember>,
    /// The elements, if the text is an array.
    pub(crate) elements: Vec<ByteSpan>,
    pub(crate) root: RootKind,
}

/// The JSON type of the whole text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RootKind {
    Object,
    Array,
    #[default]
    Scalar,
}

/// The reason and the position of a rejection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonError {
    pub(crate) at: usize,
    pub(crate) what: JsonErrorKind,
    /// The message's id, if it was found before the error.
    pub(crate) id: ByteSpan,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonErrorKind {
    Expected(&'static str),
    TooDeep,
    Duplicate(String),
    NotUtf8,
    TooLong,
}

impl JsonError {
    /// Describes the error and its position.
    pub(crate) fn explain(&self, text: &[u8]) -> String {
        let before = &text[..self.at.min(text.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let column = self.at - before.iter().rposition(|&b| b == b'\n').map_or(0, |p| p + 1) + 1;
        let what = match &self.what {
            JsonErrorKind::Expected(what) => format!("expected {what}"),
            JsonErrorKind::TooDeep => format!("nested deeper than {MAX_DEPTH} levels"),
            JsonErrorKind::Duplicate(key) => format!("member {key:?} appears twice in one object"),
            JsonErrorKind::NotUtf8 => "the text is not valid UTF-8".to_owned(),
            JsonErrorKind::TooLong => "the text is longer than 4 GiB".to_owned(),
        };
        format!("{what} at line {line}, column {column}")
    }
}

/// The reason why the pass ended early. It is boxed because most texts have no error.
type BoxedErrorKind = Box<JsonErrorKind>;

/// Validates the whole text and returns its outline.
pub(crate) fn outline(text: &[u8]) -> Result<MessageOutline, JsonError> {
    if !is_ascii(text)
        && let Err(error) = std::str::from_utf8(text)
    {
        return Err(JsonError {
            at: error.valid_up_to(),
            what: JsonErrorKind::NotUtf8,
            id: ByteSpan::default(),
        });
    }
    if u32::try_from(text.len()).is_err() {
        return Err(JsonError { at: 0, what: JsonErrorKind::TooLong, id: ByteSpan::default() });
    }
    let mut pass = OutlineParser { text, at: 0, keys: KeyStack::default(), found: MessageOutline::default() };
    match pass.run() {
        Ok(()) => Ok(pass.found),
        Err(what) => Err(JsonError { at: pass.at, what: *what, id: pass.found.id }),
    }
}

/// Returns whether all bytes are ASCII, as most messages are. The method of slices reads up to 63 bytes at the end one by
/// one, which costs more than the rest of the message. This function reads the last bytes twice instead.
fn is_ascii(text: &[u8]) -> bool {
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let Some(last) = text.last_chunk::<8>() else { return text.is_ascii() };
    let mut all = u64::from_ne_bytes(*last);
    for word in text.as_chunks::<8>().0 {
        all |= u64::from_ne_bytes(*word);
    }
    all & HIGHS == 0
}

/// A key, as the span between its quotes.
#[derive(Clone, Copy, Default)]
struct KeySpan {
    span: ByteSpan,
    escaped: bool,
}

/// A stack of keys. The array `few` is large enough for most messages.
#[derive(Default)]
struct KeyStack {
    few: [KeySpan; 24],
    count: usize,
    /// All keys, once `few` has overflowed.
    many: Vec<KeySpan>,
}

impl KeyStack {
    fn len(&self) -> usize {
        if self.many.is_empty() { self.count } else { self.many.len() }
    }

    fn keys_from(&self, first: usize) -> &[KeySpan] {
        if self.many.is_empty() { &self.few[first..self.count] } else { &self.many[first..] }
    }

    fn push(&mut self, key: KeySpan) {
        if self.many.is_empty() && self.count < self.few.len() {
            self.few[self.count] = key;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(key);
    }

    fn truncate(&mut self, count: usize) {
        if self.many.is_empty() {
            self.count = count;
        } else {
            self.many.truncate(count);
            if count == 0 {
                self.count = 0;
            }
        }
    }
}

struct OutlineParser<'a> {
    text: &'a [u8],
    at: usize,
    /// The keys of all open objects, innermost last.
    keys: KeyStack,
    found: MessageOutline,
}

impl<'a> OutlineParser<'a> {
    fn run(&mut self) -> Result<(), BoxedErrorKind> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => {
                self.found.root = RootKind::Object;
                self.found.members.reserve(8);
                self.object(MAX_DEPTH, MemberLevel::Top)?;
            }
            Some(b'[') => {
                self.found.root = RootKind::Array;
                self.array(MAX_DEPTH, true)?;
            }
            _ => self.value(MAX_DEPTH)?,
        }
        self.skip_space();
        if self.at < self.text.len() {
            return Err(expected("the end of the text"));
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn span(&self, start: usize) -> ByteSpan {
        // `outline` checks that the text is shorter than 4 GiB.
        ByteSpan { start: start as u32, end: self.at as u32 }
    }

    fn value(&mut self, depth: u8) -> Result<(), BoxedErrorKind> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'{') => self.object(depth, MemberLevel::Below),
            Some(b'[') => self.array(depth, false),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(expected("a JSON value")),
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<(), BoxedErrorKind> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(expected("a JSON value"))
        }
    }

    fn number(&mut self) -> Result<(), BoxedErrorKind> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(expected("a digit")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), BoxedErrorKind> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(expected("a digit"));
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        Ok(())
    }

    /// Skips a string and returns whether it contains an escape.
    fn string(&mut self) -> Result<bool, BoxedErrorKind> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at += plain_prefix(&self.text[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(expected("no control character inside a string")),
                None => return Err(expected("the closing quote of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), BoxedErrorKind> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => match self.hex4(self.at + 2)? {
                0xD800..=0xDBFF => {
                    let low = self.text.get(self.at + 6..self.at + 8) == Some(b"\\u");
                    if low && matches!(self.hex4(self.at + 8)?, 0xDC00..=0xDFFF) {
                        self.at += 12;
                        Ok(())
                    } else {
                        Err(expected("the second half of a surrogate pair"))
                    }
                }
                0xDC00..=0xDFFF => Err(expected("no lone surrogate")),
                _ => {
                    self.at += 6;
                    Ok(())
                }
            },
            _ => Err(expected("a valid JSON escape")),
        }
    }

    fn hex4(&self, start: usize) -> Result<u16, BoxedErrorKind> {
        let digits = self.text.get(start..start + 4).unwrap_or_default();
        if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(expected("four hexadecimal digits"));
        }
        Ok(digits.iter().fold(0, |sum, &d| sum << 4 | (d as char).to_digit(16).unwrap_or(0) as u16))
    }

    fn array(&mut self, depth: u8, record: bool) -> Result<(), BoxedErrorKind> {
        let depth = depth.checked_sub(1).ok_or_else(|| Box::new(JsonErrorKind::TooDeep))?;
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            let start = self.at;
            self.value(depth)?;
            if record {
                let span = self.span(start);
                self.found.elements.push(span);
            }
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(expected("`,` or `]`")),
            }
        }
    }

    fn object(&mut self, depth: u8, level: MemberLevel) -> Result<(), BoxedErrorKind> {
        let depth = depth.checked_sub(1).ok_or_else(|| Box::new(JsonErrorKind::TooDeep))?;
        let first_key = self.keys.len();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(expected("a member name in quotes"));
            }
            let key_start = self.at;
            let key_escaped = self.string()?;
            let key_span = ByteSpan { start: key_start as u32 + 1, end: self.at as u32 - 1 };
            self.record_key(first_key, KeySpan { span: key_span, escaped: key_escaped })?;
            let escaped_name;
            let key = if key_escaped {
                escaped_name = self.decoded(KeySpan { span: key_span, escaped: true });
                &*escaped_name
            } else {
                self.slice(key_span)
            };
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(expected("`:`"));
            }
            self.at += 1;
            self.skip_space();

            let start = self.at;
            let opens_object = self.peek() == Some(b'{');
            match level {
                MemberLevel::Top if opens_object && key == b"params" => {
                    self.object(depth, MemberLevel::Params)?
                }
                MemberLevel::Params if opens_object && key == b"_meta" => {
                    self.object(depth, MemberLevel::Meta)?
                }
                _ => self.value(depth)?,
            }
            let value = self.span(start);
            self.skip_space();
            let last = match self.peek() {
                Some(b',') => false,
                Some(b'}') => true,
                _ => return Err(expected("`,` or `}`")),
            };
            self.at += 1;
            // The end of the value is known only now.
            match level {
                MemberLevel::Below => {}
                MemberLevel::Top => match key {
                    b"jsonrpc" => self.found.jsonrpc = value,
                    b"id" => self.found.id = value,
                    b"method" => self.found.method = value,
                    b"params" => self.found.params = value,
                    b"result" => self.found.result = value,
                    b"error" => self.found.error = value,
                    _ => {}
                },
                MemberLevel::Params | MemberLevel::Meta => {
                    self.found.members.push(JsonMember { level, key_escaped, key: key_span, value });
                }
            }
            if last {
                return self.close_object(first_key);
            }
        }
    }

    fn slice(&self, span: ByteSpan) -> &'a [u8] {
        &self.text[span.start as usize..span.end as usize]
    }

    /// Returns a key with its escapes decoded.
    fn decoded(&self, key: KeySpan) -> Cow<'a, [u8]> {
        if !key.escaped {
            return Cow::Borrowed(self.slice(key.span));
        }
        let quoted = ByteSpan { start: key.span.start - 1, end: key.span.end + 1 };
        match serde_json::from_slice::<String>(self.slice(quoted)) {
            Ok(decoded) => Cow::Owned(decoded.into_bytes()),
            Err(_) => Cow::Borrowed(self.slice(key.span)),
        }
    }

    /// Records a key of the open object. Rejects a duplicate.
    fn record_key(&mut self, first_key: usize, key: KeySpan) -> Result<(), BoxedErrorKind> {
        let siblings = self.keys.keys_from(first_key);
        if siblings.len() < FEW_MEMBERS {
            let bytes = self.slice(key.span);
            let same = |other: &KeySpan| {
                if key.escaped || other.escaped {
                    self.decoded(key) == self.decoded(*other)
                } else {
                    bytes == self.slice(other.span)
                }
            };
            if siblings.iter().any(same) {
                return Err(self.duplicate(&self.decoded(key)));
            }
        }
        self.keys.push(key);
        Ok(())
    }

    fn close_object(&mut self, first_key: usize) -> Result<(), BoxedErrorKind> {
        if self.keys.len() - first_key > FEW_MEMBERS {
            let mut keys: Vec<Cow<'a, [u8]>> =
                self.keys.keys_from(first_key).iter().map(|key| self.decoded(*key)).collect();
            keys.sort_unstable();
            if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(self.duplicate(&pair[0]));
            }
        }
        self.keys.truncate(first_key);
        Ok(())
    }

    fn duplicate(&self, key: &[u8]) -> BoxedErrorKind {
        Box::new(JsonErrorKind::Duplicate(String::from_utf8_lossy(key).into_owned()))
    }
}

#[cold]
fn expected(what: &'static str) -> BoxedErrorKind {
    Box::new(JsonErrorKind::Expected(what))
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_is_ascii_without_a_high_byte_at_any_place() {
        for length in 0..70 {
            let mut text = vec![b'a'; length];
            assert!(super::is_ascii(&text), "{length}");
            for place in 0..length {
                text[place] = 0x80;
                assert!(!super::is_ascii(&text), "{place} of {length}");
                text[place] = 0x7F;
            }
        }
    }

    use super::*;
    use proptest::prelude::*;

    fn fault(text: &str) -> String {
        outline(text.as_bytes()).expect_err(text).explain(text.as_bytes())
    }

    #[test]
    fn an_error_names_its_position() {
        assert_eq!(
            fault("{\"a\":1,\n \"a\":2}"),
            "member \"a\" appears twice in one object at line 2, column 5"
        );
        assert_eq!(fault("{\"a\":"), "expected a JSON value at line 1, column 6");
        assert_eq!(
            fault(r#"{"a":1,"\u0061":2}"#),
            "member \"a\" appears twice in one object at line 1, column 16"
        );
        assert_eq!(
            fault(r#"["\ud800"]"#),
            "expected the second half of a surrogate pair at line 1, column 3"
        );
        assert!(fault(&"[".repeat(100_000)).starts_with("nested deeper than 127 levels"));
    }

    #[test]
    fn finds_a_duplicate_among_many_members() {
        let mut members: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":{n}")).collect();
        members.push("\"k500\":0".to_owned());
        assert!(fault(&format!("{{{}}}", members.join(","))).contains("\"k500\" appears twice"));
    }

    #[test]
    fn agrees_with_serde_json_on_depth() {
        for depth in [126, 127, 128] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(outline(text.as_bytes()).is_ok(), theirs, "depth {depth}");
        }
    }

    proptest! {
        /// Generates near-JSON. Its pieces are valid more often than random bytes.
        #[test]
        fn agrees_with_serde_json(pieces in proptest::collection::vec(
            prop_oneof![
                Just("{"), Just("}"), Just("["), Just("]"), Just(","), Just(":"), Just("\"a\""), Just("\"b\""),
                Just("1"), Just("-0.5e+3"), Just("01"), Just("1."), Just("true"), Just("nul"), Just("null"),
                Just(" "), Just("\"\\u00e9\""), Just("\"\\ud83d\\ude00\""), Just("\"\\ude00\""), Just("\"\\x\""),
                Just("\"\u{1}\""), Just("{\"a\":1}"), Just("[1,2]"),
            ], 0..12))
        {
            let text = pieces.concat();
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match outline(text.as_bytes()) {
                // A number beyond f64 is JSON. A Value cannot hold it, but its text passes through.
                Ok(_) => prop_assert!(
                    theirs.as_ref().map_or_else(|fault| fault.to_string().contains("out of range"), |_| true),
                    "only this pass accepts {text:?}"),
                Err(fault) => prop_assert!(
                    theirs.is_err() || matches!(fault.what, JsonErrorKind::Duplicate(_)),
                    "only this pass rejects {text:?}: {fault:?}"),
            }
        }
    }
}
