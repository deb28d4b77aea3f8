//! Arguments that try to leave their place in the request, or to reach a function that is not the tool.

use super::*;
use crate::client::Way;

for_python_and_node!(
    path_arguments_cannot_reach_other_functions,
    query_arguments_stay_in_the_query,
    headers_cannot_be_injected,
    large_bodies_are_rejected,
);

async fn path_arguments_cannot_reach_other_functions(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    let elsewhere = "these arguments, or a redirect, address another function, which this tool does not call";
    for (area, name) in [
        ("orders", "abc"),
        ("orders", "7"),
        ("hidden", "x"),
        ("HIDDEN", "%78"),
        ("rest", "a"),
        ("reply", "text"),
    ] {
        let failed = failure(&mut client, "Wild", json!({"area": area, "name": name})).await;
        assert_eq!(failed, json!({"error": "invalid_request", "message": elsewhere}), "{area} {name}");
    }
    // A slash stays in its segment.
    assert_eq!(
        content(&mut client, "Wild", json!({"area": "hidden/x", "name": "y"})).await["area"],
        "hidden%2Fx"
    );
    for text in [
        "..",
        ".",
        "%2e%2e",
        "a/../hidden/x",
        "..;/hidden",
        "..\\hidden",
        "%252e%252e/hidden/x",
        "a\nb",
        "\u{0}",
    ] {
        for (tool, argument) in
            [("Wild", "area"), ("Wild", "name"), ("Rest", "path"), ("Parts", "first"), ("Parts", "second")]
        {
            let mut arguments = if tool == "Wild" { json!({"area": "a", "name": "b"}) } else { json!({}) };
            arguments[argument] = json!(text);
            let result = client.call(tool, arguments).await;
            let shown = result["content"][0]["text"].as_str().unwrap();
            assert!(result["isError"] == true && shown.contains(argument), "{tool} {text:?}: {result}");
        }
    }
    for text in ["a/./b", "a/..", "../hidden/x", "//../hidden/x"] {
        let failed = failure(&mut client, "Rest", json!({"path": text})).await;
        assert!(failed["message"].as_str().unwrap().contains("must not be `.` or `..`"), "{text}: {failed}");
    }
    // Empty segments and absolute addresses stay below the route.
    let seen = content(&mut client, "Rest", json!({"path": "//evil.example/x"})).await;
    assert_eq!(seen["url"], "http://localhost/api/rest/evil.example/x");
    for id in
        [json!("7/../hidden"), json!(0), json!(1.5), json!(null), json!([1]), json!({"a": 1}), json!("7")]
    {
        let failed = failure(&mut client, "GetOrder", json!({"id": id})).await;
        assert_eq!(failed["error"], "invalid_request", "{id}");
    }
    // It satisfies the schema, but not the constraint of the route.
    let failed = failure(&mut client, "GetOrder", json!({"id": 9_000_000_000_u64})).await;
    assert_eq!(failed["message"], elsewhere);
}

async fn query_arguments_stay_in_the_query(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    let query = json!({"a&b=c": "d&e=f#g", "path": "/../x", "code": "key", "": "x", "ü": "\r\nX-Evil: 1"});
    let seen = content(&mut client, "Orders", json!({"method": "GET", "query": query})).await;
    assert_eq!(seen["query"], query);
    let failed = failure(&mut client, "Orders", json!({"method": "GET", "query": {"a": {"b": 1}}})).await;
    assert_eq!(failed["error"], "invalid_request");
}

async fn headers_cannot_be_injected(language: Language) {
    let parameter = |name: &str| json!({"name": name, "in": "header", "schema": {"type": "string"}});
    let names = [
        "x-ms-client-principal-id",
        "x-functions-key",
        "x-mcp-session-id",
        "traceparent",
        "X-Forwarded-For",
        "Forwarded",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "x-free",
    ];
    let document = json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {"/orders/{id}": {"get": {
        "operationId": "order", "responses": {}, "parameters": names.map(parameter)}}}});
    let host =
        launch_with(language, &json!(["GetOrder"])).file("openapi.json", &document.to_string()).serve();
    let mut client = host.client(Way::Cold).await;
    let tools = client.list("tools/list", "tools").await;
    let order = tools.iter().find(|tool| tool["name"] == "order").unwrap();
    let mut known: Vec<&String> = order["inputSchema"]["properties"].as_object().unwrap().keys().collect();
    known.retain(|name| *name != "cursor");
    assert_eq!(known, ["id", "x-free"]);
    for name in names.iter().filter(|name| **name != "x-free") {
        let failed = failure(&mut client, "order", json!({"id": "1", *name: "forged"})).await;
        assert!(failed["message"].as_str().unwrap().contains("is unknown"), "{name}: {failed}");
    }
    let failed = failure(&mut client, "order", json!({"id": "1", "x-free": "a\r\nx-evil: 1"})).await;
    assert!(failed["message"].as_str().unwrap().contains("control character"), "{failed}");
    let seen = content(&mut client, "order", json!({"id": "1", "x-free": "yes"})).await["headers"].clone();
    assert_eq!((&seen["x-free"], &seen["host"]), (&json!("yes"), &json!("localhost")));
    assert_eq!((seen.get("x-functions-key"), seen.get("x-mcp-session-id")), (None, None));
}

async fn large_bodies_are_rejected(language: Language) {
    let host = launch(language).setting("FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", "1000").serve();
    let mut client = host.client(Way::LATEST).await;
    let sent = |size: usize| json!({"method": "POST", "body": "x".repeat(size)});
    assert_eq!(content(&mut client, "Orders", sent(998)).await["body"].as_str().unwrap().len(), 1000);
    let failed = failure(&mut client, "Orders", sent(999)).await;
    assert_eq!((&failed["error"], &failed["status"]), (&json!("invalid_request"), &json!(413)));
    // A large response is an error that says so.
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    let failed = failure(&mut client, "Orders", sent(2_000_000)).await;
    assert!(failed["message"].as_str().unwrap().contains("more than the limit of 1048576"), "{failed}");
    assert_eq!(client.text("greet", json!({})).await, "Hello from a tool.");
}
