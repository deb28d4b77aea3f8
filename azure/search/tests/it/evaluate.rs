//! `evaluateRelevance` against the embedded service.

use serde_json::{Value, json};

use crate::stage::{Stage, documents, hotels};

#[tokio::test(flavor = "multi_thread")]
async fn two_variants_are_compared_query_by_query() {
    let mut stage = Stage::start().await;
    stage.definition("evaluateRelevance").await;
    let answer = stage
        .call(
            "evaluateRelevance",
            json!({
                "indexName": "hotels",
                "queries": [
                    {"id": "beach", "search": "beach hotel", "judgments": {"1": 3, "4": 2, "3": 0}},
                    {"search": "lodge", "judgments": {"5": 1, "nowhere": 1}},
                    {"search": "lodge", "judgments": {"5": 0}}
                ],
                "k": 3,
                "baseline": {"searchMode": "any"},
                "candidate": {"searchMode": "all", "searchFields": "title"}
            }),
        )
        .await;
    assert_eq!((&answer["queries"], &answer["k"]), (&json!(3), &json!(3)), "{answer:#}");
    let per_query = answer["perQuery"].as_array().unwrap();
    let beach = per_query.iter().find(|query| query["id"] == "beach").unwrap();
    // Of the judged documents, searchMode all in titles finds only the first: 7 / (7 + 3 / log2(3)).
    let ideal = 7.0 + 3.0 / 3.0_f64.log2();
    assert!((beach["candidate"]["ndcg"].as_f64().unwrap() - 7.0 / ideal).abs() < 1e-3, "{beach:#}");
    assert_eq!(beach["candidate"]["recall"], 0.5);
    assert_eq!(beach["candidate"]["missing"], json!(["4"]));
    assert_eq!(beach["lostKeys"], json!(["4"]));
    assert_eq!(beach["baseline"]["unjudgedCount"], 1);
    let lodge = per_query
        .iter()
        .find(|query| query["search"] == "lodge" && query["baseline"]["recall"] == 0.5)
        .unwrap();
    assert_eq!(lodge["baseline"]["reciprocalRank"], 1.0);
    assert_eq!(lodge["baseline"]["missing"], json!(["nowhere"]));
    // The baseline has 2, which has no judgment, before the others.
    let changed = (&answer["gains"], &answer["losses"], &answer["unchanged"]);
    assert_eq!(changed, (&json!(1), &json!(0), &json!(1)), "{answer:#}");
    let notes = answer["notes"].to_string();
    for words in ["without judgment", "no relevant judgment", "are few"] {
        assert!(notes.contains(words), "{notes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_indexes_are_compared_and_progress_is_reported_for_each_query() {
    let mut stage = Stage::start().await;
    let mut other = hotels("hotels-keyword");
    other["fields"][1]["analyzer"] = json!("keyword");
    stage.index(other).await;
    stage.upload("hotels-keyword", documents()).await;
    let queries: Vec<Value> = (0..9)
        .map(|number| json!({"id": number.to_string(), "search": "hotel", "judgments": {"1": 1, "2": 1}}))
        .collect();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "evaluateRelevance", "_meta": {"progressToken": "p"}, "arguments": {
            "indexName": "hotels", "queries": queries, "candidate": {"indexName": "hotels-keyword", "searchFields": "title"}}}});
    stage.client.send(call.to_string()).await;
    let mut progress = Vec::new();
    let answer = loop {
        let message: Value = serde_json::from_slice(&stage.client.next().await.unwrap()).unwrap();
        if message["id"] == 1 {
            break message["result"]["structuredContent"].clone();
        }
        progress.push(message["params"]["progress"].as_f64().unwrap());
    };
    assert_eq!(progress, (1..=9).map(f64::from).collect::<Vec<_>>());
    assert_eq!(answer["mean"]["baseline"]["recall"], 1.0, "{answer:#}");
    assert_eq!(answer["mean"]["candidate"]["recall"], 0.0);
    assert_eq!(answer["losses"], 9);
    assert_eq!(answer["candidate"]["indexName"], "hotels-keyword");
}

#[tokio::test(flavor = "multi_thread")]
async fn ties_are_reported_and_a_rejected_query_does_not_affect_the_others() {
    let mut stage = Stage::start().await;
    let answer = stage
        .call(
            "evaluateRelevance",
            json!({"indexName": "hotels", "k": 1, "queries": [
                {"id": "tied", "search": "*", "judgments": {"5": 1}},
                {"id": "broken", "search": "hotel", "judgments": {"1": 1}, "overrides": {"filter": "nope eq 1"}}
            ]}),
        )
        .await;
    let per_query = answer["perQuery"].as_array().unwrap();
    let by_id = |id: &str| per_query.iter().find(|query| query["id"] == id).unwrap();
    assert_eq!(by_id("tied")["baseline"]["ndcgWithTies"], json!([0.0, 1.0]), "{answer:#}");
    assert_eq!(by_id("broken")["baseline"]["error"], "invalid_request");
    assert!(answer["notes"].to_string().contains("1 search failed"));
    // If all queries are rejected, the call fails.
    let told = stage
        .client
        .call(
            "evaluateRelevance",
            json!({"indexName": "hotels", "queries": [{"search": "x", "judgments": {"1": 1}}],
                "baseline": {"scoringProfile": "nope"}}),
        )
        .await;
    assert!(told.unwrap_err().to_string().contains("invalid_request"));
    let told = stage.client.call(
        "evaluateRelevance",
        json!({"indexName": "hotels", "queries": [{"search": "x", "judgments": {}}]}),
    );
    assert!(told.await.unwrap_err().to_string().contains("judgments"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_queries_stay_within_the_budget_with_the_worst_first() {
    let mut stage = Stage::start().await;
    let long = "hotel ".repeat(60);
    let queries: Vec<Value> = (0..200)
        .map(|number| {
            let key = if number == 150 { "nowhere" } else { "2" };
            json!({"id": number.to_string(), "search": long, "judgments": {key: 1}})
        })
        .collect();
    let answer = stage.call("evaluateRelevance", json!({"indexName": "hotels", "queries": queries})).await;
    assert!(answer.to_string().len() <= 64 * 1024, "{}", answer.to_string().len());
    assert_eq!((&answer["queries"], &answer["perQuery"][0]["id"]), (&json!(200), &json!("150")));
    let told = answer["perQuery"].as_array().unwrap().len();
    assert_eq!(answer["leftOff"], 200 - told);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_mean_on_both_sides_there_is_no_comparison() {
    let mut stage = Stage::start().await;
    let arguments = json!({"indexName": "hotels", "candidate": {"filter": "nope eq 1"},
        "queries": [{"search": "hotel", "judgments": {"1": 1}}]});
    let answer = stage.call("evaluateRelevance", arguments).await;
    assert_eq!(answer["meanNdcgChange"], json!(null), "{answer:#}");
}
