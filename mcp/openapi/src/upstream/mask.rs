//! Our own secrets, taken out of what a service answers.

use http::HeaderValue;
use reqwest::Url;

use super::Incoming;

/// What stands where a secret was.
const MASK: &[u8] = b"(secret)";

/// Shorter ones are words and numbers that mean something else most of the time.
const SHORTEST: usize = 6;

/// Replaces secrets in the body and the headers of an answer, as they are and as addresses, JSON and HTML write them.
pub(super) fn mask(answer: &mut Incoming, secrets: &[String]) {
    let secrets = secrets.iter().filter(|secret| secret.len() >= SHORTEST);
    let mut forms: Vec<String> = secrets.flat_map(|secret| forms(secret)).collect();
    // One may be a part of another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    for form in forms.iter().map(String::as_bytes) {
        if let Some(masked) = without(&answer.body, form) {
            answer.body = masked.into();
        }
        for value in answer.headers.values_mut() {
            if let Some(masked) = without(value.as_bytes(), form) {
                *value = HeaderValue::from_bytes(&masked).unwrap_or(HeaderValue::from_static("(secret)"));
            }
        }
    }
}

/// A secret as it is, in a query, in a path, in JSON and in HTML.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    if let Ok(mut url) = Url::parse("http://localhost/") {
        url.query_pairs_mut().append_pair("", secret);
        forms.extend(url.query().and_then(|query| query.strip_prefix('=')).map(str::to_owned));
    }
    forms.push(percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string());
    let json = serde_json::Value::from(secret).to_string();
    forms.extend(json.get(1..json.len().saturating_sub(1)).map(str::to_owned));
    forms.push(secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"));
    forms
}

/// The text with every occurrence replaced; `None` if there is none, so that nothing is copied.
fn without(text: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let mut at = find(text, secret)?;
    let mut masked = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (before, found) = rest.split_at(at);
        masked.extend_from_slice(before);
        masked.extend_from_slice(MASK);
        rest = found.get(secret.len()..).unwrap_or_default();
        match find(rest, secret) {
            Some(next) => at = next,
            None => break,
        }
    }
    masked.extend_from_slice(rest);
    Some(masked)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(rest) = text.get(from..) {
        let at = from + rest.iter().position(|byte| *byte == first)?;
        if text.get(at..)?.starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_goes_and_nothing_is_copied_without_one() {
        let masked =
            |text: &str| without(text.as_bytes(), b"aabaab").map(|it| String::from_utf8(it).unwrap());
        assert_eq!(masked("aabaabx aaabaab\u{0}aabaab").unwrap(), "(secret)x a(secret)\u{0}(secret)");
        assert_eq!(masked("aabaaabaa"), None);
        assert_eq!(masked(""), None);
    }
}
