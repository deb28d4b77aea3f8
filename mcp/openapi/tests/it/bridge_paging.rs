//! Long lists in several pages.

use bindpost_mcp_server::Caller;
use http::Method;
use serde_json::{Value, json};

use crate::bridge_pets::{Shop, answer, call, client, connect, document, failing, operation, serve};

fn pets(from: usize, count: usize) -> Vec<Value> {
    (from..from + count).map(|id| json!({"id": id, "name": "x".repeat(30)})).collect()
}

fn ids(result: &Value, member: &str) -> Vec<u64> {
    let items = result["structuredContent"][member].as_array().expect(member);
    items.iter().map(|item| item["id"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_long_list_is_cut_into_pages_of_whole_items() {
    let shop = Shop::saying(json!(pets(0, 100))).await;
    let bridge = shop.bridge(document()).answer_budget(1500).build().unwrap();
    let mut client = connect(&bridge).await;
    let (mut seen, mut arguments) = (Vec::new(), json!({"kind": "cat"}));
    loop {
        let result = call(&mut client, "listPets", arguments).await;
        assert!(result["structuredContent"].to_string().len() <= 1500);
        seen.extend(ids(&result, "items"));
        match result["structuredContent"]["nextCursor"].as_str() {
            // The same arguments may be repeated.
            Some(cursor) if seen.len() < 50 => arguments = json!({"cursor": cursor, "kind": "cat"}),
            Some(cursor) => arguments = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(seen, (0..100).collect::<Vec<u64>>());
    assert!(shop.paths().iter().all(|path| path == "GET /v1/pets?kind=cat"), "{:?}", shop.paths());
}

#[tokio::test]
async fn the_services_own_pages_are_followed() {
    let shop = Shop::open(|seen| {
        let host = seen.headers["host"].to_str().unwrap();
        let page: usize = seen.path.split("page=").nth(1).and_then(|page| page.parse().ok()).unwrap_or(0);
        let next = format!("http://{host}/v1/pets?page={}", page + 1);
        let mut reply = answer(json!(pets(page * 40, 40)));
        if page < 2 {
            reply.1.push(("link", format!("<{next}>; rel=\"next\"")));
        }
        reply
    })
    .await;
    let bridge = shop.bridge(document()).answer_budget(1500).build().unwrap();
    let mut client = connect(&bridge).await;
    let (mut seen, mut arguments) = (Vec::new(), json!({}));
    loop {
        let result = call(&mut client, "listPets", arguments).await;
        seen.extend(ids(&result, "items"));
        match result["structuredContent"]["nextCursor"].as_str() {
            Some(cursor) => arguments = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(seen, (0..120).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_link_in_a_member_is_followed_with_the_fixed_parameters() {
    let shop = Shop::open(|seen| match seen.path.contains("page=2") {
        true => answer(json!({"value": pets(2, 1)})),
        false => answer(json!({"value": pets(0, 2), "@odata.nextLink": "/v1/pets?page=2&api-version=7"})),
    })
    .await;
    let mut document = document();
    document.operations[0].items = Some("value".to_owned());
    document.operations[0].next_link = Some("@odata.nextLink".to_owned());
    let bridge = shop.bridge(document).fixed("api-version", "7").build().unwrap();
    let mut client = connect(&bridge).await;
    let first = call(&mut client, "listPets", json!({})).await;
    let cursor = first["structuredContent"]["nextCursor"].clone();
    assert_eq!(first["structuredContent"].get("@odata.nextLink"), None, "the cursor replaces it");
    let second = call(&mut client, "listPets", json!({"cursor": cursor})).await;
    assert_eq!(ids(&second, "value"), [2]);
    assert_eq!(second["structuredContent"]["hasMore"], false);
    assert_eq!(shop.paths(), ["GET /v1/pets?api-version=7", "GET /v1/pets?page=2&api-version=7"]);
}

#[tokio::test]
async fn a_link_to_another_origin_is_not_followed() {
    for link in ["http://evil.example/v1/pets?page=2", "//evil.example/v1/pets", "/v2/pets?page=2"] {
        let shop = Shop::saying(json!({"items": [1], "nextLink": link})).await;
        let mut client = connect(&shop.bridge(document()).build().unwrap()).await;
        let result = call(&mut client, "listPets", json!({})).await;
        assert_eq!(result["structuredContent"].get("nextCursor"), None, "{link}");
    }
}

#[tokio::test]
async fn a_cursor_is_bound_to_its_operation_its_caller_and_its_arguments() {
    let shop = Shop::saying(json!(pets(0, 100))).await;
    let mut document = document();
    document.operations.push(operation("listOthers", Method::GET, "/others", json!({"type": "array"})));
    for budget in [100_000, 100] {
        let bridge = shop.bridge(document.clone()).answer_budget(1500).list_budget(budget).build().unwrap();
        let server = serve(&bridge);
        let mut ada = client(&server, Caller::new("ada"), json!({})).await;
        let mut eve = client(&server, Caller::new("eve"), json!({})).await;
        let arguments = |operation: &str, cursor: Option<&str>, kind: Option<&str>| {
            let mut inner = json!({});
            if let Some(kind) = kind {
                inner["kind"] = kind.into();
            }
            match budget {
                100 => {
                    let given = json!({"operation": operation, "arguments": inner, "cursor": cursor});
                    let mut given = given.as_object().unwrap().clone();
                    given.retain(|_, value| !value.is_null());
                    ("callOperation".to_owned(), Value::Object(given))
                }
                _ => {
                    if let Some(cursor) = cursor {
                        inner["cursor"] = cursor.into();
                    }
                    (operation.to_owned(), inner)
                }
            }
        };
        let (tool, given) = arguments("listPets", None, Some("cat"));
        let first = call(&mut ada, &tool, given).await;
        let cursor = first["structuredContent"]["nextCursor"].as_str().unwrap().to_owned();
        let asked = shop.seen().len();
        for (who, operation, cursor, kind, says) in [
            ("eve", "listPets", cursor.as_str(), None, "did not return it to this caller"),
            ("ada", "listOthers", &cursor, None, "did not return it to this caller"),
            ("ada", "listPets", "AAAA", None, "did not return it to this caller"),
            ("ada", "listPets", &cursor, Some("dog"), "argument \"kind\" differs from the call"),
        ] {
            let (tool, given) = arguments(operation, Some(cursor), kind);
            let who = if who == "ada" { &mut ada } else { &mut eve };
            let said = failing(who, &tool, given).await;
            assert!(said["message"].as_str().unwrap().contains(says), "{said}");
        }
        assert_eq!(shop.seen().len(), asked);
        let (tool, given) = arguments("listPets", Some(&cursor), None);
        assert!(ids(&call(&mut ada, &tool, given).await, "items")[0] > 0);
    }
}

#[tokio::test]
async fn an_operation_with_side_effects_is_not_repeated_for_its_next_page() {
    let shop = Shop::saying(json!({"made": pets(0, 100)})).await;
    let bridge = shop.bridge(document()).answer_budget(1500).build().unwrap();
    let mut client = connect(&bridge).await;
    let result = call(&mut client, "createPet", json!({"body": {"name": "Rex"}})).await;
    assert_eq!(result["structuredContent"]["hasMore"], true, "{result}");
    assert_eq!(result["structuredContent"].get("nextCursor"), None);
    assert!(result["structuredContent"]["note"].is_string());
    assert_eq!(shop.seen().len(), 1);
}

#[tokio::test]
async fn an_operation_with_a_cursor_of_its_own_keeps_it() {
    let shop = Shop::saying(json!({"items": pets(0, 100), "nextCursor": "theirs too"})).await;
    let mut document = document();
    let text = json!({"type": "string"});
    document.operations[0].parameters = vec![crate::bridge_pets::parameter(
        "cursor",
        bindpost_mcp_openapi::ParameterLocation::Query,
        false,
        text,
    )];
    let bridge = shop.bridge(document).answer_budget(1500).build().unwrap();
    let mut client = connect(&bridge).await;
    let first = call(&mut client, "listPets", json!({"cursor": "theirs"})).await;
    assert_eq!(first["structuredContent"]["nextCursor"], "theirs too");
    let ours = first["structuredContent"]["nextAnswerCursor"].clone();
    let second = call(&mut client, "listPets", json!({"answerCursor": ours})).await;
    assert!(ids(&second, "items")[0] > 0);
    assert_eq!(shop.paths(), ["GET /v1/pets?cursor=theirs", "GET /v1/pets?cursor=theirs"]);
}

#[tokio::test]
async fn a_requested_page_does_not_report_the_end_of_the_list() {
    let shop = Shop::saying(json!(pets(0, 3))).await;
    for (name, says) in [("offset", None), ("$skip", None), ("limit", Some(false))] {
        let mut document = document();
        let number = json!({"type": "integer"});
        document.operations[0].parameters = vec![crate::bridge_pets::parameter(
            name,
            bindpost_mcp_openapi::ParameterLocation::Query,
            false,
            number,
        )];
        let bridge = shop.bridge(document).build().unwrap();
        let told = call(&mut connect(&bridge).await, "listPets", json!({})).await;
        assert_eq!(told["structuredContent"]["hasMore"].as_bool(), says, "{name}");
    }
}

#[tokio::test]
async fn every_response_that_may_be_cut_has_a_cursor_and_a_single_object_has_no_has_more() {
    let shop = Shop::open(|seen| {
        let count = if seen.path.contains("status") { 100 } else { 1 };
        answer(json!({"open": true, "log": pets(0, count)}))
    })
    .await;
    let mut document = document();
    for operation in &mut document.operations {
        if operation.id == "getPet" {
            operation.responses[0].schema =
                Some(json!({"type": "object", "properties": {"log": {"type": "array"}}}));
        }
    }
    let bare = crate::bridge_pets::operation;
    document.operations.push(bare("count", http::Method::GET, "/count", json!({"type": "integer"})));
    document.operations.push(bare("any", http::Method::GET, "/any", json!({})));
    let mut client = connect(&shop.bridge(document).answer_budget(2000).build().unwrap()).await;
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let takes = |tool: &&Value| tool["inputSchema"]["properties"]["cursor"].is_object();
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(takes)
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["listPets", "getPet", "getSecret", "getStatus", "any"]);
    let one = call(&mut client, "getPet", json!({"petId": "1"})).await["structuredContent"].clone();
    assert!(one.get("hasMore").is_none(), "{one}");
    let cut = call(&mut client, "getStatus", json!({})).await["structuredContent"].clone();
    assert_eq!(cut["hasMore"], true, "{cut}");
    let rest = call(&mut client, "getStatus", json!({"cursor": cut["nextCursor"]})).await;
    assert!(rest["structuredContent"]["log"][0]["id"].as_u64().unwrap() > 0, "{rest}");
}
