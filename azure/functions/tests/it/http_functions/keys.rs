//! Who may call a function, by its level and the keys of the app.

use std::fs;

use super::*;
use crate::client::{Client, Way};

for_each_language!(keys_open_functions_by_their_levels, the_endpoint_takes_no_key_of_functions);

const KEYS: &str = "mcp_extension = system-secret\n_master = master-secret\ndefault = host-secret\nKeyed.partner = partner-secret\n";

async fn keys_open_functions_by_their_levels(language: Language) {
    let host = launch(language).file(".bindpost/keys", KEYS).with_keys().serve();
    for (key, open, keyed, masters) in [
        (None, 401, 401, 401),
        (Some("wrong"), 401, 401, 401),
        (Some("system-secret"), 401, 401, 401),
        // `--require-key` requires a key for anonymous functions too.
        (Some("host-secret"), 201, 200, 401),
        (Some("partner-secret"), 401, 200, 401),
        (Some("master-secret"), 201, 200, 200),
    ] {
        for (path, expected) in [("/api/created", open), ("/api/keyed", keyed), ("/api/masters", masters)] {
            let headers: Vec<(&str, &str)> = key.iter().map(|key| ("x-functions-key", *key)).collect();
            let answer = send(host.address, "GET", path, &headers, "").await;
            assert_eq!(answer.status, expected, "{path} with {key:?} in the header");
            if answer.status == 401 {
                assert_eq!(answer.text(), "");
            }
            let query = key.map(|key| format!("?code={key}")).unwrap_or_default();
            let answer = get(&host, &format!("{path}{query}")).await;
            assert_eq!(answer.status, expected, "{path} with {key:?} in the query");
        }
    }
    // The header has precedence.
    let header = [("x-functions-key", "wrong")];
    assert_eq!(send(host.address, "GET", "/api/keyed?code=host-secret", &header, "").await.status, 401);
}

async fn the_endpoint_takes_no_key_of_functions(language: Language) {
    let host = launch(language).file(".bindpost/keys", KEYS).with_keys().serve();
    for (key, expected) in
        [("system-secret", true), ("master-secret", true), ("host-secret", false), ("partner-secret", false)]
    {
        let headers = [
            ("x-functions-key", key),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let answer = send(host.address, "POST", crate::client::PATH, &headers, ping).await;
        assert_eq!(answer.status == 200, expected, "{key}: {}", answer.status);
    }
    let mut client =
        Client::connect_with(host.address, Way::LATEST, &[("x-functions-key", "system-secret")]).await;
    assert_eq!(client.text("greet", serde_json::json!({})).await, "Hello from a tool.");
}

#[tokio::test]
async fn new_keys_are_created_for_functions_too() {
    let host = launch(Language::Python).with_keys().serve();
    // The host listens before it creates the keys, and answers afterwards.
    assert_eq!(get(&host, "/api/keyed").await.status, 401);
    let keys = fs::read_to_string(host.file(".bindpost/keys")).unwrap();
    let key = keys.lines().find_map(|line| line.strip_prefix("default = ")).unwrap();
    assert_eq!(send(host.address, "GET", "/api/keyed", &[("x-functions-key", key)], "").await.status, 200);
}
