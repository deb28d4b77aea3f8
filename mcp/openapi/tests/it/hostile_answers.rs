//! Malicious responses of a service, seen from an MCP client. Each call ends in time, with a result or a
//! tool error.

use std::time::{Duration, Instant};

use bindpost_mcp_openapi::{Bridge, Credential, Secret, Upstream, UpstreamLimits};
use http::HeaderName;
use serde_json::{Value, json};

use crate::bridge_pets::{Reply, Shop, call, connect, document, failing};
use crate::upstream_service::{Service, answer, streamed};

const KEY: &str = "the-key-of-the-operator";
const SOON: Duration = Duration::from_secs(20);

fn json_of(body: impl Into<Vec<u8>>) -> Reply {
    (200, vec![("content-type", "application/json".to_owned())], body.into())
}

/// Returns the result of `getStatus` for this response. It must arrive in time and be small.
async fn result_of(reply: Reply) -> Value {
    let shop = Shop::open(move |_| reply.clone()).await;
    let bridge = shop.bridge(document()).build().unwrap();
    let begun = Instant::now();
    let result = call(&mut connect(&bridge).await, "getStatus", json!({})).await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(result.to_string().len() < 200_000, "{} bytes", result.to_string().len());
    result
}

#[tokio::test]
async fn adversarial_json_is_a_result_or_an_error() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_object = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    for body in [deep, deep_object, "[".repeat(1 << 20), "{\"a\":1e999999}".into(), "\"\\ud800\"".into()] {
        let result = result_of(json_of(body)).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            result["isError"] == true && text.contains("is not valid JSON (") && text.len() < 2_000,
            "{text}"
        );
    }
    let invalid = result_of(json_of(b"{\"a\":\"\xff\xfe\"}".to_vec())).await;
    assert_eq!(invalid["isError"], true, "{invalid}");
    let twice = result_of(json_of(r#"{"a":1,"a":2,"__proto__":{"b":1},"a\u0000":3}"#)).await;
    assert_eq!(twice["structuredContent"], json!({"a": 2, "__proto__": {"b": 1}, "a\0": 3}));
    let numbers = result_of(json_of("{\"a\":123456789012345678901234567890,\"b\":-0,\"c\":5e-324}")).await;
    assert_eq!(numbers["isError"], Value::Null, "{numbers}");
}

#[tokio::test]
async fn unclosed_markup_is_processed_in_time() {
    for piece in ["<a", "[", "[a](", "<style></style>", "<!--", "<title>"] {
        for status in [200, 502] {
            let page = piece.repeat((4 << 20) / piece.len());
            let result =
                result_of((status, vec![("content-type", "text/html".to_owned())], page.into())).await;
            assert_eq!(result["isError"], true, "{piece} {status}");
        }
    }
}

#[tokio::test]
async fn a_long_error_is_shortened() {
    let long = "word ".repeat(200_000);
    let fields = json!({"message": long, "code": long, "requestId": long, "target": long});
    for body in [json!({"error": fields}), fields, json!({"errors": vec![long.clone(); 9]}), json!(long)] {
        let reply = (500, vec![("content-type", "application/json".to_owned())], body.to_string().into());
        let result = result_of(reply).await;
        assert!(
            result["isError"] == true && result.to_string().len() < 4_000,
            "{}",
            result.to_string().len()
        );
    }
}

#[tokio::test]
async fn nothing_reaches_another_host_through_mcp() {
    let other = Service::start(|_, _| answer(200, &[], "stolen")).await;
    let elsewhere = other.address();
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{elsewhere}/v1/status");
        let shop = Shop::open(move |_| (status, vec![("location", target.clone())], vec![])).await;
        let credential = Credential::Header(HeaderName::from_static("x-key"), Secret::new(KEY));
        let upstream = Upstream::new(&shop.base, credential, UpstreamLimits::default()).unwrap();
        let bridge = Bridge::builder(document(), upstream).build().unwrap();
        let mut client = connect(&bridge).await;
        for (tool, arguments) in [
            ("getStatus", json!({})),
            ("createPet", json!({"body": {"name": "a"}})),
            ("deletePet", json!({"petId": "1"})),
        ] {
            let told = failing(&mut client, tool, arguments).await.to_string();
            assert!(!told.contains(KEY) && !told.contains(&elsewhere), "{told}");
        }
    }
    let link = format!("{elsewhere}/v1/pets?page=2");
    let shop = Shop::open(move |_| {
        let headers =
            vec![("link", format!("<{link}>; rel=next")), ("content-type", "application/json".to_owned())];
        (200, headers, json!([1]).to_string().into())
    })
    .await;
    let bridge = shop.bridge(document()).build().unwrap();
    let result = call(&mut connect(&bridge).await, "listPets", json!({})).await;
    assert_eq!(result["structuredContent"]["nextCursor"], Value::Null, "{result}");
    assert_eq!((other.count(), other.connections()), (0, 0));
}

#[tokio::test]
async fn large_and_slow_responses_are_tool_errors() {
    let zeros = Service::start(|_, _| {
        let (answer, pieces) = streamed(200, &[("content-type", "application/json")]);
        tokio::spawn(async move { while pieces.send(Ok(vec![b' '; 1 << 20].into())).await.is_ok() {} });
        answer
    })
    .await;
    let drips = Service::start(|_, _| {
        let (answer, pieces) = streamed(200, &[("content-type", "application/json")]);
        tokio::spawn(async move {
            while pieces.send(Ok("[".into())).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        answer
    })
    .await;
    let cut = Service::start(|_, _| {
        let (answer, pieces) =
            streamed(200, &[("content-length", "100"), ("content-type", "application/json")]);
        pieces.try_send(Ok("{\"a\":".into())).unwrap();
        answer
    })
    .await;
    let limits = UpstreamLimits { total: Duration::from_secs(2), tries: 1, ..UpstreamLimits::default() };
    for (service, says) in [(zeros, "16777216 bytes"), (drips, "within"), (cut, "")] {
        let bridge = Bridge::builder(document(), service.upstream_within(limits)).build().unwrap();
        let begun = Instant::now();
        let told = failing(&mut connect(&bridge).await, "getStatus", json!({})).await;
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(says) && !message.contains("127.0.0.1"), "{told}");
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_busy_service_is_reported_with_the_retry_delay() {
    for (status, wait, kind) in [
        (429, Some("7"), "rate_limited"),
        (429, None, "rate_limited"),
        (503, Some("-1"), "server_error"),
        (503, Some("999999999999999999999"), "server_error"),
        (503, Some("soon"), "server_error"),
    ] {
        let headers: Vec<_> = wait.map(|wait| ("retry-after", wait.to_owned())).into_iter().collect();
        let shop = Shop::open(move |_| (status, headers.clone(), vec![])).await;
        let bridge = shop.bridge(document()).build().unwrap();
        let told = failing(&mut connect(&bridge).await, "getStatus", json!({})).await;
        assert_eq!((&told["error"], &told["status"]), (&json!(kind), &json!(status)), "{told}");
        if wait == Some("7") {
            assert_eq!(told["retryAfter"], 7, "{told}");
        }
    }
}
