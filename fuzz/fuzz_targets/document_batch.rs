//! Parses the body of a batch of documents. Accepted documents are canonical: parsing them
//! again changes nothing.

#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use bindpost_azure_search_model::definition::IndexDefinition;
use bindpost_azure_search_service::internals::{
    DocumentAction, DocumentShape, merge, parse_batch, read_document,
};
use serde_json::{Value, json};

static SHAPE: LazyLock<DocumentShape> = LazyLock::new(|| {
    let definition = json!({
        "name": "hotels",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "name", "type": "Edm.String"},
            {"name": "rating", "type": "Edm.Int32"},
            {"name": "visits", "type": "Edm.Int64"},
            {"name": "price", "type": "Edm.Double"},
            {"name": "open", "type": "Edm.Boolean"},
            {"name": "made", "type": "Edm.DateTimeOffset"},
            {"name": "place", "type": "Edm.GeographyPoint"},
            {"name": "tags", "type": "Collection(Edm.String)"},
            {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": 2, "vectorSearchProfile": "p"},
            {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
                {"name": "rate", "type": "Edm.Double"},
                {"name": "tags", "type": "Collection(Edm.String)"},
            ]},
        ],
        "vectorSearch": {"profiles": [{"name": "p", "algorithm": "h"}], "algorithms": [{"name": "h", "kind": "hnsw"}]},
    });
    DocumentShape::new(&IndexDefinition::parse(&definition).expect("a good definition").schema)
});

bindpost_fuzz::target!(run);

fn run(body: &[u8]) {
    let items = match parse_batch(body, &SHAPE) {
        Ok(items) => items,
        Err(error) => {
            assert!(error.status == 400 && !error.message.is_empty(), "{error:?}");
            return;
        }
    };
    let mut before: Option<Vec<u8>> = None;
    for item in items {
        match item.action {
            Ok(DocumentAction::Upload(document)) => {
                let value: Value = serde_json::from_slice(&document.json).expect("canonical JSON is JSON");
                assert_eq!(value["id"], item.key.as_str());
                let again = read_document(&document.json, &SHAPE).expect("what was written can be read");
                assert_eq!(String::from_utf8_lossy(&again.json), String::from_utf8_lossy(&document.json));
                // NaN is not equal to itself, but its text is.
                assert_eq!(format!("{:?}", again.values), format!("{:?}", document.values));
                before = Some(document.json);
            }
            Ok(DocumentAction::Merge(patch) | DocumentAction::MergeOrUpload(patch)) => {
                // For any existing document, the result is canonical, or there is an error.
                if let Some(stored) = &before
                    && let Ok(merged) = merge(stored, &patch, &SHAPE)
                {
                    let again = read_document(&merged.json, &SHAPE).expect("what was written can be read");
                    assert_eq!(String::from_utf8_lossy(&again.json), String::from_utf8_lossy(&merged.json));
                }
            }
            Ok(DocumentAction::Delete) => assert!(!item.key.is_empty()),
            Err(reason) => assert!(!reason.is_empty()),
        }
    }
}
