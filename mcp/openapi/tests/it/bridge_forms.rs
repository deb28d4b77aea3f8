//! The form of the tools and their definitions.

use bindpost_mcp_openapi::{OperationSelection, ParameterLocation, ToolForm};
use bindpost_mcp_server::ToolHints;
use http::Method;
use serde_json::{Value, json};

use crate::bridge_pets::{Shop, call, connect, document, failing, operation, parameter, tool_names};

#[tokio::test]
async fn the_form_is_the_first_that_fits_the_budget() {
    let shop = Shop::saying(json!({})).await;
    let whole = shop.bridge(document()).build().unwrap();
    assert_eq!(whole.form(), ToolForm::Whole);
    let exact = shop.bridge(document()).list_budget(whole.list_bytes()).build().unwrap();
    assert_eq!((exact.form(), exact.list_bytes()), (ToolForm::Whole, whole.list_bytes()));
    let short = shop.bridge(document()).list_budget(whole.list_bytes() - 1).build().unwrap();
    assert_eq!(short.form(), ToolForm::Short);
    let three = shop.bridge(document()).list_budget(100).build().unwrap();
    assert_eq!((three.form(), three.tool_count()), (ToolForm::ThreeTools, 3));
    for bridge in [whole, short, three] {
        let mut client = connect(&bridge).await;
        let listed = client.request("tools/list", json!({})).await.unwrap();
        assert_eq!(listed.to_string().len(), bridge.list_bytes(), "{:?}", bridge.form());
        assert_eq!(listed["tools"].as_array().unwrap().len(), bridge.tool_count());
        assert!(listed["tools"].as_array().unwrap().iter().all(|tool| tool.get("_meta").is_none()));
    }
}

#[tokio::test]
async fn a_tool_has_plain_text_and_the_hints_of_its_verb() {
    let shop = Shop::saying(json!({})).await;
    let reading = ToolHints { read_only: true, destructive: false, idempotent: true, open_world: true };
    let bridge = shop.bridge(document()).hints("searchPets", reading).build().unwrap();
    let mut client = connect(&bridge).await;
    let listed = client.request("tools/list", json!({})).await.unwrap();
    let tool = |name: &str| {
        let mut tools = listed["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap().clone()
    };
    assert_eq!(tool("listPets")["description"], "Lists pets. Gives all pets. See here .");
    assert_eq!(tool("listPets")["outputSchema"]["type"], "object");
    assert_eq!(tool("listPets")["outputSchema"]["properties"]["items"]["type"], json!(["array", "null"]));
    let hint = |name: &str, hint: &str| tool(name)["annotations"][hint].clone();
    assert_eq!(hint("listPets", "readOnlyHint"), true);
    assert_eq!(hint("createPet", "readOnlyHint"), false);
    assert_eq!(hint("deletePet", "destructiveHint"), true);
    assert_eq!(hint("searchPets", "readOnlyHint"), true);
}

#[tokio::test]
async fn names_are_valid_for_all_clients() {
    let shop = Shop::saying(json!({"ok": true})).await;
    let mut document = document();
    document.operations = vec![
        operation("pets/list all", Method::GET, "/a", json!({})),
        operation("pets_list_all", Method::GET, "/b", json!({})),
        operation(&"long".repeat(40), Method::GET, "/c", json!({})),
    ];
    let mut client = connect(&shop.bridge(document).build().unwrap()).await;
    let names = tool_names(&mut client).await;
    assert_eq!(names[0], "pets_list_all");
    for name in &names {
        assert!(name.len() <= 64, "{name}");
        assert_eq!(call(&mut client, name, json!({})).await["structuredContent"], json!({"ok": true}));
    }
    assert_eq!(shop.paths(), ["GET /v1/a", "GET /v1/b", "GET /v1/c"]);
}

#[tokio::test]
async fn arguments_are_checked_against_the_whole_schema() {
    let shop = Shop::saying(json!({})).await;
    let mut client = connect(&shop.bridge(document()).build().unwrap()).await;
    for (tool, arguments, says) in [
        ("createPet", json!({}), "\\\"body\\\" is a required property"),
        ("createPet", json!({"body": {"name": "too long"}}), "/body/name"),
        ("getPet", json!({"petid": "1"}), "did you mean \\\"petId\\\""),
        ("getPet", json!({"petId": 1}), "/petId"),
        ("listPets", json!({"cursor": 7}), "must be a string"),
    ] {
        let result = call(&mut client, tool, arguments.clone()).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true && text.contains(says), "{tool} {arguments}: {text}");
        assert!(text.starts_with(r#"{"error":"invalid_request""#), "{text}");
    }
    assert!(shop.seen().is_empty());
}

#[tokio::test]
async fn null_is_the_same_as_unset() {
    let shop = Shop::open(|seen| crate::bridge_pets::answer(json!({"body": seen.body}))).await;
    let mut document = document();
    for body in document.operations.iter_mut().filter_map(|operation| operation.body.as_mut()) {
        body.schema["properties"]["tags"] = json!({"type": "array", "items": {"type": "string"}});
    }
    let mut client = connect(&shop.bridge(document).build().unwrap()).await;
    let made = call(&mut client, "createPet", json!({"body": {"name": "Rex", "tags": null}})).await;
    assert_eq!(made["structuredContent"]["body"], r#"{"name":"Rex","tags":null}"#);
    for wrong in [json!({"name": null}), json!({"name": "Rex", "tags": [null]})] {
        let said = failing(&mut client, "createPet", json!({"body": wrong})).await;
        assert_eq!(said["error"], "invalid_request");
    }
}

#[tokio::test]
async fn a_schema_that_does_not_compile_validates_nothing() {
    let shop = Shop::saying(json!({"ok": 1})).await;
    let mut document = document();
    for operation in &mut document.operations {
        if let Some(body) = &mut operation.body {
            body.schema = json!({"type": 7});
        }
    }
    let mut client = connect(&shop.bridge(document).fixed("api-version", "1").build().unwrap()).await;
    let result = call(&mut client, "createPet", json!({"body": {"name": "anything"}})).await;
    assert_eq!(result["structuredContent"], json!({"ok": 1}));
}

#[tokio::test]
async fn fixed_parameters_are_sent_and_hidden_from_callers() {
    let shop = Shop::saying(json!([])).await;
    let bridge = shop.bridge(document()).fixed("api-version", "2025-01-01").fixed("x-tenant", "acme");
    let bridge = bridge.build().unwrap();
    let mut client = connect(&bridge).await;
    let listed = client.request("tools/list", json!({})).await.unwrap().to_string();
    assert!(!listed.contains("api_version") && !listed.contains("2025-01-01") && !listed.contains("Tenant"));
    call(&mut client, "listPets", json!({"kind": "cat"})).await;
    // Models write null for arguments they omit.
    call(&mut client, "listPets", json!({"kind": null, "cursor": null})).await;
    let seen = shop.seen();
    assert!(
        seen[0].path.contains("kind=cat") && seen[0].path.contains("api-version=2025"),
        "{}",
        seen[0].path
    );
    assert_eq!(seen[0].headers["x-tenant"], "acme");
    let said = failing(&mut client, "listPets", json!({"api_version": "1999"})).await;
    assert_eq!(said["error"], "invalid_request");
    assert_eq!(shop.seen().len(), 2);
}

#[tokio::test]
async fn credential_headers_are_not_arguments() {
    let shop = Shop::saying(json!([])).await;
    let mut document = document();
    let text = json!({"type": "string"});
    document.operations[0].parameters.push(parameter(
        "Authorization",
        ParameterLocation::Header,
        false,
        text,
    ));
    let mut client = connect(&shop.bridge(document).build().unwrap()).await;
    let listed = client.request("tools/list", json!({})).await.unwrap().to_string();
    assert!(!listed.contains("Authorization"), "{listed}");
    let said = failing(&mut client, "listPets", json!({"Authorization": "Bearer stolen"})).await;
    assert_eq!(said["error"], "invalid_request");
    assert!(shop.seen().is_empty());
}

#[tokio::test]
async fn three_tools_find_describe_and_call() {
    let shop =
        Shop::open(|seen| crate::bridge_pets::answer(json!({"path": seen.path, "body": seen.body}))).await;
    let bridge = shop.bridge(document()).list_budget(100).build().unwrap();
    let mut client = connect(&bridge).await;
    assert_eq!(tool_names(&mut client).await, ["findOperations", "describeOperation", "callOperation"]);

    let found = call(&mut client, "findOperations", json!({"query": "delete pets"})).await;
    let first = &found["structuredContent"]["items"][0];
    assert_eq!(first["operation"], "deletePet", "{found}");
    assert_eq!((&first["method"], &first["path"]), (&json!("DELETE"), &json!("/pets/{petId}")));
    assert_eq!((&first["readOnly"], &first["destructive"]), (&json!(false), &json!(true)));
    let ids = |result: &Value| -> Vec<String> {
        let items = result["structuredContent"]["items"].as_array().unwrap();
        items.iter().map(|item| item["operation"].as_str().unwrap().to_owned()).collect()
    };
    let by_tag = call(&mut client, "findOperations", json!({"tag": "Admin"})).await;
    assert_eq!(ids(&by_tag), ["getSecret"]);
    let by_method = call(&mut client, "findOperations", json!({"method": "post"})).await;
    assert_eq!(ids(&by_method), ["createPet", "searchPets"]);
    let nothing = call(&mut client, "findOperations", json!({"query": "zebra"})).await;
    assert_eq!(nothing["structuredContent"]["tags"], json!(["admin", "pets"]));

    let (mut all, mut page) = (Vec::new(), json!({"limit": 3}));
    loop {
        let result = call(&mut client, "findOperations", page).await;
        all.extend(ids(&result));
        match result["structuredContent"]["nextCursor"].as_str() {
            Some(cursor) => page = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(all.len(), 7);

    let described = call(&mut client, "describeOperation", json!({"operation": "createPet"})).await;
    let body = &described["structuredContent"]["inputSchema"]["properties"]["body"];
    assert_eq!(body["properties"]["name"]["maxLength"], 5);
    let definition = call(&mut client, "describeOperation", json!({"definition": "Status"})).await;
    assert_eq!(definition["structuredContent"]["schema"]["properties"]["open"]["type"], "boolean");
    for (tool, arguments) in [
        ("describeOperation", json!({"operation": "createPets"})),
        ("callOperation", json!({"operation": "createPets"})),
    ] {
        let said = failing(&mut client, tool, arguments).await;
        assert!(said["message"].as_str().unwrap().contains("did you mean \"createPet\""), "{said}");
    }
    let said = failing(&mut client, "describeOperation", json!({"definition": "Statuss"})).await;
    assert!(said["message"].as_str().unwrap().contains("did you mean \"Status\""), "{said}");
    let said = failing(&mut client, "describeOperation", json!({})).await;
    assert!(said["message"].as_str().unwrap().contains("`operation`"), "{said}");

    for arguments in [json!({"body": {"name": "Rex"}}), json!(r#"{"body":{"name":"Rex"}}"#)] {
        let given = json!({"operation": "createPet", "arguments": arguments});
        let made = call(&mut client, "callOperation", given).await;
        assert_eq!(made["structuredContent"], json!({"path": "/v1/pets", "body": "{\"name\":\"Rex\"}"}));
    }
    let given = json!({"operation": "createPet", "arguments": {"body": {"name": "too long"}}});
    assert_eq!(failing(&mut client, "callOperation", given).await["error"], "invalid_request");
    let given = json!({"operation": "getPet", "arguments": "[]"});
    assert_eq!(failing(&mut client, "callOperation", given).await["error"], "invalid_request");
}

#[tokio::test]
async fn a_large_schema_is_described_in_short_with_the_names_of_its_parts() {
    let shop = Shop::saying(json!({})).await;
    let mut document = document();
    let many: serde_json::Map<String, Value> =
        (0..2000).map(|n| (format!("property{n}"), json!({"type": "string"}))).collect();
    document.operations[2].body.as_mut().unwrap().schema =
        json!({"type": "object", "properties": many, "$defs": {"Part": {"type": "object"}}});
    let bridge = shop.bridge(document).list_budget(100).select(OperationSelection::all()).build().unwrap();
    let mut client = connect(&bridge).await;
    let described = call(&mut client, "describeOperation", json!({"operation": "createPet"})).await;
    assert!(described["structuredContent"]["definitions"].is_array(), "definitions are named");
}

#[tokio::test]
async fn an_unknown_argument_is_reported_with_the_known_names_required_ones_first() {
    let shop = Shop::saying(json!({})).await;
    let mut document = document();
    let text = json!({"type": "string"});
    let place = bindpost_mcp_openapi::ParameterLocation::Query;
    for operation in document.operations.iter_mut().filter(|operation| operation.id == "listPets") {
        let many = (0..60).map(|n| format!("aVeryLongNameOfAParameter{n}"));
        operation.parameters =
            many.map(|name| crate::bridge_pets::parameter(&name, place, false, text.clone())).collect();
        let needed = crate::bridge_pets::parameter("zConfiguration", place, true, text.clone());
        operation.parameters.push(needed);
    }
    let mut client = connect(&shop.bridge(document).build().unwrap()).await;
    let said = failing(&mut client, "listPets", json!({"colour": "red"})).await;
    let said = said["message"].as_str().unwrap();
    assert!(said.contains("\"colour\" is unknown\n- known: zConfiguration (needed), aVery"), "{said}");
    let names = said.split("known: ").nth(1).unwrap().lines().next().unwrap();
    assert!(names.split(", ").skip(1).all(|name| name.starts_with("aVeryLongNameOfAParameter")), "{names}");
}
