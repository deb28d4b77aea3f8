//! The envelope in which language libraries return results: `{"type":…,"content":…,"structuredContent":…}`.

use std::borrow::Cow;

use super::input_required::INPUT_REQUIRED;
use crate::bindings::raw_json::{member_in_any_case, members, string};
use crate::datum::Datum;

/// An envelope whose content is not parsed yet. Member names match in any case.
pub(super) struct ResultEnvelope<'a> {
    /// The type of `content`.
    pub(super) kind: Cow<'a, str>,
    content: Option<&'a str>,
    structured_content: Option<&'a str>,
}

impl<'a> ResultEnvelope<'a> {
    /// Parses an envelope. Its content must be text that holds JSON. If a worker returns the envelope as
    /// JSON, which Azure's host rejects, the content may also be plain JSON.
    pub(super) fn open(json: &'a str, is_json: bool) -> Option<ResultEnvelope<'a>> {
        let members = members(json)?;
        let member = |name| member_in_any_case(&members, name).filter(|value| *value != "null");
        let envelope = ResultEnvelope {
            kind: string(member("type")?)?,
            content: member("content"),
            structured_content: member("structuredContent"),
        };
        let inside = [envelope.content, envelope.structured_content];
        let all_text = inside.into_iter().flatten().all(|value| value.starts_with('"'));
        (is_json || all_text || envelope.is_input_required()).then_some(envelope)
    }

    /// Parses a return value as an envelope, if it can be one.
    pub(super) fn from_returned(returned: &'a Datum) -> Option<ResultEnvelope<'a>> {
        match returned {
            Datum::Text(text) => ResultEnvelope::open(text, false),
            Datum::Json(json) => ResultEnvelope::open(json, true),
            _ => None,
        }
    }

    /// Returns whether it has this type, in any case.
    pub(super) fn has_kind(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind)
    }

    /// Returns whether the function asks for input.
    pub(super) fn is_input_required(&self) -> bool {
        self.has_kind(INPUT_REQUIRED)
    }

    /// Returns the JSON text of the content, unless it is null or absent.
    pub(super) fn content(&self) -> Option<Cow<'a, str>> {
        self.content.map(inner)
    }

    /// Returns the JSON text of the structured content, unless it is null, absent or empty.
    pub(super) fn structured_content(&self) -> Option<Cow<'a, str>> {
        self.structured_content.map(inner).filter(|json| !json.is_empty())
    }
}

/// Returns the JSON in a text, or the plain JSON.
fn inner(value: &str) -> Cow<'_, str> {
    string(value).unwrap_or_else(|| value.into())
}
