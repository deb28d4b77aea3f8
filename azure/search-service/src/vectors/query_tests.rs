//! Valid and invalid vector queries, as clients send them.

use bindpost_azure_search_model::definition::{FieldType, IndexField};
use serde_json::json;

use super::*;

fn search() -> VectorSearch {
    VectorSearch::parse(&json!({
        "algorithms": [
            {"name": "h", "kind": "hnsw"},
            {"name": "l", "kind": "hnsw", "hnswParameters": {"metric": "euclidean"}},
            {"name": "b", "kind": "exhaustiveKnn", "exhaustiveKnnParameters": {"metric": "hamming"}},
        ],
        "compressions": [{"name": "c", "kind": "binaryQuantization"}],
        "profiles": [
            {"name": "p", "algorithm": "h"},
            {"name": "small", "algorithm": "h", "compression": "c"},
            {"name": "far", "algorithm": "l"},
            {"name": "bits", "algorithm": "b"},
        ]
    }))
    .unwrap()
}

fn schema() -> IndexSchema {
    let mut key = IndexField::new("id", FieldType::One(PrimitiveType::String));
    key.key = true;
    let vector = |name: &str, element, dimensions, profile: &str| {
        let mut field = IndexField::new(name, FieldType::Many(element));
        let packed_bits = element == PrimitiveType::Byte;
        field.vector = Some(VectorAttributes { dimensions, profile: profile.to_owned(), packed_bits });
        field
    };
    IndexSchema::new(vec![
        key,
        vector("v", PrimitiveType::Single, 3, "p"),
        vector("w", PrimitiveType::Half, 3, "small"),
        vector("x", PrimitiveType::Single, 3, "far"),
        vector("bits", PrimitiveType::Byte, 16, "bits"),
    ])
    .unwrap()
}

fn parse(value: Value) -> Result<Vec<VectorQuery>, ApiError> {
    VectorQuery::parse_all(&value, &schema(), &search())
}

#[test]
fn a_plain_query_has_the_defaults() {
    let queries = parse(json!([{"kind": "vector", "k": 3, "fields": "v", "vector": [1.0, 2, 3.5]}])).unwrap();
    let wanted = VectorQuery {
        vector: vec![1.0, 2.0, 3.5],
        fields: vec!["v".to_owned()],
        k: 3,
        exhaustive: false,
        oversampling: None,
        weight: 1.0,
        threshold: None,
        filter_override: None,
        per_document_vector_limit: 0,
    };
    assert_eq!(queries, [wanted]);
    assert_eq!(parse(Value::Null).unwrap(), []);
}

#[test]
fn a_full_query_is_parsed() {
    let queries = parse(json!([{
        "kind": "vector", "vector": [1, 2, 3], "fields": "w, w", "exhaustive": true, "oversampling": 4, "weight": 0.5,
        "threshold": {"kind": "searchScore", "value": 0.8}, "filterOverride": "id eq 'a'", "perDocumentVectorLimit": 1,
        "text": null, "url": null
    }]))
    .unwrap();
    let query = &queries[0];
    assert_eq!((query.k, query.exhaustive, query.weight), (50, true, 0.5));
    assert_eq!(query.fields, ["w"]);
    assert_eq!(query.threshold, Some(VectorThreshold::SearchScore(0.8)));
    assert_eq!((query.oversampling, query.per_document_vector_limit), (Some(4.0), 1));
    assert_eq!(query.filter_override.as_deref(), Some("id eq 'a'"));
    let bits = parse(json!([{"kind": "vector", "vector": [255, 1], "fields": "bits"}])).unwrap();
    assert_eq!(bits[0].vector, [255.0, 1.0]);
}

#[test]
fn errors_name_the_member() {
    let with = |name: &str, value: Value| {
        let mut query = json!({"kind": "vector", "vector": [1, 2, 3], "fields": "v"});
        query[name] = value;
        json!([query])
    };
    for (queries, message) in [
        (json!({}), "'vectorQueries' must be an array"),
        (json!([7]), "'vectorQueries[0]' must be an object"),
        (with("kind", json!("sound")), "'vectorQueries[0].kind' must be vector, text"),
        (with("kind", Value::Null), "kind' is required"),
        (with("fields", json!("nope")), "'nope', which is not in the index"),
        (with("fields", json!("v,id")), "'id', which is not a vector field"),
        (with("fields", json!(" , ")), "names no field"),
        (with("fields", Value::Null), "fields' is required"),
        (
            with("vector", json!([1, 2])),
            "has 2 numbers, but the vector field 'v' has 3 dimensions, so 3 are required",
        ),
        (with("vector", json!("AAAA")), "vector' must be an array of numbers"),
        (with("vector", json!([1, 2, 1e99])), "item 2"),
        (with("vector", Value::Null), "vector' is required"),
        (with("k", json!(0)), "k' must be a whole number from 1 to 10000"),
        (with("weight", json!(0)), "must be greater than 0"),
        (with("weight", json!(1e-60)), "must be greater than 0"),
        (with("exhaustive", json!("yes")), "must be true or false"),
        (with("oversampling", json!(0.5)), "must be 1 or more"),
        (with("oversampling", json!(2)), "the profile of 'v' has no compression"),
        (with("threshold", json!({"kind": "vectorSimilarity"})), "threshold.value' is required"),
        (with("threshold", json!({"kind": "luck", "value": 1})), "not 'luck'"),
        (with("neighbours", json!(3)), "'vectorQueries[0].neighbours' is unknown"),
        (
            json!([{"kind": "vector", "vector": [1, 2, 3], "fields": "v,x",
                    "threshold": {"kind": "searchScore", "value": 1}}]),
            "fields with the same metric",
        ),
        (
            json!([{"kind": "vector", "vector": [1, 2, 3], "fields": "bits"}]),
            "has 3 numbers, but the vector field 'bits' has 16 dimensions in packed bytes, so 2 are required",
        ),
    ] {
        let error = parse(queries.clone()).unwrap_err();
        assert!(error.message.contains(message), "{queries}: {error}");
    }
    assert!(parse(Value::Array(vec![with("k", json!(1))[0].clone(); 101])).is_err());
}

#[test]
fn errors_of_model_queries_suggest_an_alternative() {
    for query in
        [json!({"kind": "text", "text": "wine", "fields": "v"}), json!({"kind": "imageUrl", "url": "x"})]
    {
        let error = parse(json!([query])).unwrap_err();
        assert_eq!(error.code, "NotSupportedByEmbeddedService");
        assert!(error.message.contains("send it with kind 'vector'"), "{error}");
    }
}

#[test]
fn thresholds_follow_the_direction_of_the_metric() {
    let similar = VectorThreshold::VectorSimilarity(0.8);
    assert!(similar.is_met(VectorMetric::Cosine, 0.1) && !similar.is_met(VectorMetric::Cosine, 0.3));
    assert!(
        similar.is_met(VectorMetric::DotProduct, -0.9) && !similar.is_met(VectorMetric::DotProduct, -0.7)
    );
    assert!(similar.is_met(VectorMetric::Euclidean, 0.7) && !similar.is_met(VectorMetric::Euclidean, 0.9));
    let score = VectorThreshold::SearchScore(0.5);
    assert!(score.is_met(VectorMetric::Euclidean, 1.0) && !score.is_met(VectorMetric::Euclidean, 1.1));
}

#[test]
fn filter_modes_are_parsed() {
    assert_eq!(VectorFilterMode::parse(&Value::Null).unwrap(), VectorFilterMode::PreFilter);
    assert_eq!(
        VectorFilterMode::parse(&json!("strictPostFilter")).unwrap(),
        VectorFilterMode::StrictPostFilter
    );
    assert!(
        VectorFilterMode::parse(&json!("PreFilter")).unwrap_err().message.contains("preFilter, postFilter")
    );
}
