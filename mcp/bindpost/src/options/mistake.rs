//! What is wrong with options, where, and what would be right.

use bindpost_mcp_server::nearest::{distance, letters};
use std::fmt;

use super::slot::InvalidValue;

/// Every mistake that was found, each with its place and what would be right.
#[derive(Clone, PartialEq, Eq)]
pub struct OptionsError(pub Vec<OptionMistake>);

/// What `main` prints when it returns the error.
impl std::fmt::Debug for OptionsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionMistake {
    /// Where it is.
    pub place: OptionSource,
    /// What is wrong and what would be right, place included. No value of a variable is in it.
    pub text: String,
}

/// Who set an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionSource {
    /// The program itself, or nobody.
    Program,
    /// A line of a file.
    Line {
        /// The file, as it was named.
        file: String,
        /// From one.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
}

impl OptionsError {
    /// All went well unless there is a mistake.
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
    /// The key and where it was set, as a sentence begins.
    pub(super) fn describe_key(&self, key: &str) -> String {
        match self {
            OptionSource::Program => format!("`{key}`"),
            OptionSource::Line { file, line } => format!("`{key}` in {file} line {line}"),
            OptionSource::Variable(name) => format!("`{name}`"),
        }
    }
}

impl OptionMistake {
    /// This is wrong with a key.
    pub(super) fn about(key: &str, place: OptionSource, what: impl fmt::Display) -> OptionMistake {
        let text = format!("{} {what}", place.describe_key(key));
        OptionMistake { place, text }
    }

    /// The value of a key does not fit.
    pub(super) fn invalid_value(key: &str, place: OptionSource, wrong: InvalidValue) -> OptionMistake {
        let InvalidValue { number, shown, expects, .. } = wrong;
        let can_be = if number.is_some() { "each can be" } else { "it can be" };
        let is = match (number, shown) {
            (None, Some(shown)) => format!("is {shown}"),
            (Some(_), Some(shown)) => format!("has {shown} in it"),
            (None, None) => "is not understood".to_owned(),
            (Some(number), None) => format!("is not understood (number {number} of the list)"),
        };
        OptionMistake::about(key, place, format_args!("{is}; {can_be} {expects}"))
    }

    /// Nobody knows this key. It could be any of `known`; those of its own table are `here`.
    pub(super) fn unknown(key: &str, place: (&str, usize), known: &[&str], here: &[&str]) -> OptionMistake {
        let (file, line) = place;
        let hint = match nearest(key, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", here.join(", ")),
        };
        let text = format!("unknown key `{key}` in {file} line {line}; {hint}");
        OptionMistake { place: OptionSource::Line { file: file.to_owned(), line }, text }
    }

    /// Nobody knows this variable.
    pub(super) fn unknown_variable(name: &str, prefix: &str, known: &[&str]) -> OptionMistake {
        let bare = |name| str::strip_prefix(name, prefix).unwrap_or(name);
        let known: Vec<&str> = known.iter().copied().map(bare).collect();
        let hint = match nearest(bare(name), &known) {
            Some(near) => format!("did you mean `{prefix}{near}`?"),
            None => "variables that begin like this are options, and there is none of this name".to_owned(),
        };
        let text = format!("unknown variable `{name}`; {hint}");
        OptionMistake { place: OptionSource::Variable(name.to_owned()), text }
    }
}

/// The key that was probably meant: spelled nearly the same, or of the same name in another table.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = letters(name);
    let wanted_last = letters(last(name));
    let near = known.iter().map(|candidate| {
        let whole = distance(&wanted, &letters(candidate));
        let elsewhere = 1 + distance(&wanted_last, &letters(last(candidate)));
        (whole.min(elsewhere), whole, *candidate)
    });
    let most = (wanted_last.len() / 3).max(1);
    near.filter(|(distance, ..)| *distance <= most).min().map(|(.., candidate)| candidate)
}

/// The part after the last table.
fn last(name: &str) -> &str {
    name.rsplit("__").next().and_then(|name| name.rsplit('.').next()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
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
