//! Compares the built-in document with the official one, if that is available.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::*;

/// The official description is kept beside the repository, because we may not distribute it.
const OFFICIAL: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/specs/azure-search/2025-08-01-preview");

fn built_in() -> Value {
    serde_saphyr::from_str(&text()).unwrap()
}

/// Reads a file of the official description. Prints a line and returns `None` if it is not available.
fn official(test: &str, name: &str) -> Option<Value> {
    let path = Path::new(OFFICIAL).join(name);
    let Ok(text) = std::fs::read(&path) else {
        eprintln!("skipped: {test}: {} does not exist", path.display());
        return None;
    };
    Some(serde_json::from_slice(&text).unwrap())
}

/// Returns location and name of each parameter of an operation, with references resolved.
fn parameters(document: &Value, operation: &Value) -> BTreeSet<(String, String)> {
    let resolved = |parameter: &Value| match parameter["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap().clone(),
        None => parameter.clone(),
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = operation["parameters"].as_array().unwrap().iter().map(resolved);
    all.map(|parameter| (text(&parameter["in"]), text(&parameter["name"]))).collect()
}

/// Returns every operation: id, method and path, and its definition.
fn operations(document: &Value) -> BTreeMap<String, (String, Value)> {
    let mut operations = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let place = format!("{} {path}", verb.to_uppercase());
            assert!(operations.insert(id.clone(), (place, operation.clone())).is_none(), "{id} occurs twice");
        }
    }
    operations
}

/// Collects all descriptions and summaries within a value.
fn words(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" || name == "summary" => {
                        out.push(text.clone())
                    }
                    _ => words(member, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, out)),
        _ => {}
    }
}

#[test]
fn has_every_operation_with_a_summary_and_a_description() {
    let operations = operations(&built_in());
    assert_eq!(operations.len(), 60);
    for (id, (_, operation)) in operations {
        for member in ["summary", "description"] {
            assert!(operation[member].as_str().is_some_and(|text| !text.is_empty()), "{id}: {member}");
        }
    }
}

#[test]
fn every_reference_resolves_and_every_subtype_is_mapped() {
    fn walk(document: &Value, value: &Value, subtypes: &mut usize) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
                }
                if let Some(mapping) = members.get("mapping").and_then(Value::as_object) {
                    *subtypes += mapping.len();
                    for reference in mapping.values().filter_map(Value::as_str) {
                        let subtype = document.pointer(reference.trim_start_matches('#'));
                        assert!(subtype.is_some_and(|subtype| subtype["allOf"].is_array()), "{reference}");
                    }
                }
                members.values().for_each(|member| walk(document, member, subtypes));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(document, item, subtypes)),
            _ => {}
        }
    }
    let (document, mut subtypes) = (built_in(), 0);
    walk(&document, &document, &mut subtypes);
    assert_eq!(subtypes, 113);
}

#[test]
fn marks_operations_that_read_and_operations_that_delete() {
    let operations = operations(&built_in());
    let with = |member: &str| -> Vec<&str> {
        let said = operations.iter().filter(|(_, (_, operation))| operation["x-mcp-hints"][member] == true);
        said.map(|(id, _)| id.as_str()).collect()
    };
    assert_eq!(
        with("readOnly"),
        [
            "Documents_AutocompletePost",
            "Documents_SearchPost",
            "Documents_SuggestPost",
            "Indexes_Analyze",
            "KnowledgeRetrieval_Retrieve"
        ]
    );
    assert_eq!(
        with("destructive"),
        [
            "Documents_Index",
            "Indexers_Reset",
            "Indexers_ResetDocs",
            "Indexers_Resync",
            "Indexes_CreateOrUpdate",
            "Skillsets_CreateOrUpdate",
            "Skillsets_ResetSkills",
            "SynonymMaps_CreateOrUpdate"
        ]
    );
}

#[test]
fn has_the_operations_and_parameters_of_the_official_one() {
    let Some(inventory) = official("operations beside the official ones", "inventory.json") else { return };
    let document = built_in();
    let ours = operations(&document);
    let theirs = inventory["operations"].as_array().unwrap();
    assert_eq!(ours.len(), theirs.len());
    for operation in theirs {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let id = text(&operation["operationId"]);
        let (place, our) = ours.get(&id).unwrap_or_else(|| panic!("{id} is missing"));
        let path = text(&operation["path"]);
        assert_eq!(*place, format!("{} {path}", text(&operation["method"])), "{id}");
        let params = operation["params"].as_array().unwrap().iter();
        let mut expected: BTreeSet<(String, String)> =
            params.map(|parameter| (text(&parameter["in"]), text(&parameter["name"]))).collect();
        // Variables of the official base URL are parameters here.
        for variable in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            expected.insert(("path".to_owned(), variable.to_owned()));
        }
        assert_eq!(parameters(&document, our), expected, "{id}");
        assert_eq!(our["requestBody"].is_object(), operation["body"].is_string(), "{id}: body");
    }
}

#[test]
fn has_the_definitions_of_the_official_one_and_their_properties() {
    let document = built_in();
    let ours = &document["components"]["schemas"];
    for name in ["searchservice.json", "searchindex.json", "knowledgeagent.json"] {
        let Some(theirs) = official("definitions beside the official ones", name) else { return };
        for (name, definition) in theirs["definitions"].as_object().unwrap() {
            assert!(ours[name].is_object(), "{name} is missing");
            let Some(properties) = definition["properties"].as_object() else { continue };
            for property in properties.keys() {
                assert!(ours[name]["properties"][property].is_object(), "{name}.{property} is missing");
            }
        }
    }
}

#[test]
fn is_written_in_our_own_words() {
    let mut theirs = Vec::new();
    for name in ["searchservice.json", "searchindex.json", "knowledgeagent.json"] {
        let Some(file) = official("words beside the official ones", name) else { return };
        words(&file, &mut theirs);
    }
    let plain = |text: &str| text.trim().trim_end_matches('.').to_lowercase();
    let theirs: BTreeSet<String> = theirs.iter().map(|text| plain(text)).collect();
    let mut ours = Vec::new();
    words(&built_in(), &mut ours);
    for text in ours {
        // Texts of three words or fewer are often the same.
        let short = text.split_whitespace().count() <= 3;
        assert!(short || !theirs.contains(&plain(&text)), "{text:?} is the official text");
    }
}

#[test]
fn the_document_loads_without_warnings() {
    let document = document().unwrap();
    assert_eq!(document.warnings, [""; 0]);
    assert_eq!(document.operations.len(), 60);
    assert_eq!(document.version, API_VERSION);
    for (id, reads, destroys) in [
        ("Documents_SearchPost", true, false),
        ("Documents_Index", false, true),
        ("Indexes_CreateOrUpdate", false, true),
        ("Indexes_Delete", false, true),
        ("Aliases_CreateOrUpdate", false, false),
        ("Indexes_Create", false, false),
        ("Indexers_Reset", false, true),
        ("Indexes_List", true, false),
    ] {
        let hints = document.operation(id).unwrap().hints;
        assert_eq!((hints.read_only, hints.destructive), (reads, destroys), "{id}");
    }
    assert!(document.definitions.len() >= 350, "{}", document.definitions.len());
}
