//! Tests the examples. They are the same server in three languages, so the assertions are the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::Way;
use crate::served::{Launch, Served};

/// The differences between the examples.
struct Example {
    launch: fn() -> Launch,
    /// Custom handlers answer at once, so they report no progress.
    tells_progress: bool,
}

const PYTHON: Example = Example {
    launch: || Launch::copy_of("../../examples/snippets-python").python("1.25.0"),
    tells_progress: true,
};
const NODE: Example = Example {
    launch: || Launch::copy_of("../../examples/snippets-node").node("4.16.5"),
    tells_progress: true,
};
const CUSTOM_HANDLER: Example =
    Example { launch: || Launch::copy_of("../../examples/custom-handler"), tells_progress: false };

#[tokio::test]
async fn snippets_in_python() {
    behaves_as_described(&PYTHON).await;
}

#[tokio::test]
async fn snippets_in_node() {
    behaves_as_described(&NODE).await;
}

#[tokio::test]
async fn snippets_in_a_custom_handler() {
    behaves_as_described(&CUSTOM_HANDLER).await;
}

async fn behaves_as_described(example: &Example) {
    let host = (example.launch)().serve();
    introduces_itself(&host).await;
    for way in [Way::Alone, Way::LATEST, Way::Sse] {
        keeps_snippets(&host, way).await;
        counts_words(&host, way, example.tells_progress).await;
        draws_a_badge(&host, way).await;
        asks_who_signs(&host, way).await;
        reviews_code(&host, way).await;
    }
}

async fn introduces_itself(host: &Served) {
    let mut client = host.client(Way::LATEST).await;
    assert_eq!(client.greeting["serverInfo"]["name"], "snippets");
    assert!(client.greeting["instructions"].as_str().unwrap().starts_with("Keeps snippets of text."));
    let names = |list: Vec<Value>| {
        let mut names: Vec<String> =
            list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    let tools = names(client.list("tools/list", "tools").await);
    assert_eq!(tools, ["badge", "count_words", "get_snippet", "save_snippet", "sign_snippet"]);
    assert_eq!(names(client.list("resources/list", "resources").await), ["about"]);
    assert_eq!(names(client.list("resources/templates/list", "resourceTemplates").await), ["snippet"]);
    assert_eq!(names(client.list("prompts/list", "prompts").await), ["code_review"]);
    let about = json!({
        "uri": "info://snippets", "mimeType": "text/markdown", "text": "# Snippets\n\nText that is kept by name.\n",
    });
    assert_eq!(client.read("info://snippets").await, about);
    assert!(host.report.warnings.is_empty(), "{:?}", host.report.warnings);
}

async fn keeps_snippets(host: &Served, way: Way) {
    let mut client = host.client(way).await;
    // If Azurite runs, these tests use it, and it keeps the blobs of earlier runs.
    let name = format!("n{:016x}", getrandom::u64().unwrap());
    let missing = client.text("get_snippet", json!({"snippetname": name})).await;
    assert_eq!(missing, format!("There is no snippet {name}."), "{way:?}");
    assert_eq!(client.read(&format!("snippet://{name}")).await["text"], "");
    // The last ones are also valid Base64 or JSON, and must stay unchanged.
    for snippet in
        ["let x = 1;", "zwei Zeilen:\nGrüße \u{1f980}", "TWFu", r#"{"a":  1}"#, "42", "null", r#""q""#]
    {
        let saved = client.text("save_snippet", json!({"snippetname": name, "snippet": snippet})).await;
        assert_eq!(saved, format!("Saved {name}."), "{way:?}");
        assert_eq!(client.text("get_snippet", json!({"snippetname": name})).await, snippet, "{way:?}");
        let item = json!({"uri": format!("snippet://{name}"), "mimeType": "text/plain", "text": snippet});
        assert_eq!(client.read(&format!("snippet://{name}")).await, item, "{way:?}");
    }
    let (code, _) = client.error("tools/call", json!({"name": "save_snippet", "arguments": {}})).await;
    assert_eq!(code, -32602);
}

async fn counts_words(host: &Served, way: Way, tells_progress: bool) {
    let mut client = host.client(way).await;
    let arguments = json!({"text": "a b A b", "words": ["a", "b", "c"], "ignore_case": true});
    let params = json!({"name": "count_words", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let result = client.result("tools/call", params).await;
    let counts: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(counts, json!({"a": 2, "b": 2, "c": 0}), "{way:?}");
    if tells_progress {
        let steps = client.heard.iter().map(|heard| {
            let params = &heard["params"];
            (params["progress"].as_f64().unwrap(), params["message"].as_str().unwrap())
        });
        assert_eq!(steps.collect::<Vec<_>>(), [(1.0, "a"), (2.0, "b"), (3.0, "c")], "{way:?}");
    }
    let strict = client.text("count_words", json!({"text": "a A", "words": ["A"]})).await;
    assert_eq!(serde_json::from_str::<Value>(&strict).unwrap(), json!({"A": 1}));
}

async fn draws_a_badge(host: &Served, way: Way) {
    let mut client = host.client(way).await;
    let badge = client.call("badge", json!({"label": "tests", "value": "<green>"})).await;
    assert_eq!(badge["content"][0], json!({"type": "text", "text": "tests: <green>"}), "{way:?}");
    let image = &badge["content"][1];
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/svg+xml")));
    let svg = String::from_utf8(STANDARD.decode(image["data"].as_str().unwrap()).unwrap()).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("tests: &lt;green"), "{svg}");
}

async fn asks_who_signs(host: &Served, way: Way) {
    let mut client = host.client(way).await;
    client.answers = |method, params| {
        assert_eq!((method, &params["message"]), ("elicitation/create", &json!("Who signs this snippet?")));
        json!({"action": "accept", "content": {"name": "Ada"}})
    };
    assert_eq!(client.text("sign_snippet", json!({"snippet": "x = 1"})).await, "x = 1\n-- Ada", "{way:?}");
    client.answers = |_, _| json!({"action": "cancel"});
    assert_eq!(client.text("sign_snippet", json!({"snippet": "x"})).await, "It was not signed.", "{way:?}");
}

async fn reviews_code(host: &Served, way: Way) {
    let mut client = host.client(way).await;
    let arguments = json!({"code": "print(1)", "language": "Python"});
    let messages = client.prompt("code_review", arguments).await;
    let text = "Please review this Python code:\n\nprint(1)";
    assert_eq!(messages, [("user".to_owned(), text.to_owned())], "{way:?}");
    let (code, text) = client.error("prompts/get", json!({"name": "code_review"})).await;
    let missing = "One or more required prompt arguments are missing values. Please provide: code";
    assert_eq!((code, text.as_str()), (-32602, missing));
}
