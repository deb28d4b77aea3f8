//! [`BlobPath`]: a validated container name and blob name.

use std::fmt;

const MAX_NAME: usize = 1024;
const MAX_SEGMENTS: usize = 254;

/// A container name and a blob name that every store accepts unchanged.
///
/// A blob name is one flat string: `b.json` and `b.json/inner.json` are two blobs, and `A` is not `a`.
/// Azure's rules also apply to the embedded store, so that an app does not fail only after it is deployed.
/// Names that Azure advises to avoid, because they may be changed, are rejected:
///
/// - 1 to 1,024 characters, counted in UTF-16 as Azure does, in at most 254 segments
/// - no control characters, no private-use characters (`U+E000`…): Azure answers 400
/// - no backslash: it may become a slash in the URL, or break the signature
/// - no slash at the end and no segment that ends in a dot, which includes `.` and `..`: URLs lose them
///
/// Everything else is literal: `%2e%2e`, `/leading`, `a//b`, `?`, `#`, spaces, any script.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlobPath {
    container: String,
    name: String,
}

/// The reason why a container or blob name is invalid, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {shown:?} {problem}")]
pub struct BlobPathError {
    what: &'static str,
    /// The name, shortened because it may come from a client.
    shown: String,
    problem: &'static str,
}

impl BlobPath {
    /// Validates both names.
    pub fn new(container: impl Into<String>, name: impl Into<String>) -> Result<BlobPath, BlobPathError> {
        let (container, name) = (container.into(), name.into());
        match (problem_of_container(&container), problem_of_name(&name)) {
            (Some(problem), _) => Err(path_error("the container name", &container, problem)),
            (None, Some(problem)) => Err(path_error("the blob name", &name, problem)),
            (None, None) => Ok(BlobPath { container, name }),
        }
    }

    /// Splits `container/blob/name` at its first slash.
    pub fn parse(text: &str) -> Result<BlobPath, BlobPathError> {
        match text.split_once('/') {
            Some((container, name)) => BlobPath::new(container, name),
            None => {
                let problem = "has no blob name; write it as container/blob-name";
                Err(path_error("the blob path", text, problem))
            }
        }
    }

    /// Returns the name of the container.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Returns the name of the blob in its container.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for BlobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.container, self.name)
    }
}

fn path_error(what: &'static str, name: &str, problem: &'static str) -> BlobPathError {
    let mut shown: String = name.chars().take(80).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    BlobPathError { what, shown, problem }
}

fn problem_of_container(name: &str) -> Option<&'static str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    if bytes.iter().any(u8::is_ascii_uppercase) {
        return Some("has upper-case letters; use lower-case ones");
    }
    if !bytes.iter().all(|&byte| is_plain(byte) || byte == b'-') {
        return Some("has other characters than lower-case letters, digits and dashes; remove them");
    }
    if !(3..=63).contains(&bytes.len()) {
        return Some("must have 3 to 63 characters");
    }
    if bytes.starts_with(b"-") || bytes.ends_with(b"-") {
        return Some("starts or ends with a dash; use a letter or digit there");
    }
    if name.contains("--") {
        return Some("has two dashes in a row; use one");
    }
    None
}

fn problem_of_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("is empty; give it at least one character");
    }
    if name.encode_utf16().count() > MAX_NAME {
        return Some("is longer than 1,024 characters; shorten it");
    }
    if name.chars().any(char::is_control) {
        return Some("has control characters; remove them");
    }
    if name.chars().any(|c| matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fffe}' | '\u{ffff}')) {
        return Some("has private-use characters or non-characters, which Azure rejects; remove them");
    }
    if name.contains('\\') {
        return Some("has a backslash; use slashes");
    }
    if name.ends_with('/') {
        return Some("ends with a slash; name the blob itself");
    }
    if name.split('/').any(|segment| segment == "." || segment == "..") {
        return Some("has a segment `.` or `..`; blob names are not file paths, remove it");
    }
    if name.split('/').any(|segment| segment.ends_with('.')) {
        return Some("has a dot at the end, or before a slash, which Azure may drop; remove it");
    }
    if name.split('/').count() > MAX_SEGMENTS {
        return Some("has more than 254 segments between slashes; use fewer");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_accepted() {
        let most = format!("{}x", "a/".repeat(253));
        for name in [
            "b.json",
            "b.json/inner.json",
            "%2e%2e",
            "..a",
            "a/..b",
            "/etc/passwd",
            "a//b",
            "é?#&=+ %",
            &most,
        ] {
            let path = BlobPath::new("abc", name).unwrap();
            assert_eq!(path.to_string(), format!("abc/{name}"));
            assert_eq!(BlobPath::parse(&path.to_string()), Ok(path));
        }
        for container in ["abc", "a-b", "123", &"x".repeat(63)] {
            assert!(BlobPath::new(container, "b").is_ok(), "{container}");
        }
        assert!(BlobPath::new("abc", "x".repeat(1024)).is_ok());
        assert!(BlobPath::new("abc", "é".repeat(1024)).is_ok());
    }

    #[test]
    fn an_error_names_the_problem() {
        let many = format!("{}x", "a/".repeat(254));
        for (name, word) in [
            ("", "empty"),
            ("../x", "`..`"),
            ("a/./b", "`.`"),
            ("a/..", "`..`"),
            ("..", "`..`"),
            ("a\\b", "backslash"),
            ("a\0b", "control"),
            ("a\nb", "control"),
            ("a\u{85}b", "control"),
            ("a\u{e000}", "private-use"),
            ("a.", "dot at the end"),
            ("a./b", "dot at the end"),
            ("...", "dot at the end"),
            ("a/", "slash"),
            (&many, "254"),
            (&"x".repeat(1025), "1,024"),
            // Two UTF-16 units each.
            (&"𝄞".repeat(513), "1,024"),
        ] {
            let refused = BlobPath::new("abc", name).unwrap_err().to_string();
            assert!(refused.contains(word), "{name:?}: {refused}");
            assert!(refused.len() < 400, "{refused}");
        }
        for (name, word) in [
            ("", "3 to 63"),
            ("ab", "3 to 63"),
            (&"x".repeat(64), "3 to 63"),
            ("Abc", "upper-case"),
            ("-abc", "starts or ends"),
            ("abc-", "starts or ends"),
            ("a--b", "two dashes"),
            ("a.b", "other characters"),
            ("$web", "other characters"),
            ("..", "other characters"),
            ("äbc", "other characters"),
        ] {
            let refused = BlobPath::new(name, "b").unwrap_err().to_string();
            assert!(refused.contains(word), "{name:?}: {refused}");
        }
        assert!(BlobPath::parse("abc").unwrap_err().to_string().contains("container/blob-name"));
    }
}
