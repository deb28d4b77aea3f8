//! Masks our own secrets in responses of the service.
//!
//! Services repeat what they were sent, and their libraries write it in many ways: escaped in JSON,
//! encoded in URLs and HTML, in base64. A response is masked once, when it arrives and is decoded. See
//! [`spelling`] for the supported encodings. This does not protect against a service that discloses the
//! secret on purpose.

mod spelling;

use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use spelling::SecretPattern;
pub use spelling::is_invisible;

/// The replacement for a secret.
const MASK: &str = "(secret)";

/// Shorter secrets are not masked, because they often occur as ordinary words and numbers.
const SHORTEST: usize = 6;

/// Finds secrets in responses of a service. Clones share the prepared patterns.
#[derive(Clone, Default)]
pub(crate) struct SecretMask(Arc<Vec<SecretPattern>>);

impl std::fmt::Debug for SecretMask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretMask")
    }
}

impl SecretMask {
    /// Masks these secrets. Secrets shorter than six bytes are ignored.
    pub(crate) fn new(secrets: &[String]) -> SecretMask {
        let mut spellings = Vec::new();
        for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST) {
            spellings.push(SecretPattern::new(secret));
            spellings.extend((0..3).map(|before| in_base64(secret, before)));
        }
        // A secret may be part of another one.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        SecretMask(Arc::new(spellings))
    }

    /// Masks the secrets in the headers and the body of a response.
    pub(crate) fn mask_response(&self, headers: &mut HeaderMap, body: &mut Bytes) {
        if self.0.is_empty() {
            return;
        }
        for value in headers.values_mut() {
            if let Some(masked) = self.bytes(value.as_bytes()) {
                *value = HeaderValue::from_bytes(&masked).unwrap_or(HeaderValue::from_static(MASK));
            }
        }
        if let Some(masked) = self.body(body) {
            *body = masked;
        }
    }

    /// Masks the secrets in a text.
    pub(crate) fn mask_text(&self, text: String) -> String {
        match self.bytes(text.as_bytes()) {
            // A match begins and ends at character boundaries.
            Some(masked) => String::from_utf8(masked).unwrap_or_else(|_| MASK.to_owned()),
            None => text,
        }
    }

    /// Masks the secrets in a body. Returns `None` if it has none, so that the body stays unchanged.
    ///
    /// JSON is masked after decoding. JSON without a backslash is masked as text, which is equivalent.
    fn body(&self, body: &[u8]) -> Option<Bytes> {
        let masked = self.bytes(body);
        if masked.is_none() && !body.contains(&b'\\') {
            return None;
        }
        let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        match serde_json::from_slice::<Value>(text) {
            Ok(mut value) => (self.value(&mut value) || masked.is_some()).then(|| value.to_string().into()),
            Err(_) => masked.map(Bytes::from),
        }
    }

    /// Masks the secrets in all strings, names and numbers. Returns whether any were found.
    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => {
                let found = self.bytes(number.to_string().as_bytes()).is_some();
                if found {
                    *value = MASK.into();
                }
                found
            }
            Value::String(text) => match self.bytes(text.as_bytes()) {
                Some(masked) => {
                    *text = String::from_utf8(masked).unwrap_or_else(|_| MASK.to_owned());
                    true
                }
                None => false,
            },
            Value::Array(items) => items.iter_mut().fold(false, |found, item| self.value(item) | found),
            Value::Object(members) => {
                let found = members.values_mut().fold(false, |found, member| self.value(member) | found);
                let named = members.keys().any(|name| self.bytes(name.as_bytes()).is_some());
                if named {
                    let old = std::mem::take(members);
                    *members = old
                        .into_iter()
                        .map(|(name, value)| (self.mask_text(name), value))
                        .collect::<Map<_, _>>();
                }
                found | named
            }
        }
    }

    /// Replaces every secret in a text. Returns `None` if it has none, so that nothing is copied.
    fn bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut found = self.next(text, 0)?;
        let mut masked = Vec::with_capacity(text.len());
        let mut from = 0;
        loop {
            masked.extend_from_slice(text.get(from..found.start).unwrap_or_default());
            masked.extend_from_slice(MASK.as_bytes());
            from = found.end;
            match self.next(text, from) {
                Some(next) => found = next,
                None => break,
            }
        }
        masked.extend_from_slice(text.get(from..).unwrap_or_default());
        Some(masked)
    }

    /// Returns the next secret at or after this position.
    fn next(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        (from..text.len()).find_map(|at| {
            let (spelling, end) =
                self.0.iter().find_map(|spelling| Some((spelling, spelling.end_at(text, from, at)?)))?;
            Some(spelling.start(text, from, at)..end)
        })
    }
}

/// Returns the invariant part of a secret's base64 encoding, for this many bytes before it modulo three.
/// The characters at both ends depend on the surrounding bytes.
fn in_base64(secret: &str, before: usize) -> SecretPattern {
    let bytes = [&[0; 2][..before.min(2)], secret.as_bytes()].concat();
    let encoded = STANDARD_NO_PAD.encode(&bytes);
    let start = match before {
        0 => 0,
        1 => 2,
        _ => 3,
    };
    let end = encoded.len() - usize::from(bytes.len() % 3 != 0);
    let beside = (start > 0, end < encoded.len());
    SecretPattern::in_base64(encoded.get(start..end).unwrap_or_default(), beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_is_masked_and_nothing_is_copied_without_one() {
        let mask = SecretMask::new(&["aabaab".to_owned()]);
        let masked = |text: &str| mask.bytes(text.as_bytes()).map(|it| String::from_utf8(it).unwrap());
        assert_eq!(masked("aabaabx aaabaab\u{0}aabaab").unwrap(), "(secret)x a(secret)\u{0}(secret)");
        assert_eq!(masked("aabaaabaa"), None);
        assert_eq!(masked(""), None);
        assert_eq!(
            SecretMask::new(&["aabaa".to_owned()]).mask_text("aabaa".to_owned()),
            "aabaa",
            "short secrets are not masked"
        );
    }

    #[test]
    fn adversarial_text_is_masked_in_linear_time() {
        let begun = std::time::Instant::now();
        let mask = SecretMask::new(&["\\\\\\\\%%%%&&&&aaaaaaaaab".to_owned(), "a+a/a+a/a+a".to_owned()]);
        for piece in ["\\", "%25", "%", "&amp;", "&#0000", "a", "\\u00", "a\u{0}", "\\\\%%&&aaa", "YSth"] {
            mask.mask_text(piece.repeat((1 << 12) / piece.len()));
        }
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    }
}
