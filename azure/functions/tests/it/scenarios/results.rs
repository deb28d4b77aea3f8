//! The results that clients get for the return values of functions.

use serde_json::{Value, json};

use crate::client::Way;
use crate::served::Language;

for_all_apps! {
    passes_typed_arguments,
    distinguishes_empty_and_missing_arguments,
    attaches_structured_content,
    a_tool_can_return_an_error,
    passes_rich_content_on,
    converts_plain_values_to_text,
    finds_names_in_any_case,
    reads_resources,
    reads_templates,
    gets_prompts,
    detects_the_json_of_a_prompt_result,
}

async fn passes_typed_arguments(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let arguments = json!({"name": "Alice", "job": "FullTime", "age": 30, "isActive": true});
        assert_eq!(client.text("TypedParametersTool", arguments).await, "Alice FullTime 31 active");
        let arguments = json!({"tags": ["a", "b"], "scores": [1, 2, 39]});
        assert_eq!(client.text("CollectionParametersTool", arguments).await, "a+b 42");
        let message = "Grüße, 世界 \u{1f980} \"quoted\" \\ \u{7f}\n";
        assert_eq!(client.text("EchoTool", json!({"message": message})).await, message);
    }
}

async fn distinguishes_empty_and_missing_arguments(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::Alone).await;
    assert_eq!(client.text("EchoWithDefault", json!({"message": "given"})).await, "given");
    assert_eq!(client.text("EchoWithDefault", json!({"message": ""})).await, "");
    assert_eq!(client.text("EchoWithDefault", json!({})).await, "(nothing)");
    let without = client.result("tools/call", json!({"name": "EchoWithDefault"})).await;
    assert_eq!(without["content"][0]["text"], "(nothing)");
}

async fn attaches_structured_content(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let way = client.way;
        let result = client.call("PocoOutputTool", json!({"city": "Seattle"})).await;
        let [block] = result["content"].as_array().unwrap().as_slice() else { panic!("{way:?}: {result}") };
        assert!(block["text"].as_str().unwrap().contains("Seattle"), "{way:?}: {result}");
        assert_eq!(result["structuredContent"], json!({"city": "Seattle", "condition": "Sunny"}), "{way:?}");

        let result = client.call("StructuredContentTool", json!({})).await;
        assert_eq!(result["content"], json!([{"type": "text", "text": "as structured"}]), "{way:?}");
        assert_eq!(result["structuredContent"], json!({"answer": 42}), "{way:?}");
        assert_ne!(result["isError"], true);

        let result = client.call("SchemaTool", json!({"place": {"city": "Oslo"}})).await;
        assert_eq!(result["content"], json!([{"type": "text", "text": "Oslo"}]), "{way:?}");
        assert_eq!(result["structuredContent"], json!({"found": true}), "{way:?}");
    }
}

async fn passes_rich_content_on(app: Language) {
    let host = app.shared();
    let pixel = "iVBORw0KGgo=";
    for mut client in host.clients().await {
        let image =
            client.call("ImageContentTool", json!({"data": "/9j/4AA=", "mimeType": "image/jpeg"})).await;
        let block = json!({"type": "image", "data": "/9j/4AA=", "mimeType": "image/jpeg"});
        assert_eq!(image["content"], json!([block]), "{:?}", client.way);
        let text = client.call("TextContentTool", json!({"words": "some words"})).await;
        assert_eq!(text["content"], json!([{"type": "text", "text": "some words"}]));
        let link = client.call("ResourceLinkTool", json!({})).await;
        let block = json!({"type": "resource_link", "uri": "file://readme.md", "name": "readme"});
        assert_eq!(link["content"], json!([block]));
        let several = client.call("MultiContentTool", json!({})).await;
        let blocks = json!([
            {"type": "text", "text": "three blocks"},
            {"type": "resource_link", "uri": "file://logo.png", "name": "logo"},
            {"type": "image", "data": pixel, "mimeType": "image/png"},
        ]);
        assert_eq!(several["content"], blocks);
    }
}

/// The conversion of values by a language's library is visible to its users.
async fn converts_plain_values_to_text(app: Language) {
    let host = app.shared();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let rows: [(&str, Value); 4] = match app {
        Language::Python => [
            // The Python library cannot return no value.
            ("VoidTool", text("")),
            ("BytesTool", text("//4A")),
            ("DictTool", text("{'a': [1, None]}")),
            ("NumberTool", text("42")),
        ],
        Language::Node => [
            ("VoidTool", json!([])),
            ("BytesTool", text(r#"{"type":"Buffer","data":[255,254,0]}"#)),
            ("DictTool", text(r#"{"a":[1,null]}"#)),
            ("NumberTool", text("42")),
        ],
        Language::Java => [
            ("VoidTool", json!([])),
            ("BytesTool", text("//4A")),
            // The host writes the JSON, as on the platform.
            ("DictTool", text("{\n  \"a\": [\n    1,\n    null\n  ]\n}")),
            ("NumberTool", text("42")),
        ],
    };
    for mut client in host.clients().await {
        for (tool, content) in &rows {
            let result = client.call(tool, json!({})).await;
            assert_eq!(result["content"], *content, "{:?} {tool}", client.way);
            assert_ne!(result["isError"], true);
        }
    }
}

async fn finds_names_in_any_case(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        assert_eq!(client.text("ECHOtool", json!({"message": "hi"})).await, "hi");
        assert_eq!(client.read("FILE://Minimal.TXT").await["text"], "Minimal resource content");
        assert_eq!(client.prompt("NO_args_Prompt", json!({})).await.len(), 1);
        let context: Value = serde_json::from_str(&client.text("contexttool", json!({})).await).unwrap();
        assert_eq!(context["name"], "contexttool", "the function gets the name as it was sent");
    }
}

async fn reads_resources(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let readme = json!({"uri": "file://readme.md", "mimeType": "text/markdown", "text": "# Read me"});
        assert_eq!(client.read("file://readme.md").await, readme, "{:?}", client.way);
        let logo = json!({"uri": "file://logo.png", "mimeType": "image/png", "blob": "iVBORw0KGgo="});
        assert_eq!(client.read("file://logo.png").await, logo);
        let minimal = json!({"uri": "file://minimal.txt", "text": "Minimal resource content"});
        assert_eq!(client.read("file://minimal.txt").await, minimal);
        let notes = json!({
            "uri": "file://notes.txt", "mimeType": "text/x-notes", "text": "some notes", "_meta": {"pages": 2},
        });
        assert_eq!(client.read("file://notes.txt").await, notes);
        let view = json!({
            "uri": "ui://HelloApp/view", "mimeType": "text/html;profile=mcp-app", "text": "<h1>Hello!</h1>",
            "_meta": {"ui": {"prefersBorder": true}},
        });
        assert_eq!(client.read("ui://HelloApp/view").await, view);
    }
}

async fn reads_templates(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let json_of = |item: Value| serde_json::from_str::<Value>(item["text"].as_str().unwrap()).unwrap();
        let profile = client.read("user://profile/bob").await;
        assert_eq!(
            (&profile["uri"], &profile["mimeType"]),
            (&json!("user://profile/bob"), &json!("application/json"))
        );
        assert_eq!(json_of(profile), json!({"uri": "user://profile/bob"}));
        let catalog = client.read("store://catalog/booksitemsfiction").await;
        assert_eq!(json_of(catalog), json!({"category": "books", "tag": "fiction"}), "{:?}", client.way);
    }
}

async fn gets_prompts(app: Language) {
    let host = app.shared();
    let user = |text: &str| vec![("user".to_owned(), text.to_owned())];
    for mut client in host.clients().await {
        let arguments = json!({"code": "print(1)", "language": "Python"});
        let review = client.prompt("code_review", arguments).await;
        assert_eq!(review, user("Review this Python code: print(1)"), "{:?}", client.way);
        let review = client.prompt("code_review", json!({"code": "x"})).await;
        assert_eq!(review, user("Review this unknown code: x"));
        assert_eq!(client.prompt("no_args_prompt", json!({})).await, user("Say something."));
        assert_eq!(client.prompt("all_optional_args_prompt", json!({})).await, user("Write about anything."));
        let without = client.result("prompts/get", json!({"name": "all_optional_args_prompt"})).await;
        assert_eq!(without["messages"][0]["content"]["text"], "Write about anything.");
        assert_eq!(client.prompt("metadata_prompt", json!({})).await, user("described"));
    }
}

/// The extension did so up to 1.5, and the libraries of Python and Node still rely on it.
async fn detects_the_json_of_a_prompt_result(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let turns = client.prompt("multi_turn_prompt", json!({})).await;
        let turns: Vec<(&str, &str)> =
            turns.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect();
        let expected = [("user", "Hello"), ("assistant", "Hi, how can I help?"), ("user", "Tell me a story")];
        assert_eq!(turns, expected, "{:?}", client.way);
        let result = client.result("prompts/get", json!({"name": "multi_turn_prompt"})).await;
        assert_eq!(result["description"], "Three turns.");
    }
}

#[tokio::test]
async fn keeps_the_json_of_a_prompt_result_as_text_if_configured() {
    let setting = "AzureFunctionsJobHost__extensions__mcp__detectPromptJson";
    let host = Language::Node.launch().setting(setting, "false").serve();
    let mut client = host.client(Way::Alone).await;
    let [(role, text)] = <[_; 1]>::try_from(client.prompt("multi_turn_prompt", json!({})).await).unwrap();
    assert_eq!(role, "user");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["description"], "Three turns.");
}

/// The Node library drops `isError`, but the built-in worker keeps it.
async fn a_tool_can_return_an_error(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let result = client.call("StructuredContentTool", json!({"fails": true})).await;
        assert_eq!(result["isError"], true, "{:?}", client.way);
        assert_eq!(result["content"], json!([{"type": "text", "text": "as structured"}]));
        assert_eq!(result["structuredContent"], json!({"answer": 42}));
    }
}

/// The Node library drops `_meta`, so only a function that writes its own envelope has it.
#[tokio::test]
async fn passes_a_whole_result_on_unchanged() {
    let host = Language::Python.shared();
    let mut client = host.client(Way::Alone).await;
    let result = client.call("StructuredContentTool", json!({"fails": true})).await;
    assert_eq!(result["_meta"]["origin"], "fixture");
}
