//! Blobs that functions read and write.

use serde_json::json;

use crate::client::Way;
use crate::served::Language;

for_all_apps! {
    stores_blobs,
    writes_nothing_for_null,
    fills_paths_from_the_variables_of_a_template,
    keeps_paths_inside_their_container,
}

async fn stores_blobs(app: Language) {
    let host = app.shared();
    for (index, mut client) in host.clients().await.into_iter().enumerate() {
        let name = format!("kept {index}");
        assert_eq!(client.text("GetTool", json!({"name": name})).await, "(none)", "{:?}", client.way);
        for content in ["first", "Grüße \u{1f980}\nin two lines"] {
            let saved = client.text("SaveTool", json!({"name": name, "content": content})).await;
            assert_eq!(saved, "saved");
            assert_eq!(client.text("GetTool", json!({"name": name})).await, content);
        }
    }
}

async fn writes_nothing_for_null(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::Alone).await;
    assert_eq!(client.text("SaveTool", json!({"name": "null"})).await, "nothing");
    assert_eq!(client.text("GetTool", json!({"name": "null"})).await, "(none)");
    // The old blob is kept.
    client.text("SaveTool", json!({"name": "null", "content": "there"})).await;
    assert_eq!(client.text("SaveTool", json!({"name": "null"})).await, "nothing");
    assert_eq!(client.text("GetTool", json!({"name": "null"})).await, "there");
    // An empty text is a blob.
    client.text("SaveTool", json!({"name": "null", "content": ""})).await;
    assert_eq!(client.text("GetTool", json!({"name": "null"})).await, "");
}

/// The path is `kept/{mcpresourceargs.Name}.{kind}`: it uses the object of all variables, and one variable by
/// name.
async fn fills_paths_from_the_variables_of_a_template(app: Language) {
    let host = app.shared();
    for (index, mut client) in host.clients().await.into_iter().enumerate() {
        let name = format!("shelf-{index}");
        assert_eq!(client.read(&format!("kept://{name}/txt")).await["text"], "(none)");
        client.text("SaveTool", json!({"name": name, "content": "a book"})).await;
        assert_eq!(client.read(&format!("kept://{name}/txt")).await["text"], "a book", "{:?}", client.way);
        assert_eq!(client.read(&format!("kept://{name}/md")).await["text"], "(none)");
    }
}

async fn keeps_paths_inside_their_container(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::Alone).await;
    let name = "../../../outside";
    let result = client.call("SaveTool", json!({"name": name, "content": "x"})).await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    let why = "The path 'kept/{mcptoolargs.name}.txt' does not give a valid blob name: it has a segment '.' or '..'.";
    assert!(
        text.starts_with("An error occurred invoking 'SaveTool'. Binding ") && text.ends_with(why),
        "{text}"
    );
    assert!(!host.file("outside.txt").exists() && !host.file(".bindpost/outside.txt").exists(), "{result}");
    assert_eq!(std::fs::read_to_string(host.file(".bindpost/.gitignore")).unwrap(), "*\n");
}
