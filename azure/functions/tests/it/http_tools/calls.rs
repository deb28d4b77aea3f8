//! What functions are given by a call, and the results of their responses.

use std::fs;

use super::*;
use crate::client::{Way, within};

for_python_and_node!(
    a_function_gets_the_arguments_of_every_way_to_call,
    only_some_headers_of_the_caller_are_forwarded,
    paths_are_filled_from_arguments,
    several_methods_are_an_argument,
    responses_become_results,
    error_responses_become_errors_with_their_bodies,
    failures_are_errors_without_a_reason,
    redirects_within_the_function_are_followed,
    a_cancelled_call_frees_its_place,
    tools_need_the_key_of_the_endpoint_only,
    tools_may_run_as_tasks,
);

async fn a_function_gets_the_arguments_of_every_way_to_call(language: Language) {
    let host = launch(language).serve();
    let arguments = match language {
        Language::Python => json!({"id": 7, "lines": true, "most": 2}),
        Language::Node | Language::Java => json!({"id": 7, "query": {"lines": "true", "most": "2"}}),
    };
    for client in &mut host.clients().await {
        let seen = content(client, "GetOrder", arguments.clone()).await;
        assert_eq!(seen["id"], "7");
        assert_eq!(seen["query"], json!({"lines": "true", "most": "2"}));
        assert_eq!(seen["url"], "http://localhost/api/orders/7?lines=true&most=2");
        // A tool by an MCP trigger runs as before.
        assert_eq!(client.text("greet", json!({})).await, "Hello from a tool.");
    }
}

async fn only_some_headers_of_the_caller_are_forwarded(language: Language) {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [
        ("traceparent", trace),
        ("accept-language", "de"),
        ("x-ms-client-principal-id", "forged"),
        ("x-functions-key", "secret"),
        ("cookie", "a=b"),
        ("authorization", "Bearer secret"),
        ("x-forwarded-for", "1.2.3.4"),
        ("x-other", "1"),
    ];
    let host = launch(language).serve();
    let mut client = Client::connect_with(host.address, Way::LATEST, &headers).await;
    let seen = content(&mut client, "GetOrder", json!({"id": 1})).await["headers"].clone();
    let mut names: Vec<&str> = seen.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "accept-language", "host", "traceparent", "x-mcp-session-id"]);
    assert_eq!((&seen["traceparent"], &seen["accept-language"]), (&json!(trace), &json!("de")));
    assert_eq!(seen["x-mcp-session-id"].as_str(), client.session.as_deref());
    // With `--platform-identity` the identity of the user is forwarded, and the platform names the host.
    let host = launch(language).trusting_platform().setting("WEBSITE_HOSTNAME", "orders.example").serve();
    let mut client = Client::connect_with(host.address, Way::LATEST, &headers).await;
    let seen = content(&mut client, "GetOrder", json!({"id": 1})).await;
    assert_eq!(seen["headers"]["x-ms-client-principal-id"], "forged");
    assert_eq!(seen["url"], "https://orders.example/api/orders/1");
}

async fn paths_are_filled_from_arguments(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    for (arguments, expected) in [
        (json!({}), json!({"first": "one"})),
        (json!({"first": "a b/c%"}), json!({"first": "a b%2Fc%"})),
        (json!({"first": "x", "second": "ü"}), json!({"first": "x", "second": "ü"})),
        (json!({"second": "y"}), json!({"first": "one", "second": "y"})),
    ] {
        assert_eq!(content(&mut client, "Parts", arguments.clone()).await, expected, "{arguments}");
    }
    for (arguments, path, url) in [
        (json!({}), Value::Null, "/api/rest"),
        (json!({"path": "a/b c/d"}), json!("a/b c/d"), "/api/rest/a/b%20c/d"),
        (json!({"path": "/a/"}), json!("a"), "/api/rest/a/"),
        (json!({"path": "a?b#c"}), json!("a?b#c"), "/api/rest/a%3Fb%23c"),
    ] {
        let seen = content(&mut client, "Rest", arguments.clone()).await;
        assert_eq!(
            (&seen["path"], &seen["url"]),
            (&path, &json!(format!("http://localhost{url}"))),
            "{arguments}"
        );
    }
}

async fn several_methods_are_an_argument(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    let body = json!({"b": [1, "two"]});
    let seen =
        content(&mut client, "Orders", json!({"method": "POST", "query": {"q": "a b"}, "body": body})).await;
    assert_eq!((&seen["method"], &seen["query"]), (&json!("POST"), &json!({"q": "a b"})));
    assert_eq!(serde_json::from_str::<Value>(seen["body"].as_str().unwrap()).unwrap(), body);
    let seen = content(&mut client, "Orders", json!({"method": "DELETE"})).await;
    assert_eq!((&seen["method"], &seen["body"]), (&json!("DELETE"), &json!("")));
    for (arguments, says) in [
        (json!({}), "\"method\" is a required property"),
        (json!({"method": "PUT"}), "method"),
        (json!({"method": "GET", "body": 1}), "`body` cannot be sent with the method GET; remove it"),
        (json!({"method": "GET", "bod": 1}), "\"bod\" is unknown; did you mean \"body\"?"),
    ] {
        let failed = failure(&mut client, "Orders", arguments.clone()).await;
        let message = failed["message"].as_str().unwrap();
        assert!(failed["error"] == "invalid_request" && message.contains(says), "{arguments}: {message}");
    }
}

async fn responses_become_results(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    for (kind, expected) in [
        ("object", json!({"a": 1})),
        ("created", json!({"made": true})),
        ("list", json!({"items": [1, 2]})),
        ("empty", json!({"status": 204})),
    ] {
        assert_eq!(content(&mut client, "Reply", json!({"kind": kind})).await, expected, "{kind}");
    }
    for (kind, text) in [
        ("text", "plain"),
        ("number", "7"),
        ("braces", "{not json}"),
        ("page", "<html><body>hello</body></html>"),
        ("latin", "caf\u{fffd}"),
    ] {
        let result = client.call("Reply", json!({"kind": kind})).await;
        assert_eq!(
            (&result["content"][0]["text"], result.get("structuredContent")),
            (&json!(text), None),
            "{kind}"
        );
    }
    let block = |result: Value| result["content"][0].clone();
    let image = block(client.call("Reply", json!({"kind": "image"})).await);
    assert_eq!(image, json!({"type": "image", "mimeType": "image/png", "data": image["data"]}));
    let audio = block(client.call("Reply", json!({"kind": "audio"})).await);
    assert_eq!((&audio["type"], &audio["mimeType"]), (&json!("audio"), &json!("audio/ogg")));
    let bytes = block(client.call("Reply", json!({"kind": "bytes"})).await);
    assert_eq!(
        (&bytes["type"], &bytes["resource"]["mimeType"]),
        (&json!("resource"), &json!("application/zip"))
    );
    assert_eq!(bytes["resource"]["blob"], "UEsA/w==");
}

async fn error_responses_become_errors_with_their_bodies(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    let mut failed = async |kind: &str| failure(&mut client, "Reply", json!({"kind": kind})).await;
    let invalid = failed("invalid").await;
    assert_eq!((&invalid["error"], &invalid["status"]), (&json!("invalid_request"), &json!(422)));
    assert_eq!(invalid["body"], json!({"detail": [{"loc": ["query", "a"], "msg": "is missing"}]}));
    assert_eq!(
        failed("missing").await,
        json!({"error": "resource_not_found", "status": 404, "body": "no such thing"})
    );
    let long = failed("long").await;
    let body = long["body"].as_str().unwrap();
    assert!(body.len() <= 4096 && body.len() > 4000 && body.ends_with("ä…"), "{}", body.len());
    assert_eq!(
        failed("binary").await,
        json!({"error": "server_error", "status": 500, "message": "500 Internal Server Error"})
    );
    assert_eq!(
        failed("silent").await,
        json!({"error": "server_error", "status": 503, "message": "503 Service Unavailable"})
    );
    let broken = failed("broken").await;
    assert!(broken["message"].as_str().unwrap().contains("not valid JSON"), "{broken}");
}

async fn failures_are_errors_without_a_reason(language: Language) {
    let host = launch(language).serve();
    let failed = failure(&mut host.client(Way::LATEST).await, "Failing", json!({})).await;
    assert_eq!(
        failed,
        json!({"error": "server_error", "status": 500, "message": "500 Internal Server Error"})
    );
    let host = launch(language).options(|options| options.detailed_errors = true).serve();
    let failed = failure(&mut host.client(Way::LATEST).await, "Failing", json!({})).await;
    assert!(failed["body"].as_str().unwrap().contains("a secret reason"), "{failed}");
}

async fn redirects_within_the_function_are_followed(language: Language) {
    let host = launch(language).serve();
    let mut client = host.client(Way::LATEST).await;
    for (to, says) in [
        // The framework of an app may not know that the request came without TLS.
        ("https://localhost/api/moved/?to=https://evil.example/", "redirects to another origin"),
        ("/api/orders/7", "these arguments, or a redirect, address another function"),
        ("/api/hidden/x", "these arguments, or a redirect, address another function"),
        ("/api/a/b/c/d", "no served operation has this method and path"),
        ("https://evil.example/", "redirects to another origin"),
    ] {
        let failed = failure(&mut client, "Moved", json!({"query": {"to": to}})).await;
        let message = failed["message"].as_str().unwrap();
        assert!(message.contains(says), "{to}: {failed}");
    }
}

async fn a_cancelled_call_frees_its_place(language: Language) {
    let host = launch_with(language, &json!(true));
    let limits = json!({"version": "2.0", "extensions": {"http": {"maxOutstandingRequests": 1}, "mcp": {"httpTools": true}}});
    let host = host.file("host.json", &limits.to_string()).serve();
    for way in [Way::Alone, Way::LATEST] {
        let mut client = host.client(way).await;
        let mut other = host.client(Way::LATEST).await;
        let mut params = json!({"name": "Waiting", "arguments": {}});
        params["_meta"] = json!({"progressToken": "p"});
        let mut call = client.begin("tools/call", params).await;
        // The log line of the function is progress for the client.
        let progress = client.message_of(&mut call).await.unwrap();
        assert_eq!(
            (&progress["method"], &progress["params"]["message"]),
            (&json!("notifications/progress"), &json!("begun"))
        );
        let busy = failure(&mut other, "Orders", json!({"method": "GET"})).await;
        assert_eq!((&busy["error"], &busy["status"]), (&json!("rate_limited"), &json!(429)));
        match way {
            // A client of 2026-07-28 cancels by closing the response.
            Way::Alone => drop(call),
            _ => client.notify("notifications/cancelled", json!({"requestId": call.id})).await,
        }
        within(async { while other.call("Orders", json!({"method": "GET"})).await["isError"] == true {} })
            .await;
        if language == Language::Python {
            within(async {
                while fs::remove_file(host.file("cancelled")).is_err() {
                    tokio::task::yield_now().await
                }
            })
            .await;
        }
    }
}

async fn tools_need_the_key_of_the_endpoint_only(language: Language) {
    let keys = "mcp_extension = system-secret\n_master = master-secret\ndefault = host-secret\n";
    let host = launch(language).file(".bindpost/keys", keys).with_keys().serve();
    let key = [("x-functions-key", "system-secret")];
    let mut client = Client::connect_with(host.address, Way::LATEST, &key).await;
    assert_eq!(content(&mut client, "GetOrder", json!({"id": 3})).await["id"], "3");
}

async fn tools_may_run_as_tasks(language: Language) {
    let host = json!({"version": "2.0", "extensions": {"mcp": {"httpTools": ["Waiting"], "tasks": {"tools": ["waiting"]}}}});
    let host = launch(language).file("host.json", &host.to_string()).serve();
    assert_eq!(warnings(&host, "matches no tool"), []);
    let mut client = host.client(Way::Alone).await;
    client.has_tasks = true;
    let task = client.result("tools/call", json!({"name": "Waiting", "arguments": {}})).await;
    let id = task["taskId"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
    fs::write(host.file("go"), "").unwrap();
    let done = within(async {
        loop {
            let task = client.result("tasks/get", json!({"taskId": id})).await;
            if task["status"] != "working" {
                break task;
            }
        }
    })
    .await;
    assert_eq!(
        (&done["status"], &done["result"]["content"][0]["text"]),
        (&json!("completed"), &json!("done")),
        "{done}"
    );
}
