//! Operations that are not selected are not reachable in any way.

use bindpost_mcp_openapi::{BridgeError, OperationSelection};
use bindpost_mcp_server::ToolHints;
use serde_json::{Value, json};

use crate::bridge_pets::{Shop, call, connect, document, failing, tool_names};

async fn selected(selection: OperationSelection) -> Vec<String> {
    let shop = Shop::saying(json!({})).await;
    let bridge = shop.bridge(document()).select(selection).build().unwrap();
    let mut client = connect(&bridge).await;
    tool_names(&mut client).await
}

#[tokio::test]
async fn tags_patterns_and_lists_select() {
    let all = OperationSelection::all;
    assert_eq!(selected(all()).await.len(), 7);
    assert_eq!(selected(all().tag("ADMIN")).await, ["getSecret"]);
    assert_eq!(selected(all().include("get*")).await, ["getPet", "getSecret", "getStatus"]);
    assert_eq!(selected(all().include("POST /pets")).await, ["createPet"]);
    assert_eq!(selected(all().include("/pets/*")).await, ["getPet", "deletePet", "searchPets", "getSecret"]);
    assert_eq!(selected(all().tag("pets").include("GET *")).await, ["listPets", "getPet"]);
    assert_eq!(selected(all().allow("getStatus")).await, ["getStatus"]);
    assert_eq!(selected(all().tag("admin").allow("getStatus")).await, ["getSecret", "getStatus"]);
    assert_eq!(selected(all().allow("getStatus").allow("getPet").deny("getstatus")).await, ["getPet"]);
    assert_eq!(selected(all().deny("DELETE *").deny("*secret*")).await.len(), 5);
    assert_eq!(selected(all().read_only()).await, ["listPets", "getPet", "getSecret", "getStatus"]);
}

#[tokio::test]
async fn read_only_mode_uses_the_operators_hints() {
    let shop = Shop::saying(json!({})).await;
    let reading = ToolHints { read_only: true, destructive: false, idempotent: true, open_world: true };
    let bridge = shop.bridge(document()).hints("searchPets", reading).read_only().build().unwrap();
    let ids: Vec<&str> = bridge.operations().map(|operation| operation.id.as_str()).collect();
    assert_eq!(ids, ["listPets", "getPet", "searchPets", "getSecret", "getStatus"]);
}

#[tokio::test]
async fn typing_errors_are_reported() {
    let shop = Shop::saying(json!({})).await;
    let selection = OperationSelection::all().deny("delletePet").deny("*nothing*");
    let bridge = shop.bridge(document()).select(selection).asks("deletPet").fixed("api-versio", "1");
    let warnings = bridge.build().unwrap().warnings().join("\n");
    for says in [
        "\"delletePet\" denies no operation; fix: did you mean \"deletePet\"",
        "*nothing*",
        "deletPet",
        "api-versio",
    ] {
        assert!(warnings.contains(says), "{says}: {warnings}");
    }
    let none = shop.bridge(document()).select(OperationSelection::all().tag("pet")).build().unwrap_err();
    assert!(matches!(none, BridgeError::NothingSelected(7)) && none.to_string().contains("fix:"), "{none}");
    assert!(matches!(shop.bridge(document()).scheme("1x").build(), Err(BridgeError::Scheme(_))));
    assert!(matches!(shop.bridge(document()).pass_header("Host").build(), Err(BridgeError::Header(_))));
}

#[tokio::test]
async fn a_denied_operation_is_not_reachable_in_any_way() {
    let shop = Shop::saying(json!({"items": []})).await;
    for budget in [100_000, 100] {
        let selection = OperationSelection::all().deny("*secret*").deny("deletePet").allow("getSecret");
        let selection = selection.include("*");
        let bridge = shop.bridge(document()).select(selection).list_budget(budget).build().unwrap();
        let mut client = connect(&bridge).await;
        for tool in ["getSecret", "deletePet"] {
            let unknown =
                client.request("tools/call", json!({"name": tool, "arguments": {"petId": "1"}})).await;
            assert!(unknown.is_err(), "{tool}");
        }
        // A value turns the path of this operation into that of another one.
        let by_value = match budget {
            100 => {
                let found = call(&mut client, "findOperations", json!({"query": "back room secret"})).await;
                assert!(!found.to_string().contains("getSecret"), "{found}");
                for tool in ["describeOperation", "callOperation"] {
                    let given = json!({"operation": "getSecret"});
                    let said = failing(&mut client, tool, given).await;
                    assert!(said["message"].as_str().unwrap().contains("unknown operation"), "{said}");
                }
                let hidden = failing(&mut client, "describeOperation", json!({"definition": "Secret"})).await;
                assert!(hidden["message"].as_str().unwrap().contains("unknown definition"), "{hidden}");
                let given = json!({"operation": "getPet", "arguments": {"petId": "secret"}});
                failing(&mut client, "callOperation", given).await
            }
            _ => failing(&mut client, "getPet", json!({"petId": "secret"})).await,
        };
        assert!(by_value["message"].as_str().unwrap().contains("another operation"), "{by_value}");
        for uri in ["openapi:///pets/secret", "openapi-schema://Secret", "openapi-schema://getSecret"] {
            let refused = client.request("resources/read", json!({"uri": uri})).await.unwrap_err();
            assert_eq!((refused.code, refused.message), (-32002, format!("resource not found: {uri}")));
        }
        let listed = client.request("resources/list", json!({})).await.unwrap();
        let templates = client.request("resources/templates/list", json!({})).await.unwrap();
        assert!(!format!("{listed}{templates}").to_lowercase().contains("secret"), "{listed}{templates}");
        let completion = json!({"ref": {"type": "ref/resource", "uri": "openapi-schema://{definition}"},
            "argument": {"name": "definition", "value": "S"}});
        let completed = client.request("completion/complete", completion).await.unwrap();
        assert_eq!(completed["completion"]["values"], json!(["Status", "searchPets"]), "{completed}");
    }
    assert_eq!(shop.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn a_link_to_a_denied_operation_is_not_followed() {
    let shop = Shop::open(|seen| {
        let next = format!("http://{}/v1/pets/secret", seen.headers["host"].to_str().unwrap());
        crate::bridge_pets::answer(json!({"value": [1], "nextLink": next}))
    })
    .await;
    let bridge = shop.bridge(document()).select(OperationSelection::all().deny("getSecret")).build().unwrap();
    let mut client = connect(&bridge).await;
    let result = call(&mut client, "listPets", json!({})).await;
    assert_eq!(result["structuredContent"]["nextCursor"], Value::Null, "{result}");
    assert_eq!(result["structuredContent"]["hasMore"], false);
}

#[tokio::test]
async fn no_spelling_of_a_value_reaches_a_denied_operation() {
    let shop = Shop::saying(json!({})).await;
    let bridge = shop.bridge(document()).select(OperationSelection::all().deny("getSecret")).build().unwrap();
    let mut client = connect(&bridge).await;
    for value in [
        "secret",
        "secret/",
        "/secret",
        "Secret",
        "%73ecret",
        "secret;x=1",
        "./secret",
        "secret%2f",
        "secret ",
    ] {
        let told = failing(&mut client, "getPet", json!({"petId": value})).await;
        assert_eq!(told["error"], "invalid_request", "{value}: {told}");
    }
    assert_eq!(shop.paths(), Vec::<String>::new());
    call(&mut client, "getPet", json!({"petId": "secrets/secret"})).await;
    assert_eq!(shop.paths(), ["GET /v1/pets/secrets%2Fsecret"]);
}

#[tokio::test]
async fn operations_excluded_by_read_only_mode_are_named_and_denied_ones_are_not() {
    let shop = Shop::saying(json!({})).await;
    let selection = OperationSelection::all().deny("createPet").read_only();
    let bridge = shop.bridge(document()).select(selection).list_budget(100).build().unwrap();
    let mut client = connect(&bridge).await;
    for tool in ["describeOperation", "callOperation"] {
        for (name, says) in [
            ("deletePet", "deletePet changes data, and this server is read-only"),
            ("createPet", "unknown operation \"createPet\""),
            ("paintPet", "unknown operation \"paintPet\""),
        ] {
            let said = failing(&mut client, tool, json!({"operation": name})).await;
            assert!(said["message"].as_str().unwrap().starts_with(says), "{said}");
        }
    }
    assert!(shop.seen().is_empty());
}
