//! Tests the operations that use definitions: documents, searches, runs, statistics and questions.

use std::time::Duration;

use serde_json::{Value, json};

use super::definitions::indexer;
use super::tour::{Ask, Form, Tour};
use crate::server::PATIENCE;

pub(super) async fn walk(tour: &mut Tour) {
    for form in Form::BOTH {
        documents(tour, form).await;
        searches(tour, form).await;
        typing(tour, form).await;
        statistics(tour, form).await;
        questions(tour, form).await;
    }
    // The indexer was disabled for the earlier tests.
    let on = Ask {
        headers: &[("prefer", "return=representation")],
        ..Ask::with(indexer("loader", "files", false))
    };
    tour.ask("Indexers_CreateOrUpdate", Form::Quoted, &["loader"], on, 200).await;
    for form in Form::BOTH {
        runs(tour, form).await;
    }
    elsewhere(tour).await;
}

async fn documents(tour: &mut Tour, form: Form) {
    let batch = json!({"value": [
        {"@search.action": "upload", "id": "1", "title": "Roach Motel", "city": "Berlin", "rating": 2.5,
         "vector": [1.0, 0.0]},
        {"@search.action": "mergeOrUpload", "id": "2", "title": "Grand Motels", "city": "Paris", "rating": 4.5,
         "vector": [0.0, 1.0]},
    ]});
    let answer = tour.ask("Documents_Index", form, &["hotels"], Ask::with(batch), 200).await.json();
    assert!(answer["value"].as_array().unwrap().iter().all(|one| one["status"] == true), "{answer}");
    let missing = json!({"value": [{"@search.action": "merge", "id": "9", "city": "Rome"}]});
    let answer = tour.ask("Documents_Index", form, &["hotels"], Ask::with(missing), 207).await.json();
    assert_eq!(
        (&answer["value"][0]["statusCode"], &answer["value"][0]["status"]),
        (&json!(404), &json!(false))
    );
    let count = tour.ask("Documents_Count", form, &["hotels"], Ask::default(), 200).await;
    assert_eq!(count.text.trim_start_matches('\u{feff}'), "2");
    let one = tour.ask("Documents_Get", form, &["hotels", "2"], Ask::default(), 200).await.json();
    assert_eq!((&one["title"], &one["vector"]), (&json!("Grand Motels"), &json!([0.0, 1.0])));
    tour.ask("Documents_Get", form, &["hotels", "9"], Ask::default(), 404).await;
}

async fn searches(tour: &mut Tour, form: Form) {
    let options = "&search=motel&$filter=rating%20gt%203&$count=true&facet=city&$select=id&highlight=title";
    let found = tour
        .ask("Documents_SearchGet", form, &["hotels"], Ask { options, ..Ask::default() }, 200)
        .await
        .json();
    assert_eq!((&found["@odata.count"], &found["value"][0]["id"]), (&json!(1), &json!("2")), "{found}");
    assert_eq!(found["@search.facets"]["city"], json!([{"value": "Paris", "count": 1}]));
    assert_eq!(found["value"][0]["@search.highlights"]["title"], json!(["Grand <em>Motels</em>"]));
    let hybrid = json!({"search": "roach", "vectorQueries": [
        {"kind": "vector", "vector": [1.0, 0.1], "fields": "vector", "k": 2},
    ]});
    let found = tour.ask("Documents_SearchPost", form, &["hotels"], Ask::with(hybrid), 200).await.json();
    let ids: Vec<&Value> = found["value"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["1", "2"], "{found}");

    let options = "&search=motel&queryType=semantic&semanticConfiguration=s";
    let asks = [
        ("Documents_SearchGet", Ask { options, ..Ask::default() }),
        (
            "Documents_SearchPost",
            Ask::with(json!({"search": "motel", "queryType": "semantic", "semanticConfiguration": "s"})),
        ),
    ];
    for (id, ask) in asks {
        let found = tour.ask(id, form, &["hotels"], ask, 206).await.json();
        assert_eq!(found["@search.semanticPartialResponseType"], "baseResults");
        // Clients read the answers without asking whether there are any.
        assert_eq!(found["@search.answers"], json!([]));
        tour.is_partial(id, "a semantic query gets 206 with the results of keywords and vectors");
    }
}

async fn typing(tour: &mut Tour, form: Form) {
    let get = |options| Ask { options, ..Ask::default() };
    let typed = json!({"search": "mot", "suggesterName": "sg"});
    for (id, ask) in [
        ("Documents_SuggestGet", get("&search=mot&suggesterName=sg")),
        ("Documents_SuggestPost", Ask::with(typed.clone())),
    ] {
        let found = tour.ask(id, form, &["hotels"], ask, 200).await.json();
        assert_eq!(found["value"].as_array().unwrap().len(), 2, "{found}");
    }
    for (id, ask) in [
        ("Documents_AutocompleteGet", get("&search=mot&suggesterName=sg")),
        ("Documents_AutocompletePost", Ask::with(typed)),
    ] {
        let found = tour.ask(id, form, &["hotels"], ask, 200).await.json();
        assert_eq!(found["value"][0], json!({"text": "motel", "queryPlusText": "motel"}));
    }
}

async fn statistics(tour: &mut Tour, form: Form) {
    let of_one = tour.ask("Indexes_GetStatistics", form, &["hotels"], Ask::default(), 200).await.json();
    assert_eq!(of_one["documentCount"], 2);
    let all = tour.ask("GetIndexStatsSummary", form, &[], Ask::default(), 200).await.json();
    assert_eq!(all["value"][0]["name"], "hotels");
    let service = tour.ask("GetServiceStatistics", form, &[], Ask::default(), 200).await.json();
    assert_eq!(service["counters"]["indexesCount"]["usage"], 2);
    let text = json!({"text": "The Motels", "analyzer": "en.lucene"});
    let words = tour.ask("Indexes_Analyze", form, &["hotels"], Ask::with(text), 200).await.json();
    assert_eq!(
        words["tokens"],
        json!([{"token": "motel", "startOffset": 4, "endOffset": 10, "position": 1}])
    );
}

async fn questions(tour: &mut Tour, form: Form) {
    let question = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "Where do roaches live?"}]}]});
    let id = "KnowledgeRetrieval_Retrieve";
    let answer = tour.ask(id, form, &["guide"], Ask::with(question), 200).await.json();
    assert_eq!(answer["references"][0]["docKey"], "1", "{answer}");
    let steps = answer["activity"].as_array().unwrap();
    if steps.iter().all(|step| step["type"] == "searchIndex") {
        tour.is_partial(
            id,
            "no model plans queries or writes the answer; the response has the documents that keywords find",
        );
    }
}

async fn runs(tour: &mut Tour, form: Form) {
    let names: &[&str] = &["loader"];
    tour.ask("Indexers_Reset", form, names, Ask::default(), 204).await;
    tour.ask("Indexers_Run", form, names, Ask::default(), 202).await;
    let last = finished(tour, form, "loader").await;
    assert_eq!((&last["status"], &last["itemsProcessed"]), (&json!("success"), &json!(1)), "{last}");
    let keys = json!({"documentKeys": ["a"]});
    let overwrite = Ask { options: "&overwrite=true", ..Ask::with(keys) };
    tour.ask("Indexers_ResetDocs", form, names, overwrite, 204).await;
    tour.ask("Skillsets_ResetSkills", form, &["pages"], Ask::with(json!({"skillNames": ["split"]})), 204)
        .await;
    let permissions = json!({"options": ["permissions"]});
    tour.ask("Indexers_Resync", form, names, Ask::with(permissions), 400).await;
}

/// Tests a data source that is a database.
async fn elsewhere(tour: &mut Tour) {
    let source = json!({"name": "rows", "type": "azuresql", "container": {"name": "t"},
        "credentials": {"connectionString": "Server=tcp:example.com"}});
    tour.ask("DataSources_Create", Form::Quoted, &[], Ask::with(source), 201).await;
    let indexer = Ask::with(indexer("database", "rows", false));
    tour.ask("Indexers_Create", Form::Quoted, &[], indexer, 201).await;
    let last = finished(tour, Form::Quoted, "database").await;
    if last["status"] != "success" {
        tour.is_partial("Indexers_Run", "only local folders are supported");
    }
}

/// Waits for the result of an indexer's last run.
async fn finished(tour: &mut Tour, form: Form, indexer: &str) -> Value {
    let ended = async {
        loop {
            let status = tour.ask("Indexers_GetStatus", form, &[indexer], Ask::default(), 200).await.json();
            assert_eq!(status["name"], indexer);
            let last = &status["lastResult"];
            if !last.is_null() && last["status"] != "inProgress" {
                return last.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap()
}
