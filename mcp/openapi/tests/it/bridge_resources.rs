//! Operations and schemas as resources.

use http::Method;
use serde_json::{Value, json};

use crate::bridge_pets::{Shop, answer, connect, document, operation, parameter};
use bindpost_mcp_openapi::ParameterLocation;

#[tokio::test]
async fn get_operations_that_need_only_a_path_can_be_read() {
    let shop = Shop::open(|seen| match seen.path.as_str() {
        "/v1/pets/7" => {
            (200, vec![("content-type", "application/vnd.pet+json".into())], b"{ \"id\": 7 }".to_vec())
        }
        "/v1/status" => (200, vec![("content-type", "text/plain".into())], b"open".to_vec()),
        "/v1/pets" => (200, vec![("content-type", "image/png".into())], vec![0x89, 0x50]),
        "/v1/pets/500" => (500, vec![], b"broken".to_vec()),
        _ => (404, vec![], Vec::new()),
    })
    .await;
    let mut document = document();
    let mut needs_more = operation("needsMore", Method::GET, "/more/{id}", json!({}));
    needs_more.parameters = vec![
        parameter("id", ParameterLocation::Path, true, json!({"type": "string"})),
        parameter("q", ParameterLocation::Query, true, json!({"type": "string"})),
    ];
    document.operations.push(needs_more);
    // This template has the same shape as that of getPet, so it would be ambiguous.
    let mut same = operation("same", Method::GET, "/pets/{name}", json!({}));
    same.parameters = vec![parameter("name", ParameterLocation::Path, true, json!({"type": "string"}))];
    document.operations.push(same);
    let mut client = connect(&shop.bridge(document).scheme("shop").build().unwrap()).await;
    let uris = |listed: &Value, list: &str, member: &str| -> Vec<String> {
        let listed = listed[list].as_array().unwrap();
        listed.iter().map(|one| one[member].as_str().unwrap().to_owned()).collect()
    };
    let listed = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(uris(&listed, "resources", "uri"), ["shop:///pets", "shop:///pets/secret", "shop:///status"]);
    let listed = client.request("resources/templates/list", json!({})).await.unwrap();
    let templates = uris(&listed, "resourceTemplates", "uriTemplate");
    assert_eq!(templates, ["shop-schema://{definition}", "shop:///pets/{petId}"]);

    let mut read = async |uri: &str| client.request("resources/read", json!({"uri": uri})).await;
    let pet = read("shop:///pets/7").await.unwrap();
    let expected =
        json!({"uri": "shop:///pets/7", "mimeType": "application/vnd.pet+json", "text": "{ \"id\": 7 }"});
    assert_eq!(pet["contents"][0], expected);
    let status = read("shop:///status").await.unwrap();
    assert_eq!(
        (&status["contents"][0]["text"], &status["contents"][0]["mimeType"]),
        (&json!("open"), &json!("text/plain"))
    );
    assert_eq!(read("shop:///pets").await.unwrap()["contents"][0]["blob"], "iVA=");
    assert_eq!(read("shop:///pets/none").await.unwrap_err().code, -32002);
    let broken = read("shop:///pets/500").await.unwrap_err();
    assert_eq!((broken.message.as_str(), &broken.data.as_ref().unwrap()["status"]), ("broken", &json!(500)));
    let before = shop.seen().len();
    for uri in ["shop:///pets/..", "shop:///pets/%2e%2e", "shop:///pets/a%2Fb", "shop:///pets/%00"] {
        assert_eq!(read(uri).await.unwrap_err().code, -32002, "{uri}");
    }
    assert_eq!(shop.seen().len(), before);
}

#[tokio::test]
async fn schemas_of_definitions_and_operations_can_be_read_and_completed() {
    let shop = Shop::open(|_| answer(json!({}))).await;
    let mut client = connect(&shop.bridge(document()).build().unwrap()).await;
    let mut read = async |uri: &str| {
        let read = client.request("resources/read", json!({"uri": uri})).await.unwrap();
        serde_json::from_str::<Value>(read["contents"][0]["text"].as_str().unwrap()).unwrap()
    };
    assert_eq!(read("openapi-schema://Status").await["properties"]["open"]["type"], "boolean");
    let operation = read("openapi-schema://createPet").await;
    assert_eq!(operation["inputSchema"]["properties"]["body"]["properties"]["name"]["maxLength"], 5);
    let completion = json!({"ref": {"type": "ref/resource", "uri": "openapi-schema://{definition}"},
        "argument": {"name": "definition", "value": "sec"}});
    let completed = client.request("completion/complete", completion).await.unwrap();
    assert_eq!(completed["completion"]["values"], json!(["Secret"]));
    assert!(shop.seen().is_empty());
}

#[tokio::test]
async fn numbers_in_a_path_are_numbers() {
    let shop = Shop::saying(json!({"ok": true})).await;
    let mut document = document();
    document.operations[1].parameters[0].schema = json!({"type": "integer"});
    let mut client = connect(&shop.bridge(document).build().unwrap()).await;
    assert!(client.request("resources/read", json!({"uri": "openapi:///pets/7"})).await.is_ok());
    assert!(client.request("resources/read", json!({"uri": "openapi:///pets/seven"})).await.is_err());
    assert_eq!(shop.paths(), ["GET /v1/pets/7"]);
}
