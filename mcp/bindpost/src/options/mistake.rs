//! Errors in options.

use bindpost_mcp_server::nearest::{distance, letter_count};
use std::fmt;

use super::slot::InvalidValue;

/// All errors found in the options, each with its source and the expected value.
#[derive(Clone, PartialEq, Eq)]
pub struct OptionsError(pub Vec<OptionMistake>);

/// Prints the same text as `Display`, because `main` prints the debug form of the error it returns.
impl std::fmt::Debug for OptionsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// One error in the options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionMistake {
    /// The source of the value.
    pub place: OptionSource,
    /// The message, source included. It never contains the value of a variable.
    pub text: String,
}

/// The source of an option's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionSource {
    /// The program itself, or the default.
    Program,
    /// A line of a file.
    Line {
        /// The file, as it was named.
        file: String,
        /// The line number, counted from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
}

impl OptionsError {
    /// Returns an error unless the list is empty.
    pub(super) fn unless_empty(mistakes: Vec<OptionMistake>) -> Result<(), OptionsError> {
        if mistakes.is_empty() { Ok(()) } else { Err(OptionsError(mistakes)) }
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.0.iter().map(|mistake| mistake.text.as_str()).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for OptionsError {}

impl fmt::Display for OptionMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl OptionSource {
    /// Returns the key and its source, as the beginning of a sentence.
    pub(super) fn describe_key(&self, key: &str) -> String {
        match self {
            OptionSource::Program => format!("`{key}`"),
            OptionSource::Line { file, line } => format!("`{key}` in {file} line {line}"),
            OptionSource::Variable(name) => format!("`{name}`"),
        }
    }
}

impl OptionMistake {
    /// Creates an error about a key.
    pub(super) fn about(key: &str, place: OptionSource, what: impl fmt::Display) -> OptionMistake {
        let text = format!("{} {what}", place.describe_key(key));
        OptionMistake { place, text }
    }

    /// Creates an error about an invalid value of a key.
    pub(super) fn invalid_value(key: &str, place: OptionSource, wrong: InvalidValue) -> OptionMistake {
        let InvalidValue { number, shown, expects, .. } = wrong;
        let can_be = if number.is_some() { "each can be" } else { "it can be" };
        let is = match (number, shown) {
            (None, Some(shown)) => format!("is {shown}"),
            (Some(_), Some(shown)) => format!("has {shown} in it"),
            (None, None) => "is invalid".to_owned(),
            (Some(number), None) => format!("is invalid (number {number} of the list)"),
        };
        OptionMistake::about(key, place, format_args!("{is}; {can_be} {expects}"))
    }

    /// Creates an error about an unknown key. `known` are the candidates for a suggestion, `here` the
    /// keys of its own table.
    pub(super) fn unknown(key: &str, place: (&str, usize), known: &[&str], here: &[&str]) -> OptionMistake {
        let (file, line) = place;
        let hint = match nearest(key, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known keys: {}", here.join(", ")),
        };
        let text = format!("unknown key `{key}` in {file} line {line}; {hint}");
        OptionMistake { place: OptionSource::Line { file: file.to_owned(), line }, text }
    }

    /// Creates an error about an unknown variable.
    pub(super) fn unknown_variable(name: &str, prefix: &str, known: &[&str]) -> OptionMistake {
        let bare = |name| str::strip_prefix(name, prefix).unwrap_or(name);
        let known: Vec<&str> = known.iter().copied().map(bare).collect();
        let hint = match nearest(bare(name), &known) {
            Some(near) => format!("did you mean `{prefix}{near}`?"),
            None => format!("variables that begin with `{prefix}` must be options"),
        };
        let text = format!("unknown variable `{name}`; {hint}");
        OptionMistake { place: OptionSource::Variable(name.to_owned()), text }
    }
}

/// Returns the most similar key: one with nearly the same spelling, or with the same name in another table.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|candidate| {
        let whole = distance(name, candidate);
        let elsewhere = 1 + distance(last(name), last(candidate));
        (whole.min(elsewhere), whole, *candidate)
    });
    let most = (letter_count(last(name)) / 3).max(1);
    near.filter(|(distance, ..)| *distance <= most).min().map(|(.., candidate)| candidate)
}

/// Returns the part after the last dot.
fn last(name: &str) -> &str {
    name.rsplit("__").next().and_then(|name| name.rsplit('.').next()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_most_similar_key() {
        let known = ["allowed_origins", "allowed_hosts", "sse", "limits.call_timeout", "limits.listeners"];
        for (name, meant) in [
            ("allowed_origin", Some("allowed_origins")),
            ("AllowedOrigins", Some("allowed_origins")),
            ("allowed-host", Some("allowed_hosts")),
            ("call_timeout", Some("limits.call_timeout")),
            ("limits.call_timout", Some("limits.call_timeout")),
            ("http.call_timeout", Some("limits.call_timeout")),
            ("see", Some("sse")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
    }
}
