//! Maps items to documents: the target field of each member, and its conversion.

mod convert;
mod functions;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::field::{IndexField, IndexSchema};
use serde_json::{Map, Value};

use functions::token_encode;
pub(super) use functions::{MappingTransform, percent_decode};

use super::definition::IndexerDefinition;
use super::skills::tree::{EnrichmentNode, EnrichmentPath};

/// An item with the metadata of its blob.
pub(crate) struct BlobItem<'a> {
    pub fields: Map<String, Value>,
    pub metadata: &'a Map<String, Value>,
    /// The number of the item within the blob. `None` if the blob is one item.
    pub number: Option<u64>,
}

/// The mappings of one indexer to one index, checked against the fields of the index.
pub(crate) struct FieldMapper<'s> {
    schema: &'s IndexSchema,
    explicit: Vec<MappingStep<'s>>,
    /// Fields without a mapping. They use members with the same name.
    implicit: Vec<&'s IndexField>,
    outputs: Vec<(EnrichmentPath, MappingStep<'s>)>,
}

struct MappingStep<'s> {
    source: String,
    target: &'s IndexField,
    function: Option<MappingTransform>,
}

pub(crate) const DOCUMENT_KEY: &str = "AzureSearch_DocumentKey";
const STORAGE_PATH: &str = "metadata_storage_path";

impl<'s> FieldMapper<'s> {
    pub(crate) fn new(indexer: &IndexerDefinition, schema: &'s IndexSchema) -> Result<Self, ApiError> {
        let step = |mapping: &super::FieldMapping| {
            let target = schema.fields().iter().find(|field| field.name == mapping.target);
            // Azure ignores the case of target field names.
            let target = target
                .or_else(|| schema.fields().iter().find(|field| field.name.eq_ignore_ascii_case(&mapping.target)))
                .ok_or_else(|| {
                    ApiError::invalid(format!(
                        "A field mapping from '{}' names the target field '{}', which is not a top-level field of index '{}'.",
                        mapping.source, mapping.target, indexer.target_index
                    ))
                })?;
            let function = mapping.function.clone();
            Ok::<_, ApiError>(MappingStep { source: mapping.source.clone(), target, function })
        };
        let explicit = indexer.field_mappings.iter().map(step).collect::<Result<Vec<_>, _>>()?;
        let mut outputs = Vec::new();
        for mapping in &indexer.output_field_mappings {
            outputs.push((EnrichmentPath::parse(&mapping.source)?, step(mapping)?));
        }
        let taken = |field: &&IndexField| {
            explicit
                .iter()
                .chain(outputs.iter().map(|(_, step)| step))
                .any(|step| step.target.path == field.path)
        };
        let implicit = schema.fields().iter().filter(|field| !taken(field)).collect();
        Ok(Self { schema, explicit, implicit, outputs })
    }

    /// Returns the document of an item. `tree` is the enriched item if the indexer has a skillset.
    pub(crate) fn map(
        &self,
        mut piece: BlobItem<'_>,
        tree: Option<&EnrichmentNode>,
    ) -> Result<Map<String, Value>, String> {
        let mut document = Map::new();
        for step in &self.explicit {
            if let Some(value) = find(&piece, &step.source) {
                document.insert(step.target.name.clone(), step.apply(value)?);
            }
        }
        for (path, step) in &self.outputs {
            let value = match tree {
                Some(tree) => tree.select(path),
                None => EnrichmentNode::document(&piece.fields, piece.metadata).select(path),
            };
            if let Some(value) = value {
                document.insert(step.target.name.clone(), step.apply(value)?);
            }
        }
        let key = self.schema.key();
        for field in &self.implicit {
            if let Some(value) = take_member(&mut piece, &field.name) {
                let value =
                    convert::convert(value, field).map_err(|why| mapping_error(field, &field.name, &why))?;
                document.insert(field.name.clone(), value);
            } else if field.key
                && let Some(value) = default_key(&piece)
            {
                document.insert(key.name.clone(), Value::from(value));
            }
        }
        match document.get(&key.name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(document),
            _ => Err(format!(
                "Document key cannot be missing or empty. Map a member that each item has to the key field '{}'.",
                key.name
            )),
        }
    }
}

impl MappingStep<'_> {
    fn apply(&self, value: Value) -> Result<Value, String> {
        let value = match &self.function {
            None => value,
            Some(function) => {
                function.apply(value).map_err(|why| mapping_error(self.target, &self.source, &why))?
            }
        };
        convert::convert(value, self.target).map_err(|why| mapping_error(self.target, &self.source, &why))
    }
}

fn mapping_error(field: &IndexField, source: &str, why: &str) -> String {
    format!("The value of '{source}' cannot become field '{}': {why}", field.name)
}

/// Finds a source value: a member, metadata of the blob, or a path within the item such as `/address/city`.
fn find(piece: &BlobItem<'_>, source: &str) -> Option<Value> {
    if source == DOCUMENT_KEY {
        return default_key(piece).map(Value::from);
    }
    if let Some(value) = find_member(&piece.fields, source).or_else(|| find_member(piece.metadata, source)) {
        return Some(value.clone());
    }
    let way = source.strip_prefix('/')?;
    let way = way.strip_prefix("document/").unwrap_or(way);
    let (first, rest) = way.split_once('/').map_or((way, None), |(first, rest)| (first, Some(rest)));
    let start = find_member(&piece.fields, first).or_else(|| find_member(piece.metadata, first))?;
    let parts = rest.into_iter().flat_map(|rest| rest.split('/'));
    let end = parts.into_iter().try_fold(start, |value, part| match value {
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    });
    end.cloned()
}

fn find_member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).or_else(|| {
        members.iter().find(|(member, _)| member.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    })
}

fn take_member(piece: &mut BlobItem<'_>, name: &str) -> Option<Value> {
    if let Some(value) = piece.fields.get_mut(name) {
        return Some(value.take());
    }
    let other = piece.fields.iter_mut().find(|(member, _)| member.eq_ignore_ascii_case(name));
    match other {
        Some((_, value)) => Some(value.take()),
        None if name.eq_ignore_ascii_case(DOCUMENT_KEY) => default_key(piece).map(Value::from),
        None => find_member(piece.metadata, name).cloned(),
    }
}

/// Builds a key from the URL of the blob, and from the item number if the blob has several items.
fn default_key(piece: &BlobItem<'_>) -> Option<String> {
    let path = piece.metadata.get(STORAGE_PATH)?.as_str()?;
    Some(match piece.number {
        None => token_encode(path.as_bytes()),
        Some(number) => token_encode(format!("{path};{number}").as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use bindpost_azure_search_model::definition::field::{FieldType, PrimitiveType};

    fn schema() -> IndexSchema {
        let mut id = IndexField::new("id", FieldType::One(PrimitiveType::String));
        id.key = true;
        let mut address = IndexField::new("address", FieldType::Complex);
        address.fields = vec![IndexField::new("zip", FieldType::One(PrimitiveType::Int32))];
        IndexSchema::new(vec![
            id,
            IndexField::new("Title", FieldType::One(PrimitiveType::String)),
            IndexField::new("tags", FieldType::Many(PrimitiveType::String)),
            address,
        ])
        .unwrap()
    }

    fn map(indexer: Value, fields: Value, number: Option<u64>) -> Result<Map<String, Value>, String> {
        let mut json = json!({"name": "i", "dataSourceName": "d", "targetIndexName": "x"});
        for (name, value) in indexer.as_object().unwrap() {
            json[name] = value.clone();
        }
        let schema = schema();
        let metadata = json!({STORAGE_PATH: "http://local/c/a.json"});
        let mapper = FieldMapper::new(&IndexerDefinition::parse(&json).unwrap(), &schema).unwrap();
        let fields = fields.as_object().unwrap().clone();
        mapper.map(BlobItem { fields, metadata: metadata.as_object().unwrap(), number }, None)
    }

    #[test]
    fn names_ignore_case_and_values_are_converted_to_the_field_type() {
        let document = map(
            json!({}),
            json!({"ID": 7, "title": "t", "tags": ["a", 1], "address": {"zip": "123", "x": 1}, "more": 1}),
            None,
        );
        let expected = json!({"id": "7", "Title": "t", "tags": ["a", "1"], "address": {"zip": 123}});
        assert_eq!(Value::Object(document.unwrap()), expected);
    }

    #[test]
    fn keys_default_to_the_path() {
        let one = map(json!({}), json!({}), None).unwrap();
        assert_eq!(one["id"], token_encode(b"http://local/c/a.json"));
        let many = map(json!({}), json!({}), Some(4)).unwrap();
        assert_eq!(many["id"], token_encode(b"http://local/c/a.json;4"));
    }

    #[test]
    fn mappings_select_nested_members_and_override_names() {
        let mappings = json!({"fieldMappings": [
            {"sourceFieldName": "/a/b/1", "targetFieldName": "id"},
            {"sourceFieldName": "/document/a/c", "targetFieldName": "title"},
            {"sourceFieldName": "missing", "targetFieldName": "tags"},
        ]});
        let fields = json!({"a": {"b": [1, 2], "c": "deep"}, "id": "no", "Title": "no", "tags": ["no"]});
        let document = map(mappings, fields, None).unwrap();
        assert_eq!(Value::Object(document), json!({"id": "2", "Title": "deep"}));
    }

    #[test]
    fn output_mappings_with_stars_collect_lists() {
        let mappings = json!({"outputFieldMappings": [{"sourceFieldName": "/document/list/*/n", "targetFieldName": "tags"}]});
        let document = map(mappings, json!({"list": [{"n": "a"}, {"n": "b"}]}), None).unwrap();
        assert_eq!(document["tags"], json!(["a", "b"]));
    }

    #[test]
    fn empty_keys_and_unknown_targets_are_rejected() {
        assert!(map(json!({}), json!({"id": ""}), None).unwrap_err().contains("key"));
        assert!(map(json!({}), json!({"tags": "a"}), None).unwrap_err().contains("'tags'"));
        let json = json!({"name": "i", "dataSourceName": "d", "targetIndexName": "x",
            "fieldMappings": [{"sourceFieldName": "a", "targetFieldName": "nope"}]});
        let schema = schema();
        let error = FieldMapper::new(&IndexerDefinition::parse(&json).unwrap(), &schema).err().unwrap();
        assert!(error.message.contains("'nope'"));
    }
}
