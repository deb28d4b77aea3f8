//! Batches, which only 2025-03-26 supports.

use super::*;

#[tokio::test]
async fn a_batch_of_2025_03_26_is_answered_with_an_array() {
    let server = server().await;
    let session = server.session("2025-03-26").await;
    let batch = json!([
        request(1, "ping", json!({})),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        request("two", "tools/call", json!({"name": "count", "arguments": {"messages": 2, "pause_ms": 10}})),
        request(3, "no/such", json!({})),
        7,
        json!({"jsonrpc": "2.0", "id": 99, "result": {}}),
    ]);
    let answers = server.send(&session.post(batch.to_string())).await;
    assert_eq!(answers.status, 200);
    let answers = answers.json();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 4);
    let of = |id: Value| answers.iter().find(|answer| answer.get("id") == Some(&id)).unwrap();
    assert_eq!(of(json!(1))["result"], json!({}));
    assert_eq!(text_of(&of(json!("two"))["result"]), "said 2 things");
    assert_eq!(of(json!(3))["error"]["code"], -32601);
    let unreadable = answers.iter().find(|answer| answer.get("id").is_none()).unwrap();
    assert_eq!(unreadable["error"]["code"], -32600);
}

#[tokio::test]
async fn a_batch_without_a_request_is_accepted() {
    let server = server().await;
    let session = server.session("2025-03-26").await;
    let batch = json!([
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 99, "result": {}})
    ]);
    server.send(&session.post(batch.to_string())).await.accepted();
}

#[tokio::test]
async fn rejects_batches_in_other_revisions() {
    let server = server().await;
    let ping = || request(1, "ping", json!({}));
    for revision in ["2024-11-05", "2025-06-18", LATEST] {
        let session = server.session(revision).await;
        server.send(&session.post(json!([ping()]).to_string())).await.refused(400, -32600);
    }
    let session = server.session("2025-03-26").await;
    server.send(&session.post("[]")).await.refused(400, -32600);
    server
        .send(&session.post(json!([ping(), initialize("2025-03-26")]).to_string()))
        .await
        .refused(400, -32600);
    server.send(&Ask::post(json!([ping()]).to_string())).await.refused(400, -32600);
    server.send(&Ask::post(json!([initialize("2025-03-26")]).to_string())).await.refused(400, -32600);
    let mut unknown = session.clone();
    unknown.id = "AAAAAAAAAAAAAAAAAAAAAA".to_owned();
    server.send(&unknown.post(json!([ping()]).to_string())).await.refused(404, -32001);
    server.send(&session.ping()).await.result();
}
