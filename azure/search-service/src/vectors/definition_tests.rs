//! Valid and invalid definitions, as clients send them.

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
        "compressions": [
            {"name": "c", "kind": "scalarQuantization", "truncationDimension": 64, "defaultOversampling": 4,
             "rerankWithOriginalVectors": true, "scalarQuantizationParameters": {"quantizedDataType": "int8"}},
            {"name": "bin", "kind": "binaryQuantization", "scalarQuantizationParameters": null, "rescoringOptions":
                {"enableRescoring": true, "defaultOversampling": 10.0, "rescoreStorageMethod": "discardOriginals"}},
        ],
        "vectorizers": [
            {"name": "v", "kind": "azureOpenAI", "azureOpenAIParameters": {"modelName": "x"}, "amlParameters": null},
            {"name": "w", "kind": "customWebApi", "customWebApiParameters":
                {"uri": "https://example.com", "httpMethod": "POST", "httpHeaders": {"a": "b"}, "timeout": "PT1M"}},
            {"name": "x", "kind": "aml", "amlParameters": {"uri": "https://example.com", "timeout": "PT30S"}},
            {"name": "y", "kind": "aiServicesVision",
             "aiServicesVisionParameters": {"resourceUri": "https://example.com", "modelVersion": "2023-04-15"}},
        ],
        "profiles": [
            {"name": "p", "algorithm": "h"},
            {"name": "t", "algorithm": "tuned", "compression": "c", "vectorizer": "v"},
            {"name": "a", "algorithm": "all", "compression": null},
            {"name": "b", "algorithm": "bits"},
        ]
    }))
    .unwrap()
}

fn field(dimensions: usize, profile: &str, packed_bits: bool) -> VectorAttributes {
    VectorAttributes { dimensions, profile: profile.to_owned(), packed_bits }
}

#[test]
fn a_field_has_the_settings_of_its_profile() {
    let search = search();
    let settings = |field: VectorAttributes| {
        search.check("v", &field).unwrap();
        search.settings(&field).unwrap()
    };
    let hnsw = Some(HnswParameters { m: 4, ef_construction: 400, ef_search: 500 });
    let plain = VectorSettings { metric: VectorMetric::Cosine, length: 3, hnsw };
    assert_eq!(settings(field(3, "p", false)), plain);
    let hnsw = Some(HnswParameters { m: 10, ef_construction: 1000, ef_search: 100 });
    let tuned = VectorSettings { metric: VectorMetric::Euclidean, length: 4096, hnsw };
    assert_eq!(settings(field(4096, "t", false)), tuned);
    let all = VectorSettings { metric: VectorMetric::DotProduct, length: 2, hnsw: None };
    assert_eq!(settings(field(2, "a", false)), all);
    let bits = VectorSettings { metric: VectorMetric::Hamming, length: 8, hnsw: None };
    assert_eq!(settings(field(64, "b", true)), bits);
}

#[test]
fn no_vector_search_is_an_empty_one() {
    assert_eq!(VectorSearch::parse(&Value::Null).unwrap(), VectorSearch::default());
    assert_eq!(VectorSearch::parse(&json!({"profiles": null})).unwrap(), VectorSearch::default());
}

#[test]
fn errors_in_vector_search_name_the_member() {
    let algorithm = |parameters: Value| json!({"algorithms": [{"name": "h", "kind": "hnsw", "hnswParameters": parameters}]});
    let named = |list: &str, over: Value| {
        let mut member = json!({"name": "c"});
        member.as_object_mut().unwrap().extend(over.as_object().unwrap().clone());
        json!({ list: [member] })
    };
    let compression = |over| named("compressions", over);
    let vectorizer = |over| named("vectorizers", over);
    for (definition, message) in [
        (json!([]), "'vectorSearch' must be an object"),
        (json!({"algorithms": {}}), "'vectorSearch.algorithms' must be an array"),
        (json!({"algorithmConfigurations": []}), "'vectorSearch.algorithmConfigurations' is unknown"),
        (json!({"algorithms": [{"kind": "hnsw"}]}), "'vectorSearch.algorithms[0].name' is required"),
        (json!({"algorithms": [{"name": "x", "kind": "ivf"}]}), "must be hnsw or exhaustiveKnn, not 'ivf'"),
        (algorithm(json!({"m": 3})), "hnswParameters.m' must be a whole number from 4 to 10, not 3"),
        (algorithm(json!({"efConstruction": 1001})), "from 100 to 1000, not 1001"),
        (algorithm(json!({"efSearch": 99.5})), "efSearch' must be a whole number"),
        (algorithm(json!({"metric": "manhattan"})), "not 'manhattan'"),
        (algorithm(json!({"ef": 5})), "hnswParameters.ef' is unknown"),
        (json!({"profiles": [{"name": "p", "algorithm": "h"}]}), "refers to the algorithm 'h', which"),
        (json!({"compressions": [{"name": "c", "kind": "zip"}]}), "not 'zip'"),
        (
            compression(json!({"kind": "scalarQuantization", "oversampling": 2})),
            "compressions[0].oversampling' is unknown",
        ),
        (
            compression(json!({"kind": "scalarQuantization", "defaultOversampling": 0.5})),
            "compressions[0].defaultOversampling' must be 1 or more, not 0.5",
        ),
        (
            compression(json!({"kind": "scalarQuantization", "truncationDimension": "64"})),
            "compressions[0].truncationDimension' must be a whole number",
        ),
        (
            compression(
                json!({"kind": "scalarQuantization", "scalarQuantizationParameters": {"quantizedDataType": "int4"}}),
            ),
            "scalarQuantizationParameters.quantizedDataType' must be int8, not 'int4'",
        ),
        (
            compression(json!({"kind": "binaryQuantization", "scalarQuantizationParameters": {}})),
            "is only for the kind scalarQuantization",
        ),
        (
            compression(
                json!({"kind": "binaryQuantization", "rescoringOptions": {"rescoreStorageMethod": "keep"}}),
            ),
            "compressions[0].rescoringOptions.rescoreStorageMethod' must be one of preserveOriginals",
        ),
        (
            vectorizer(json!({"kind": "local"})),
            "vectorizers[0].kind' must be one of azureOpenAI, customWebApi",
        ),
        (
            vectorizer(json!({"kind": "azureOpenAI", "azureOpenAIParameters": {"deployment": "d"}})),
            "azureOpenAIParameters.deployment' is unknown",
        ),
        (
            vectorizer(json!({"kind": "azureOpenAI", "customWebApiParameters": {}})),
            "vectorizers[0].customWebApiParameters' is unknown",
        ),
        (
            vectorizer(json!({"kind": "customWebApi", "customWebApiParameters": {"timeout": "30"}})),
            "customWebApiParameters.timeout' must be a duration such as 'PT30S', not '30'",
        ),
        (
            vectorizer(json!({"kind": "customWebApi", "customWebApiParameters": {"uri": 3}})),
            "customWebApiParameters.uri' must be a string",
        ),
        (
            json!({"algorithms": [{"name": "h", "kind": "hnsw"}],
                   "profiles": [{"name": "p", "algorithm": "h", "vectorizer": "w"}]}),
            "refers to the vectorizer 'w', which 'vectorSearch.vectorizers' does not define. The index defines none",
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
fn a_profile_must_exist_and_its_metric_must_fit_the_field() {
    for (field, message) in [
        (field(3, "q", false), "profile 'q', which does not exist. The index defines 'p'"),
        (field(64, "p", true), "The metric hamming requires packed bits"),
        (field(64, "b", false), "uses the algorithm 'bits'"),
    ] {
        let error = search().check("v", &field).unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
}
