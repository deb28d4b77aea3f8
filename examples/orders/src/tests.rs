//! Tests of the tools with an in-memory client. Those of the whole program are in `tests/`.

#![allow(clippy::unwrap_used, reason = "tests")]

use bindpost::protocol::Revision;
use bindpost::testing::{ProgressUpdate, TestClient, TestError};
use bindpost::{Identity, Options};
use serde_json::{Value, json};

/// Connects a user of the till, who may change orders.
async fn till(revision: Revision) -> TestClient {
    let server = super::server(&Options::new("POS Server", "1.0.0")).unwrap();
    let caller = Identity::new("ada").name("Ada").user().scope("orders.write");
    TestClient::builder(&server).revision(revision).caller(caller).connect().await.unwrap()
}

#[tokio::test]
async fn orders_are_created_and_cancelled_once() -> Result<(), TestError> {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut till = till(revision).await;
        let request = json!({
            "customerId": "bob", "items": [{"itemId": "tea", "quantity": 2}, {"itemId": "soup", "quantity": 1}],
            "discountPercent": 10, "priority": "high"
        });
        let order: Value = till.call_as("create_order", request).await?;
        assert_eq!(order["total"], 11.7);
        let priced = ProgressUpdate { progress: 1.0, total: Some(1.0), message: Some("priced".to_owned()) };
        assert_eq!(till.progress(), [priced]);

        let id = order["id"].as_str().unwrap();
        let cancelled = till.call("cancel_order", json!({"orderId": id, "reason": "too late"})).await?;
        assert_eq!(cancelled.text(), format!("Order {id} cancelled"));
        let order: Value = till.call_as("get_order", json!({"orderId": id})).await?;
        assert_eq!((&order["customerId"], &order["reason"]), (&json!("bob"), &json!("too late (Ada)")));
        let again = till.call("cancel_order", json!({"orderId": id})).await.unwrap_err();
        assert_eq!(again.to_string(), format!("order {id} is cancelled already"));

        let cake = json!({"customerId": "bob", "items": [{"itemId": "cake", "quantity": 1}]});
        let error = till.call("create_order", cake).await.unwrap_err().to_string();
        assert!(error.starts_with("not on the menu: \"cake\""), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn only_the_till_changes_orders() -> Result<(), TestError> {
    let server = super::server(&Options::new("POS Server", "1.0.0")).unwrap();
    let guest = Identity::new("guest").user();
    let mut guest = TestClient::builder(&server).caller(guest).connect().await?;
    assert_eq!(guest.call("get_order", json!({"orderId": "123"})).await?.structured::<Value>()?["id"], "123");
    let error = guest.call("cancel_order", json!({"orderId": "123"})).await.unwrap_err();
    assert_eq!(error.to_string(), "this needs the scope orders.write (-32001)");

    let mut anonymous = TestClient::connect(&server);
    assert!(anonymous.call("get_time", ()).await.is_ok());
    let error = anonymous.call("get_order", json!({"orderId": "123"})).await.unwrap_err();
    assert!(matches!(error, TestError::Denied { .. }), "{error}");
    Ok(())
}
