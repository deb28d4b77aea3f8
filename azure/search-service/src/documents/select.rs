//! `$select`: the members of a document that are returned.

use std::collections::HashSet;

use bindpost_net_json::cut::{elements, members};

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{FieldType, IndexField, IndexSchema};

use super::value::shorten;

/// The members to return, checked against the schema. Parsed once per request, and used for every hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSelection {
    picks: Vec<SelectedField>,
    /// Whether everything stored at this level is returned, so that it can be copied.
    everything: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SelectedField {
    name: String,
    missing: &'static str,
    /// The selection within complex values.
    below: Option<FieldSelection>,
}

impl FieldSelection {
    /// Selects all retrievable fields, as a request without `$select` does.
    pub(crate) fn all(schema: &IndexSchema) -> Self {
        Self::from_fields(schema.fields(), None)
    }

    /// Parses a list such as `name,address/city`, or `*`. An empty list means `*`.
    pub(crate) fn parse(text: &str, schema: &IndexSchema) -> Result<Self, ApiError> {
        let mut wanted = HashSet::new();
        let mut all = text.trim().is_empty();
        if !all {
            for path in text.split(',').map(str::trim) {
                all |= path == "*";
                if path != "*" {
                    check_path(path, schema)?;
                    wanted.insert(path);
                }
            }
        }
        Ok(Self::from_fields(schema.fields(), (!all).then_some(&wanted)))
    }

    /// Writes the selected members in the order of the schema, without braces. Writes nothing if no
    /// member is selected.
    pub(crate) fn write(&self, stored: &[u8], out: &mut Vec<u8>) {
        if self.everything {
            out.extend_from_slice(without_braces(stored));
        } else if let Ok(text) = std::str::from_utf8(stored) {
            self.write_picks(text, out);
        }
    }

    /// Selects fields. If `wanted` is `None`, all retrievable fields are selected.
    fn from_fields(fields: &[IndexField], wanted: Option<&HashSet<&str>>) -> Self {
        let mut picks = Vec::new();
        let mut everything = true;
        for field in fields {
            let pick = select_field(field, wanted);
            everything &=
                pick.as_ref().is_some_and(|pick| pick.below.as_ref().is_none_or(|below| below.everything));
            picks.extend(pick);
        }
        Self { picks, everything }
    }

    fn write_picks(&self, text: &str, out: &mut Vec<u8>) {
        let mut rest = self.picks.as_slice();
        let mut first = true;
        for (name, value) in members(text).into_iter().flatten() {
            // Both are in the order of the schema. Selected fields that are skipped here were added
            // after the document was stored.
            let Some(at) = rest.iter().position(|pick| pick.name == name) else { continue };
            let (passed, from) = rest.split_at(at);
            for pick in passed {
                pick.label(&mut first, out);
                out.extend_from_slice(pick.missing.as_bytes());
            }
            let Some((pick, after)) = from.split_first() else { break };
            pick.label(&mut first, out);
            pick.write(value, out);
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
        for pick in rest {
            pick.label(&mut first, out);
            out.extend_from_slice(pick.missing.as_bytes());
        }
    }

    fn write_object(&self, text: &str, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_picks(text, out);
        out.push(b'}');
    }
}

impl SelectedField {
    fn label(&self, first: &mut bool, out: &mut Vec<u8>) {
        if !*first {
            out.push(b',');
        }
        *first = false;
        out.push(b'"');
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(b"\":");
    }

    fn write(&self, value: &str, out: &mut Vec<u8>) {
        match &self.below {
            Some(below) if !below.everything => {
                if value.starts_with('{') {
                    below.write_object(value, out);
                } else if let Some(elements) = elements(value) {
                    out.push(b'[');
                    for (at, element) in elements.enumerate() {
                        if at > 0 {
                            out.push(b',');
                        }
                        below.write_object(element, out);
                    }
                    out.push(b']');
                } else {
                    out.extend_from_slice(value.as_bytes());
                }
            }
            _ => out.extend_from_slice(value.as_bytes()),
        }
    }
}

fn select_field(field: &IndexField, wanted: Option<&HashSet<&str>>) -> Option<SelectedField> {
    // All fields below a selected field are selected.
    let wanted = wanted.filter(|wanted| !wanted.contains(field.path.as_str()));
    let missing = if field.kind.is_collection() { "[]" } else { "null" };
    let below = match field.kind {
        FieldType::Complex | FieldType::ManyComplex => {
            let below = FieldSelection::from_fields(&field.fields, wanted);
            if below.picks.is_empty() {
                return None;
            }
            Some(below)
        }
        FieldType::One(_) | FieldType::Many(_) if wanted.is_none() && field.retrievable => None,
        FieldType::One(_) | FieldType::Many(_) => return None,
    };
    Some(SelectedField { name: field.name.clone(), missing, below })
}

fn check_path(path: &str, schema: &IndexSchema) -> Result<(), ApiError> {
    let refuse =
        |reason: String| Err(ApiError::parameter("$select", format!("Invalid expression: {reason}")));
    match schema.find(path) {
        None => {
            refuse(format!("Could not find a property named '{}' on type 'search.document'.", shorten(path)))
        }
        Some(field) if field.kind.primitive().is_some() && !field.retrievable => {
            refuse(format!("The field '{path}' is not retrievable, so it cannot be selected."))
        }
        Some(_) => Ok(()),
    }
}

fn without_braces(stored: &[u8]) -> &[u8] {
    stored.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).unwrap_or_default()
}
