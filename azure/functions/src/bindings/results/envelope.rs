//! The envelope language libraries put results in: `{"type":…,"content":…,"structuredContent":…}`.

use std::borrow::Cow;

use super::input_required::INPUT_REQUIRED;
use crate::bindings::raw_json::{member_in_any_case, members, string};
use crate::datum::Datum;

/// An envelope, opened but not read. Names of its members count in any case.
pub(super) struct ResultEnvelope<'a> {
    /// What `content` holds.
    pub(super) kind: Cow<'a, str>,
    content: Option<&'a str>,
    structured_content: Option<&'a str>,
}

impl<'a> ResultEnvelope<'a> {
    /// Opens an envelope. What is inside must be text that holds JSON; where a worker returns the envelope as
    /// JSON, which the real host refuses, it may also be the JSON itself.
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

    /// Opens what a function returned, if it can be an envelope at all.
    pub(super) fn from_returned(returned: &'a Datum) -> Option<ResultEnvelope<'a>> {
        match returned {
            Datum::Text(text) => ResultEnvelope::open(text, false),
            Datum::Json(json) => ResultEnvelope::open(json, true),
            _ => None,
        }
    }

    /// Whether it has this type, in any case.
    pub(super) fn has_kind(&self, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind)
    }

    /// Whether the function asks for something.
    pub(super) fn is_input_required(&self) -> bool {
        self.has_kind(INPUT_REQUIRED)
    }

    /// The JSON text of the content, unless it is null or absent.
    pub(super) fn content(&self) -> Option<Cow<'a, str>> {
        self.content.map(inner)
    }

    /// The JSON text of the structured content, unless it is null, absent or empty.
    pub(super) fn structured_content(&self) -> Option<Cow<'a, str>> {
        self.structured_content.map(inner).filter(|json| !json.is_empty())
    }
}

/// The JSON a text holds, or the JSON itself.
fn inner(value: &str) -> Cow<'_, str> {
    string(value).unwrap_or_else(|| value.into())
}
