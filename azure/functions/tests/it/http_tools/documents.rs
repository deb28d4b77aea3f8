//! Tools that an OpenAPI document describes.

use super::*;
use crate::client::Way;

for_python_and_node!(
    operations_belong_to_functions_by_method_and_path,
    a_document_that_cannot_be_read_leaves_out_all_tools,
    operations_are_selected_by_their_ids,
);

fn document(servers: Value, paths: Value) -> String {
    json!({"openapi": "3.0.0", "info": {"title": "Orders", "version": "1"}, "servers": servers, "paths": paths}).to_string()
}

/// Describes two methods of one function, another function in other words, and a path that no function answers.
fn paths() -> Value {
    let responses = json!({"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}});
    let id = json!({"name": "orderId", "in": "path", "required": true, "schema": {"type": "integer"}});
    json!({
        "/Orders/{orderId}": {"get": {"operationId": "readOrder", "summary": "Reads an order.", "parameters": [id], "responses": responses}},
        "/orders": {
            "get": {"operationId": "listOrders", "summary": "Lists orders.", "responses": responses,
                "parameters": [{"name": "state", "in": "query", "schema": {"type": "string", "enum": ["open", "done"]}}]},
            "post": {"operationId": "createOrder", "summary": "Creates an order.", "responses": responses,
                "requestBody": {"required": true, "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}}},
        },
        "/elsewhere/at/all": {"get": {"operationId": "elsewhere", "responses": responses}},
    })
}

async fn operations_belong_to_functions_by_method_and_path(language: Language) {
    for (file, servers, member) in [
        ("openapi.json", json!([{"url": "/api"}]), json!(["GetOrder", "Orders", "Reply"])),
        (
            "swagger.json",
            json!([{"url": "https://orders.example/api/"}]),
            json!(["GetOrder", "Orders", "Reply"]),
        ),
        (
            "docs/api.yaml",
            json!([]),
            json!({"include": ["GetOrder", "Orders", "Reply"], "openapi": "docs/api.yaml"}),
        ),
    ] {
        // JSON is YAML.
        let host = launch_with(language, &member).file(file, &document(servers, paths())).serve();
        assert_eq!(http_tools(&host), ["readOrder", "listOrders", "createOrder", "Reply"], "{file}");
        let row = host.report.tools.iter().find(|tool| tool.name == "createOrder").unwrap();
        assert_eq!((row.function.as_str(), row.http.as_deref()), ("Orders", Some("POST /api/orders")));
        for client in &mut host.clients().await {
            let tools = client.list("tools/list", "tools").await;
            let create = tools.iter().find(|tool| tool["name"] == "createOrder").unwrap();
            assert_eq!(create["description"], "Creates an order.");
            assert_eq!(create["inputSchema"]["required"], json!(["body"]));
            assert_eq!(content(client, "readOrder", json!({"orderId": 7})).await["id"], "7");
            assert_eq!(
                content(client, "listOrders", json!({"state": "open"})).await["query"],
                json!({"state": "open"})
            );
            let seen = content(client, "createOrder", json!({"body": {"name": "n"}})).await;
            assert_eq!((&seen["method"], &seen["body"]), (&json!("POST"), &json!("{\"name\":\"n\"}")));
            let failed = failure(client, "createOrder", json!({"body": {}})).await;
            assert_eq!(failed["error"], "invalid_request");
            assert_eq!(client.text("Reply", json!({"kind": "text"})).await, "plain");
        }
    }
}

async fn a_document_that_cannot_be_read_leaves_out_all_tools(language: Language) {
    let begin = "no HTTP function is a tool, because the OpenAPI document cannot be read: ";
    for (file, text, member, says) in [
        ("openapi.json", "{\n \"openapi\": 3,\n", json!(true), "openapi.json:3:"),
        ("openapi.yaml", "a: [", json!(["GetOrder"]), "openapi.yaml"),
        ("openapi.json", "{}", json!(true), "it has neither `openapi` nor `swagger`"),
        ("x.json", "{}", json!({"openapi": "y.json"}), "the file y.json does not exist"),
        ("x.json", "{}", json!({"openapi": "/api/none.json"}), "no function answers GET /api/none.json"),
        (
            "x.json",
            "{}",
            json!({"openapi": "/api/reply/missing"}),
            "function Reply answers GET /api/reply/missing with status 404",
        ),
        (
            "x.json",
            "{}",
            json!({"openapi": "/api/reply/latin"}),
            "the answer to GET /api/reply/latin is not UTF-8",
        ),
    ] {
        let host = launch_with(language, &member).file(file, text).serve();
        assert_eq!(http_tools(&host), [""; 0], "{file}");
        let told = warnings(&host, begin);
        assert!(
            told.len() == 1 && told[0].0.contains(says) && !told[0].1.is_empty(),
            "{file} {text}: {told:?}"
        );
    }
}

async fn operations_are_selected_by_their_ids(language: Language) {
    let member = json!({"include": ["list*", "Reply"], "exclude": []});
    let host = launch_with(language, &member).file("openapi.json", &document(json!([]), paths())).serve();
    assert_eq!(http_tools(&host), ["listOrders", "Reply"]);
    let member = json!({"exclude": ["create*", "GetOrder", "elsewhere"], "include": ["Orders", "GetOrder"]});
    let host = launch_with(language, &member).file("openapi.json", &document(json!([]), paths())).serve();
    assert_eq!(http_tools(&host), ["listOrders"]);
    assert_eq!(warnings(&host, "matches no function").len(), 1, "no function answers the path of elsewhere");
    // Operations of one name: a tool by an MCP trigger, and two that differ in case.
    let get = |id: &str| json!({"get": {"operationId": id, "responses": {}}});
    let paths = json!({"/orders/{id}": get("GREET"), "/orders": get("List"), "/moved": get("LIST"), "/greet": get("other")});
    let host = launch_with(language, &json!(["GetOrder", "Orders", "Moved", "Greet"]))
        .file("openapi.json", &document(json!([]), paths))
        .serve();
    assert_eq!(http_tools(&host), ["other", "LIST"]);
    let told = warnings(&host, "is left out");
    assert_eq!(told.len(), 2, "{told:?}");
    let mut client = host.client(Way::LATEST).await;
    assert_eq!(client.text("other", json!({})).await, "Hello from HTTP.");
}
