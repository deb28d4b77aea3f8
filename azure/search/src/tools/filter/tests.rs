//! Property tests: a filter built from arbitrary values matches exactly these values.

use bindpost_azure_search_model::odata::{matches, parse_filter};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::form;
use crate::tools::reading::IndexDescription;

fn index() -> IndexDescription {
    IndexDescription::read(json!({"name": "hotels", "fields": [
        {"name": "id", "type": "Edm.String", "key": true},
        {"name": "category", "type": "Edm.String"},
        {"name": "visits", "type": "Edm.Int64"},
        {"name": "price", "type": "Edm.Double"},
        {"name": "tags", "type": "Collection(Edm.String)"},
        {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [
            {"name": "kind", "type": "Edm.String"}, {"name": "tags", "type": "Collection(Edm.String)"}]}
    ]}))
    .unwrap()
}

fn holds(conditions: &Value, document: &Value) -> bool {
    let index = index();
    let built = form::build(conditions, &index);
    assert!(built.problems.is_empty(), "{:?}", built.problems);
    let filter = parse_filter(&built.filter, &index.schema)
        .unwrap_or_else(|error| panic!("{}: {error}", built.filter));
    matches(&filter, document, &mut |_| panic!("unexpected search"))
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-c',|;~ \u{1f}ü]{0,6}", 1..6)
}

proptest! {
    #[test]
    fn quoted_and_listed_strings_match_themselves(values in texts(), other in "[a-c',|;~ ü]{0,6}") {
        let among = values.contains(&other);
        let document = json!({"category": other, "tags": [other], "rooms": [{"kind": other, "tags": ["x", other]}]});
        let one = values.first().cloned().unwrap_or_default();
        prop_assert_eq!(holds(&json!({"field": "category", "op": "eq", "value": one}), &document), one == other);
        prop_assert_eq!(holds(&json!({"field": "category", "op": "in", "value": values}), &document), among);
        prop_assert_eq!(holds(&json!({"field": "tags", "op": "contains", "value": values}), &document), among);
        prop_assert_eq!(holds(&json!({"field": "rooms/kind", "op": "in", "value": values}), &document), among);
        prop_assert_eq!(holds(&json!({"field": "rooms/tags", "op": "contains", "value": values}), &document), among);
        let inner = json!({"field": "rooms", "on": "any", "where": {"field": "tags", "op": "contains", "value": values}});
        prop_assert_eq!(holds(&inner, &document), among);
        let not = json!({"all": [{"not": {"field": "category", "op": "in", "value": values}},
            {"any": [{"field": "category", "op": "exists"}, {"field": "category", "op": "missing"}]}]});
        prop_assert_eq!(holds(&not, &document), !among);
    }

    #[test]
    fn numbers_keep_their_value(whole: i64, double in -1e300..1e300_f64) {
        let document = json!({"visits": whole, "price": double});
        for conditions in [
            json!({"field": "visits", "op": "eq", "value": whole}),
            json!({"field": "visits", "op": "between", "value": [whole, whole]}),
            json!({"field": "price", "op": "eq", "value": double}),
        ] {
            prop_assert!(holds(&conditions, &document), "{conditions}");
        }
    }
}
