//! Parses the `fields` of a definition into [`IndexField`]s, with all checks and defaults.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::attributes::{ATTRIBUTES, apply_attributes, response_json};
use super::field::{FieldType, IndexField, PrimitiveType};
use super::problem::{DefinitionObject, invalid_definition, read_element, read_object};
use crate::ApiError;

const ROOT_FIELDS: usize = 1000;
const ALL_FIELDS: usize = 3000;
const COMPLEX_COLLECTIONS: usize = 40;
const DEPTH: usize = 10;
const NAME_LENGTH: usize = 128;

const TYPES: [(&str, FieldType); 21] = [
    ("Edm.String", FieldType::One(PrimitiveType::String)),
    ("Edm.Boolean", FieldType::One(PrimitiveType::Boolean)),
    ("Edm.Int32", FieldType::One(PrimitiveType::Int32)),
    ("Edm.Int64", FieldType::One(PrimitiveType::Int64)),
    ("Edm.Double", FieldType::One(PrimitiveType::Double)),
    ("Edm.DateTimeOffset", FieldType::One(PrimitiveType::DateTimeOffset)),
    ("Edm.GeographyPoint", FieldType::One(PrimitiveType::GeographyPoint)),
    ("Edm.ComplexType", FieldType::Complex),
    ("Collection(Edm.String)", FieldType::Many(PrimitiveType::String)),
    ("Collection(Edm.Boolean)", FieldType::Many(PrimitiveType::Boolean)),
    ("Collection(Edm.Int32)", FieldType::Many(PrimitiveType::Int32)),
    ("Collection(Edm.Int64)", FieldType::Many(PrimitiveType::Int64)),
    ("Collection(Edm.Double)", FieldType::Many(PrimitiveType::Double)),
    ("Collection(Edm.DateTimeOffset)", FieldType::Many(PrimitiveType::DateTimeOffset)),
    ("Collection(Edm.GeographyPoint)", FieldType::Many(PrimitiveType::GeographyPoint)),
    ("Collection(Edm.ComplexType)", FieldType::ManyComplex),
    ("Collection(Edm.Single)", FieldType::Many(PrimitiveType::Single)),
    ("Collection(Edm.Half)", FieldType::Many(PrimitiveType::Half)),
    ("Collection(Edm.Int16)", FieldType::Many(PrimitiveType::Int16)),
    ("Collection(Edm.SByte)", FieldType::Many(PrimitiveType::SByte)),
    ("Collection(Edm.Byte)", FieldType::Many(PrimitiveType::Byte)),
];

/// Returns the name of a type in definitions.
pub fn type_name(kind: FieldType) -> &'static str {
    TYPES.iter().find(|(_, known)| *known == kind).map_or("Edm.String", |(name, _)| name)
}

/// Parses all fields. Also returns their JSON with all defaults.
pub(super) fn parse(list: &[Value]) -> Result<(Vec<IndexField>, Vec<Value>), ApiError> {
    if list.is_empty() {
        return Err(invalid_definition("An index needs at least one field, its key."));
    }
    if list.len() > ROOT_FIELDS {
        return Err(invalid_definition(format!(
            "The index has {} fields. At most {ROOT_FIELDS} are allowed at its root.",
            list.len()
        )));
    }
    let mut reader = FieldParser { fields: 0, complex_collections: 0 };
    let parsed = reader.level(list, "", false, 0)?;
    let keys: Vec<&str> =
        parsed.0.iter().filter(|field| field.key).map(|field| field.name.as_str()).collect();
    match keys.len() {
        1 => Ok(parsed),
        0 => Err(invalid_definition(
            "No field is the key. Set 'key': true on one field of type Edm.String at the root.",
        )),
        _ => Err(invalid_definition(format!(
            "An index must have exactly one key, but these fields have 'key': true: {}.",
            keys.join(", ")
        ))),
    }
}

struct FieldParser {
    fields: usize,
    complex_collections: usize,
}

impl FieldParser {
    fn level(
        &mut self,
        list: &[Value],
        above: &str,
        multiple: bool,
        depth: usize,
    ) -> Result<(Vec<IndexField>, Vec<Value>), ApiError> {
        let mut fields = Vec::with_capacity(list.len());
        let mut answers = Vec::with_capacity(list.len());
        let mut names = HashSet::new();
        for (at, value) in list.iter().enumerate() {
            let (field, answer) = self.field(value, at, above, multiple, depth)?;
            if !names.insert(field.name.clone()) {
                return Err(invalid_definition(format!(
                    "There are two fields '{}'. Field names must be unique.",
                    field.path
                )));
            }
            fields.push(field);
            answers.push(answer);
        }
        Ok((fields, answers))
    }

    fn field(
        &mut self,
        value: &Value,
        at: usize,
        above: &str,
        multiple: bool,
        depth: usize,
    ) -> Result<(IndexField, Value), ApiError> {
        let owner = match above {
            "" => "the index".to_owned(),
            above => format!("field '{above}'"),
        };
        let name = read_element(value, &owner, "fields", at)?.required_text("name")?;
        check_name(name, above)?;
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        let place = format!("field '{path}'");
        let given = read_object(value, &place)?;
        given.allow_only(&ATTRIBUTES)?;
        self.fields += 1;
        if self.fields > ALL_FIELDS {
            return Err(invalid_definition(format!(
                "The index has more than {ALL_FIELDS} fields, including subfields. Use fewer fields."
            )));
        }
        let kind = parse_type(given.required_text("type")?, &place)?;
        let mut field = IndexField::new(name, kind);
        field.multiple = multiple || kind.is_collection();
        match kind {
            FieldType::Complex | FieldType::ManyComplex => {
                check_complex(&given, &place)?;
                self.check_complex_limits(kind, &place, depth)?;
                let (fields, answers) =
                    self.level(given.list("fields")?, &path, field.multiple, depth + 1)?;
                field.path = path;
                field.fields = fields;
                let answer = json!({"name": name, "type": type_name(kind), "fields": answers});
                Ok((field, answer))
            }
            FieldType::One(_) | FieldType::Many(_) => {
                if !given.list("fields")?.is_empty() {
                    return Err(invalid_definition(format!(
                        "{place} has subfields, but its type is {}. Only complex types can have subfields.",
                        type_name(kind)
                    )));
                }
                field.path = path;
                field.below_collection = multiple;
                apply_attributes(&mut field, &given, &place, above.is_empty())?;
                let answer = response_json(&field, &given);
                Ok((field, answer))
            }
        }
    }

    fn check_complex_limits(&mut self, kind: FieldType, place: &str, depth: usize) -> Result<(), ApiError> {
        if depth >= DEPTH {
            return Err(invalid_definition(format!(
                "{place} is nested too deeply. At most {DEPTH} levels of complex types are allowed."
            )));
        }
        if kind == FieldType::ManyComplex {
            self.complex_collections += 1;
            if self.complex_collections > COMPLEX_COLLECTIONS {
                return Err(invalid_definition(format!(
                    "{place} exceeds the limit: an index can have at most {COMPLEX_COLLECTIONS} collections of complex values."
                )));
            }
        }
        Ok(())
    }
}

fn check_name(name: &str, above: &str) -> Result<(), ApiError> {
    let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
    let fits = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= NAME_LENGTH;
    if !fits {
        return Err(invalid_definition(format!(
            "The field name '{path}' is not allowed. Names must start with a letter, contain only letters, digits and underscores, and have at most {NAME_LENGTH} characters."
        )));
    }
    if name.starts_with("azureSearch") {
        return Err(invalid_definition(format!(
            "The field name '{path}' is not allowed: names that start with 'azureSearch' are reserved."
        )));
    }
    Ok(())
}

fn parse_type(name: &str, place: &str) -> Result<FieldType, ApiError> {
    match TYPES.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => Ok(*kind),
        None => {
            let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
            Err(invalid_definition(format!(
                "{place} has the unknown type '{name}'. The types are: {}.",
                names.join(", ")
            )))
        }
    }
}

fn check_complex(given: &DefinitionObject<'_>, place: &str) -> Result<(), ApiError> {
    if given.list("fields")?.is_empty() {
        return Err(invalid_definition(format!(
            "{place} is complex and needs at least one subfield in 'fields'."
        )));
    }
    for attribute in ATTRIBUTES {
        let allowed = matches!(attribute, "name" | "type" | "fields");
        let empty = given.value(attribute).is_none_or(|value| value.as_array().is_some_and(Vec::is_empty));
        if !allowed && !empty {
            return Err(invalid_definition(format!(
                "{place} is complex and cannot have '{attribute}'. Set it on the subfields."
            )));
        }
    }
    Ok(())
}
