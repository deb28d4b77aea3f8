//! Parses text as a `Document`. It is rejected with a fix, or the schemas of all operations are complete,
//! compile, and have short forms where required.

#![cfg_attr(fuzzing, no_main)]

use std::collections::HashSet;

use bindpost_mcp_openapi::{Document, DocumentError, SchemaPurpose};
use serde_json::Value;

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let text = bindpost_fuzz::text(data);
    let document = match Document::parse(text, "fuzz.yaml") {
        Ok(document) => document,
        Err(DocumentError::Invalid { place, problem, fix }) => {
            assert!(!place.is_empty() && !problem.is_empty() && !fix.is_empty());
            return;
        }
    };
    let mut ids = HashSet::new();
    for operation in &document.operations {
        assert!(ids.insert(&operation.id), "duplicate operation {}", operation.id);
        let mut arguments = HashSet::new();
        for parameter in &operation.parameters {
            assert!(arguments.insert(&parameter.argument), "duplicate argument {}", parameter.argument);
            check(&document, &parameter.schema);
        }
        for schema in operation.body.iter().map(|body| &body.schema) {
            check(&document, schema);
        }
        for schema in operation.responses.iter().filter_map(|response| response.schema.as_ref()) {
            check(&document, schema);
        }
    }
    for name in document.definitions.keys() {
        compile(&document.definition(name).expect("the definition exists"));
        document.subtypes(name);
    }
}

fn check(document: &Document, schema: &Value) {
    for purpose in [SchemaPurpose::Input, SchemaPurpose::Output] {
        compile(&document.whole_schema(schema, purpose));
        compile(&document.short_schema(schema, purpose, "fuzz"));
    }
}

fn compile(schema: &Value) {
    let built = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline().build(schema);
    assert!(built.is_ok(), "{}: {schema}", built.err().map(|error| error.to_string()).unwrap_or_default());
}
