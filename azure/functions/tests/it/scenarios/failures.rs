//! The errors that clients get for unknown entries, missing arguments and failed functions.

use serde_json::{Value, json};

use crate::client::Way;
use crate::served::Language;

for_all_apps! {
    reports_unknown_entries_as_the_platform_does,
    names_all_required_arguments_that_are_missing,
    checks_types_only_if_configured,
    reports_a_failure_without_its_reason,
    reports_the_reason_if_configured,
    stops_functions_at_their_timeout,
    continues_after_failures,
}

const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

fn failed(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

async fn reports_unknown_entries_as_the_platform_does(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        for (method, params, text) in [
            ("tools/call", json!({"name": "NoSuchTool", "arguments": {}}), "Unknown tool: 'NoSuchTool'"),
            (
                "resources/read",
                json!({"uri": "file://nonexistent/resource.txt"}),
                "Unknown resource: 'file://nonexistent/resource.txt'",
            ),
            ("resources/read", json!({"uri": "user://profile/"}), "Unknown resource: 'user://profile/'"),
            ("prompts/get", json!({"name": "no_such_prompt"}), "Unknown prompt: 'no_such_prompt'"),
        ] {
            let error = client.error(method, params).await;
            assert_eq!(error, (INVALID_PARAMS, text.to_owned()), "{:?}", client.way);
        }
        let (code, _) = client.error("no/such", json!({})).await;
        assert_eq!(code, -32601, "{:?}", client.way);
    }
}

async fn names_all_required_arguments_that_are_missing(app: Language) {
    let host = app.shared();
    let tool = "One or more required tool properties are missing values. Please provide:";
    let prompt = "One or more required prompt arguments are missing values. Please provide:";
    for mut client in host.clients().await {
        for (method, params, text) in [
            ("tools/call", json!({"name": "EchoTool"}), format!("{tool} message")),
            (
                "tools/call",
                json!({"name": "EchoTool", "arguments": {"message": null}}),
                format!("{tool} message"),
            ),
            (
                "tools/call",
                json!({"name": "EchoTool", "arguments": {"Message": "x"}}),
                format!("{tool} message"),
            ),
            (
                "tools/call",
                json!({"name": "TypedParametersTool", "arguments": {"job": "PartTime"}}),
                format!("{tool} name, age, isActive"),
            ),
            (
                "prompts/get",
                json!({"name": "code_review", "arguments": {"language": "C"}}),
                format!("{prompt} code"),
            ),
            ("prompts/get", json!({"name": "summarize"}), format!("{prompt} text, style")),
        ] {
            let error = client.error(method, params.clone()).await;
            assert_eq!(error, (INVALID_PARAMS, text), "{:?} {params}", client.way);
        }
        // An empty text is a value.
        assert_eq!(client.text("EchoTool", json!({"message": ""})).await, "");
    }
}

async fn checks_types_only_if_configured(app: Language) {
    let arguments = json!({"message": "x", "unknown": 1});
    let wrong = json!({"tags": "not a list", "scores": [1]});
    let host = app.shared();
    let mut client = host.client(Way::Alone).await;
    assert_eq!(client.text("EchoTool", arguments.clone()).await, "x");
    // The function gets the argument as sent. The result depends on its language.
    let unchecked = client.call("CollectionParametersTool", wrong.clone()).await;
    let made = match app {
        Language::Python => "n+o+t+ +a+ +l+i+s+t 1",
        Language::Node | Language::Java => "An error occurred invoking 'CollectionParametersTool'.",
    };
    assert_eq!(unchecked["content"][0]["text"], made);

    let setting = "AzureFunctionsJobHost__extensions__mcp__validateArguments";
    let strict = app.launch().setting(setting, "true").serve();
    let mut client = strict.client(Way::Alone).await;
    assert_eq!(client.text("EchoTool", arguments).await, "x");
    let checked = client.call("CollectionParametersTool", wrong).await;
    assert_eq!(checked["isError"], true);
    let why = "Invalid arguments for tool \"CollectionParametersTool\":\n- /tags: \"not a list\" is not of type \"array\"";
    assert_eq!(checked["content"], failed(why));
    let (_, text) = client.error("tools/call", json!({"name": "EchoTool", "arguments": {}})).await;
    let missing = "One or more required tool properties are missing values. Please provide: message";
    assert_eq!(text, missing);
}

async fn reports_a_failure_without_its_reason(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let result = client.call("FailingTool", json!({})).await;
        assert_eq!(
            result["content"],
            failed("An error occurred invoking 'FailingTool'."),
            "{:?}",
            client.way
        );
        assert_eq!(result["isError"], true);
        let told = (INTERNAL_ERROR, "An error occurred.".to_owned());
        assert_eq!(client.error("resources/read", json!({"uri": "file://broken.txt"})).await, told);
        assert_eq!(client.error("prompts/get", json!({"name": "failing_prompt"})).await, told);
    }
}

/// The Node library always writes a valid envelope.
#[tokio::test]
async fn treats_an_invalid_envelope_as_a_failure() {
    let host = Language::Python.shared();
    for mut client in host.clients().await {
        let result = client.call("BrokenEnvelopeTool", json!({})).await;
        assert_eq!(result["content"], failed("An error occurred invoking 'BrokenEnvelopeTool'."));
        assert_eq!(result["isError"], true);
    }
}

async fn reports_the_reason_if_configured(app: Language) {
    let host = app.launch().options(|options| options.detailed_errors = true).serve();
    let why = match app {
        Language::Python => "ValueError: the secret is 42",
        Language::Node => "the secret is 42",
        Language::Java => "IllegalArgumentException: the secret is 42",
    };
    for way in [Way::Alone, Way::LATEST] {
        let mut client = host.client(way).await;
        let result = client.call("FailingTool", json!({})).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("An error occurred invoking 'FailingTool'. ") && text.contains(why),
            "{text}"
        );
        for (method, params) in [
            ("resources/read", json!({"uri": "file://broken.txt"})),
            ("prompts/get", json!({"name": "failing_prompt"})),
        ] {
            let (code, text) = client.error(method, params).await;
            assert_eq!(code, INTERNAL_ERROR);
            assert!(text.starts_with("An error occurred. ") && text.contains(why), "{text}");
        }
    }
}

async fn stops_functions_at_their_timeout(app: Language) {
    let host = app.launch().setting("AzureFunctionsJobHost__functionTimeout", "00:00:01").serve();
    let mut client = host.client(Way::Alone).await;
    let result = client.call("SlowTool", json!({"name": "too-long"})).await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("An error occurred invoking 'SlowTool'."), "{text}");
    assert!(!host.file(".bindpost/blobs/slow").join("too-long.txt").exists());
    // The next call finds a worker.
    assert_eq!(client.text("EchoTool", json!({"message": "still here"})).await, "still here");
}

async fn continues_after_failures(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::LATEST).await;
    for round in 0..5 {
        assert_eq!(client.call("FailingTool", json!({})).await["isError"], true);
        let message = format!("round {round}");
        assert_eq!(client.text("EchoTool", json!({"message": message})).await, message);
    }
}
