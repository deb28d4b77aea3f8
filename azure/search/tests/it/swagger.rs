//! The service's own Swagger files as the API description, if they are available.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bindpost_mcp_openapi::{Document, LoadOptions, SchemaPurpose};
use serde_json::{Value, json};

/// Returns its files. Prints a line and returns `None` if they are not available.
pub(crate) fn files(test: &str) -> Option<[PathBuf; 3]> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/specs/azure-search/2025-08-01-preview");
    if !folder.exists() {
        eprintln!("skipped: {test}: {} does not exist", folder.display());
        return None;
    }
    Some(["searchservice.json", "searchindex.json", "knowledgeagent.json"].map(|name| folder.join(name)))
}

/// Returns the names of definitions that a discriminator selects.
pub(crate) fn subtypes(files: &[PathBuf]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).expect("the file is readable");
        let raw: Value = serde_json::from_str(&text).expect("JSON");
        let definitions = raw["definitions"].as_object().expect("definitions");
        let told = definitions.iter().filter(|(_, schema)| schema.get("x-ms-discriminator-value").is_some());
        names.extend(told.map(|(name, _)| name.clone()));
    }
    names
}

pub(crate) fn compile(schema: &Value, what: &str) -> jsonschema::Validator {
    let built = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline().build(schema);
    built.unwrap_or_else(|error| panic!("{what}: {error} in {schema}"))
}

/// Compiles all schemas of a description.
fn compile_all(document: &Document) {
    for operation in &document.operations {
        let inputs = operation.parameters.iter().map(|parameter| &parameter.schema);
        for schema in inputs.chain(operation.body.iter().map(|body| &body.schema)) {
            compile(&document.whole_schema(schema, SchemaPurpose::Input), &operation.id);
            let short = document.short_schema(schema, SchemaPurpose::Input, "api");
            assert!(short.to_string().len() <= 1_500, "{}: {short}", operation.id);
            compile(&short, &operation.id);
        }
        for schema in operation.responses.iter().filter_map(|response| response.schema.as_ref()) {
            compile(&document.whole_schema(schema, SchemaPurpose::Output), &operation.id);
            let short = document.short_schema(schema, SchemaPurpose::Output, "api");
            assert!(short.to_string().len() <= 1_500, "{}: {short}", operation.id);
            compile(&short, &operation.id);
        }
    }
    for name in document.definitions.keys() {
        compile(&document.definition(name).expect("the definition exists"), name);
    }
}

fn named(document: &Document, name: &str, purpose: SchemaPurpose) -> Value {
    document.whole_schema(&json!({"$ref": format!("#/$defs/{name}")}), purpose)
}

/// Collects the discriminator values of the subtypes in the real description.
fn values(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => members.values().for_each(|part| values(part, found)),
        Value::Array(parts) => parts.iter().for_each(|part| values(part, found)),
        _ => {}
    }
    if let Some(Value::Object(definitions)) = schema.get("$defs") {
        found.extend(definitions.keys().map(|name| name.trim_end_matches(".itself").to_owned()));
    }
}

#[test]
fn a_real_document_keeps_every_subtype() {
    let Some(files) = files("a_real_document_keeps_every_subtype") else { return };
    let wanted = subtypes(&files);
    assert_eq!(wanted.len(), 113);
    let document = Document::load(&files, &LoadOptions::default()).expect("a good document");
    assert_eq!(document.operations.len(), 60);
    let missing = |warning: &&String| !warning.contains("common-types");
    assert_eq!(document.warnings.iter().find(missing), None);
    assert!(
        document.operations.iter().any(|operation| operation.path == "/indexes('{indexName}')/docs('{key}')")
    );

    let (mut inputs, mut outputs) = (BTreeSet::new(), BTreeSet::new());
    for operation in &document.operations {
        if let Some(body) = &operation.body {
            values(&document.whole_schema(&body.schema, SchemaPurpose::Input), &mut inputs);
        }
        for schema in operation.responses.iter().filter_map(|response| response.schema.as_ref()) {
            values(&document.whole_schema(schema, SchemaPurpose::Output), &mut outputs);
        }
    }
    let given = wanted.intersection(&inputs).count();
    let only_answered: Vec<&String> = wanted.difference(&inputs).collect();
    assert_eq!(given, 104, "{only_answered:?}");
    assert!(only_answered.iter().all(|name| outputs.contains(*name)), "{only_answered:?}");
    assert_eq!(only_answered.iter().filter(|name| name.ends_with("Reference")).count(), 3);
    assert_eq!(only_answered.iter().filter(|name| name.ends_with("ActivityRecord")).count(), 6);

    let index = named(&document, "SearchIndex", SchemaPurpose::Input);
    assert!(!index.to_string().contains("readOnly"));
    compile_all(&document);
    let validator = compile(&index, "SearchIndex");
    let field = json!({"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
        {"name": "bed", "type": "Edm.ComplexType", "fields": [{"name": "size", "type": "Edm.Int32"}]}]});
    let tokenizer = json!({"@odata.type": "#Microsoft.Azure.Search.KeywordTokenizerV2", "name": "k", "maxTokenLength": 8});
    assert!(validator.is_valid(&json!({"name": "hotels", "fields": [field], "tokenizers": [tokenizer]})));
    assert!(!validator.is_valid(&json!({"name": "hotels", "fields": [{"fields": [{"name": 1}]}]})));
    assert!(!validator.is_valid(
        &json!({"name": "hotels", "fields": [field], "tokenizers": [{"@odata.type": "#none", "name": "k"}]})
    ));
}
