//! Runs the body of a request as search, suggest and autocomplete over a small index. It is rejected with a
//! reason, or the response is JSON and contains only documents of the index.

#![cfg_attr(fuzzing, no_main)]

use std::sync::{Arc, LazyLock};

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::IndexDefinition;
use bindpost_azure_search_service::internals::{
    Budget, IndexPlan, IndexSnapshot, SearchIndex, SearchRequest, SynonymMaps, answer, run as searching,
    typing,
};
use serde_json::{Value, json};

const DOCUMENTS: usize = 4;

/// The index and its snapshot. The snapshot keeps its files open, so the folder is deleted immediately.
static INDEX: LazyLock<(SearchIndex, Arc<IndexSnapshot>)> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("bindpost-fuzz-{}", std::process::id()));
    let plan = IndexPlan::new(IndexDefinition::parse(&definition()).expect("a good definition"))
        .expect("known analyzers");
    let index = SearchIndex::open(&folder, Arc::new(plan)).expect("a folder to write to");
    let outcomes = index.apply_batch(documents().to_string().as_bytes()).expect("a good batch");
    assert!(outcomes.iter().all(|outcome| outcome.error.is_none()));
    let snapshot = index.snapshot().expect("a commit");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    (index, snapshot)
});

static SYNONYMS: LazyLock<SynonymMaps> = LazyLock::new(SynonymMaps::default);

fn definition() -> Value {
    json!({
        "name": "hotels",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "name", "type": "Edm.String", "analyzer": "en.lucene", "facetable": false},
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
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["name", "tags"]}],
        "scoringProfiles": [{"name": "near", "text": {"weights": {"name": 2.0}}, "functions": [
            {"type": "distance", "fieldName": "place", "boost": 2.0, "interpolation": "linear",
                "distance": {"referencePointParameter": "here", "boostingDistance": 10}},
            {"type": "tag", "fieldName": "tags", "boost": 3.0, "tag": {"tagsParameter": "liked"}},
            {"type": "freshness", "fieldName": "made", "boost": 2.0, "freshness": {"boostingDuration": "P365D"}},
            {"type": "magnitude", "fieldName": "rating", "boost": 2.0,
                "magnitude": {"boostingRangeStart": 1, "boostingRangeEnd": 5}},
        ]}],
        "vectorSearch": {"profiles": [{"name": "p", "algorithm": "h"}], "algorithms": [{"name": "h", "kind": "hnsw"}]},
    })
}

fn documents() -> Value {
    let point =
        |longitude: f64, latitude: f64| json!({"type": "Point", "coordinates": [longitude, latitude]});
    json!({"value": [
        {"id": "1", "name": "Grand Hotel running wi-fi", "rating": -3, "visits": i64::MAX, "price": "NaN", "open": true,
            "made": "0001-01-01T00:00:00Z", "place": point(180.0, -90.0), "tags": ["a", ""], "vector": [1.0, 0.0],
            "rooms": [{"rate": -0.0, "tags": []}, {"rate": null, "tags": ["a", "b"]}]},
        {"id": "2", "name": "the motel", "rating": 5, "visits": i64::MIN, "price": "INF", "open": false,
            "made": "9999-12-31T23:59:59.999Z", "place": point(0.0, 0.0), "tags": ["pool", "view"], "vector": [0.0, 1.0]},
        {"id": "3", "name": "", "rating": 0, "price": 0.5, "tags": [], "vector": [-1.0, 1e-30], "rooms": []},
        {"id": "4"},
    ]})
}

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(data) else { return };
    if !body.is_object() {
        return;
    }
    let (_, snapshot) = &*INDEX;
    let budget = &Budget::unlimited();
    let suggested = typing::suggest(&body, snapshot, &SYNONYMS, budget);
    for typed in [suggested, typing::complete(&body, snapshot, &SYNONYMS, budget)] {
        if let Some(answer) = unless_refused(typed) {
            serde_json::from_slice::<Value>(&answer.bytes).expect("the answer is JSON");
        }
    }
    let Some(request) = unless_refused(SearchRequest::parse(body)) else { return };
    let Some(found) = unless_refused(searching::run(&request, snapshot, &SYNONYMS, budget)) else { return };
    assert!(found.documents.len() <= request.page_size().min(DOCUMENTS));
    assert!(found.count.is_none_or(|count| count as usize <= DOCUMENTS));
    let next = |_: &_| "http://localhost/next".to_owned();
    let Some(written) = unless_refused(answer::write(&request, &found, snapshot, None, &next, budget)) else {
        return;
    };
    let answer: Value = serde_json::from_slice(&written.body.bytes).expect("the answer is JSON");
    assert_eq!(answer["value"].as_array().map(Vec::len), Some(found.documents.len()));
}

fn unless_refused<T>(outcome: Result<T, ApiError>) -> Option<T> {
    outcome.inspect_err(|error| assert!(error.status == 400 && !error.message.is_empty(), "{error:?}")).ok()
}
