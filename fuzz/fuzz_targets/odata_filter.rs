//! Parses text as `$filter` and `$orderby`. It is rejected with a reason, or an accepted filter matches a
//! document exactly if its negation does not.

#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use bindpost_azure_search_model::definition::{IndexDefinition, IndexSchema};
use bindpost_azure_search_model::odata::ast::OdataFilter;
use bindpost_azure_search_model::odata::{matches, parse_filter, parse_orderby};
use serde_json::{Value, json};

static SCHEMA: LazyLock<IndexSchema> = LazyLock::new(|| {
    let definition = json!({"name": "hotels", "fields": [
        {"name": "id", "type": "Edm.String", "key": true},
        {"name": "name", "type": "Edm.String", "normalizer": "lowercase"},
        {"name": "rating", "type": "Edm.Int32"},
        {"name": "visits", "type": "Edm.Int64"},
        {"name": "price", "type": "Edm.Double"},
        {"name": "open", "type": "Edm.Boolean"},
        {"name": "made", "type": "Edm.DateTimeOffset"},
        {"name": "place", "type": "Edm.GeographyPoint"},
        {"name": "tags", "type": "Collection(Edm.String)"},
        {"name": "spots", "type": "Collection(Edm.GeographyPoint)"},
        {"name": "address", "type": "Edm.ComplexType", "fields": [{"name": "city", "type": "Edm.String"}]},
        {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
            {"name": "rate", "type": "Edm.Double"},
            {"name": "tags", "type": "Collection(Edm.String)"},
        ]},
    ]});
    IndexDefinition::parse(&definition).expect("a good definition").schema
});

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "id": "1", "name": "Zoé's", "rating": -3, "visits": i64::MAX, "price": "NaN", "open": true,
        "made": "0001-01-01T00:00:00Z", "place": {"type": "Point", "coordinates": [180.0, -90.0]},
        "tags": ["a", ""], "spots": [], "address": null,
        "rooms": [{"rate": -0.0, "tags": []}, {"rate": null, "tags": ["a", "b"]}],
    })
});

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let text = bindpost_fuzz::text(data);
    match parse_orderby(text, &SCHEMA) {
        Ok(clauses) => assert!(clauses.len() <= 32),
        Err(error) => assert!(error.status == 400 && !error.message.is_empty(), "{error:?}"),
    }
    let filter = match parse_filter(text, &SCHEMA) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(error.status == 400 && !error.message.is_empty(), "{error:?}");
            return;
        }
    };
    let holds = |filter: &OdataFilter| matches(filter, &DOCUMENT, &mut |wanted| wanted.all);
    let held = holds(&filter);
    // The negation adds a level and may exceed the depth limit, so a rejection is not a finding.
    if let Ok(opposite) = parse_filter(&format!("not ({text})"), &SCHEMA) {
        assert_eq!(holds(&opposite), !held);
    }
    if let Ok(twice) = parse_filter(&format!("({text}) and ({text})"), &SCHEMA) {
        assert_eq!(holds(&twice), held);
    }
}
