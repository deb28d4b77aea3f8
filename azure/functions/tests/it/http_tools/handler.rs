//! Functions of a custom handler as tools.

use super::*;

#[tokio::test]
async fn functions_of_a_custom_handler_are_tools() {
    let host = Launch::copy_of("tests/apps/http-tools-handler").serve();
    assert_eq!(http_tools(&host), ["GetOrder", "Parts", "Reply"]);
    for client in &mut host.clients().await {
        let seen = content(client, "GetOrder", json!({"id": 7, "query": {"q": "a b"}})).await;
        assert_eq!((&seen["id"], &seen["query"]["q"]), (&json!("7"), &json!("a b")));
        assert_eq!(seen["url"], "http://localhost/api/orders/7?q=a%20b");
        assert_eq!(content(client, "Parts", json!({"first": "x"})).await, json!({"first": "x"}));
        assert_eq!(content(client, "Reply", json!({"kind": "object"})).await, json!({"a": 1}));
        assert_eq!(client.text("Reply", json!({"kind": "text"})).await, "plain");
        let missing = failure(client, "Reply", json!({"kind": "missing"})).await;
        assert_eq!((&missing["status"], &missing["body"]), (&json!(404), &json!("no such thing")));
        let failed = failure(client, "GetOrder", json!({"id": "a/../hidden"})).await;
        assert_eq!(failed["error"], "invalid_request");
        // It satisfies the schema, but not the constraint of the route.
        let failed = failure(client, "GetOrder", json!({"id": 9_000_000_000_u64})).await;
        assert_eq!((&failed["error"], &failed["status"]), (&json!("resource_not_found"), &json!(404)));
    }
}
