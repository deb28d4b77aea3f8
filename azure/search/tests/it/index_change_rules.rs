//! The plans of `planIndexChange` match the behaviour of the embedded service.

use serde_json::{Value, json};

use crate::service::Service;
use crate::talk::{Era, Talk};

fn base() -> Value {
    json!({"name": "hotels",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "title", "type": "Edm.String", "filterable": false, "sortable": false, "facetable": false,
             "indexAnalyzer": "simple", "searchAnalyzer": "simple"},
            {"name": "city", "type": "Edm.String"},
            {"name": "rating", "type": "Edm.Double"},
            {"name": "address", "type": "Edm.ComplexType", "fields": [{"name": "zip", "type": "Edm.String"}]},
            {"name": "vector", "type": "Collection(Edm.Single)", "dimensions": 2, "vectorSearchProfile": "p",
             "retrievable": true}
        ],
        "suggesters": [{"name": "s", "searchMode": "analyzingInfixMatching", "sourceFields": ["city"]}],
        "analyzers": [{"@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "own",
            "tokenizer": "whitespace"}],
        "scoringProfiles": [{"name": "one", "text": {"weights": {"title": 2}}}],
        "vectorSearch": {"algorithms": [{"name": "a", "kind": "hnsw"}], "profiles": [{"name": "p", "algorithm": "a"}]}
    })
}

fn push(value: &mut Value, element: Value) {
    value.as_array_mut().unwrap().push(element);
}

type Edit = fn(&mut Value);

/// A change and the expected strategy without an alias.
const CHANGES: [(&str, &str, Edit); 31] = [
    ("the same", "nothing", |_| {}),
    ("explicit defaults", "nothing", |new| new["fields"][2]["filterable"] = json!(true)),
    ("nulls", "nothing", |new| new["fields"][2]["synonymMaps"] = json!(null)),
    ("new field", "updateInPlace", |new| push(&mut new["fields"], json!({"name": "x", "type": "Edm.Int32"}))),
    ("new subfield", "updateInPlace", |new| {
        push(&mut new["fields"][4]["fields"], json!({"name": "x", "type": "Edm.Int32"}));
    }),
    ("new complex field", "updateInPlace", |new| {
        push(
            &mut new["fields"],
            json!({"name": "c", "type": "Edm.ComplexType",
            "fields": [{"name": "x", "type": "Edm.Int32"}]}),
        );
    }),
    ("field removed", "rebuildNeedsAlias", |new| _ = new["fields"].as_array_mut().unwrap().remove(3)),
    ("complex field removed", "rebuildNeedsAlias", |new| _ = new["fields"].as_array_mut().unwrap().remove(4)),
    ("type", "rebuildNeedsAlias", |new| new["fields"][3]["type"] = json!("Edm.Int32")),
    ("searchable", "rebuildNeedsAlias", |new| {
        new["fields"][2]["searchable"] = json!(false);
        new["suggesters"] = json!([]);
    }),
    ("filterable", "rebuildNeedsAlias", |new| new["fields"][1]["filterable"] = json!(true)),
    ("sortable", "rebuildNeedsAlias", |new| new["fields"][3]["sortable"] = json!(false)),
    ("facetable below", "rebuildNeedsAlias", |new| new["fields"][4]["fields"][0]["facetable"] = json!(false)),
    ("index analyzer", "rebuildNeedsAlias", |new| new["fields"][1]["indexAnalyzer"] = json!("stop")),
    ("search analyzer", "updateInPlace", |new| new["fields"][1]["searchAnalyzer"] = json!("stop")),
    ("analyzer", "rebuildNeedsAlias", |new| new["fields"][2]["analyzer"] = json!("en.lucene")),
    ("normalizer", "rebuildNeedsAlias", |new| new["fields"][2]["normalizer"] = json!("lowercase")),
    ("retrievable", "updateInPlace", |new| new["fields"][2]["retrievable"] = json!(false)),
    ("dimensions", "rebuildNeedsAlias", |new| new["fields"][5]["dimensions"] = json!(3)),
    ("new analyzer", "updateWithDowntime", |new| {
        push(
            &mut new["analyzers"],
            json!({"@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer", "name": "b",
            "tokenizer": "whitespace"}),
        );
    }),
    ("new token filter", "updateWithDowntime", |new| {
        new["tokenFilters"] =
            json!([{"@odata.type": "#Microsoft.Azure.Search.LengthTokenFilter", "name": "l"}]);
    }),
    ("analyzer changed", "rebuildNeedsAlias", |new| new["analyzers"][0]["tokenizer"] = json!("keyword_v2")),
    ("analyzer removed", "rebuildNeedsAlias", |new| new["analyzers"] = json!([])),
    ("similarity", "updateWithDowntime", |new| {
        new["similarity"] = json!({"@odata.type": "#Microsoft.Azure.Search.BM25Similarity", "k1": 1.3});
    }),
    ("suggester over an existing field", "rebuildNeedsAlias", |new| {
        new["suggesters"][0]["sourceFields"] = json!(["city", "address/zip"]);
    }),
    ("suggester over a new field", "updateInPlace", |new| {
        push(&mut new["fields"], json!({"name": "x", "type": "Edm.String"}));
        new["suggesters"][0]["sourceFields"] = json!(["city", "x"]);
    }),
    ("scoring profile", "updateInPlace", |new| push(&mut new["scoringProfiles"], json!({"name": "two"}))),
    ("default profile", "updateInPlace", |new| new["defaultScoringProfile"] = json!("one")),
    ("cors", "updateInPlace", |new| new["corsOptions"] = json!({"allowedOrigins": ["*"]})),
    ("efSearch and a new algorithm", "updateInPlace", |new| {
        new["vectorSearch"]["algorithms"] = json!([{"name": "a", "kind": "hnsw", "hnswParameters": {"efSearch": 600}},
            {"name": "b", "kind": "exhaustiveKnn"}]);
    }),
    ("description", "updateInPlace", |new| new["description"] = json!("Hotels.")),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_and_the_service_agree_change_by_change() {
    let service = Service::start().await;
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    for (name, strategy, edit) in CHANGES {
        service.done("POST", "indexes", base()).await;
        let mut wanted = base();
        edit(&mut wanted);
        let plan =
            talk.call("planIndexChange", json!({"indexName": "hotels", "body": wanted})).await.unwrap();
        assert_eq!(plan["strategy"], strategy, "{name}: {plan:#}");
        assert_eq!(plan["changes"].as_array().unwrap().is_empty(), strategy == "nothing", "{name}: {plan:#}");
        let (status, answer) = service.ask("PUT", "indexes('hotels')", wanted.clone()).await;
        let accepts = matches!(strategy, "nothing" | "updateInPlace");
        assert_eq!(status < 300, accepts, "{name}: {status} {answer}");
        if !accepts {
            let (status, answer) =
                service.ask("PUT", "indexes('hotels')?allowIndexDowntime=true", wanted.clone()).await;
            assert_eq!(status < 300, strategy == "updateWithDowntime", "{name}: {status} {answer}");
        }
        if strategy.starts_with("update") {
            let plan =
                talk.call("planIndexChange", json!({"indexName": "hotels", "body": wanted})).await.unwrap();
            assert_eq!(plan["strategy"], "nothing", "{name}: applied, so no change is left: {plan:#}");
        }
        service.done("DELETE", "indexes('hotels')", Value::Null).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_definitions_are_rejected() {
    let service = Service::start().await;
    service.done("POST", "indexes", base()).await;
    let mut talk = Talk::with(&service.server(), Era::Alone, Some(true)).await;
    let edits: [Edit; 3] = [
        |new| new["fields"][0]["key"] = json!(false),
        |new| new["fields"][2]["key"] = json!(true),
        |new| new["fields"] = json!([{"name": "id", "type": "Edm.Int32", "key": true}]),
    ];
    for edit in edits {
        let mut wanted = base();
        edit(&mut wanted);
        let plan =
            talk.call("planIndexChange", json!({"indexName": "hotels", "body": wanted})).await.unwrap();
        assert_eq!(plan["strategy"], "impossible", "{plan:#}");
        let refused =
            talk.call("planIndexChange", json!({"indexName": "hotels", "body": wanted, "apply": true})).await;
        assert_eq!(refused.unwrap_err()["error"], "invalid_request");
        assert!(talk.asked.is_empty(), "an impossible change needs no confirmation");
    }
}
