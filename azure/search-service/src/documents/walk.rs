//! Checks one document against the schema, writes its canonical JSON, and collects the values to index.

use std::borrow::Cow;

use bindpost_azure_search_model::definition::{FieldType, PrimitiveType};
use bindpost_net_json::cut::{decode_name, elements, members};
use bindpost_net_json::text::decode;

use super::FieldValue;
use super::shape::{MemberShape, ObjectShape};
use super::value;

/// The maximum length in bytes of a string that is indexed as a whole.
const WHOLE_STRING: usize = 32_766;
/// The maximum number of elements in all collections of complex values of one document.
const COMPLEX_ELEMENTS: usize = 3_000;

/// Checks a document and writes it as canonical JSON. An `Err` makes the whole request invalid: names
/// or types are not in the schema. A problem of this document alone is stored in `problem`.
pub(super) struct DocumentCanonicalizer<'a> {
    /// Raw values of the objects that are currently open, by position in their level.
    given: Vec<Option<&'a str>>,
    pub(super) values: Vec<(usize, FieldValue)>,
    pub(super) key: Option<String>,
    pub(super) problem: Option<String>,
    complex_elements: usize,
    /// Whether `values` are collected.
    noting: bool,
    /// Whether the document was stored before. Its names were checked then, and unknown names are not errors.
    stored: bool,
}

impl<'a> DocumentCanonicalizer<'a> {
    pub(super) fn new() -> Self {
        Self {
            given: Vec::new(),
            values: Vec::new(),
            key: None,
            problem: None,
            complex_elements: 0,
            noting: true,
            stored: false,
        }
    }

    pub(super) fn for_stored() -> Self {
        Self { stored: true, ..Self::new() }
    }

    /// Reads the members of the root. Returns the raw value of `@search.action`.
    pub(super) fn open(&mut self, text: &'a str, level: &ObjectShape) -> Result<Option<&'a str>, String> {
        self.given.clear();
        self.complex_elements = 0;
        let mut action = None;
        self.collect_members(text, level, "", &mut action)?;
        Ok(action)
    }

    /// Writes the root that [`DocumentCanonicalizer::open`] has read. Without `whole`, only the given
    /// members are written, and their values are not collected.
    pub(super) fn write(
        &mut self,
        level: &ObjectShape,
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.noting = whole;
        self.write_members(level, 0, whole, out)
    }

    fn collect_members(
        &mut self,
        text: &'a str,
        level: &ObjectShape,
        path: &str,
        action: &mut Option<&'a str>,
    ) -> Result<usize, String> {
        let base = self.given.len();
        self.given.resize(base + level.members.len(), None);
        let Some(found) = members(text) else {
            return Err(match path {
                "" => format!("A document must be a JSON object, not {}.", value::describe_json(text)),
                path => format!(
                    "The field '{path}' is complex and needs a JSON object, not {}.",
                    value::describe_json(text)
                ),
            });
        };
        let mut guess = 0;
        for (raw, value) in found {
            let name = decode_name(raw)
                .ok_or_else(|| format!("The property name '{}' is not valid text.", value::shorten(raw)))?;
            if name.contains('@') {
                // Annotations, such as `tags@odata.type`, or the score if the document came from a search.
                if path.is_empty() && name == "@search.action" {
                    *action = Some(value);
                }
                continue;
            }
            let Some(at) = level.position(&name, guess) else {
                if self.stored {
                    continue;
                }
                return Err(unknown(&name, path, level));
            };
            guess = at + 1;
            match self.given.get_mut(base + at) {
                Some(slot @ None) => *slot = Some(value),
                _ => return Err(format!("The property '{}' is given twice.", join(path, &name))),
            }
        }
        Ok(base)
    }

    fn write_members(
        &mut self,
        level: &ObjectShape,
        base: usize,
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.push(b'{');
        let mut first = true;
        for (at, member) in level.members.iter().enumerate() {
            let given = self.given.get(base + at).copied().flatten();
            if given.is_none() && !whole {
                continue;
            }
            if !first {
                out.push(b',');
            }
            first = false;
            out.extend_from_slice(member.label.as_bytes());
            match given {
                None | Some("null") => out.extend_from_slice(member.default_json().as_bytes()),
                Some(raw) => self.write_value(member, raw, whole, out)?,
            }
        }
        out.push(b'}');
        self.given.truncate(base);
        Ok(())
    }

    fn write_value(
        &mut self,
        member: &MemberShape,
        raw: &'a str,
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match (member.kind, &member.level) {
            (FieldType::Complex, Some(level)) => self.write_complex(level, &member.path, raw, whole, out),
            (FieldType::ManyComplex, Some(level)) => {
                self.write_collection(member, raw, out, |walk, element, out| {
                    walk.complex_elements += 1;
                    // Elements are replaced as a whole, so they are always complete.
                    walk.write_complex(level, &member.path, element, true, out)
                })?;
                if self.complex_elements > COMPLEX_ELEMENTS {
                    self.problem.get_or_insert_with(|| {
                        format!("The document has more than {COMPLEX_ELEMENTS} elements in its collections of complex values.")
                    });
                }
                Ok(())
            }
            (FieldType::Many(primitive), _) => match member.vector {
                Some(length) => {
                    let vector = value::write_vector(member, primitive, length, raw, out)?;
                    if let (true, Some(leaf), Some(vector)) = (self.noting, member.leaf, vector) {
                        self.values.push((leaf, FieldValue::Vector(vector)));
                    }
                    Ok(())
                }
                None => self.write_collection(member, raw, out, |walk, element, out| {
                    walk.write_scalar(member, primitive, element, out)
                }),
            },
            (FieldType::One(primitive), _) => self.write_scalar(member, primitive, raw, out),
            // The shape of every complex field has a level.
            (FieldType::Complex | FieldType::ManyComplex, None) => Ok(()),
        }
    }

    fn write_complex(
        &mut self,
        level: &ObjectShape,
        path: &str,
        raw: &'a str,
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let base = self.collect_members(raw, level, path, &mut None)?;
        self.write_members(level, base, whole, out)
    }

    fn write_collection(
        &mut self,
        member: &MemberShape,
        raw: &'a str,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut Self, &'a str, &mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(found) = elements(raw) else {
            return Err(value::type_mismatch(member, raw));
        };
        out.push(b'[');
        for (at, element) in found.enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if element == "null" {
                return Err(format!(
                    "Element {at} of the collection '{}' is null. Collections cannot contain nulls. Remove it.",
                    member.path
                ));
            }
            write(self, element, out)?;
        }
        out.push(b']');
        Ok(())
    }

    fn write_scalar(
        &mut self,
        member: &MemberShape,
        primitive: PrimitiveType,
        raw: &'a str,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        if primitive == PrimitiveType::String {
            return self.write_string(member, raw, out);
        }
        let value = value::write_scalar(member, primitive, raw, out)?;
        if let (true, Some(leaf)) = (self.noting, member.leaf) {
            self.values.push((leaf, value));
        }
        Ok(())
    }

    fn write_string(&mut self, member: &MemberShape, raw: &'a str, out: &mut Vec<u8>) -> Result<(), String> {
        if !raw.starts_with('"') {
            return Err(value::type_mismatch(member, raw));
        }
        let Some(text) = decode(raw) else {
            return Err(format!("The string in field '{}' has an invalid escape.", member.path));
        };
        match &text {
            Cow::Borrowed(_) => out.extend_from_slice(raw.as_bytes()),
            Cow::Owned(text) => value::write_text(text, out),
        }
        if member.limited && text.len() > WHOLE_STRING {
            self.problem.get_or_insert_with(|| {
                format!(
                    "Field '{}' has a string of {} bytes. Strings in filterable, sortable or facetable fields can have at most {WHOLE_STRING} bytes.",
                    member.path,
                    text.len()
                )
            });
        }
        if member.key {
            self.key = Some(text.clone().into_owned());
        }
        if let (true, Some(leaf)) = (self.noting, member.leaf) {
            self.values.push((leaf, FieldValue::Text(text.into_owned())));
        }
        Ok(())
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

fn unknown(name: &str, path: &str, level: &ObjectShape) -> String {
    const SHOWN: usize = 30;
    let mut names: Vec<&str> = level.members.iter().take(SHOWN).map(MemberShape::name).collect();
    if level.members.len() > SHOWN {
        names.push("…");
    }
    format!(
        "The property '{}' does not exist on type 'search.documentFields'. The fields here are: {}.",
        join(path, &value::shorten(name)),
        names.join(", ")
    )
}
