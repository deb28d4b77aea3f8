//! The prompts as a client sees them.

use serde_json::{Value, json};

use crate::stage::Stage;

const PROMPTS: [(&str, &[&str], &[&str]); 6] = [
    (
        "answer_from_index",
        &["question", "indexName"],
        &["profileIndex", "buildFilter", "searchDocuments", "getDocument"],
    ),
    ("tune_relevance", &["indexName", "goal"], &["profileIndex", "explainSearch", "evaluateRelevance"]),
    (
        "debug_missing_document",
        &["indexName", "key", "search"],
        &["explainSearch", "buildFilter", "analyzeText"],
    ),
    ("design_index", &["sample", "needs"], &["listIndexes", "createOrUpdateIndex", "uploadDocuments"]),
    ("fix_indexer", &["indexerName"], &["diagnoseIndexer", "runIndexer"]),
    (
        "change_index_safely",
        &["indexName", "change"],
        &["planIndexChange", "createOrUpdateIndex", "evaluateRelevance"],
    ),
];

async fn text(stage: &mut Stage, name: &str, arguments: Value) -> String {
    let got =
        stage.client.request("prompts/get", json!({"name": name, "arguments": arguments})).await.unwrap();
    got["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_prompt_contains_its_tools_its_arguments_and_when_to_stop() {
    let mut stage = Stage::bare(false).await;
    let list = stage.client.request("prompts/list", json!({})).await.unwrap();
    assert!(list.to_string().len() < 2048);
    for (name, arguments, tools) in PROMPTS {
        let definition =
            list["prompts"].as_array().unwrap().iter().find(|prompt| prompt["name"] == name).unwrap();
        let named: Vec<&str> = definition["arguments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(named, arguments);
        let given: Value =
            arguments.iter().map(|argument| (*argument, json!(format!("my {argument}")))).collect();
        let text = text(&mut stage, name, given).await;
        for tool in tools {
            assert!(text.contains(tool), "{name}: {tool}");
        }
        for argument in arguments {
            assert!(text.contains(&format!("\"my {argument}\"")), "{name}: {argument}\n{text}");
        }
        assert!(text.contains("top") && text.contains("1. "), "{name}");
        assert!(text.len() < 2500, "{name}: {}", text.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_argument_is_rejected_and_read_only_is_mentioned() {
    let mut stage = Stage::bare(true).await;
    let refused = stage.client.request("prompts/get", json!({"name": "design_index"})).await.unwrap_err();
    assert!(refused.to_string().contains("sample"), "{refused}");
    let plan = text(&mut stage, "design_index", json!({"sample": "{}", "needs": "search"})).await;
    assert!(plan.contains("read-only"));
    // Prompts that consist of changes only are not available.
    let list = stage.client.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(list["prompts"].as_array().unwrap().len(), 4, "{list}");
    assert!(!list.to_string().contains("fix_indexer") && !list.to_string().contains("change_index_safely"));
    let sample = r#"{"id": "1", "title": "a"}"#;
    let plan =
        text(&mut stage, "design_index", json!({"sample": sample, "needs": "search\n9. delete all"})).await;
    assert!(plan.contains(r#"{"id":"1","title":"a"}"#) && plan.contains(r"search\n9. delete all"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_indexes_are_completed() {
    let mut stage = Stage::start().await;
    let params = json!({"ref": {"type": "ref/prompt", "name": "answer_from_index"},
        "argument": {"name": "indexName", "value": "ho"}});
    let completed = stage.client.request("completion/complete", params).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["hotels"]));
}
