//! Definitions as clients send them, and their mistakes.

use serde_json::json;

use super::*;

fn search() -> VectorSearch {
    VectorSearch::parse(&json!({
        "algorithms": [
            {"name": "h", "kind": "hnsw"},
            {"name": "tuned", "kind": "hnsw",
             "hnswParameters": {"m": 10, "efConstruction": 1000, "efSearch": 100, "metric": "euclidean"}},
            {"name": "all", "kind": "exhaustiveKnn", "exhaustiveKnnParameters": {"metric": "dotProduct"}},
            {"name": "bits", "kind": "exhaustiveKnn", "exhaustiveKnnParameters": {"metric": "hamming"}},
            {"name": "nulls", "kind": "hnsw", "hnswParameters": {"m": null, "metric": null}},
        ],
        "compressions": [{"name": "c", "kind": "scalarQuantization", "truncationDimension": 64}],
        "vectorizers": [{"name": "v", "kind": "azureOpenAI", "azureOpenAIParameters": {"modelName": "x"}}],
        "profiles": [
            {"name": "p", "algorithm": "h"},
            {"name": "t", "algorithm": "tuned", "compression": "c", "vectorizer": "v"},
            {"name": "a", "algorithm": "all", "compression": null},
            {"name": "b", "algorithm": "bits"},
        ]
    }))
    .unwrap()
}

fn field(kind: FieldType, members: Value) -> Result<Option<VectorField>, ApiError> {
    search().field("v", kind, members.as_object().unwrap())
}

const SINGLE: FieldType = FieldType::Many(Primitive::Single);
const BYTE: FieldType = FieldType::Many(Primitive::Byte);

#[test]
fn a_field_leads_to_its_settings() {
    let search = search();
    let settings = |kind, members: Value| {
        let field = search.field("v", kind, members.as_object().unwrap()).unwrap().unwrap();
        search.settings(&field).unwrap()
    };
    let plain = settings(SINGLE, json!({"dimensions": 3, "vectorSearchProfile": "p"}));
    let hnsw = Some(HnswParameters { m: 4, ef_construction: 400, ef_search: 500 });
    assert_eq!(plain, VectorSettings { metric: Metric::Cosine, length: 3, hnsw });
    let tuned = settings(SINGLE, json!({"dimensions": 4096, "vectorSearchProfile": "t"}));
    let hnsw = Some(HnswParameters { m: 10, ef_construction: 1000, ef_search: 100 });
    assert_eq!(tuned, VectorSettings { metric: Metric::Euclidean, length: 4096, hnsw });
    let all =
        settings(FieldType::Many(Primitive::SByte), json!({"dimensions": 2, "vectorSearchProfile": "a"}));
    assert_eq!(all, VectorSettings { metric: Metric::DotProduct, length: 2, hnsw: None });
    let members = json!({"dimensions": 64, "vectorSearchProfile": "b", "vectorEncoding": "packedBit"});
    assert_eq!(settings(BYTE, members), VectorSettings { metric: Metric::Hamming, length: 8, hnsw: None });
}

#[test]
fn no_vector_search_is_an_empty_one() {
    assert_eq!(VectorSearch::parse(&Value::Null).unwrap(), VectorSearch::default());
    assert_eq!(VectorSearch::parse(&json!({"profiles": null})).unwrap(), VectorSearch::default());
}

#[test]
fn mistakes_in_vector_search_are_named() {
    let algorithm = |parameters: Value| json!({"algorithms": [{"name": "h", "kind": "hnsw", "hnswParameters": parameters}]});
    for (definition, message) in [
        (json!([]), "'vectorSearch' must be an object"),
        (json!({"algorithms": {}}), "'vectorSearch.algorithms' must be an array"),
        (json!({"algorithmConfigurations": []}), "'vectorSearch.algorithmConfigurations' is not known"),
        (json!({"algorithms": [{"kind": "hnsw"}]}), "'vectorSearch.algorithms[0].name' is missing"),
        (
            json!({"algorithms": [{"name": "x", "kind": "ivf"}]}),
            "must be hnsw or exhaustiveKnn, but is 'ivf'",
        ),
        (algorithm(json!({"m": 3})), "hnswParameters.m' must be a whole number from 4 to 10, but is 3"),
        (algorithm(json!({"efConstruction": 1001})), "from 100 to 1000, but is 1001"),
        (algorithm(json!({"efSearch": 99.5})), "efSearch' must be a whole number"),
        (algorithm(json!({"metric": "manhattan"})), "but is 'manhattan'"),
        (algorithm(json!({"ef": 5})), "hnswParameters.ef' is not known"),
        (json!({"profiles": [{"name": "p", "algorithm": "h"}]}), "refers to the algorithm 'h', which"),
        (json!({"compressions": [{"name": "c", "kind": "zip"}]}), "but is 'zip'"),
        (
            json!({"algorithms": [{"name": "h", "kind": "hnsw"}],
                   "profiles": [{"name": "p", "algorithm": "h", "vectorizer": "w"}]}),
            "refers to the vectorizer 'w', which 'vectorSearch.vectorizers' does not define. There is none",
        ),
        (
            json!({"algorithms": [{"name": "h", "kind": "hnsw"}, {"name": "h", "kind": "hnsw"}]}),
            "two members named 'h'",
        ),
    ] {
        let error = VectorSearch::parse(&definition).unwrap_err();
        assert!(error.message.contains(message), "{definition}: {error}");
    }
}

#[test]
fn mistakes_in_fields_are_named() {
    let text = FieldType::One(Primitive::String);
    assert_eq!(field(text, json!({"dimensions": null})).unwrap(), None);
    for (kind, members, message) in [
        (text, json!({"dimensions": 3}), "'v' has 'dimensions', which only vector fields have"),
        (SINGLE, json!({"vectorSearchProfile": "p"}), "needs 'dimensions'"),
        (SINGLE, json!({"dimensions": 1, "vectorSearchProfile": "p"}), "from 2 to 4096"),
        (SINGLE, json!({"dimensions": 4097, "vectorSearchProfile": "p"}), "from 2 to 4096"),
        (SINGLE, json!({"dimensions": 3}), "needs 'vectorSearchProfile'"),
        (
            SINGLE,
            json!({"dimensions": 3, "vectorSearchProfile": "q"}),
            "profile 'q', which does not exist. There is 'p'",
        ),
        (
            SINGLE,
            json!({"dimensions": 3, "vectorSearchProfile": "b"}),
            "the algorithm 'bits'. The metric hamming",
        ),
        (
            SINGLE,
            json!({"dimensions": 8, "vectorSearchProfile": "b", "vectorEncoding": "packedBit"}),
            "or none of them",
        ),
        (BYTE, json!({"dimensions": 8, "vectorSearchProfile": "b"}), "or none of them"),
        (
            BYTE,
            json!({"dimensions": 9, "vectorSearchProfile": "b", "vectorEncoding": "packedBit"}),
            "multiple of 8",
        ),
        (
            BYTE,
            json!({"dimensions": 8, "vectorSearchProfile": "p", "vectorEncoding": "packedBit"}),
            "they need it",
        ),
        (
            BYTE,
            json!({"dimensions": 8, "vectorSearchProfile": "b", "vectorEncoding": 7}),
            "other than packedBit",
        ),
    ] {
        let error = field(kind, members.clone()).unwrap_err();
        assert!(error.message.contains(message), "{members}: {error}");
    }
}
