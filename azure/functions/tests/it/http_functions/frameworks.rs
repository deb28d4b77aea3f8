//! Web frameworks behind one function: FastAPI, Flask and, with streaming responses, Hono.

use std::fs;

use serde_json::json;

use super::streaming::{next, open};
use super::*;
use crate::client::Way;

const FASTAPI: [(&str, &str); 3] =
    [("azure-functions", "1.25.0"), ("fastapi", "0.163.2"), ("python-multipart", "0.0.32")];
const FLASK: [(&str, &str); 2] = [("azure-functions", "1.25.0"), ("flask", "3.1.3")];
const HONO: [(&str, &str); 2] = [("@azure/functions", "4.16.5"), ("hono", "4.13.19")];
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

pub(super) fn fastapi() -> Served {
    Launch::copy_of("tests/apps/http-fastapi").python_with(&FASTAPI).serve()
}

#[tokio::test]
async fn fastapi_answers_behind_a_function() {
    let host = fastapi();
    let read = send(host.address, "GET", "/items/7?verbose=true", &[("x-test", "t")], "").await;
    assert_eq!((read.status, read.json()), (200, json!({"id": 7, "verbose": true, "test": "t"})));
    let missing = get(&host, "/items/-1").await;
    assert_eq!((missing.status, missing.json()), (404, json!({"detail": "no such item"})));
    let invalid = get(&host, "/items/x").await;
    assert_eq!((invalid.status, &invalid.json()["detail"][0]["type"]), (422, &json!("int_parsing")));
    let item = json!({"name": "ü", "price": 1.5, "tags": ["a"]});
    let created = send(host.address, "POST", "/items", &JSON, item.to_string()).await;
    assert_eq!((created.status, created.json()), (201, item));
    let removed = send(host.address, "DELETE", "/items/7", &[], "").await;
    assert_eq!((removed.status, removed.text()), (204, ""));
    let lines = get(&host, "/lines").await;
    assert_eq!(lines.text(), "line 0\nline 1\nline 2\n");
    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.bin\"\r\n\r\n\u{0}12\r\n--b--\r\n";
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let uploaded = send(host.address, "POST", "/upload", &headers, form).await;
    assert_eq!(uploaded.json(), json!({"name": "f.bin", "bytes": 3}));
    assert_eq!(get(&host, "/moved").await.header("location"), ["/items/5"]);
    // The route of this function comes first by its name.
    assert_eq!(get(&host, "/before").await.text(), "a plain function");
    assert_eq!(get(&host, "/docs").await.status, 200);
    assert_eq!(get(&host, "/nowhere").await.json(), json!({"detail": "Not Found"}));
}

#[tokio::test]
async fn the_operations_of_fastapi_are_tools() {
    let host = fastapi();
    let warnings: Vec<_> = host.report.warnings.iter().map(|warning| &warning.message).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    let names: Vec<&str> = host.report.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["read_item", "create_item", "list_items", "upload", "lines", "moved"]);
    for client in &mut host.clients().await {
        let read = client.call("read_item", json!({"item_id": 7, "verbose": true})).await;
        assert_eq!(read["structuredContent"], json!({"id": 7, "verbose": true, "test": null}));
        let item = json!({"name": "n", "price": 2.0, "tags": []});
        let created = client.call("create_item", json!({"body": item})).await;
        assert_eq!(created["structuredContent"], item);
        let invalid = client.call("create_item", json!({"body": {"name": "", "price": -1}})).await;
        assert_eq!(invalid["isError"], true);
        let missing = client.call("read_item", json!({"item_id": -1})).await;
        let text = missing["content"][0]["text"].as_str().unwrap();
        let body: Value = serde_json::from_str(text).unwrap();
        assert_eq!((&body["status"], &body["body"]), (&json!(404), &json!({"detail": "no such item"})));
        let listed = client.call("list_items", json!({"most": 3})).await;
        assert_eq!(listed["structuredContent"]["items"], json!([0, 1, 2]));
        let uploaded = client.call("upload", json!({"body": {"file": "123"}})).await;
        assert_eq!(uploaded["structuredContent"]["bytes"], 3, "{uploaded}");
        // A redirect to another operation that is a tool is followed.
        let moved = client.call("moved", json!({})).await;
        assert_eq!(moved["structuredContent"]["id"], 5, "{moved}");
    }
    // An excluded operation of the same function cannot be reached.
    let mut client = host.client(Way::LATEST).await;
    let (code, message) =
        client.error("tools/call", json!({"name": "remove_item", "arguments": {"item_id": 1}})).await;
    assert_eq!((code, message.as_str()), (-32602, "Unknown tool: 'remove_item'"));
}

#[tokio::test]
async fn flask_answers_behind_a_function() {
    let host = Launch::copy_of("tests/apps/http-flask").python_with(&FLASK).serve();
    let read = send(host.address, "GET", "/items/7?q=a%20b", &[("x-test", "t")], "").await;
    assert_eq!((read.status, read.json()), (200, json!({"id": 7, "query": {"q": "a b"}, "test": "t"})));
    assert_eq!(get(&host, "/items/x").await.status, 404);
    let all: Vec<u8> = (0..=255).collect();
    let echo = send(host.address, "POST", "/echo", &[], all.clone()).await;
    assert_eq!((echo.status, echo.body), (201, all.iter().rev().copied().collect::<Vec<u8>>().into()));
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let form = send(host.address, "POST", "/form", &headers, "a=b%20c&d=e").await;
    assert_eq!(form.json(), json!({"a": "b c", "d": "e"}));
    assert_eq!(form.header("set-cookie"), ["seen=yes; Path=/"]);
    // Without a document, the app is one tool with a path.
    let mut client = host.client(Way::LATEST).await;
    let read =
        client.call("http_app_func", json!({"method": "GET", "route": "items/7", "query": {"q": "x"}})).await;
    assert_eq!(read["structuredContent"]["query"], json!({"q": "x"}), "{read}");
}

#[tokio::test]
async fn hono_answers_behind_a_function_and_streams() {
    let host = Launch::copy_of("tests/apps/http-hono").node_with(&HONO).serve();
    let read = get(&host, "/items/a%20b?q=1&r=2").await;
    assert_eq!((read.status, read.json()), (200, json!({"id": "a b", "query": {"q": "1", "r": "2"}})));
    assert_eq!(read.header("x-middleware"), ["yes"]);
    let made = send(host.address, "POST", "/items", &JSON, r#"{"a":[1]}"#).await;
    assert_eq!((made.status, made.json()), (201, json!({"a": [1]})));
    assert_eq!(get(&host, "/nowhere").await.status, 404);
    let failing = get(&host, "/failing").await;
    assert_eq!((failing.status, failing.text()), (500, "Internal Server Error"));
    let response = open(host.address, "/events").await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await.as_deref(), Some("data: first\n\n"));
    fs::write(host.file("go"), "").unwrap();
    assert_eq!(next(&mut body).await.as_deref(), Some("data: second\n\n"));
}
