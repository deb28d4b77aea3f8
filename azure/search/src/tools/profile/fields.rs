//! The profile of one field, from a sample.

use std::collections::BTreeSet;

use bindpost_azure_search_model::definition::{IndexField, PrimitiveType};
use serde_json::{Map, Value, json};

use super::{DocumentSample, MAX_VALUES, is_counted};
use crate::tools::builder::shortened;
use crate::tools::reading::{IndexDescription, type_name, values_at};

const EXAMPLES: usize = 3;
const EXAMPLE_LENGTH: usize = 60;

/// The profile of a field, and the numbers for its hints.
pub(super) struct FieldProfile<'a> {
    pub(super) field: &'a IndexField,
    pub(super) told: Value,
    /// The share of documents with a value, or `None` if values cannot be retrieved.
    pub(super) fill: Option<f64>,
    /// The number of different values, and whether there are more.
    pub(super) distinct: Option<(usize, bool)>,
    /// Average number of characters and of words.
    pub(super) length: Option<(f64, f64)>,
    /// Number of documents in the sample for this field.
    pub(super) seen: usize,
    /// Number of vectors whose dimensions differ from the definition.
    pub(super) odd_vectors: usize,
}

pub(super) fn describe<'a>(
    field: &'a IndexField,
    index: &IndexDescription,
    sample: &DocumentSample,
) -> FieldProfile<'a> {
    let documents = if field.vector.is_some() { &sample.vectors } else { &sample.documents };
    let seen = documents.len();
    let mut told = Map::from_iter([
        ("name".to_owned(), json!(field.path)),
        ("type".to_owned(), json!(type_name(field.kind))),
        ("attributes".to_owned(), json!(attributes(field))),
    ]);
    let mut set = |name: &str, value: Value| told.insert(name.to_owned(), value);
    let mut described = FieldProfile {
        field,
        told: Value::Null,
        fill: None,
        distinct: None,
        length: None,
        seen,
        odd_vectors: 0,
    };
    if let Some(analyzer) = &field.index_analyzer {
        match field.search_analyzer.as_ref().filter(|search| *search != analyzer) {
            Some(search) => set("analyzers", json!({"index": analyzer, "search": search})),
            None => set("analyzer", json!(analyzer)),
        };
    }
    if !field.synonym_maps.is_empty() {
        set("synonymMaps", json!(field.synonym_maps));
    }
    // A subfield of a hidden field is hidden too, but only its own flag is available here.
    if !field.retrievable {
        set("note", json!("not retrievable: values can only be searched"));
    } else if seen > 0 {
        let filled = documents.iter().filter(|document| !values_at(document, &field.path).is_empty()).count();
        let fill = filled as f64 / seen as f64;
        described.fill = Some(fill);
        set("fillRate", json!((fill * 1000.0).round() / 1000.0));
    }
    if let Some(vector) = &field.vector {
        set("dimensions", json!(vector.dimensions));
        set("vectorProfile", json!(vector.profile));
        if field.retrievable {
            let lengths = documents.iter().filter_map(|document| document.get(&field.name)?.as_array());
            let lengths: Vec<usize> = lengths.map(Vec::len).filter(|length| *length > 0).collect();
            let bytes = if vector.packed_bits { vector.dimensions / 8 } else { vector.dimensions };
            described.odd_vectors = lengths.iter().filter(|length| **length != bytes).count();
            set("vectorsSampled", json!(seen));
            set("vectorsMissing", json!(seen - lengths.len()));
        }
        return FieldProfile { told: Value::Object(told), ..described };
    }
    let values: Vec<&Value> = match field.retrievable {
        true => documents.iter().flat_map(|document| values_at(document, &field.path)).collect(),
        false => Vec::new(),
    };
    let facet = sample.facets.as_ref().filter(|_| is_counted(field)).map(|found| found.facet(&field.path));
    match &facet {
        Some(buckets) => {
            let more = buckets.len() >= MAX_VALUES;
            described.distinct = Some((buckets.len(), more));
            set(
                "distinct",
                json!(if more { format!("{MAX_VALUES} or more") } else { buckets.len().to_string() }),
            );
            set("distinctOf", json!("index"));
            let top: Vec<Value> = buckets
                .iter()
                .take(EXAMPLES + 2)
                .map(|(value, count)| json!({"value": short(value), "count": count}))
                .collect();
            set("topValues", json!(top));
        }
        None if !values.is_empty() => {
            let different: BTreeSet<String> = values.iter().map(|value| value.to_string()).collect();
            described.distinct = Some((different.len(), false));
            set("distinct", json!(different.len().to_string()));
            set("distinctOf", json!("sample"));
        }
        None => {}
    }
    if facet.is_none_or(|buckets| buckets.is_empty()) {
        let mut examples: Vec<Value> = Vec::new();
        for value in values.iter().map(|value| short(value)) {
            if examples.len() < EXAMPLES && !examples.contains(&value) {
                examples.push(value);
            }
        }
        if !examples.is_empty() {
            set("examples", json!(examples));
        }
    }
    if let Some((least, most)) = range(field, &values) {
        set("min", least);
        set("max", most);
    }
    let texts: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
    if field.kind.primitive() == Some(PrimitiveType::String) && !texts.is_empty() {
        let lengths: Vec<usize> = texts.iter().map(|text| text.chars().count()).collect();
        let average = |total: usize| total as f64 / texts.len() as f64;
        let characters = average(lengths.iter().sum());
        described.length =
            Some((characters, average(texts.iter().map(|text| text.split_whitespace().count()).sum())));
        set(
            "length",
            json!({"min": lengths.iter().min(), "average": characters.round(), "max": lengths.iter().max()}),
        );
    }
    if is_semantic(field, index) {
        set("semantic", json!(true));
    }
    FieldProfile { told: Value::Object(told), ..described }
}

fn attributes(field: &IndexField) -> Vec<&'static str> {
    let all = [
        ("key", field.key),
        ("searchable", field.searchable),
        ("filterable", field.filterable),
        ("sortable", field.sortable),
        ("facetable", field.facetable),
        ("retrievable", field.retrievable),
    ];
    all.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect()
}

/// Returns the minimum and the maximum of numbers and dates.
fn range(field: &IndexField, values: &[&Value]) -> Option<(Value, Value)> {
    let ends = |mut ordered: Vec<&Value>, by: fn(&Value, &Value) -> std::cmp::Ordering| {
        ordered.sort_by(|one, other| by(one, other));
        Some(((*ordered.first()?).clone(), (*ordered.last()?).clone()))
    };
    match field.kind.primitive()? {
        PrimitiveType::Int32 | PrimitiveType::Int64 | PrimitiveType::Double => {
            let numbers = values.iter().copied().filter(|value| value.is_number()).collect();
            ends(numbers, |one, other| {
                let number = |value: &Value| value.as_f64().unwrap_or_default();
                number(one).total_cmp(&number(other))
            })
        }
        // The service writes dates in UTC, so they can be compared as text.
        PrimitiveType::DateTimeOffset => {
            ends(values.to_vec(), |one, other| one.as_str().cmp(&other.as_str()))
        }
        _ => None,
    }
}

fn short(value: &Value) -> Value {
    match value {
        Value::String(text) => shortened(text, EXAMPLE_LENGTH).into(),
        Value::Object(_) | Value::Array(_) => shortened(&value.to_string(), EXAMPLE_LENGTH).into(),
        plain => plain.clone(),
    }
}

fn is_semantic(field: &IndexField, index: &IndexDescription) -> bool {
    let configurations = index.json.pointer("/semantic/configurations").map(Value::to_string);
    configurations.is_some_and(|text| text.contains(&format!("\"fieldName\":\"{}\"", field.path)))
}
