//! Functions that ask the client for input of its user, a sample of its model, or its folders.

use serde_json::json;

use crate::client::Way;
use crate::served::Language;

for_all_apps! {
    asks_the_user_twice_and_keeps_state,
    accepts_a_declined_request,
    stops_a_function_that_never_stops_asking,
    does_not_show_clients_an_invalid_request,
    asks_the_model,
    asks_for_folders,
    asks_for_resources_and_prompts,
    does_not_ask_a_client_without_a_handshake,
}

async fn asks_the_user_twice_and_keeps_state(app: Language) {
    let host = app.shared();
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        client.answers = |method, params| {
            assert_eq!(method, "elicitation/create");
            let content = match params["message"].as_str().unwrap() {
                "Who are you?" => json!({"name": "Ada"}),
                "Which color?" => json!({"color": "blue"}),
                other => panic!("{other}"),
            };
            let asked = params["requestedSchema"]["required"][0].as_str().unwrap();
            assert!(content.get(asked).is_some(), "{params}");
            json!({"action": "accept", "content": content})
        };
        assert_eq!(client.text("AskUserTool", json!({})).await, "Ada likes blue", "{:?}", client.way);
    }
}

async fn accepts_a_declined_request(app: Language) {
    let host = app.shared();
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        client.answers = |_, _| json!({"action": "decline"});
        assert_eq!(client.text("AskUserTool", json!({})).await, "declined", "{:?}", client.way);
    }
}

/// This holds for stateless requests and for sessions.
async fn stops_a_function_that_never_stops_asking(app: Language) {
    let host = app.shared();
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        client.answers = |_, _| json!({"action": "accept", "content": {"name": "Ada"}});
        let result = client.call("AskForeverTool", json!({})).await;
        assert_eq!(result["isError"], true, "{:?}", client.way);
        assert!(result["content"][0]["text"].as_str().unwrap().contains("asked 32 times"), "{result}");
    }
}

async fn does_not_show_clients_an_invalid_request(app: Language) {
    let host = app.shared();
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        let result = client.call("AskNonsenseTool", json!({})).await;
        assert_eq!(
            result["content"][0]["text"], "An error occurred invoking 'AskNonsenseTool'.",
            "{:?}",
            client.way
        );
    }
}

async fn asks_the_model(app: Language) {
    let host = app.shared();
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        client.answers = |method, params| {
            assert_eq!((method, &params["maxTokens"]), ("sampling/createMessage", &json!(10)));
            assert_eq!(params["messages"][0]["content"]["text"], "Any opinion?");
            json!({"role": "assistant", "model": "m1", "content": {"type": "text", "text": "fine"}})
        };
        assert_eq!(client.text("AskModelTool", json!({})).await, "m1 says fine", "{:?}", client.way);
    }
}

async fn asks_for_folders(app: Language) {
    let host = app.shared();
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        client.answers = |method, _| {
            assert_eq!(method, "roots/list");
            json!({"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]})
        };
        assert_eq!(client.text("AskRootsTool", json!({})).await, "file:///a file:///b", "{:?}", client.way);
    }
}

async fn asks_for_resources_and_prompts(app: Language) {
    let host = app.shared();
    for mut client in host.clients_by(&Way::ACQUAINTED).await {
        client.answers = |_, _| json!({"action": "accept", "content": {"name": "Ada"}});
        let signed = client.read("file://signed.txt").await;
        assert_eq!(signed, json!({"uri": "file://signed.txt", "text": "signed by Ada"}), "{:?}", client.way);
        let signed = client.prompt("asking_prompt", json!({})).await;
        assert_eq!(signed, [("user".to_owned(), "signed by Ada".to_owned())], "{:?}", client.way);
    }
}

/// Without a handshake the client has declared no capabilities.
async fn does_not_ask_a_client_without_a_handshake(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::Cold).await;
    let result = client.call("AskUserTool", json!({})).await;
    assert_eq!(result["isError"], true);
    let why = r#"this request needs a client capability that was not declared: {"elicitation":{}}"#;
    assert_eq!(result["content"], json!([{"type": "text", "text": why}]));
    assert_eq!(client.text("EchoTool", json!({"message": "goes on"})).await, "goes on");
}
