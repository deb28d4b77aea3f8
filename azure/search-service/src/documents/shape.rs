//! The schema in the form that reading documents needs: positions by name, and the type of each value.

use std::collections::HashMap;

use bindpost_azure_search_model::definition::{FieldType, IndexField, IndexSchema, PrimitiveType};

/// Built once per schema, and used for every document.
#[derive(Debug, Clone)]
pub struct DocumentShape {
    pub(super) root: ObjectShape,
}

/// The members of a document, or of one complex value.
#[derive(Debug, Clone)]
pub(super) struct ObjectShape {
    pub(super) members: Vec<MemberShape>,
    positions: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
pub(super) struct MemberShape {
    pub(super) path: String,
    /// The name as it is written before a value: `"name":`.
    pub(super) label: String,
    pub(super) kind: FieldType,
    pub(super) key: bool,
    /// The position among the leaves of the schema. `None` if the engine does not index this field.
    pub(super) leaf: Option<usize>,
    /// Whether whole values are indexed, which limits their length.
    pub(super) limited: bool,
    /// The number of elements of a vector.
    pub(super) vector: Option<usize>,
    /// The members of a complex field.
    pub(super) level: Option<ObjectShape>,
}

impl DocumentShape {
    pub fn new(schema: &IndexSchema) -> Self {
        Self { root: ObjectShape::new(schema.fields(), &mut 0) }
    }
}

impl ObjectShape {
    fn new(fields: &[IndexField], leaves: &mut usize) -> Self {
        let members = fields.iter().map(|field| MemberShape::new(field, leaves)).collect();
        let positions = fields.iter().enumerate().map(|(at, field)| (field.name.clone(), at)).collect();
        Self { members, positions }
    }

    /// Returns the position of a name. `guess` is tried first, because most documents have the
    /// order of the schema.
    pub(super) fn position(&self, name: &str, guess: usize) -> Option<usize> {
        if self.members.get(guess).is_some_and(|member| member.name() == name) {
            return Some(guess);
        }
        self.positions.get(name).copied()
    }
}

impl MemberShape {
    fn new(field: &IndexField, leaves: &mut usize) -> Self {
        let level = match field.kind {
            FieldType::Complex | FieldType::ManyComplex => Some(ObjectShape::new(&field.fields, leaves)),
            FieldType::One(_) | FieldType::Many(_) => None,
        };
        let whole = field.key || field.filterable || field.sortable || field.facetable;
        let mut leaf = None;
        if level.is_none() {
            leaf = (whole || field.searchable || field.vector.is_some()).then_some(*leaves);
            *leaves += 1;
        }
        Self {
            path: field.path.clone(),
            label: format!("\"{}\":", field.name),
            kind: field.kind,
            key: field.key,
            leaf,
            limited: whole && field.kind.primitive() == Some(PrimitiveType::String),
            vector: field
                .vector
                .as_ref()
                .map(|vector| if vector.packed_bits { vector.dimensions / 8 } else { vector.dimensions }),
            level,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.label.get(1..self.label.len().saturating_sub(2)).unwrap_or_default()
    }

    /// Returns the canonical JSON of a missing value.
    pub(super) fn default_json(&self) -> &'static str {
        if self.kind.is_collection() { "[]" } else { "null" }
    }
}
