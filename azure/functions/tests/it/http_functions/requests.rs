//! What functions are given, and how their responses are sent.

use std::fs;

use serde_json::json;

use super::*;
use crate::client::Way;

for_each_language!(
    a_function_gets_the_request_and_answers,
    responses_have_their_status_headers_and_cookies,
    bodies_are_bytes,
    failures_are_500_without_a_reason,
    blobs_are_bound_to_routes_queries_and_bodies,
    methods_and_paths_without_a_function_are_404,
    foreign_hosts_are_rejected,
    other_origins_are_answered_by_the_rules_of_cors,
    tools_and_functions_are_served_side_by_side,
    large_bodies_are_rejected,
    too_many_requests_are_rejected,
);

async fn a_function_gets_the_request_and_answers(language: Language) {
    let host = launch(language).serve();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("x-test", "1"), ("X-Test", "2"), ("traceparent", trace), ("content-type", "text/plain")];
    let path = "/api/echo/7?q=a+b%26&flag=&code=key";
    let answer = send(host.address, "POST", path, &headers, "hello ü").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), ["application/json"]);
    assert_eq!(
        answer.json(),
        json!({
            "method": "POST",
            "url": format!("http://{}{path}", host.address),
            "query": {"q": "a b&", "flag": "", "code": "key"},
            "params": {"id": "7"},
            "header": "1,2",
            "body": "hello ü",
            "trace": trace,
        })
    );
    let plain = get(&host, "/API/Echo/").await.json();
    assert_eq!((&plain["params"], &plain["body"], &plain["header"]), (&json!({}), &json!(""), &json!(null)));
}

async fn responses_have_their_status_headers_and_cookies(language: Language) {
    let host = launch(language).serve();
    let answer = get(&host, "/api/created").await;
    assert_eq!((answer.status, answer.text()), (201, "made"));
    assert_eq!(answer.header("x-made"), ["yes"]);
    // The libraries of the others add the charset.
    let content_type = if language == Language::Java { "text/x-made" } else { "text/x-made; charset=utf-8" };
    assert_eq!(answer.header("content-type"), [content_type]);
    let cookies = [
        "a=1; Max-Age=60; Path=/; SameSite=Lax; HttpOnly",
        "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Secure",
    ];
    // Java's library has no cookies, and a header has one value.
    let count = if language == Language::Java { 1 } else { 2 };
    assert_eq!(answer.header("set-cookie"), cookies[..count]);
    let head = send(host.address, "HEAD", "/api/created", &[], "").await;
    // Node's library lists GET and POST if an app names no methods.
    assert_eq!(head.status, if language == Language::Node { 404 } else { 201 });
    assert!(head.body.is_empty());
}

async fn bodies_are_bytes(language: Language) {
    let host = launch(language).serve();
    let all: Vec<u8> = (0..=255).collect();
    let answer = send(host.address, "POST", "/api/binary", &[], all.clone()).await;
    assert_eq!(answer.body, all.iter().rev().copied().collect::<Vec<u8>>());
    let answer = send(host.address, "POST", "/api/binary", &[], "").await;
    assert_eq!((answer.status, answer.text()), (200, ""));
    let large = vec![b'x'; 3_000_000];
    assert_eq!(send(host.address, "POST", "/api/binary", &[], large.clone()).await.body, large);
}

async fn failures_are_500_without_a_reason(language: Language) {
    let host = launch(language).serve();
    for path in ["/api/failing", "/api/strange?status=42", "/api/strange?status=101"] {
        let answer = get(&host, path).await;
        assert_eq!((answer.status, answer.text()), (500, ""), "{path}");
    }
    // Node's library turns a function that returns nothing into an empty response, Python's does not.
    let nothing = get(&host, "/api/nothing").await;
    assert_eq!((nothing.status, nothing.text()), (204, ""));
    let host = launch(language).options(|options| options.detailed_errors = true).serve();
    let answer = get(&host, "/api/failing").await;
    assert!(answer.status == 500 && answer.text().contains("a secret reason"), "{}", answer.text());
}

async fn blobs_are_bound_to_routes_queries_and_bodies(language: Language) {
    let host = launch(language).serve();
    let json = [("content-type", "application/json")];
    let saved = send(host.address, "POST", "/api/save/a%20b", &json, r#"{"name": "n", "text": "t"}"#).await;
    assert_eq!((saved.status, saved.text()), (200, "saved"));
    assert_eq!(get(&host, "/api/load/a%20b/n").await.text(), "t");
    // The query is stronger than the body.
    send(host.address, "POST", "/api/save/a?name=other", &json, r#"{"name": "n", "text": "u"}"#).await;
    assert_eq!(get(&host, "/api/load/a/other").await.text(), "u");
    assert_eq!(get(&host, "/api/load/a/none").await.status, 404);
    // A request from which no path can be made is the mistake of its client. The function does not run.
    let unnamed = send(host.address, "POST", "/api/save/a", &json, r#"{"text": "t"}"#).await;
    let reason = "No value for named parameter 'name'.\n";
    assert!(unnamed.status == 400 && unnamed.text().ends_with(reason), "{}", unnamed.text());
    let control = get(&host, "/api/load/a/b%07").await;
    assert!(control.status == 400 && control.text().contains("control character"), "{}", control.text());
    // A path that a caller chooses cannot leave the container.
    let escape = get(&host, "/api/load/../secret").await;
    assert!([404, 400].contains(&escape.status), "{}", escape.status);
}

async fn methods_and_paths_without_a_function_are_404(language: Language) {
    let host = launch(language).serve();
    for (method, path) in [
        ("DELETE", "/api/echo/7"),
        ("GET", "/api/echo/x"),
        ("GET", "/api/binary"),
        ("GET", "/echo/7"),
        ("GET", "/api"),
    ] {
        assert_eq!(send(host.address, method, path, &[], "").await.status, 404, "{method} {path}");
    }
    assert_eq!(get(&host, "/_/healthz").await.status, 200);
}

async fn foreign_hosts_are_rejected(language: Language) {
    let host = launch(language).serve();
    for (name, status) in [("localhost:7071", 200), ("127.0.0.1", 200), ("evil.example", 403)] {
        let answer = send(host.address, "GET", "/api/created", &[("host", name)], "").await;
        assert_eq!(answer.status == 201, status == 200, "{name}: {}", answer.status);
    }
}

async fn other_origins_are_answered_by_the_rules_of_cors(language: Language) {
    let settings = r#"{"Values": {}, "Host": {"CORS": "https://app.example", "CORSCredentials": true}}"#;
    let host = launch(language).file("local.settings.json", settings).serve();
    let headers = [("origin", "https://app.example"), ("access-control-request-method", "POST")];
    let preflight = send(host.address, "OPTIONS", "/api/echo", &headers, "").await;
    assert_eq!((preflight.status, preflight.header("access-control-allow-methods")), (204, vec!["POST"]));
    let answer = send(host.address, "GET", "/api/created", &[("origin", "https://app.example")], "").await;
    assert_eq!(answer.header("access-control-allow-origin"), ["https://app.example"]);
    assert_eq!(answer.header("access-control-allow-credentials"), ["true"]);
    // The browser withholds this response. The request itself is not rejected, as on the platform.
    let answer = send(host.address, "GET", "/api/created", &[("origin", "https://evil.example")], "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin").len()), (201, 0));
}

async fn tools_and_functions_are_served_side_by_side(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    assert_eq!(client.text("greet", json!({})).await, "Hello from a tool.");
    let routes: Vec<&str> = host.report.http.iter().map(|row| row.route.as_str()).collect();
    assert!(routes.contains(&"/api/echo/{id:int?}") && routes.len() == 11, "{routes:?}");
    assert_eq!(host.report.warnings.iter().filter(|warning| warning.message.contains("skipped")).count(), 0);
    // A changed prefix takes effect when the app is reloaded.
    let host = launch(language).options(|options| options.watch = true).serve();
    fs::write(host.file("host.json"), r#"{"version": "2.0", "extensions": {"http": {"routePrefix": "v2"}}}"#)
        .unwrap();
    within(async {
        while get(&host, "/v2/created").await.status != 201 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(get(&host, "/api/created").await.status, 404);
}

async fn large_bodies_are_rejected(language: Language) {
    let host = launch(language).setting("FUNCTIONS_REQUEST_BODY_SIZE_LIMIT", "1000").serve();
    assert_eq!(send(host.address, "POST", "/api/binary", &[], vec![0; 1000]).await.status, 200);
    assert_eq!(send(host.address, "POST", "/api/binary", &[], vec![0; 1001]).await.status, 413);
}

async fn too_many_requests_are_rejected(language: Language) {
    let limits = r#"{"version": "2.0", "extensions": {"http": {"maxOutstandingRequests": 1, "customHeaders": {"X-All": "1"}}}}"#;
    let host = launch(language).file("host.json", limits).serve();
    // A request that takes the only place before the slow one makes it fail, so it is sent until it runs.
    let (slow, rejected) = within(async {
        loop {
            let mut slow = Box::pin(send(host.address, "GET", "/api/slow?seconds=60", &[], ""));
            let rejected = async {
                loop {
                    let answer = get(&host, "/api/created").await;
                    if answer.status == 429 {
                        return answer;
                    }
                }
            };
            tokio::select! {
                answer = &mut slow => assert_eq!(answer.status, 429, "it did not sleep"),
                rejected = rejected => return (slow, rejected),
            }
        }
    })
    .await;
    assert_eq!((rejected.header("retry-after"), rejected.header("x-all")), (vec!["1"], vec!["1"]));
    // The client disconnects, and its place is free.
    drop(slow);
    within(async { while get(&host, "/api/created").await.status != 201 {} }).await;
}
