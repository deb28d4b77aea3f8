//! The attributes of fields without subfields: defaults by type, and allowed combinations.

use serde_json::{Map, Value, json};

use super::field::{FieldType, IndexField, PrimitiveType, VectorAttributes};
use super::fields::type_name;
use super::problem::{DefinitionObject, invalid_definition};
use crate::ApiError;

/// The analyzer of a searchable string field that specifies none.
const DEFAULT_ANALYZER: &str = "standard.lucene";

/// The attributes of a field. Some have no effect in this service. They are stored and returned.
pub(super) const ATTRIBUTES: [&str; 24] = [
    "name",
    "type",
    "key",
    "retrievable",
    "stored",
    "searchable",
    "filterable",
    "sortable",
    "facetable",
    "permissionFilter",
    "sensitivityLabel",
    "sensitivityLabelId",
    "sensitivityLabelName",
    "sourceDocumentId",
    "sharepointSiteUrl",
    "analyzer",
    "searchAnalyzer",
    "indexAnalyzer",
    "normalizer",
    "dimensions",
    "vectorSearchProfile",
    "vectorEncoding",
    "synonymMaps",
    "fields",
];

/// Attributes of the last previews.
const RECENT: [&str; 6] = [
    "permissionFilter",
    "sensitivityLabel",
    "sensitivityLabelId",
    "sensitivityLabelName",
    "sourceDocumentId",
    "sharepointSiteUrl",
];

/// Applies the attributes of a field without subfields, and checks them.
pub(super) fn apply_attributes(
    field: &mut IndexField,
    given: &DefinitionObject<'_>,
    place: &str,
    at_root: bool,
) -> Result<(), ApiError> {
    let primitive = field.kind.primitive().unwrap_or(PrimitiveType::String);
    let text = primitive == PrimitiveType::String;
    let geography = primitive == PrimitiveType::GeographyPoint;
    let vector = is_vector(primitive);
    given.choice("permissionFilter", &[("userIds", ()), ("groupIds", ()), ("rbacScope", ())])?;
    for label in RECENT.iter().filter(|name| **name != "permissionFilter") {
        given.boolean(label)?;
    }
    field.key = given.boolean("key")?.unwrap_or(false);
    field.searchable = given.boolean("searchable")?.unwrap_or(text || vector);
    field.filterable = given.boolean("filterable")?.unwrap_or(!vector);
    field.sortable = given.boolean("sortable")?.unwrap_or(!vector && !field.multiple);
    field.facetable = given.boolean("facetable")?.unwrap_or(!vector && !geography);
    field.stored = given.boolean("stored")?.unwrap_or(true);
    field.retrievable = given.boolean("retrievable")?.unwrap_or(!vector);
    if field.searchable && !text && !vector {
        return Err(conflict(place, field, "searchable", "only strings and vectors can be searchable"));
    }
    if field.sortable && field.multiple {
        return Err(conflict(place, field, "sortable", "a document may have several values of the field"));
    }
    if field.facetable && geography {
        return Err(conflict(place, field, "facetable", "points have no facets"));
    }
    if vector {
        vector_rules(field, given, place, primitive)?;
    } else {
        for attribute in ["dimensions", "vectorSearchProfile", "vectorEncoding"] {
            if given.value(attribute).is_some() {
                return Err(invalid_definition(format!(
                    "{place} has '{attribute}', but its type {} is not a vector type.",
                    type_name(field.kind)
                )));
            }
        }
        if !field.stored {
            return Err(invalid_definition(format!(
                "{place} has 'stored': false, which only vector fields can have."
            )));
        }
    }
    if field.key {
        key_rules(field, place, at_root)?;
    }
    analyzers(field, given, place)?;
    normalizer_and_synonyms(field, given, place, text)
}

fn conflict(place: &str, field: &IndexField, attribute: &str, reason: &str) -> ApiError {
    invalid_definition(format!("{place} of type {} cannot be {attribute}: {reason}.", type_name(field.kind)))
}

fn is_vector(primitive: PrimitiveType) -> bool {
    matches!(
        primitive,
        PrimitiveType::Single
            | PrimitiveType::Half
            | PrimitiveType::Int16
            | PrimitiveType::SByte
            | PrimitiveType::Byte
    )
}

fn vector_rules(
    field: &mut IndexField,
    given: &DefinitionObject<'_>,
    place: &str,
    primitive: PrimitiveType,
) -> Result<(), ApiError> {
    let packed_bits = match given.text("vectorEncoding")? {
        None => false,
        Some("packedBit") => true,
        Some(other) => {
            return Err(invalid_definition(format!(
                "{place} has the unknown vectorEncoding '{other}'. Only packedBit is supported."
            )));
        }
    };
    if packed_bits != (primitive == PrimitiveType::Byte) {
        return Err(invalid_definition(format!(
            "{place} is {}: vectors of Edm.Byte need 'vectorEncoding': \"packedBit\", and other vectors must not have it.",
            type_name(field.kind)
        )));
    }
    let most = if packed_bits { 4096 * 8 } else { 4096 };
    let dimensions = match given.value("dimensions").map(Value::as_u64) {
        None => {
            return Err(invalid_definition(format!(
                "The vector {place} must have the property 'dimensions' set."
            )));
        }
        Some(Some(number)) if (2..=most).contains(&number) => usize::try_from(number).unwrap_or(usize::MAX),
        Some(_) => {
            return Err(invalid_definition(format!(
                "'dimensions' of {place} must be a whole number from 2 to {most}."
            )));
        }
    };
    if packed_bits && !dimensions.is_multiple_of(8) {
        return Err(invalid_definition(format!(
            "'dimensions' of {place} counts bits and must be a multiple of 8."
        )));
    }
    let Some(profile) = given.text("vectorSearchProfile")?.filter(|name| !name.is_empty()) else {
        return Err(invalid_definition(format!(
            "The vector {place} must have the property 'vectorSearchProfile' set."
        )));
    };
    if field.below_collection {
        return Err(invalid_definition(format!(
            "{place} is a vector below a collection. A document can have only one vector per field."
        )));
    }
    for (attribute, set) in
        [("filterable", field.filterable), ("sortable", field.sortable), ("facetable", field.facetable)]
    {
        if set {
            return Err(conflict(place, field, attribute, "vectors can only be searched"));
        }
    }
    if !field.searchable {
        return Err(invalid_definition(format!("{place} is a vector and must be searchable.")));
    }
    if !field.stored && field.retrievable {
        return Err(invalid_definition(format!(
            "{place} has 'stored': false, so 'retrievable' must be false as well. A field that is not stored cannot be returned."
        )));
    }
    field.vector = Some(VectorAttributes { dimensions, profile: profile.to_owned(), packed_bits });
    Ok(())
}

fn key_rules(field: &IndexField, place: &str, at_root: bool) -> Result<(), ApiError> {
    if !at_root {
        return Err(invalid_definition(format!(
            "{place} cannot be the key: the key must be a field at the root."
        )));
    }
    if field.kind != FieldType::One(PrimitiveType::String) {
        return Err(invalid_definition(format!(
            "{place} cannot be the key: its type is {}, but keys must be Edm.String.",
            type_name(field.kind)
        )));
    }
    if !field.retrievable {
        return Err(invalid_definition(format!("{place} is the key and must be retrievable.")));
    }
    Ok(())
}

fn analyzers(field: &mut IndexField, given: &DefinitionObject<'_>, place: &str) -> Result<(), ApiError> {
    let both = given.text("analyzer")?;
    let index = given.text("indexAnalyzer")?;
    let search = given.text("searchAnalyzer")?;
    if !field.searchable || field.vector.is_some() {
        for (attribute, name) in [("analyzer", both), ("indexAnalyzer", index), ("searchAnalyzer", search)] {
            if name.is_some() {
                return Err(invalid_definition(format!(
                    "{place} has '{attribute}', but only searchable text is analyzed."
                )));
            }
        }
        return Ok(());
    }
    if both.is_some() && (index.is_some() || search.is_some()) {
        return Err(invalid_definition(format!(
            "{place} has 'analyzer' together with 'indexAnalyzer' or 'searchAnalyzer'. Use either 'analyzer' or the other two."
        )));
    }
    if index.is_some() != search.is_some() {
        return Err(invalid_definition(format!(
            "{place} needs 'indexAnalyzer' and 'searchAnalyzer' together."
        )));
    }
    let default = both.unwrap_or(DEFAULT_ANALYZER);
    field.index_analyzer = Some(index.unwrap_or(default).to_owned());
    field.search_analyzer = Some(search.unwrap_or(default).to_owned());
    Ok(())
}

fn normalizer_and_synonyms(
    field: &mut IndexField,
    given: &DefinitionObject<'_>,
    place: &str,
    text: bool,
) -> Result<(), ApiError> {
    if let Some(normalizer) = given.text("normalizer")? {
        if !text || !(field.filterable || field.sortable || field.facetable) {
            return Err(invalid_definition(format!(
                "{place} has a 'normalizer', which needs a string field that is filterable, sortable or facetable."
            )));
        }
        field.normalizer = Some(normalizer.to_owned());
    }
    let maps = given.texts("synonymMaps")?;
    if maps.len() > 1 {
        return Err(invalid_definition(format!(
            "{place} names {} synonym maps. A field can have at most one.",
            maps.len()
        )));
    }
    if !maps.is_empty() && field.index_analyzer.is_none() {
        return Err(invalid_definition(format!(
            "{place} has a synonym map, but only searchable text can have one."
        )));
    }
    field.synonym_maps = maps.into_iter().map(str::to_owned).collect();
    Ok(())
}

/// Returns the field as the service returns it, with all defaults.
pub(super) fn response_json(field: &IndexField, given: &DefinitionObject<'_>) -> Value {
    let mut answer = Map::new();
    for attribute in ATTRIBUTES {
        let kept = given.value(attribute).cloned();
        let value = match attribute {
            "key" => field.key.into(),
            "retrievable" => field.retrievable.into(),
            "stored" => field.stored.into(),
            "searchable" => field.searchable.into(),
            "filterable" => field.filterable.into(),
            "sortable" => field.sortable.into(),
            "facetable" => field.facetable.into(),
            "synonymMaps" => kept.unwrap_or_else(|| json!([])),
            // These are returned only if they are set, because most clients are older than them.
            name if RECENT.contains(&name) && kept.is_none() => continue,
            "fields" => continue,
            _ => kept.unwrap_or(Value::Null),
        };
        answer.insert(attribute.to_owned(), value);
    }
    Value::Object(answer)
}
