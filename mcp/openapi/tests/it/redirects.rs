//! Redirects within the origin of the service. They are followed only to served operations below the base
//! address, because the credential is sent with them.

use bindpost_mcp_openapi::{
    Bridge, BridgeBuilder, Credential, Document, OperationSelection, ParameterLocation, Secret, Upstream,
    UpstreamLimits,
};
use bindpost_mcp_server::{Caller, Identity, ToolHints};
use http::{HeaderName, Method};
use serde_json::{Value, json};

use crate::bridge_pets::{Shop, call, client, connect, document, failing, operation, parameter, serve};

const KEY: &str = "the-key-of-the-operator";

/// Starts a shop that redirects `/status` once, with this status, and answers everything else.
async fn redirecting(status: u16, to: &str) -> Shop {
    let to = to.to_owned();
    Shop::open(move |seen| match seen.path.split('?').next() {
        Some("/v1/status") => (status, vec![("location", to.clone())], Vec::new()),
        _ => crate::bridge_pets::answer(json!({"reached": seen.path})),
    })
    .await
}

fn bridge(shop: &Shop, document: Document) -> BridgeBuilder {
    let credential = Credential::Header(HeaderName::from_static("x-key"), Secret::new(KEY));
    let limits = UpstreamLimits { tries: 1, ..UpstreamLimits::default() };
    Bridge::builder(document, Upstream::new(&shop.base, credential, limits).unwrap())
}

/// Returns the result of a redirected `getStatus`, and the other requests that the shop received.
async fn told(shop: &Shop, builder: BridgeBuilder) -> (Value, Vec<String>) {
    let result = call(&mut connect(&builder.build().unwrap()).await, "getStatus", json!({})).await;
    (result, shop.paths().split_off(1))
}

#[tokio::test]
async fn a_redirect_to_an_excluded_operation_is_not_followed() {
    for to in [
        "/v1/pets/secret",
        "/v1/pets/secret/",
        "/v1/pets/Secret",
        "/v1/pets/%73ecret",
        "/v1/pets/%2573ecret",
        "/v1/pets/secret%2F",
        "/v1/pets/%2Fsecret",
        "/v1/pets//secret",
        "/v1//pets/secret",
        "/v1/pets/secret;a=b",
        "/v1/pets/secret%3Ba",
        "/v1/pets/secret%20",
        "/v1/pets\\secret",
        "/v1/pets%5Csecret",
        "/v1/pets/a/../secret",
        "/v1/pets/a/%2e%2e/secret",
        "/v1/pets/a%2F..%2Fsecret",
        "/v1/pets/./secret",
        "pets/secret?a=b#c",
    ] {
        let shop = redirecting(302, to).await;
        let builder = bridge(&shop, document()).select(OperationSelection::all().deny("getSecret"));
        let (result, asked) = told(&shop, builder).await;
        assert_eq!((&result["isError"], asked), (&json!(true), Vec::<String>::new()), "{to}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("redirects to GET /v1/") && text.contains("is not followed"), "{to}: {text}");
    }
}

#[tokio::test]
async fn a_redirect_outside_the_base_address_is_not_followed() {
    for to in [
        "/",
        "/admin",
        "/v2/pets",
        "/v10/pets",
        "/V1/pets",
        "../pets",
        "/v1/../pets",
        "/v1/%2e%2e/admin",
        "/v1/..%2fadmin",
        "/v1/%252e%252e/admin",
        "/v1/..;/admin",
        "/v1/..%5cadmin",
        "/v1/pets/..%2f..%2fadmin",
        "/v1\\..\\admin",
        "/v1/pets/a%0d%0ab",
        "/v1/unknown",
        "/v1",
    ] {
        for status in [301, 302, 303, 307, 308] {
            let shop = redirecting(status, to).await;
            let (result, asked) = told(&shop, bridge(&shop, document())).await;
            assert_eq!((&result["isError"], asked), (&json!(true), Vec::<String>::new()), "{to}: {result}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("is not followed") && text.contains("operator has to"), "{to}: {text}");
        }
    }
}

#[tokio::test]
async fn a_redirect_to_a_served_operation_is_followed() {
    for (to, reached) in [
        ("/v1/pets/7?kind=dog", "GET /v1/pets/7?kind=dog"),
        ("pets", "GET /v1/pets"),
        ("/v1/status/", "GET /v1/status/"),
        ("pets/a%2Fb", "GET /v1/pets/a%2Fb"),
    ] {
        let shop = redirecting(302, to).await;
        let builder = bridge(&shop, document()).select(OperationSelection::all().deny("getSecret"));
        let (result, asked) = told(&shop, builder).await;
        assert_eq!(asked, [reached], "{to}: {result}");
    }
    // A redirect after POST may lead to the created object.
    let shop = Shop::open(|seen| match seen.method.as_str() {
        "POST" => (303, vec![("location", "/v1/pets/8".to_owned())], Vec::new()),
        _ => crate::bridge_pets::answer(json!({"id": 8})),
    })
    .await;
    let mut client = connect(&bridge(&shop, document()).build().unwrap()).await;
    let made = call(&mut client, "createPet", json!({"body": {"name": "Rex"}})).await;
    assert_eq!(made["structuredContent"], json!({"id": 8}));
    let unserved = bridge(&shop, document()).select(OperationSelection::all().deny("GET *")).build().unwrap();
    failing(&mut connect(&unserved).await, "createPet", json!({"body": {"name": "Rex"}})).await;
    assert_eq!(shop.paths(), ["POST /v1/pets", "GET /v1/pets/8", "POST /v1/pets"]);
}

#[tokio::test]
async fn a_redirect_does_not_exceed_the_called_and_confirmed_operation() {
    // The redirect leads to another pet than the one that the user confirmed.
    let shop = Shop::open(|seen| match seen.path.as_str() {
        "/v1/pets/1" => (308, vec![("location", "/v1/pets/2".to_owned())], Vec::new()),
        _ => crate::bridge_pets::answer(json!({})),
    })
    .await;
    let told = failing(
        &mut connect(&bridge(&shop, document()).build().unwrap()).await,
        "deletePet",
        json!({"petId": "1"}),
    )
    .await;
    assert!(told["message"].as_str().unwrap().contains("confirmation by the user"), "{told}");
    assert_eq!(shop.paths(), ["DELETE /v1/pets/1"]);
    // A read-only GET is redirected to a GET that changes data.
    let shop = redirecting(302, "/v1/pets").await;
    let changing = ToolHints { read_only: false, destructive: false, idempotent: false, open_world: true };
    let (result, asked) = self::told(&shop, bridge(&shop, document()).hints("listPets", changing)).await;
    assert_eq!((&result["isError"], asked), (&json!(true), vec![]), "{result}");
}

#[tokio::test]
async fn a_redirect_requires_the_scopes_of_its_target() {
    let shop = redirecting(302, "/v1/pets/7").await;
    let mut described = document();
    for operation in described.operations.iter_mut().filter(|operation| operation.id == "getPet") {
        operation.scopes = vec!["pets.read".to_owned()];
    }
    let server = serve(&bridge(&shop, described).enforce_scopes().build().unwrap());
    let mut stranger = client(&server, Caller::from(Identity::new("a")), json!({})).await;
    let told = failing(&mut stranger, "getStatus", json!({})).await;
    assert!(told["message"].as_str().unwrap().contains("requires the scopes pets.read"), "{told}");
    let mut reader = client(&server, Caller::from(Identity::new("b").scope("pets.read")), json!({})).await;
    assert_eq!(call(&mut reader, "getStatus", json!({})).await["structuredContent"]["reached"], "/v1/pets/7");
}

#[tokio::test]
async fn a_redirect_cannot_change_fixed_parameters() {
    let shop = redirecting(302, "/v1/pets?api-version=theirs&kind=dog&API%2Dversion=again").await;
    let (_, asked) = told(&shop, bridge(&shop, document()).fixed("api-version", "ours")).await;
    assert_eq!(asked, ["GET /v1/pets?kind=dog&api-version=ours"]);
    // A tenant in the path, changed by a redirect and by a link to the next page.
    let mut described = document();
    let mut list = operation("listRooms", Method::GET, "/tenants/{tenant}/rooms", json!({"type": "array"}));
    list.parameters = vec![parameter("tenant", ParameterLocation::Path, true, json!({"type": "string"}))];
    described.operations.push(list);
    for (to, reached) in
        [("/v1/tenants/other/rooms", vec![]), ("/v1/tenants/own/rooms", vec!["GET /v1/tenants/own/rooms"])]
    {
        let shop = redirecting(302, to).await;
        let (result, asked) = told(&shop, bridge(&shop, described.clone()).fixed("tenant", "own")).await;
        assert_eq!(asked, reached, "{to}: {result}");
    }
    let shop = Shop::saying(json!({"value": [1], "nextLink": "/v1/tenants/other/rooms?page=2"})).await;
    let rooms = bridge(&shop, described).fixed("tenant", "own").build().unwrap();
    let result = call(&mut connect(&rooms).await, "listRooms", json!({})).await;
    assert_eq!(result["structuredContent"]["nextCursor"], Value::Null, "{result}");
}

#[tokio::test]
async fn a_redirect_to_an_operation_with_a_fixed_header_is_not_followed() {
    let shop = redirecting(302, "/v1/pets").await;
    let (result, asked) = told(&shop, bridge(&shop, document()).fixed("X-Tenant", "ours")).await;
    assert_eq!((&result["isError"], asked), (&json!(true), vec![]), "{result}");
}

#[tokio::test]
async fn resources_are_redirected_like_calls() {
    let shop = redirecting(302, "/v1/pets/secret").await;
    let builder = bridge(&shop, document()).select(OperationSelection::all().deny("getSecret"));
    let mut client = connect(&builder.build().unwrap()).await;
    let refused = client.request("resources/read", json!({"uri": "openapi:///status"})).await.unwrap_err();
    assert!(refused.message.contains("is not followed"), "{}", refused.message);
    assert_eq!(shop.paths(), ["GET /v1/status"]);
}
