//! The definitions that clients list.

use serde_json::{Value, json};

use crate::client::Way;
use crate::served::Language;

for_all_apps! {
    lists_tools_with_their_schemas,
    lists_properties_and_arguments_in_the_order_of_declaration,
    lists_resources_without_templates,
    lists_templates,
    lists_prompts_with_their_arguments,
    reports_what_it_serves,
}

fn named<'a>(list: &'a [Value], name: &str) -> &'a Value {
    list.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {list:?}"))
}

async fn lists_tools_with_their_schemas(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let tools = client.list("tools/list", "tools").await;
        assert!(tools.len() >= 20, "{:?}: {}", client.way, tools.len());
        let echo = named(&tools, "EchoTool");
        assert_eq!(echo["description"], "EchoTool of the tests.");
        let message = json!({"type": "string", "description": "The message."});
        let schema = json!({"type": "object", "properties": {"message": message}, "required": ["message"]});
        assert_eq!(echo["inputSchema"], schema);
        assert_eq!(echo.get("_meta"), None);

        let optional = &named(&tools, "EchoWithDefault")["inputSchema"];
        let schema = json!({"type": "object", "properties": {"message": message}, "required": []});
        assert_eq!(*optional, schema);

        let typed = &named(&tools, "TypedParametersTool")["inputSchema"];
        assert_eq!(typed["properties"]["age"]["type"], "integer");
        assert_eq!(typed["properties"]["isActive"]["type"], "boolean");
        assert_eq!(typed["required"], json!(["name", "job", "age", "isActive"]));
        // The Node library has no enums.
        let jobs = (app != Language::Node).then(|| json!(["FullTime", "PartTime"]));
        assert_eq!(typed["properties"]["job"].get("enum"), jobs.as_ref());

        let collections = &named(&tools, "CollectionParametersTool")["inputSchema"]["properties"];
        let tags = json!({"type": "array", "items": {"type": "string"}, "description": "The tags."});
        let scores = json!({"type": "array", "items": {"type": "integer"}, "description": "The scores."});
        assert_eq!(*collections, json!({"tags": tags, "scores": scores}));

        let void = &named(&tools, "VoidTool")["inputSchema"];
        assert_eq!(*void, json!({"type": "object", "properties": {}, "required": []}));
        assert_eq!(named(&tools, "MetadataTool")["_meta"], json!({"category": "testing", "level": 3}));
        let ui = json!({"resourceUri": "ui://HelloApp/view", "visibility": ["model", "app"]});
        assert_eq!(named(&tools, "HelloApp")["_meta"], json!({"ui": ui}));

        let schema = named(&tools, "SchemaTool");
        let city = json!({"city": {"type": "string"}});
        let place =
            json!({"type": "object", "description": "The place.", "properties": city, "required": ["city"]});
        let input = json!({"type": "object", "properties": {"place": place}, "required": ["place"]});
        assert_eq!(schema["inputSchema"], input);
        let output = json!({"type": "object", "properties": {"found": {"type": "boolean"}}});
        assert_eq!(schema["outputSchema"], output);
    }
}

async fn lists_properties_and_arguments_in_the_order_of_declaration(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        for (method, definition, names) in [
            ("tools/list", "TypedParametersTool", ["name", "job", "age", "isActive"].as_slice()),
            ("prompts/list", "summarize", &["text", "style"]),
        ] {
            let text = client.response_text(method, json!({})).await;
            let (_, text) = text.split_once(&format!(r#""name":"{definition}""#)).unwrap();
            let at = |name: &str| match method {
                "tools/list" => text.find(&format!(r#""{name}":{{"#)),
                _ => text.find(&format!(r#""name":"{name}""#)),
            };
            let places: Vec<usize> = names.iter().map(|name| at(name).unwrap()).collect();
            assert!(places.is_sorted(), "{:?}: {places:?} in {text}", client.way);
        }
    }
    let row = host.report.tools.iter().find(|tool| tool.name == "TypedParametersTool").unwrap();
    let names: Vec<&str> = row.arguments.iter().map(|argument| argument.name.as_str()).collect();
    assert_eq!(names, ["name", "job", "age", "isActive"]);
}

async fn lists_resources_without_templates(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let resources = client.list("resources/list", "resources").await;
        let uris: Vec<&str> = resources.iter().map(|one| one["uri"].as_str().unwrap()).collect();
        for uri in ["file://readme.md", "file://logo.png", "file://minimal.txt", "file://notes.txt"] {
            assert!(uris.contains(&uri), "{uris:?}");
        }
        assert!(uris.iter().all(|uri| !uri.contains('{')), "{uris:?}");
        let readme = json!({
            "uri": "file://readme.md", "name": "readme", "title": "Read me", "description": "Read this first.",
            "mimeType": "text/markdown", "size": 9, "_meta": {"author": "tests"},
        });
        assert_eq!(*named(&resources, "readme"), readme, "{:?}", client.way);
        assert_eq!(*named(&resources, "minimal"), json!({"uri": "file://minimal.txt", "name": "minimal"}));
    }
}

async fn lists_templates(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let templates = client.list("resources/templates/list", "resourceTemplates").await;
        let profile = json!({"uriTemplate": "user://profile/{name}", "name": "profile", "mimeType": "application/json"});
        assert_eq!(*named(&templates, "profile"), profile, "{:?}", client.way);
        assert_eq!(named(&templates, "catalog")["uriTemplate"], "store://catalog/{category}items{tag}");
    }
}

async fn lists_prompts_with_their_arguments(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let prompts = client.list("prompts/list", "prompts").await;
        let names: Vec<&str> = prompts.iter().map(|one| one["name"].as_str().unwrap()).collect();
        for name in
            ["code_review", "summarize", "no_args_prompt", "all_optional_args_prompt", "multi_turn_prompt"]
        {
            assert!(names.contains(&name), "{names:?}");
        }
        let review = named(&prompts, "code_review");
        assert_eq!(
            (&review["title"], &review["description"]),
            (&json!("Code review"), &json!("Asks for a review."))
        );
        let [code, language] = review["arguments"].as_array().unwrap().as_slice() else { panic!("{review}") };
        assert_eq!(*code, json!({"name": "code", "description": "The code.", "required": true}));
        assert_eq!(
            (&language["name"], &language["description"]),
            (&json!("language"), &json!("Its language."))
        );
        assert_ne!(language["required"], true);
        assert_eq!(named(&prompts, "metadata_prompt")["_meta"], json!({"version": "1.0"}));
    }
}

async fn reports_what_it_serves(app: Language) {
    let host = app.shared();
    let mut client = host.client(Way::Cold).await;
    let tools = client.list("tools/list", "tools").await;
    let reported: Vec<&str> = host.report.tools.iter().map(|row| row.name.as_str()).collect();
    let listed: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(reported, listed);
    assert!(host.report.warnings.is_empty(), "{:?}", host.report.warnings);
}
