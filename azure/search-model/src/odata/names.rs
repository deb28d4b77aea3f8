//! Resolves the names in an expression to the fields of an index.

use super::ast::FieldPath;
use super::parser::OdataIdentifier;
use super::problem::{OdataError, quoted};
use crate::definition::{FieldType, IndexField, IndexSchema, PrimitiveType};

/// A lambda around the expression that is being checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct LambdaScope<'a> {
    pub(super) variable: &'a str,
    /// The collection whose elements the variable refers to.
    pub(super) field: &'a IndexField,
}

/// The field that a path resolves to.
#[derive(Debug)]
pub(super) struct ResolvedField<'a> {
    pub(super) at: usize,
    pub(super) field: &'a IndexField,
    /// The type of the value. For a range variable it is the type of an element, not of the collection.
    pub(super) kind: FieldType,
    pub(super) path: FieldPath,
}

impl ResolvedField<'_> {
    /// Returns the path as the client would write it.
    pub(super) fn path_text(&self) -> &str {
        &self.path.field
    }

    pub(super) fn require_filterable(self) -> Result<Self, OdataError> {
        let name = self.path_text();
        if self.field.vector.is_some() {
            return Err(OdataError::new(
                self.at,
                format!("'{name}' is a vector field. Vectors are searched with vectorQueries, not filtered."),
            ));
        }
        let complex = matches!(self.field.kind, FieldType::Complex | FieldType::ManyComplex);
        if !complex && !self.field.filterable {
            return Err(OdataError::new(
                self.at,
                format!(
                    "'{name}' is not a filterable field. Only filterable fields can be used in filter expressions."
                ),
            ));
        }
        Ok(self)
    }
}

/// Resolves a path that starts at a range variable or at the root. It cannot continue into a collection
/// of complex values, which needs a lambda.
pub(super) fn resolve<'a>(
    names: &[OdataIdentifier<'_>],
    schema: &'a IndexSchema,
    scopes: &[LambdaScope<'a>],
) -> Result<ResolvedField<'a>, OdataError> {
    let Some(first) = names.first() else { return Err(OdataError::new(0, "Expected a field.")) };
    let bound =
        scopes.iter().rev().enumerate().find(|(_, scope)| scope.variable == first.text).map(|(up, scope)| {
            let kind = element(scope.field.kind);
            (up, scope.field, kind)
        });
    let (lambda, mut found, members) = match bound {
        Some((up, field, kind)) => (Some(up), Some((field, kind)), names.get(1..).unwrap_or_default()),
        None => (None, None, names),
    };
    for name in members {
        let fields = match found {
            None => schema.fields(),
            Some((field, FieldType::Complex)) => &field.fields,
            Some((field, kind)) => {
                return Err(OdataError::new(name.at, no_subfields(field, kind, name.text)));
            }
        };
        let Some(field) = fields.iter().find(|field| field.name == name.text) else {
            let above = found.map(|(field, _)| field);
            return Err(OdataError::new(name.at, unknown(name.text, above, fields, scopes)));
        };
        found = Some((field, field.kind));
    }
    let Some((field, kind)) = found else { return Err(OdataError::new(first.at, "Expected a field.")) };
    let members = members.iter().map(|name| name.text.to_owned()).collect();
    Ok(ResolvedField {
        at: first.at,
        field,
        kind,
        path: FieldPath { field: field.path.clone(), members, lambda },
    })
}

fn element(kind: FieldType) -> FieldType {
    match kind {
        FieldType::Many(primitive) => FieldType::One(primitive),
        FieldType::ManyComplex => FieldType::Complex,
        single => single,
    }
}

fn no_subfields(field: &IndexField, kind: FieldType, name: &str) -> String {
    let path = &field.path;
    let name = quoted(name);
    if kind == FieldType::ManyComplex {
        return format!(
            "'{path}' is a collection, so '{path}/{name}' has many values. Specify the elements with any or all: \
             {path}/any(x: x/{name} …) or {path}/all(x: x/{name} …)."
        );
    }
    format!("'{path}' is of type {} and has no subfield '{name}'.", type_name(kind))
}

fn unknown(
    name: &str,
    above: Option<&IndexField>,
    fields: &[IndexField],
    scopes: &[LambdaScope<'_>],
) -> String {
    let shown = quoted(name);
    let place = match above {
        Some(field) => format!("'{}' has no subfield", field.path),
        None => "There is no field".to_owned(),
    };
    if let (None, Some(scope)) = (above, scopes.last())
        && scope.field.subfield(name).is_some()
    {
        let variable = scope.variable;
        return format!("{place} '{shown}'. Within the lambda write {variable}/{shown}.");
    }
    if let Some((first, rest)) = name.split_once('.')
        && above.is_none()
        && fields.iter().any(|field| field.name == first)
    {
        return format!("{place} '{shown}'. Subfields are written with a slash: {first}/{rest}.");
    }
    match nearest(name, fields) {
        Some(near) => format!("{place} '{shown}'. Did you mean '{near}'? Names are case-sensitive."),
        None => format!("{place} '{shown}'."),
    }
}

/// Returns the name that is most similar to a misspelt one.
fn nearest<'a>(name: &str, fields: &'a [IndexField]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let allowed = (name.len() / 3).clamp(1, 3);
    fields
        .iter()
        .filter(|field| field.name.len() <= LONGEST)
        .map(|field| (distance(&name.to_ascii_lowercase(), &field.name.to_ascii_lowercase()), field))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, field)| field.name.as_str())
}

/// Returns the edit distance of two names.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.bytes().enumerate() {
        let mut left = index + 1;
        let mut next = vec![left];
        for ((above_left, above), other) in row.iter().zip(row.iter().skip(1)).zip(to.bytes()) {
            left = (above_left + usize::from(letter != other)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

pub(super) fn type_name(kind: FieldType) -> String {
    let name = match kind.primitive() {
        None => "Edm.ComplexType",
        Some(PrimitiveType::String) => "Edm.String",
        Some(PrimitiveType::Boolean) => "Edm.Boolean",
        Some(PrimitiveType::Int32) => "Edm.Int32",
        Some(PrimitiveType::Int64) => "Edm.Int64",
        Some(PrimitiveType::Double) => "Edm.Double",
        Some(PrimitiveType::DateTimeOffset) => "Edm.DateTimeOffset",
        Some(PrimitiveType::GeographyPoint) => "Edm.GeographyPoint",
        Some(PrimitiveType::Single) => "Edm.Single",
        Some(PrimitiveType::Half) => "Edm.Half",
        Some(PrimitiveType::Int16) => "Edm.Int16",
        Some(PrimitiveType::SByte) => "Edm.SByte",
        Some(PrimitiveType::Byte) => "Edm.Byte",
    };
    if kind.is_collection() { format!("Collection({name})") } else { name.to_owned() }
}
