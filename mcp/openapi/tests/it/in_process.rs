//! Operations whose requests are answered in this process, by a `RequestHandler`.

use std::sync::{Arc, Mutex};

use bindpost_mcp_openapi::{
    Bridge, BridgeBuilder, BridgedCall, Document, HandlerFuture, ParameterLocation, ParameterStyle,
    RequestHandler, Upstream, UpstreamLimits,
};
use http::{Method, Request, Response};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::bridge_pets::{call, connect, failing, operation, parameter};

/// What a handler saw: the operation and the name of the tool, the method and the URI, and the body.
type Seen = (String, String, String);

/// A handler that records its requests. A response is a status, a media type or the target of a redirect, and a body.
#[derive(Debug, Default)]
struct Recorder {
    seen: Mutex<Vec<Seen>>,
    dropped: Arc<Notify>,
}

/// Tells when a request is cancelled.
struct CancelNotice(Arc<Notify>);

impl Drop for CancelNotice {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl RequestHandler for Recorder {
    fn handle(&self, request: Request<Bytes>) -> HandlerFuture<'_> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let call = parts.extensions.get::<BridgedCall>().unwrap();
            let operation = format!("{} {}", call.operation, call.context.name());
            let body = String::from_utf8(body.to_vec()).unwrap();
            let target = format!("{} {}", parts.method, parts.uri);
            self.seen.lock().unwrap().push((operation, target, body));
            let response = Response::builder();
            let (status, header, body) = match parts.uri.path() {
                "/v1/refused" => return Err("this one is refused".to_owned()),
                "/v1/moved" => (307, ("location", "https://app.example/v1/moved/"), ""),
                "/v1/away" => (307, ("location", "https://other.example/v1/moved/"), ""),
                "/v1/object" => (200, ("content-type", "text/plain"), " {\"a\": 1}"),
                "/v1/wrong" => {
                    (400, ("content-type", "application/json"), "{\"detail\": [{\"msg\": \"x\"}]}")
                }
                "/v1/slow" => {
                    let _notice = CancelNotice(self.dropped.clone());
                    std::future::pending::<()>().await;
                    (200, ("x-never", ""), "")
                }
                _ => (200, ("content-type", "text/plain"), "plain"),
            };
            Ok(response
                .status(status)
                .header(header.0, header.1)
                .body(Bytes::from_static(body.as_bytes()))
                .unwrap())
        })
    }
}

impl Recorder {
    fn targets(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(_, target, _)| target.clone()).collect()
    }
}

fn document() -> Document {
    let undocumented = |id: &str, path: &str| {
        let mut operation = operation(id, Method::GET, path, json!({}));
        operation.responses.clear();
        operation
    };
    let text = || json!({"type": "string"});
    let mut parts = undocumented("parts", "/parts/{first}/x{second}.{third}");
    let mut first = parameter("first", ParameterLocation::Path, false, text());
    first.schema["default"] = json!("one");
    let second = parameter("second", ParameterLocation::Path, true, text());
    parts.parameters = vec![first, second, parameter("third", ParameterLocation::Path, false, text())];
    let mut rest = undocumented("rest", "/rest/{path}");
    let mut path = parameter("path", ParameterLocation::Path, false, text());
    path.style = ParameterStyle::Segments;
    rest.parameters = vec![path];
    let mut several = undocumented("several", "/several/{a}/{b}");
    several.other_methods = vec![Method::POST];
    several.hints.read_only = false;
    several.parameters =
        ["a", "b"].map(|name| parameter(name, ParameterLocation::Path, false, text())).to_vec();
    several.parameters.push(parameter("method", ParameterLocation::Query, false, text()));
    several.body = Some(bindpost_mcp_openapi::RequestBody {
        required: false,
        description: None,
        media: bindpost_mcp_openapi::BodyFormat::Json,
        content_type: "application/json".to_owned(),
        schema: json!({}),
    });
    let plain = ["refused", "moved", "away", "object", "wrong", "slow"];
    let mut operations: Vec<_> = plain.iter().map(|name| undocumented(name, &format!("/{name}"))).collect();
    operations.extend([parts, rest, several]);
    Document { operations, ..Document::default() }
}

fn bridge() -> (Arc<Recorder>, BridgeBuilder) {
    let handler = Arc::new(Recorder::default());
    let limits = UpstreamLimits { tries: 1, ..UpstreamLimits::default() };
    let upstream = Upstream::handled_by(handler.clone(), "http://app.example/v1", limits).unwrap();
    assert!(upstream.is_handled());
    (handler, Bridge::builder(document(), upstream))
}

#[tokio::test]
async fn a_handler_gets_the_request_and_the_call() {
    let (handler, bridge) = bridge();
    let mut client = connect(&bridge.build().unwrap()).await;
    let arguments = json!({"httpMethod": "POST", "a": "x y", "b": "z", "method": "m", "body": [1]});
    let result = call(&mut client, "several", arguments).await;
    assert_eq!(result["content"][0]["text"], "plain");
    let seen = handler.seen.lock().unwrap().clone();
    let target = "POST http://app.example/v1/several/x%20y/z?method=m";
    assert_eq!(seen, [("several several".to_owned(), target.to_owned(), "[1]".to_owned())]);
}

#[tokio::test]
async fn a_call_chooses_one_of_several_methods() {
    let (handler, bridge) = bridge();
    let bridge = bridge.build().unwrap();
    let tool = bridge.definitions().iter().find(|tool| tool.name == "several").unwrap();
    let method = &tool.input_schema.get("properties").unwrap()["httpMethod"];
    assert_eq!(*method, json!({"type": "string", "enum": ["GET", "POST"]}));
    let mut client = connect(&bridge).await;
    call(&mut client, "several", json!({"httpMethod": "GET"})).await;
    assert_eq!(handler.targets(), ["GET http://app.example/v1/several"]);
    for (arguments, says) in [
        (json!({}), "httpMethod"),
        (json!({"httpMethod": "DELETE"}), "DELETE"),
        (json!({"httpMethod": "GET", "body": 1}), "`body` cannot be sent with the method GET; remove it"),
        (json!({"httpMethod": "GET", "b": "z"}), "`a` is required and missing"),
    ] {
        let failed = failing(&mut client, "several", arguments.clone()).await;
        assert!(failed["message"].as_str().unwrap().contains(says), "{arguments}: {failed}");
    }
    assert_eq!(handler.targets().len(), 1);
}

#[tokio::test]
async fn optional_variables_end_the_path_or_have_a_default() {
    let (handler, bridge) = bridge();
    let mut client = connect(&bridge.build().unwrap()).await;
    for (tool, arguments, path) in [
        ("parts", json!({"second": "2", "third": "t"}), "/parts/one/x2.t"),
        ("parts", json!({"first": "f", "second": "2"}), "/parts/f/x2"),
        ("rest", json!({}), "/rest"),
        ("rest", json!({"path": "a/b c/"}), "/rest/a/b%20c/"),
        ("rest", json!({"path": "/a%2Fb?c"}), "/rest/a%252Fb%3Fc"),
    ] {
        call(&mut client, tool, arguments.clone()).await;
        let expected = format!("GET http://app.example/v1{path}");
        assert_eq!(handler.targets().last(), Some(&expected), "{arguments}");
    }
    for path in ["a/../b", "..", "a/.", "%2e%2e/a", "..%2f", "a\\..\\b", "a/\u{7}", "/"] {
        let failed = failing(&mut client, "rest", json!({"path": path})).await;
        assert!(failed["message"].as_str().unwrap().contains("`path`"), "{path}: {failed}");
    }
}

#[tokio::test]
async fn redirects_and_rejections_are_handled_as_for_a_service() {
    let (handler, bridge) = bridge();
    let mut client = connect(&bridge.build().unwrap()).await;
    // A framework in this process may not know whether its clients use TLS.
    assert_eq!(call(&mut client, "moved", json!({})).await["content"][0]["text"], "plain");
    assert_eq!(handler.targets(), ["GET http://app.example/v1/moved", "GET http://app.example/v1/moved/"]);
    let away = failing(&mut client, "away", json!({})).await;
    assert!(away["message"].as_str().unwrap().contains("another origin"), "{away}");
    let refused = failing(&mut client, "refused", json!({})).await;
    assert_eq!(refused, json!({"error": "invalid_request", "message": "this one is refused"}));
}

#[tokio::test]
async fn objects_and_error_bodies_are_returned_if_the_bridge_says_so() {
    for says_so in [false, true] {
        let (_, bridge) = bridge();
        let bridge = if says_so { bridge.detect_objects().error_body(100) } else { bridge };
        let mut client = connect(&bridge.build().unwrap()).await;
        let object = call(&mut client, "object", json!({})).await;
        let expected = if says_so { json!({"a": 1}) } else { Value::Null };
        assert_eq!(object["structuredContent"], expected);
        let wrong = failing(&mut client, "wrong", json!({})).await;
        let body = if says_so { json!({"detail": [{"msg": "x"}]}) } else { Value::Null };
        assert_eq!(
            (&wrong["status"], &wrong["body"], wrong["message"].is_null()),
            (&json!(400), &body, says_so)
        );
    }
}

#[tokio::test]
async fn a_cancelled_call_drops_the_request() {
    let (handler, bridge) = bridge();
    let mut client = connect(&bridge.build().unwrap()).await;
    let message = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "slow", "arguments": {}}});
    client.send(message.to_string()).await;
    while handler.targets().is_empty() {
        tokio::task::yield_now().await;
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}});
    client.send(cancel.to_string()).await;
    handler.dropped.notified().await;
}
