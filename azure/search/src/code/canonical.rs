//! The form of a definition in a folder, and its conversion from and to the form of the service.
//!
//! A folder has no ETags, nulls and defaults, no secrets, and no versions of indexes: references name the
//! logical index. The rules of a synonym map are a list with one rule each.

use serde_json::{Map, Value};

use super::kinds::CodeKind;
use super::names::IndexNames;
use super::{defaults, secrets};
use crate::tools::index_change::compare::normalized;

/// Members that name an index, in all kinds but indexes.
const REFERENCES: [&str; 3] = ["targetIndexName", "searchIndexName", "indexName"];
/// Parts of custom analysis, in which an empty list may differ from none.
const ANALYSIS: [&str; 5] = ["analyzers", "tokenizers", "tokenFilters", "charFilters", "normalizers"];
const BM25: &str = "#Microsoft.Azure.Search.BM25Similarity";

/// Returns the form for the folder. `existing` is the definition in the folder, whose references to
/// variables are kept.
pub(crate) fn to_folder(kind: CodeKind, live: &Value, names: &IndexNames, existing: Option<&Value>) -> Value {
    let mut definition = live.clone();
    secrets::mask(&mut definition, existing);
    remove_nulls(&mut definition);
    let Value::Object(members) = &mut definition else { return definition };
    members.retain(|name, _| !matches!(name.as_str(), "@odata.etag" | "@odata.context"));
    match kind {
        CodeKind::Index => shorten_index(members, names),
        CodeKind::SynonymMap => {
            split_rules(members);
        }
        CodeKind::Indexer if members.get("disabled") == Some(&Value::Bool(false)) => {
            members.remove("disabled");
        }
        CodeKind::KnowledgeSource => remove_created_resources(members),
        _ => {}
    }
    if kind != CodeKind::Index {
        members.retain(|_, value| !is_empty(value));
    }
    if kind == CodeKind::Skillset {
        remove_empty_inputs(&mut definition);
    }
    rename_indexes(kind, &mut definition, &|name| names.logical(name).to_owned());
    definition
}

/// Returns the form for the service. `name` is the name that it has there, `physical` returns that of an
/// index.
pub(crate) fn to_service(
    kind: CodeKind,
    definition: &Value,
    name: &str,
    physical: &dyn Fn(&str) -> String,
) -> Value {
    let mut body = definition.clone();
    if let Value::Object(members) = &mut body {
        members.insert("name".to_owned(), name.into());
        if let (CodeKind::SynonymMap, Some(Value::Array(rules))) = (kind, members.get("synonyms")) {
            let rules: Vec<&str> = rules.iter().filter_map(Value::as_str).collect();
            let rules = rules.join("\n");
            members.insert("synonyms".to_owned(), rules.into());
            members.entry("format").or_insert("solr".into());
        }
    }
    rename_indexes(kind, &mut body, physical);
    body
}

/// Returns a form in which equal definitions are equal: without secrets, with defaults.
pub(crate) fn comparable(kind: CodeKind, definition: &Value) -> Value {
    let mut form = definition.clone();
    secrets::blank(&mut form);
    match (kind, &mut form) {
        (CodeKind::Index, form) => defaults::fill_in(form),
        (CodeKind::SynonymMap, Value::Object(members)) => {
            members.entry("format").or_insert("solr".into());
            split_rules(members);
        }
        (CodeKind::Indexer, Value::Object(members)) => {
            // Services return null for a definition without it.
            let disabled = members.entry("disabled").or_insert(Value::Null);
            if disabled.is_null() {
                *disabled = false.into();
            }
        }
        _ => {}
    }
    normalized(&form)
}

/// Makes the rules of a synonym map a list, without empty lines.
fn split_rules(members: &mut Map<String, Value>) {
    let rules = match members.get("synonyms") {
        Some(Value::String(rules)) => rules.clone(),
        Some(Value::Array(rules)) => rules.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => return,
    };
    let rules: Vec<Value> =
        rules.lines().map(str::trim).filter(|rule| !rule.is_empty()).map(Value::from).collect();
    members.insert("synonyms".to_owned(), rules.into());
}

/// Calls `rename` for every reference to an index.
pub(crate) fn rename_indexes(kind: CodeKind, definition: &mut Value, rename: &dyn Fn(&str) -> String) {
    match kind {
        CodeKind::Alias => {
            let indexes = definition.get_mut("indexes").and_then(Value::as_array_mut);
            for index in indexes.into_iter().flatten() {
                if let Value::String(name) = index {
                    *name = rename(name);
                }
            }
        }
        CodeKind::Skillset | CodeKind::Indexer | CodeKind::KnowledgeSource | CodeKind::KnowledgeBase => {
            rename_members(definition, rename);
        }
        CodeKind::SynonymMap | CodeKind::DataSource | CodeKind::Index => {}
    }
}

fn rename_members(value: &mut Value, rename: &dyn Fn(&str) -> String) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                match value {
                    Value::String(name) if REFERENCES.contains(&member.as_str()) => *name = rename(name),
                    other => rename_members(other, rename),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_members(item, rename)),
        _ => {}
    }
}

/// Returns the indexes that a definition refers to.
pub(crate) fn referenced_indexes(kind: CodeKind, definition: &Value) -> Vec<String> {
    let names = std::cell::RefCell::new(Vec::new());
    rename_indexes(kind, &mut definition.clone(), &|name| {
        names.borrow_mut().push(name.to_owned());
        name.to_owned()
    });
    names.into_inner()
}

/// Removes what the service adds to the definition of an index, and its version.
fn shorten_index(members: &mut Map<String, Value>, names: &IndexNames) {
    if let Some(Value::String(name)) = members.get_mut("name") {
        *name = names.logical(name).to_owned();
    }
    let is_default = |similarity: &Value| {
        let members = similarity.as_object();
        members.is_some_and(|members| members.len() == 1 && members.get("@odata.type") == Some(&BM25.into()))
    };
    if members.get("similarity").is_some_and(is_default) {
        members.remove("similarity");
    }
    for (name, value) in members.iter_mut() {
        match name.as_str() {
            "fields" => shorten_fields(value),
            part if ANALYSIS.contains(&part) => {}
            _ => remove_empty(value),
        }
    }
    members.retain(|_, value| !is_empty(value));
}

/// Removes attributes of fields that have their default in every service.
fn shorten_fields(fields: &mut Value) {
    for field in fields.as_array_mut().into_iter().flatten() {
        let Value::Object(members) = field else { continue };
        let is_vector = members.contains_key("dimensions");
        members.retain(|name, value| match (name.as_str(), &*value) {
            ("key", Value::Bool(false)) | ("stored", Value::Bool(true)) => false,
            ("retrievable", Value::Bool(is_retrievable)) => *is_retrievable == is_vector,
            (_, value) => !is_empty(value),
        });
        if let Some(fields) = members.get_mut("fields") {
            shorten_fields(fields);
        }
    }
}

/// Removes the definitions that a service has created for a knowledge source.
fn remove_created_resources(members: &mut Map<String, Value>) {
    for parameters in members.values_mut().filter_map(Value::as_object_mut) {
        parameters.remove("createdResources");
    }
}

/// Removes empty lists of inputs, which services add to the inputs of skills.
fn remove_empty_inputs(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| name != "inputs" || !is_empty(value));
            members.values_mut().for_each(remove_empty_inputs);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty_inputs),
        _ => {}
    }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// Removes members without content, also those that are left without any.
fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(remove_empty);
            members.retain(|_, value| !is_empty(value));
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn names() -> IndexNames {
        IndexNames::new(
            &["hotels-v3".to_owned()],
            BTreeMap::from([("hotels".to_owned(), "hotels-v3".to_owned())]),
        )
    }

    #[test]
    fn an_index_loses_what_the_service_added() {
        let live = json!({"@odata.context": "https://x", "@odata.etag": "\"1\"", "name": "hotels-v3",
            "defaultScoringProfile": null, "fields": [
                {"name": "id", "type": "Edm.String", "searchable": false, "retrievable": true, "key": true,
                    "analyzer": null, "synonymMaps": []},
                {"name": "v", "type": "Collection(Edm.Single)", "searchable": true, "retrievable": true, "key": false,
                    "dimensions": 3, "synonymMaps": []}],
            "scoringProfiles": [], "suggesters": [], "charFilters": [],
            "tokenFilters": [{"@odata.type": "#Microsoft.Azure.Search.StopwordsTokenFilter", "name": "none",
                "stopwords": []}],
            "similarity": {"@odata.type": BM25, "k1": null, "b": null}});
        let expected = json!({"name": "hotels", "fields": [
                {"name": "id", "type": "Edm.String", "searchable": false, "key": true},
                {"name": "v", "type": "Collection(Edm.Single)", "searchable": true, "retrievable": true,
                    "dimensions": 3}],
            "tokenFilters": [{"@odata.type": "#Microsoft.Azure.Search.StopwordsTokenFilter", "name": "none",
                "stopwords": []}]});
        assert_eq!(to_folder(CodeKind::Index, &live, &names(), None), expected);
    }

    #[test]
    fn rules_are_a_list_and_references_are_logical() {
        let live =
            json!({"name": "words", "format": "solr", "synonyms": "a, b\n\nc => d\n", "encryptionKey": null});
        let map = to_folder(CodeKind::SynonymMap, &live, &names(), None);
        assert_eq!(map["synonyms"], json!(["a, b", "c => d"]));
        let back = to_service(CodeKind::SynonymMap, &map, "words", &|name| name.to_owned());
        assert_eq!(back["synonyms"], "a, b\nc => d");

        let indexer = json!({"name": "i", "dataSourceName": "d", "targetIndexName": "hotels-v3", "disabled": false,
            "fieldMappings": [], "schedule": null});
        let short = to_folder(CodeKind::Indexer, &indexer, &names(), None);
        assert_eq!(short, json!({"name": "i", "dataSourceName": "d", "targetIndexName": "hotels"}));
        let back = to_service(CodeKind::Indexer, &short, "i", &|name| format!("{name}-v4"));
        assert_eq!(back["targetIndexName"], "hotels-v4");
        assert_eq!(referenced_indexes(CodeKind::Indexer, &short), ["hotels"]);
    }
}
