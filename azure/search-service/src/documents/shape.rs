//! The schema as documents meet it: names to positions, and what each value must be.

use std::collections::HashMap;

use crate::definition::{FieldType, IndexField, IndexSchema, PrimitiveType};

/// Made once per schema, and read for every document.
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
    /// The position among the leaves of the schema; `None` when the engine has no use for values of this field.
    pub(super) leaf: Option<usize>,
    /// Whole values are in the index, where they must not be too long.
    pub(super) limited: bool,
    /// How many numbers a vector has.
    pub(super) vector: Option<usize>,
    /// Of complex fields.
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

    /// `guess` is where the name probably is: most documents have their members in the order of the schema.
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

    /// What stands in canonical JSON when nothing was given.
    pub(super) fn default_json(&self) -> &'static str {
        if self.kind.is_collection() { "[]" } else { "null" }
    }
}
