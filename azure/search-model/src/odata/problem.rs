//! Errors in expressions, with their position.

use std::borrow::Cow;

use crate::error::ApiError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OdataError {
    /// The byte offset in the text. It is converted to characters only for the error message.
    at: usize,
    message: String,
}

impl OdataError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    pub(super) fn into_error(self, parameter: &str, text: &str) -> ApiError {
        let before = text.get(..self.at).unwrap_or(text);
        let character = before.chars().count() + 1;
        let message = self.message;
        ApiError::parameter(parameter, format!("Invalid expression: {message} (At character {character}.)"))
    }
}

/// Returns a part of the request, shortened for an error message.
pub(super) fn quoted(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}
