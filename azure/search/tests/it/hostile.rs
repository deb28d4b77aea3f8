//! Hostile values in every string argument of a tool. Requests to the service must stay within the
//! collection of the tool, and the key must be sent only in its header.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_azure_search::SearchServer;
use bindpost_mcp_openapi::UpstreamLimits;
use serde_json::{Map, Value, json};

use crate::service::{VERSION, server, shared};
use crate::talk::{Era, Talk};
use crate::upstream_service::{Seen, Service, answer};

const KEY: &str = "the-key-of-the-operator";

const TRICKS: [&str; 22] = [
    "../../servicestats",
    "..",
    ".",
    "..;/",
    "\\..\\",
    "%2e%2e%2f",
    "%252e%252e",
    "x')/docs('y",
    "it's",
    "a/b?c#d",
    "a&api-version=1",
    "http://evil.example/",
    "//evil.example",
    "@evil.example",
    "a\r\nX-Injected: 1",
    "a\0b",
    "\u{202e}evil 日本語",
    "__proto__",
    "",
    " ",
    "$count",
    "search.stats",
];

/// The paths that the tools may request: a collection, optionally one item, and optionally a part of it.
const COLLECTIONS: [&str; 9] = [
    "indexes",
    "indexers",
    "datasources",
    "synonymmaps",
    "aliases",
    "skillsets",
    "agents",
    "knowledgesources",
    "servicestats",
];
const BELOW: [&str; 12] = [
    "docs",
    "$count",
    "search.stats",
    "search.analyze",
    "search.run",
    "search.reset",
    "search.status",
    "search.index",
    "search.post.search",
    "search.post.suggest",
    "search.post.autocomplete",
    "retrieve",
];

/// Returns a value for a schema, with this text in every string.
fn value_of(schema: &Value, text: &str, depth: usize) -> Value {
    let schemas = ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array()?.first());
    let schema = schemas.unwrap_or(schema);
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([value_of(&schema["items"], text, depth + 1)]),
        Some("object") => {
            let members = schema["properties"].as_object().into_iter().flatten();
            let mut made: Map<String, Value> = members
                .filter(|_| depth < 3)
                .map(|(name, member)| (name.clone(), value_of(member, text, depth + 1)))
                .collect();
            if made.is_empty() {
                made.insert("name".to_owned(), text.into());
            }
            Value::Object(made)
        }
        _ => text.into(),
    }
}

fn check(seen: &Seen, host: &str, what: &str) {
    let what = format!("{what}\n{} {}", seen.method, seen.target);
    let (path, query) = seen.target.split_once('?').unwrap_or_else(|| panic!("{what}"));
    let mut segments = path.trim_start_matches('/').split('/');
    let first = segments.next().unwrap_or_default();
    assert!(COLLECTIONS.contains(&bare(first, &what)), "{what}");
    for segment in segments {
        assert!(BELOW.contains(&bare(segment, &what)), "{segment}: {what}");
    }
    assert!(!path.contains(".."), "{what}");
    assert!(
        query.starts_with(&format!("api-version={VERSION}")) && query.matches("api-version=").count() == 1,
        "{what}"
    );
    assert_eq!(seen.headers["host"], host, "{what}");
    assert_eq!(seen.headers.get_all("api-key").iter().collect::<Vec<_>>(), [KEY], "{what}");
    assert!(!seen.headers.contains_key("x-injected"), "{what}");
    let elsewhere = seen.headers.iter().filter(|(name, _)| *name != "api-key");
    let elsewhere: String = elsewhere.map(|(_, value)| value.to_str().unwrap_or_default()).collect();
    assert!(
        !format!("{elsewhere}{}{}", seen.target, String::from_utf8_lossy(&seen.body)).contains(KEY),
        "{what}"
    );
}

/// Returns a segment without its key, which must not contain an unescaped quotation mark.
fn bare<'a>(segment: &'a str, what: &str) -> &'a str {
    let Some((name, key)) = segment.split_once("('") else { return segment };
    let key = key.strip_suffix("')").unwrap_or_else(|| panic!("{what}"));
    assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_~%".contains(&byte)), "{key}: {what}");
    name
}

/// Calls every tool with the tricks in every string argument, on a service that answers in turn.
async fn attack(
    step: usize,
    answers: impl Fn(&Seen, usize) -> (u16, &'static str) + Send + Sync + 'static,
) -> usize {
    let came: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let keeps = came.clone();
    let service = Service::start(move |seen, before| {
        keeps.lock().unwrap().push(seen.clone());
        let (status, body) = answers(seen, before);
        answer(status, &[("content-type", "application/json")], body)
    })
    .await;
    let host = format!("127.0.0.1:{}", service.port());
    let limits = UpstreamLimits { tries: 1, total: Duration::from_secs(5), ..UpstreamLimits::default() };
    let server = server(shared(&service.address(), Some(KEY), limits));
    let mut talk = Talk::with(&server, Era::Session, Some(true)).await;
    let listed = talk.request("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap().clone();
    assert!(tools.len() > 30, "{}", tools.len());
    let mut reached = 0;
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        let members = tool["inputSchema"]["properties"].as_object().unwrap();
        let good: Map<String, Value> = members
            .iter()
            .filter(|(member, _)| {
                tool["inputSchema"]["required"].as_array().is_some_and(|names| names.contains(&json!(member)))
            })
            .map(|(member, schema)| (member.clone(), value_of(schema, "good", 0)))
            .collect();
        for member in members.keys() {
            for trick in TRICKS.into_iter().step_by(step) {
                let mut arguments = good.clone();
                arguments.insert(member.clone(), value_of(&members[member], trick, 0));
                let what = format!("{name} {}", json!(arguments));
                let call = talk.request("tools/call", json!({"name": name, "arguments": arguments}));
                let result = tokio::time::timeout(Duration::from_secs(20), call).await;
                let result = result.unwrap_or_else(|_| panic!("timeout: {what}"));
                let result = result.unwrap_or_else(|error| panic!("{error}: {what}"));
                assert!(!result.to_string().contains(KEY), "{result}");
                for seen in std::mem::take(&mut *came.lock().unwrap()) {
                    reached += 1;
                    check(&seen, &host, &what);
                }
            }
        }
    }
    reached
}

#[tokio::test]
async fn no_argument_leaves_its_collection_on_an_empty_service() {
    let reached = attack(2, |_, _| (404, r#"{"error":{"code":"","message":"none"}}"#)).await;
    assert!(reached > 300, "{reached}");
}

#[tokio::test]
async fn no_argument_leaves_its_collection_with_odd_responses() {
    let reached = attack(5, |_, before| match before % 5 {
        0 => (200, r#"{"value":[],"name":"../x","fields":[{"name":"../k","type":"Edm.String","key":true}]}"#),
        1 => (200, "[]"),
        2 => (500, ""),
        3 => (200, r#"{"indexes":["../../servicestats"],"targetIndexName":"../y","dataSourceName":"../z"}"#),
        _ => (409, r#"{"error":{"code":"../","message":"\u001b[2J"}}"#),
    })
    .await;
    assert!(reached > 300, "{reached}");
}

#[tokio::test]
async fn resources_stay_in_their_collection() {
    let service = Service::start(|_, _| answer(404, &[], "")).await;
    let host = format!("127.0.0.1:{}", service.port());
    let server = server(shared(
        &service.address(),
        Some(KEY),
        UpstreamLimits { tries: 1, ..UpstreamLimits::default() },
    ));
    let mut talk = Talk::start(&server, Era::Session).await;
    for collection in ["indexes", "agents", "knowledgesources", "knowledge-sources", "indexers"] {
        for trick in TRICKS.into_iter().chain(["..%2F..%2Fservicestats", "%2e%2e", "a%00b", "a%0d%0ab"]) {
            for uri in
                [format!("search://{collection}/{trick}"), format!("search://{collection}/{trick}/status")]
            {
                let _ = talk.request("resources/read", json!({"uri": uri})).await;
                service.seen().iter().for_each(|seen| check(seen, &host, &uri));
            }
        }
    }
}

#[tokio::test]
async fn long_errors_of_the_service_are_truncated() {
    let long = "word ".repeat(100_000);
    let body = json!({"error": {"code": long, "message": long, "target": long, "details": vec![json!({"message": long}); 500]}});
    let body = body.to_string();
    let service =
        Service::start(move |_, _| answer(400, &[("content-type", "application/json")], body.clone())).await;
    let limits = UpstreamLimits { body: 1 << 30, ..UpstreamLimits::default() };
    let mut talk = Talk::start(&server(shared(&service.address(), Some(KEY), limits)), Era::Session).await;
    let told = talk.call("getIndex", json!({"indexName": "a"})).await.unwrap_err();
    assert!(told.to_string().len() < 100_000, "{}", told.to_string().len());
}

#[tokio::test]
async fn malicious_responses_are_errors() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in
        [deep.into_bytes(), b"{\"name\":\"\xff\"}".to_vec(), b"{\"a\":1e99999}".to_vec(), b"<html>".to_vec()]
    {
        let service =
            Service::start(move |_, _| answer(200, &[("content-type", "application/json")], body.clone()))
                .await;
        let mut talk = Talk::start(
            &server(shared(&service.address(), Some(KEY), UpstreamLimits::default())),
            Era::Alone,
        )
        .await;
        for (tool, arguments) in [
            ("getIndex", json!({"indexName": "a"})),
            ("listIndexes", json!({})),
            ("searchDocuments", json!({"indexName": "a", "search": "*"})),
        ] {
            let told = talk.call(tool, arguments).await.unwrap_err();
            assert_eq!(told["error"], "server_error", "{tool}: {told}");
        }
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for to in [
        "/indexes('b')",
        "/servicestats",
        "/indexes",
        "/indexes('a')/docs",
        "/indexes('a')%2F..%2F..%2Fx",
        "/x",
    ] {
        for status in [302, 303, 307] {
            let target = to.to_owned();
            let service = Service::start(move |_, _| answer(status, &[("location", &target)], "")).await;
            let limits = UpstreamLimits { tries: 1, ..UpstreamLimits::default() };
            let server = server(shared(&service.address(), Some(KEY), limits));
            let mut talk = Talk::start(&server, Era::Session).await;
            let told = talk.call("getIndex", json!({"indexName": "a"})).await.unwrap_err();
            assert!(told["message"].as_str().unwrap().contains("is not followed"), "{to}: {told}");
            assert_eq!(service.count(), 1, "{to}");
        }
    }
}

#[tokio::test]
async fn a_redirect_of_a_called_operation_stays_within_what_is_served() {
    for (to, followed) in [("/indexes('b')", true), ("/datasources('b')", false), ("/unknown", false)] {
        let service = Service::start(move |_, before| match before {
            0 => answer(302, &[("location", to)], ""),
            _ => answer(200, &[("content-type", "application/json")], "{}"),
        })
        .await;
        let limits = UpstreamLimits { tries: 1, ..UpstreamLimits::default() };
        let server =
            SearchServer::builder(shared(&service.address(), Some(KEY), limits).client).build().unwrap();
        let mut talk = Talk::start(server.server(), Era::Session).await;
        let arguments = json!({"operation": "Indexes_Get", "arguments": {"indexName": "a"}});
        let told = talk.call("callOperation", arguments).await;
        assert_eq!((told.is_ok(), service.count()), (followed, 1 + usize::from(followed)), "{to}: {told:?}");
    }
}
