//! Confirmation by the user before a destructive call.

use bindpost_mcp_openapi::Bridge;
use bindpost_mcp_server::Caller;
use bindpost_mcp_server::testing::TestClient;
use serde_json::{Value, json};

use crate::bridge_pets::{Shop, call, client, document, serve};

/// Returns the next message as JSON.
async fn next(client: &mut TestClient) -> Value {
    serde_json::from_slice(&client.next().await.unwrap()).unwrap()
}

/// Calls a tool in a session and answers the question if there is one. Returns the question and the result.
async fn ask_in_session(
    bridge: &Bridge,
    tool: &str,
    arguments: Value,
    answer: Value,
) -> (Option<Value>, Value) {
    let mut client = client(&serve(bridge), Caller::ANONYMOUS, json!({"elicitation": {}})).await;
    let params = json!({"name": tool, "arguments": arguments});
    client
        .send(json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).to_string())
        .await;
    let first = next(&mut client).await;
    if first.get("method").is_none() {
        return (None, first["result"].clone());
    }
    assert_eq!(first["method"], "elicitation/create");
    client.send(json!({"jsonrpc": "2.0", "id": first["id"], "result": answer}).to_string()).await;
    (Some(first["params"].clone()), next(&mut client).await["result"].clone())
}

/// Calls a tool without a session and repeats the request with the answer if input is required.
async fn ask_alone(bridge: &Bridge, tool: &str, arguments: Value, answer: Value) -> (Option<Value>, Value) {
    let server = serve(bridge);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let mut client = TestClient::connect(&server);
    let first = client.request("tools/call", params.clone()).await.unwrap();
    if first["resultType"] != "input_required" {
        return (None, first);
    }
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = json!({"confirm": answer});
    let second = client.request("tools/call", params).await.unwrap();
    (Some(first["inputRequests"]["confirm"]["params"].clone()), second)
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"confirm": true}})
}

#[tokio::test]
async fn a_delete_requires_confirmation_in_legacy_and_modern_revisions() {
    for budget in [100_000, 100] {
        let shop = Shop::saying(json!({"done": true})).await;
        let bridge = shop.bridge(document()).list_budget(budget).build().unwrap();
        let (tool, arguments) = match budget {
            100 => ("callOperation", json!({"operation": "deletePet", "arguments": {"petId": "7"}})),
            _ => ("deletePet", json!({"petId": "7"})),
        };
        for answer in [
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
            json!({"action": "accept", "content": {"confirm": false}}),
        ] {
            for modern in [false, true] {
                let (question, result) = match modern {
                    false => ask_in_session(&bridge, tool, arguments.clone(), answer.clone()).await,
                    true => ask_alone(&bridge, tool, arguments.clone(), answer.clone()).await,
                };
                let question = question.unwrap()["message"].as_str().unwrap().to_owned();
                assert!(question.starts_with("DELETE /pets/7\nDeletes a pet (deletePet)"), "{question}");
                assert!(
                    result["isError"] == true && result.to_string().contains("nothing was done"),
                    "{result}"
                );
            }
        }
        assert!(shop.seen().is_empty());
        for modern in [false, true] {
            let (_, result) = match modern {
                false => ask_in_session(&bridge, tool, arguments.clone(), yes()).await,
                true => ask_alone(&bridge, tool, arguments.clone(), yes()).await,
            };
            assert_eq!(result["structuredContent"], json!({"done": true}), "{result}");
        }
        assert_eq!(shop.paths(), ["DELETE /v1/pets/7", "DELETE /v1/pets/7"]);
    }
}

#[tokio::test]
async fn a_client_without_elicitation_is_not_asked() {
    let shop = Shop::saying(json!({"done": true})).await;
    let bridge = shop.bridge(document()).build().unwrap();
    let mut plain = client(&serve(&bridge), Caller::ANONYMOUS, json!({})).await;
    assert_eq!(
        call(&mut plain, "deletePet", json!({"petId": "7"})).await["structuredContent"],
        json!({"done": true})
    );
}

#[tokio::test]
async fn the_operator_configures_confirmation_and_mistakes_are_reported_first() {
    let shop = Shop::saying(json!({"done": true})).await;
    let make = json!({"body": {"name": "Rex"}});
    let asking = shop.bridge(document()).asks("createPet").build().unwrap();
    assert!(ask_in_session(&asking, "createPet", make.clone(), yes()).await.0.is_some());
    let usual = shop.bridge(document()).build().unwrap();
    assert!(ask_in_session(&usual, "createPet", make, yes()).await.0.is_none());
    let silent = shop.bridge(document()).confirms(false).build().unwrap();
    assert!(ask_alone(&silent, "deletePet", json!({"petId": "7"}), yes()).await.0.is_none());
    // An operation that requires confirmation is not served as a resource.
    let asking = shop.bridge(document()).asks("getPet").build().unwrap();
    let mut reading = client(&serve(&asking), Caller::ANONYMOUS, json!({})).await;
    assert!(reading.request("resources/read", json!({"uri": "openapi:///pets/7"})).await.is_err());
    // The user is not asked about a call that is invalid.
    let (question, result) = ask_in_session(&usual, "deletePet", json!({}), yes()).await;
    assert!(question.is_none() && result["isError"] == true);
}

#[tokio::test]
async fn arguments_can_decide_whether_the_user_is_asked() {
    let shop = Shop::saying(json!({"done": true})).await;
    let is_rex: bindpost_mcp_openapi::AsksIf = |arguments| arguments["body"]["name"] == "Rex";
    for budget in [100_000, 100] {
        let bridge =
            shop.bridge(document()).asks_if("createPet", is_rex).list_budget(budget).build().unwrap();
        for (name, asks) in [("Rex", true), ("Tom", false)] {
            let arguments = json!({"body": {"name": name}});
            let (tool, arguments) = match budget {
                100 => ("callOperation", json!({"operation": "createPet", "arguments": arguments})),
                _ => ("createPet", arguments),
            };
            let (question, _) = ask_in_session(&bridge, tool, arguments, json!({"action": "decline"})).await;
            assert_eq!(question.is_some(), asks, "{name}");
        }
    }
    assert_eq!(shop.seen().len(), 2, "a declined call sends nothing");
}
