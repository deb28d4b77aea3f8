//! `diagnoseIndexer`.

use serde_json::{Value, json};

use crate::service::{Scripted, Service};
use crate::talk::{ERAS, Era, Talk};

fn finding<'a>(told: &'a Value, words: &str) -> &'a Value {
    let all = told["findings"].as_array().unwrap();
    let found = all.iter().find(|finding| finding["what"].as_str().unwrap().contains(words));
    let found = found.unwrap_or_else(|| panic!("no finding contains {words:?}: {told:#}"));
    assert!(found["why"].is_string() && found["fix"].is_string(), "{found}");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_grouped_by_cause_and_can_be_retried() {
    let service = Service::start().await;
    let bad: String = (0..30).map(|n| format!("{{\"id\": \"b{n}\", \"n\": \"text {n}\"}}\n")).collect();
    service.put_file("rows", "a.jsonl", &format!("{bad}{{\"id\": \"good\", \"n\": 1}}\n{{\"n\": \n"));
    service
        .with_indexer(json!({"parameters": {"maxFailedItems": -1, "maxFailedItemsPerBatch": -1,
        "configuration": {"parsingMode": "jsonLines"}}}))
        .await;
    for era in ERAS {
        let mut talk = Talk::with(&service.server(), era, Some(true)).await;
        let told = talk
            .call("diagnoseIndexer", json!({"indexerName": "loader", "run": era == Era::Session}))
            .await
            .unwrap();
        let cause = finding(&told, "cannot become field");
        assert_eq!((&cause["severity"], &cause["count"]), (&json!("error"), &json!(30)), "{told:#}");
        assert_eq!(cause["keys"].as_array().unwrap().len().min(20), cause["keys"].as_array().unwrap().len());
        assert!(cause["fix"].as_str().unwrap().contains("type of the field"), "{cause}");
        finding(&told, "items failed in a successful run");
        finding(&told, "No field mapping for the key");
        let [reset, run] = told["retry"].as_array().unwrap().as_slice() else { panic!("{told:#}") };
        assert_eq!((&reset["tool"], &run["tool"]), (&json!("callOperation"), &json!("runIndexer")));
        assert_eq!(reset["arguments"]["operation"], "Indexers_ResetDocs");
        // The proposed call is valid.
        let body = reset["arguments"]["arguments"]["body"].clone();
        service.done("POST", "indexers('loader')/search.resetdocs", body).await;
        let again = talk.call("runIndexer", run["arguments"].clone()).await.unwrap();
        assert!(again["itemsFailed"].as_u64().unwrap() > 0, "the failed items were not retried: {again}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_indexer_without_runs_and_a_working_indexer() {
    let service = Service::start().await;
    service.put_file("rows", "a.jsonl", "{\"id\": \"1\", \"n\": 1}\n");
    service
        .with_indexer(json!({"fieldMappings": [{"sourceFieldName": "id", "targetFieldName": "id"}]}))
        .await;
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    let told = talk
        .call("diagnoseIndexer", json!({"indexerName": "loader", "clientRequestId": "c1"}))
        .await
        .unwrap();
    finding(&told, "never run");
    assert_eq!(told["clientRequestId"], "c1");
    assert_eq!(told["lastRun"], Value::Null);
    talk.call("runIndexer", json!({"indexerName": "loader"})).await.unwrap();
    let told = talk.call("diagnoseIndexer", json!({"indexerName": "loader"})).await.unwrap();
    assert!(told["summary"].as_str().unwrap().starts_with("It works"), "{told:#}");
    assert!(told.get("retry").is_none());
    service
        .done(
            "PUT",
            "indexers('loader')",
            json!({"name": "loader", "dataSourceName": "files",
        "targetIndexName": "rows", "disabled": true}),
        )
        .await;
    let told = talk.call("diagnoseIndexer", json!({"indexerName": "loader"})).await.unwrap();
    assert_eq!(finding(&told, "disabled")["severity"], "error");
    let missing = talk.call("diagnoseIndexer", json!({"indexerName": "missing"})).await.unwrap_err();
    assert_eq!(missing["error"], "resource_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_references_are_reported() {
    let failed = json!({"status": "transientFailure", "startTime": "2020-01-01T00:00:00Z",
        "endTime": "2020-01-01T00:00:01Z", "errorMessage": "Storage quota of the service is exceeded.",
        "itemsProcessed": 0, "itemsFailed": 0, "errors": [], "warnings": []});
    let fine =
        json!({"status": "success", "startTime": "2019-01-01T00:00:00Z", "endTime": "2019-01-01T00:00:01Z"});
    let service = Scripted::start(move |_, path, _| match path {
        "/indexers('x')" => (200, json!({"name": "x", "dataSourceName": "gone", "targetIndexName": "i",
            "skillsetName": "odd", "outputFieldMappings": [{"sourceFieldName": "/document/a", "targetFieldName": "b"}],
            "fieldMappings": [{"sourceFieldName": "metadata_storage_path", "targetFieldName": "ID"}]})),
        "/indexers('x')/search.status" => (200, json!({"name": "x", "status": "error", "lastResult": failed,
            "executionHistory": [failed, fine]})),
        "/indexes('i')" => (200, json!({"name": "i", "fields": [{"name": "id", "type": "Edm.String", "key": true}]})),
        "/skillsets('odd')" => (403, json!({"error": {"code": "", "message": "no access"}})),
        _ => (404, json!({"error": {"code": "", "message": "not found"}})),
    })
    .await;
    let mut talk = Talk::with(&service.server(), Era::Alone, Some(true)).await;
    let told = talk.call("diagnoseIndexer", json!({"indexerName": "x"})).await.unwrap();
    finding(&told, "The data source 'gone' does not exist");
    finding(&told, "The skillset could not be read");
    finding(&told, "'/document/a' is mapped to the field 'b'");
    assert!(
        finding(&told, "is mapped from 'metadata_storage_path' without encoding")["fix"]
            .as_str()
            .unwrap()
            .contains("base64Encode")
    );
    finding(&told, "as a whole is in error");
    finding(&told, "quota");
    finding(&told, "The last success was");
    assert_eq!(service.asked("search.run"), 0, "it only reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_an_earlier_run_is_reported_until_the_item_is_read_again() {
    let service = Service::start().await;
    service.put_file("rows", "a.jsonl", "{\"id\": \"1\", \"n\": 1}\n{\"id\": \"2\", \"n\": \"text\"}\n");
    service
        .with_indexer(json!({"parameters": {"maxFailedItems": -1, "maxFailedItemsPerBatch": -1,
        "configuration": {"parsingMode": "jsonLines"}}}))
        .await;
    let mut talk = Talk::with(&service.server(), Era::Session, Some(true)).await;
    for _ in 0..7 {
        talk.call("runIndexer", json!({"indexerName": "loader"})).await.unwrap();
    }
    let told = talk.call("diagnoseIndexer", json!({"indexerName": "loader"})).await.unwrap();
    assert_eq!(told["lastRun"]["itemsProcessed"], 0, "{told:#}");
    let cause = finding(&told, "cannot become field");
    assert_eq!(cause["severity"], "error");
    assert!(cause["why"].as_str().unwrap().contains("not read again since"), "{cause}");
    assert_eq!(told["summary"], "1 problem prevents it from working correctly.");
    assert!(told["retry"].is_array(), "{told:#}");
    // A run of other items does not show whether this item was among them.
    service.put_file("rows", "b.jsonl", "{\"id\": \"3\", \"n\": 3}\n");
    talk.call("runIndexer", json!({"indexerName": "loader"})).await.unwrap();
    let told = talk.call("diagnoseIndexer", json!({"indexerName": "loader"})).await.unwrap();
    assert_eq!(finding(&told, "cannot become field")["severity"], "warning");
    assert!(told["retry"].is_array(), "{told:#}");
    // There are no findings after everything was read again without a failure.
    service.put_file("rows", "a.jsonl", "{\"id\": \"1\", \"n\": 1}\n{\"id\": \"2\", \"n\": 2}\n");
    talk.call("runIndexer", json!({"indexerName": "loader", "reset": true})).await.unwrap();
    let told = talk.call("diagnoseIndexer", json!({"indexerName": "loader"})).await.unwrap();
    assert!(told.get("retry").is_none() && !told.to_string().contains("cannot become"), "{told:#}");
}
