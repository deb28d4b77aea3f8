//! Merges the fields of a request into a stored document.
//!
//! Collections are replaced as a whole. Single complex values are merged member by member. An explicit
//! `null` sets null.

use bindpost_azure_search_model::definition::FieldType;
use bindpost_net_json::cut::members;

use super::Document;
use super::read::check_document;
use super::shape::{DocumentShape, ObjectShape};

/// The given members of a document, checked and in the order of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPatch {
    pub key: String,
    pub(super) json: Vec<u8>,
}

impl DocumentPatch {
    /// Converts the patch to a whole document, for `mergeOrUpload` if no document is stored.
    pub fn to_document(&self, shape: &DocumentShape) -> Result<Document, String> {
        merge(b"{}", self, shape)
    }
}

/// Applies the patch to the stored document. An error affects only this document.
pub fn merge(stored: &[u8], patch: &DocumentPatch, shape: &DocumentShape) -> Result<Document, String> {
    let broken = |_| "The stored document is not UTF-8.".to_owned();
    let stored = std::str::from_utf8(stored).map_err(broken)?;
    let given = std::str::from_utf8(&patch.json).map_err(broken)?;
    let mut json = Vec::with_capacity(stored.len() + given.len());
    overlay(&shape.root, stored, given, &mut json);
    let (document, problem) = check_document(&json, shape)?;
    problem.map_or(Ok(document), Err)
}

fn overlay(level: &ObjectShape, stored: &str, given: &str, out: &mut Vec<u8>) {
    let before = by_position(level, stored);
    let after = by_position(level, given);
    out.push(b'{');
    for (at, (member, (before, after))) in level.members.iter().zip(before.into_iter().zip(after)).enumerate()
    {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(member.label.as_bytes());
        match (after, &member.level) {
            (Some(after), Some(level)) if member.kind == FieldType::Complex && after.starts_with('{') => {
                overlay(level, before.filter(|before| before.starts_with('{')).unwrap_or("{}"), after, out);
            }
            (Some(after), _) => out.extend_from_slice(after.as_bytes()),
            (None, _) => out.extend_from_slice(before.unwrap_or_else(|| member.default_json()).as_bytes()),
        }
    }
    out.push(b'}');
}

fn by_position<'a>(level: &ObjectShape, text: &'a str) -> Vec<Option<&'a str>> {
    let mut found = vec![None; level.members.len()];
    let mut guess = 0;
    for (name, value) in members(text).into_iter().flatten() {
        if let Some(at) = level.position(name, guess) {
            guess = at + 1;
            if let Some(slot) = found.get_mut(at) {
                *slot = Some(value);
            }
        }
    }
    found
}
