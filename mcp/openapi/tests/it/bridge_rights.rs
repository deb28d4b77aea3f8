//! Scopes, and forwarded headers of the caller.

use bindpost_mcp_http::{Settings, bind};
use bindpost_mcp_openapi::{Bridge, BridgeBuilder};
use bindpost_mcp_server::{Caller, Identity};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bridge_pets::{Shop, call, client, document, failing, serve};

#[tokio::test]
async fn scopes_are_required_if_configured() {
    let shop = Shop::saying(json!({"made": true})).await;
    let make = json!({"body": {"name": "Rex"}});
    let reader = || Caller::from(Identity::new("reader").scope("pets.read"));
    let writer = || Caller::from(Identity::new("writer").scope("pets.write"));
    for budget in [100_000, 100] {
        let build = |builder: BridgeBuilder| builder.list_budget(budget).build().unwrap();
        let (tool, arguments) = match budget {
            100 => ("callOperation", json!({"operation": "createPet", "arguments": make})),
            _ => ("createPet", make.clone()),
        };
        let server = serve(&build(shop.bridge(document())));
        let mut reader_client = client(&server, reader(), json!({})).await;
        assert_eq!(
            call(&mut reader_client, tool, arguments.clone()).await["structuredContent"],
            json!({"made": true})
        );
        let server = serve(&build(shop.bridge(document()).enforce_scopes()));
        if budget == 100_000 {
            assert_eq!(server.scopes(), ["pets.write"]);
        }
        for caller in [reader(), Caller::ANONYMOUS] {
            let mut refused = client(&server, caller, json!({})).await;
            let said = failing(&mut refused, tool, arguments.clone()).await;
            assert_eq!(said["error"], "unauthorized", "{said}");
        }
        let mut permitted = client(&server, writer(), json!({})).await;
        assert_eq!(call(&mut permitted, tool, arguments).await["structuredContent"], json!({"made": true}));
        let got = json!({"petId": "1"});
        if budget == 100_000 {
            assert_eq!(call(&mut permitted, "getPet", got).await["structuredContent"], json!({"made": true}));
        }
    }
}

#[tokio::test]
async fn a_value_that_addresses_another_operation_requires_its_scopes() {
    let shop = Shop::saying(json!({"ok": true})).await;
    let mut document = document();
    for operation in document.operations.iter_mut().filter(|operation| operation.id == "getSecret") {
        operation.scopes = vec!["admin".to_owned()];
    }
    let server = serve(&shop.bridge(document).enforce_scopes().build().unwrap());
    let mut reader = client(&server, Caller::from(Identity::new("reader")), json!({})).await;
    for value in ["secret", "secret/", "SECRET"] {
        let said = failing(&mut reader, "getPet", json!({"petId": value})).await;
        assert_eq!(said["error"], "unauthorized", "{said}");
    }
    assert_eq!(shop.paths(), Vec::<String>::new());
    let mut admin = client(&server, Caller::from(Identity::new("admin").scope("admin")), json!({})).await;
    assert_eq!(call(&mut admin, "getPet", json!({"petId": "secret"})).await["structuredContent"]["ok"], true);
}

/// Calls `listPets` over HTTP with these headers and arguments.
async fn post(bridge: &Bridge, headers: &str, arguments: Value) {
    let bound = bind(("127.0.0.1", 0)).await.unwrap();
    let address = bound.local_addr();
    let serving = tokio::spawn(bound.serve(serve(bridge), Settings::default()));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "listPets", "arguments": arguments,
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}})
    .to_string();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: listPets\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serving.abort();
}

#[tokio::test]
async fn only_configured_headers_are_forwarded() {
    let shop = Shop::saying(json!([])).await;
    let headers = "authorization: Bearer mine\r\nx-tenant: acme\r\nx-trace: t1\r\ncookie: a=b\r\n";
    let seen = async |builder: BridgeBuilder| {
        post(&builder.build().unwrap(), headers, json!({"X_Tenant": "made up"})).await;
        let seen = shop.seen().pop().unwrap().headers;
        let names = ["authorization", "x-tenant", "x-trace", "cookie"];
        names.map(|name| seen.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default())
    };
    assert_eq!(seen(shop.bridge(document())).await, ["", "made up", "", ""]);
    assert_eq!(seen(shop.bridge(document()).pass_header("X-Tenant")).await, ["", "acme", "", ""]);
    assert_eq!(seen(shop.bridge(document()).pass_header("x-*")).await, ["", "acme", "t1", ""]);
    assert_eq!(
        seen(shop.bridge(document()).pass_header("Authorization")).await,
        ["Bearer mine", "made up", "", ""]
    );
}

#[tokio::test]
async fn fixed_values_override_the_callers_headers() {
    let shop = Shop::saying(json!({})).await;
    let bridge = shop.bridge(document()).pass_header("x-*").fixed("X-Tenant", "fixed").build().unwrap();
    post(&bridge, "x-tenant: acme\r\nx-trace: t1\r\n", json!({})).await;
    let seen = shop.seen().pop().unwrap().headers;
    assert_eq!((&seen["x-tenant"], &seen["x-trace"]), (&"fixed".parse().unwrap(), &"t1".parse().unwrap()));
}
