//! [`KeyLine`]: one API key as it is written, `name = secret scope1 scope2`.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a secret, as words because these are faster to compare. The secret itself is not kept.
pub(crate) type Sha256Digest = [u64; 4];

pub(crate) fn digest(secret: &[u8]) -> Sha256Digest {
    let mut digest = [0; 4];
    for (word, bytes) in digest.iter_mut().zip(Sha256::digest(secret).as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    digest
}

/// One API key as it was configured, with the digest of its secret.
pub(crate) struct KeyLine {
    pub(crate) name: String,
    pub(crate) digest: Sha256Digest,
    pub(crate) scopes: Vec<String>,
    /// Its line number in the file.
    pub(crate) line: Option<usize>,
}

impl KeyLine {
    /// Validates a key. The error says what is wrong and never contains the secret.
    pub(crate) fn new(name: String, secret: &[u8], scopes: Vec<String>) -> Result<KeyLine, String> {
        let key = KeyLine { name, digest: digest(secret), scopes, line: None };
        if key.name.is_empty() {
            return Err("an API key has no name".to_owned());
        }
        if key.name.chars().any(char::is_control) {
            return Err(key.describe_problem("has control characters in its name"));
        }
        if secret.is_empty() {
            return Err(key.describe_problem("has no secret"));
        }
        if secret.trim_ascii() != secret || secret.iter().any(u8::is_ascii_control) {
            return Err(key.describe_problem("has a secret with characters that a header cannot hold"));
        }
        Ok(key)
    }

    /// Parses `name = secret scope1 scope2`. Characters that look like another format are errors, because they
    /// would silently become a part of the secret or of a scope.
    pub(crate) fn parse(line: &str) -> Result<KeyLine, String> {
        let Some((name, rest)) = line.split_once('=') else {
            return Err("a key is written `name = secret` or `name = secret scope1 scope2`".to_owned());
        };
        let name = name.trim();
        if name.starts_with(QUOTES) || name.ends_with(QUOTES) {
            return Err("the name of an API key is written without quotes; remove them".to_owned());
        }
        let mut words = rest.split_whitespace();
        let secret = words.next().unwrap_or_default();
        check_secret(name, secret)?;
        let scopes = words.map(check_scope).collect::<Result<_, _>>()?;
        KeyLine::new(name.to_owned(), secret.as_bytes(), scopes)
    }

    /// Returns an error message about this key.
    pub(crate) fn describe_problem(&self, what: &str) -> String {
        match self.line {
            None => format!("the API key {:?} {what}", self.name),
            Some(line) => format!("line {line}: the API key {:?} {what}", self.name),
        }
    }
}

const QUOTES: [char; 2] = ['"', '\''];
const OWN_LINE: &str = "a comment needs a line of its own";

/// Checks the form of a secret. The error never contains it.
fn check_secret(name: &str, secret: &str) -> Result<(), String> {
    if secret.starts_with('#') {
        return Err(format!("the API key {name:?} has no secret before the `#`; {OWN_LINE}"));
    }
    if secret.starts_with(QUOTES) {
        return Err(format!(
            "the secret of the API key {name:?} is in quotes; remove them, and use a secret without spaces"
        ));
    }
    if secret.contains(',') {
        return Err(format!(
            "the secret of the API key {name:?} has a comma; separate the secret and its scopes by spaces, and use a \
             secret without commas"
        ));
    }
    Ok(())
}

fn check_scope(scope: &str) -> Result<String, String> {
    if scope.contains('#') {
        return Err(OWN_LINE.to_owned());
    }
    if scope.contains('"') || scope.starts_with(QUOTES) || scope.ends_with(QUOTES) {
        let plain = scope.trim_matches(QUOTES);
        return Err(format!("scopes are written without quotes; remove them around {plain:?}"));
    }
    match scope.strip_suffix(',').unwrap_or(scope) {
        before if before.contains(',') || before.is_empty() => {
            Err(format!("scopes are separated by spaces; replace the comma in {scope:?}"))
        }
        before if before.len() < scope.len() => {
            Err(format!("scopes are separated by spaces; remove the comma after {before:?}"))
        }
        _ => Ok(scope.to_owned()),
    }
}
