//! `buildFilter` against the embedded service.

use serde_json::{Value, json};

use crate::stage::Stage;

async fn built(stage: &mut Stage, conditions: Value) -> Value {
    stage.call("buildFilter", json!({"indexName": "hotels", "conditions": conditions})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_become_filters_that_match_the_expected_documents() {
    let mut stage = Stage::start().await;
    stage.definition("buildFilter").await;
    for (conditions, filter, matches) in [
        (json!({"field": "rating", "op": "ge", "value": 4}), "rating ge 4", 2),
        (json!({"field": "price", "op": "lt", "value": 101}), "price lt 101", 1),
        (json!({"field": "category", "op": "eq", "value": "Luxury"}), "category eq 'Luxury'", 2),
        (json!({"field": "address/city", "op": "eq", "value": "O'Hara"}), "address/city eq 'O''Hara'", 3),
        (json!({"field": "open", "op": "eq", "value": false}), "open eq false", 2),
        (
            json!({"field": "category", "op": "in", "value": ["Luxury", "Suite"]}),
            "search.in(category, 'Luxury,Suite', ',')",
            3,
        ),
        (json!({"field": "category", "op": "in", "value": ["Luxury"]}), "category eq 'Luxury'", 2),
        (json!({"field": "rating", "op": "in", "value": [1, 2]}), "rating eq 1 or rating eq 2", 2),
        (json!({"field": "rating", "op": "between", "value": [2, 4]}), "rating ge 2 and rating le 4", 3),
        (json!({"field": "opened", "op": "ge", "value": "2040-01-01"}), "opened ge 2040-01-01T00:00:00Z", 2),
        (json!({"field": "never", "op": "missing"}), "never eq null", 5),
        (json!({"field": "never", "op": "exists"}), "never ne null", 0),
        (json!({"field": "tags", "op": "exists"}), "tags/any()", 4),
        (json!({"field": "tags", "op": "missing"}), "not tags/any()", 1),
        (json!({"field": "tags", "op": "contains", "value": "pool"}), "tags/any(x1: x1 eq 'pool')", 2),
        (
            json!({"field": "tags", "op": "contains", "value": ["pool", "wifi"]}),
            "tags/any(x1: search.in(x1, 'pool,wifi', ','))",
            4,
        ),
        (
            json!({"field": "tags", "op": "containsAll", "value": ["pool", "view"]}),
            "tags/any(x1: x1 eq 'pool') and tags/any(x2: x2 eq 'view')",
            1,
        ),
        (json!({"field": "tags", "op": "ne", "on": "all", "value": "wifi"}), "tags/all(x1: x1 ne 'wifi')", 3),
        (json!({"field": "rooms/rate", "op": "gt", "value": 50}), "rooms/any(x1: x1/rate gt 50)", 3),
        (
            json!({"field": "rooms", "on": "any", "where": {"all": [{"field": "kind", "op": "eq", "value": "double"},
            {"field": "rate", "op": "lt", "value": 30}]}}),
            "rooms/any(x1: x1/kind eq 'double' and x1/rate lt 30)",
            1,
        ),
        (
            json!({"field": "location", "op": "geoDistance", "point": [18.0, 52.0], "km": 10}),
            "geo.distance(location, geography'POINT(18 52)') le 10",
            1,
        ),
        (json!({"op": "matches", "value": "beach"}), "search.ismatch('beach')", 3),
        (
            json!({"op": "matches", "field": "title", "value": "beach hotel", "mode": "all"}),
            "search.ismatch('beach hotel', 'title', 'simple', 'all')",
            1,
        ),
        (
            json!({"field": "title", "op": "startsWith", "value": "mou"}),
            "search.ismatch('mou*', 'title', 'simple', 'all')",
            1,
        ),
        (
            json!({"any": [{"field": "rating", "op": "eq", "value": 1},
            {"all": [{"field": "rating", "op": "gt", "value": 2}, {"not": {"field": "open", "op": "eq", "value": false}}]}]}),
            "rating eq 1 or (rating gt 2 and not (open eq false))",
            4,
        ),
    ] {
        let answer = built(&mut stage, conditions.clone()).await;
        assert_eq!(answer["filter"], filter, "{conditions}: {answer:#}");
        assert_eq!(
            (&answer["valid"], &answer["matches"]),
            (&json!(true), &json!(matches)),
            "{conditions}: {answer:#}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_have_a_field_a_rule_a_fix_and_a_position() {
    let mut stage = Stage::start().await;
    for (condition, field, rule, fix) in [
        (json!({"field": "ratign", "op": "eq", "value": 1}), "ratign", "unknownField", "write rating"),
        (json!({"field": "city", "op": "eq", "value": "x"}), "city", "unknownField", "write address/city"),
        (json!({"field": "text", "op": "eq", "value": "x"}), "text", "notFilterable", "op: 'matches'"),
        (json!({"field": "vector", "op": "eq", "value": 1}), "vector", "notFilterable", "filterable field"),
        (json!({"field": "rating", "op": "eq", "value": "4"}), "rating", "wrongType", "whole number"),
        (
            json!({"field": "opened", "op": "gt", "value": "yesterday"}),
            "opened",
            "wrongType",
            "2024-01-31T12:00:00Z",
        ),
        (json!({"field": "open", "op": "gt", "value": true}), "open", "wrongType", "eq or ne"),
        (json!({"field": "tags", "op": "eq", "value": "pool"}), "tags", "collection", "contains"),
        (json!({"field": "category", "op": "contains", "value": "x"}), "category", "collection", "matches"),
        (json!({"field": "address", "op": "eq", "value": "x"}), "address", "collection", "address/city"),
        (json!({"field": "rating", "op": "equals", "value": 1}), "rating", "unknownOp", "ops are"),
        (json!({"field": "rating", "op": "startsWith", "value": "a"}), "rating", "notSearchable", "eq or in"),
        (
            json!({"field": "location", "op": "geoDistance", "point": [200, 0], "km": 1}),
            "location",
            "wrongType",
            "longitude",
        ),
        (
            json!({"field": "rooms", "where": {"field": "rat", "op": "eq", "value": 1}}),
            "rat",
            "unknownField",
            "write rate",
        ),
    ] {
        let conditions = json!({"all": [{"field": "rating", "op": "gt", "value": 1}, condition]});
        let answer = built(&mut stage, conditions).await;
        let problem = &answer["problems"][0];
        assert_eq!((&answer["valid"], &answer["filter"]), (&json!(false), &Value::Null), "{answer:#}");
        assert_eq!((&problem["field"], &problem["rule"]), (&json!(field), &json!(rule)), "{answer:#}");
        assert!(problem["fix"].as_str().unwrap().contains(fix), "{answer:#}");
        assert!(problem["at"].as_str().unwrap().starts_with("conditions.all[1]"), "{answer:#}");
    }
    // All problems are reported at once, including invalid forms.
    let answer =
        built(&mut stage, json!({"any": [{"field": "a", "op": "eq", "value": 1}, {"x": 1}, {}]})).await;
    let rules: Vec<&str> = answer["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, ["unknownField", "form", "form"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn filter_texts_are_checked_with_the_position_of_the_error() {
    let mut stage = Stage::start().await;
    let mut checked = async |filter: &str| {
        stage
            .call("buildFilter", json!({"indexName": "hotels", "filter": filter, "clientRequestId": "me"}))
            .await
    };
    for (filter, field, rule, at) in [
        ("rating gt 1 and text eq 'a'", json!("text"), "notFilterable", "character 17"),
        ("ratign gt 1", json!("ratign"), "unknownField", "character 1"),
        ("address/cty eq 'a'", json!("address/cty"), "unknownField", "character 9"),
        ("rating eq 'a'", json!("rating"), "wrongType", "character 11"),
        ("tags eq 'a'", json!("tags"), "collection", "character 1"),
        ("rating gt 1 and (open", Value::Null, "syntax", "character 17"),
        ("startswith(title, 'a')", Value::Null, "unknownFunction", "character 1"),
    ] {
        let answer = checked(filter).await;
        let problem = &answer["problems"][0];
        assert_eq!(answer["valid"], false, "{answer:#}");
        assert_eq!((&problem["rule"], &problem["at"]), (&json!(rule), &json!(at)), "{answer:#}");
        assert_eq!(problem.get("field").unwrap_or(&Value::Null), &field, "{answer:#}");
    }
    let answer = checked("rating gt 2 and open").await;
    assert_eq!((&answer["valid"], &answer["matches"]), (&json!(true), &json!(3)));
    assert_eq!(answer["clientRequestId"], "me");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_no_document_has_is_reported_with_similar_values() {
    let mut stage = Stage::start().await;
    let answer = built(&mut stage, json!({"field": "category", "op": "eq", "value": "Luxery"})).await;
    assert_eq!((&answer["valid"], &answer["matches"]), (&json!(true), &json!(0)), "{answer:#}");
    assert_eq!(answer["problems"][0]["rule"], "valueNotFound");
    assert_eq!(answer["problems"][0]["fix"], "did you mean 'Luxury'?");
    assert!(answer["examples"]["category"].as_array().unwrap().contains(&json!("Budget")));
    let arguments = json!({"indexName": "hotels", "filter": "tags/any(t: t eq 'poool')", "tryIt": false});
    let answer = stage.call("buildFilter", arguments).await;
    assert_eq!((answer.get("matches"), answer.get("examples")), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_index_and_empty_arguments_are_rejected() {
    let mut stage = Stage::start().await;
    let told =
        stage.client.call("buildFilter", json!({"indexName": "../servicestats", "filter": "a eq 1"})).await;
    assert!(told.unwrap_err().to_string().contains("resource_not_found"));
    let told = stage.client.call("buildFilter", json!({"indexName": "hotels"})).await.unwrap_err();
    assert!(told.to_string().contains("rating (Edm.Int32)"), "{told}");
}
