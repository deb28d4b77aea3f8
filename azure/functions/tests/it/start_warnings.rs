//! Apps that start, and what their start reports.

use std::path::Path;

use bindpost_azure_functions::{WorkerKind, WorkerRow};
use serde_json::{Value, json};

use crate::client::Way;
use crate::served::Launch;

const HOST: (&str, &str) = ("host.json", r#"{"version": "2.0"}"#);

/// Returns a Node app of the old programming model, which needs no package. Each function is a name, its
/// bindings and its script.
fn node(functions: &[(&str, Value, &str)]) -> Launch {
    let launch = Launch::of_files(&[HOST, ("package.json", "{}")]);
    functions.iter().fold(launch, |launch, (name, bindings, script)| {
        let function = json!({"scriptFile": "index.js", "bindings": bindings}).to_string();
        let script = format!("module.exports = async (context, call) => {{ {script} }};");
        launch.file(&format!("{name}/function.json"), &function).file(&format!("{name}/index.js"), &script)
    })
}

fn tool(name: &str) -> Value {
    let properties = json!([{"propertyName": "text", "propertyType": "string", "description": "A text."}]);
    json!({
        "type": "mcpToolTrigger", "direction": "in", "name": "call", "toolName": name, "description": "A tool.",
        "toolProperties": properties.to_string(),
    })
}

fn blob(connection: &str) -> Value {
    json!({"type": "blob", "direction": "out", "name": "file", "path": "files/a", "connection": connection})
}

/// Returns an app that writes two blobs of one path with two connections, and a third one without a connection.
fn writes_blobs() -> Launch {
    let function = |name: &'static str, connection: &str| {
        (name, json!([tool(name), blob(connection)]), "context.bindings.file = call.arguments.text;")
    };
    node(&[function("one", "Mine"), function("two", "Other__Storage"), function("three", "")])
}

#[tokio::test]
async fn a_connection_that_is_not_set_has_a_store_of_its_own_and_a_warning() {
    let host = writes_blobs().serve();
    let mut client = host.client(Way::Alone).await;
    for name in ["one", "two", "three"] {
        client.call(name, json!({"text": name})).await;
    }
    let read = |name: &str| std::fs::read_to_string(host.file(name)).unwrap();
    assert_eq!(read(".bindpost/blobs/_mine/files/a"), "one");
    assert_eq!(read(".bindpost/blobs/_other%3astorage/files/a"), "two");
    // The store of AzureWebJobsStorage stays where it was.
    assert_eq!(read(".bindpost/blobs/files/a"), "three");

    let warnings: Vec<&str> = host.report.warnings.iter().map(|warning| warning.message.as_str()).collect();
    let folder = |name: &str| host.file(&Path::new(".bindpost/blobs").join(name).display().to_string());
    let warning = |function: &str, name: &str, folder: std::path::PathBuf| {
        format!(
            "function {function}: no setting has the connection {name} of its blobs: they are stored in {}",
            folder.display()
        )
    };
    assert_eq!(
        warnings,
        [
            warning("one", "Mine", folder("_mine")),
            warning("two", "Other__Storage", folder("_other%3astorage"))
        ]
    );
    let fix = host.report.warnings[0].fix.as_deref().unwrap();
    assert!(fix.starts_with("set Mine to a connection string"), "{fix}");
    assert_eq!(host.report.notices.len(), 1, "{:?}", host.report.notices);
}

#[tokio::test]
async fn a_connection_that_is_not_set_is_an_error_on_an_address_that_others_reach() {
    let launch = writes_blobs().options(|options| options.exposed = true);
    let error = launch.refusal().await;
    let lines: Vec<&str> = error.lines().collect();
    let says = |function: &str, name: &str| {
        format!(
            "function {function}: no setting has the connection {name} of its blobs, and other machines can reach this app"
        )
    };
    assert_eq!(lines.len(), 4, "{error}");
    assert_eq!((lines[0], lines[2]), (&*says("one", "Mine"), &*says("two", "Other__Storage")), "{error}");
    assert!(lines[1].starts_with("  fix: set Mine to a connection string"), "{error}");

    let set = writes_blobs().setting("Mine", "UseDevelopmentStorage=true");
    let set = set.setting("Other:Storage", "UseDevelopmentStorage=true");
    let host = set.options(|options| options.exposed = true).serve();
    assert!(host.report.warnings.is_empty(), "{:?}", host.report.warnings);
}

#[tokio::test]
async fn a_tool_name_with_blanks_is_served_with_a_warning() {
    let host = node(&[("save", json!([tool("save a text")]), "return call.arguments.text;")]).serve();
    let [warning] = host.report.warnings.as_slice() else { panic!("{:?}", host.report.warnings) };
    let says = r#"save/function.json: function save: mcpToolTrigger.toolName: "save a text" is not a tool name that all MCP clients accept"#;
    assert_eq!(warning.message, says);
    assert!(warning.fix.as_deref().unwrap().ends_with(r#"for example "save_a_text""#));
    for mut client in host.clients().await {
        assert_eq!(client.list("tools/list", "tools").await[0]["name"], "save a text");
        assert_eq!(client.text("save a text", json!({"text": "x"})).await, "x", "{:?}", client.way);
    }
}

#[tokio::test]
async fn the_report_says_whose_worker_runs() {
    let built_in = node(&[("save", json!([tool("save")]), "return 'x';")]).serve();
    assert_eq!(built_in.report.worker, WorkerRow { kind: WorkerKind::BuiltIn, place: None });
    let handler = Launch::copy_of("../../examples/custom-handler").serve();
    let expected = WorkerRow { kind: WorkerKind::CustomHandler, place: Some("python3".to_owned()) };
    assert_eq!(handler.report.worker, expected);
}

#[tokio::test]
async fn mistakes_of_names_are_reported_with_the_nearest_one() {
    let mut trigger = tool("save");
    trigger["toolProperties"] =
        json!([{"propertyName": "text", "propertyType": "str", "description": "A text."}]);
    let file =
        json!({"type": "blob", "direction": "out", "name": "file", "path": "files/{mcptoolargs.Text}"});
    let mcp = json!({"version": "2.0", "extensions": {"mcp": {"severName": "mine"}}});
    let launch = node(&[("save", json!([trigger, file]), "return 'x';")]).file("host.json", &mcp.to_string());
    let host = launch.serve();
    let warnings = host.report.warnings.iter();
    let warnings: Vec<(&str, &str)> =
        warnings.map(|warning| (warning.message.as_str(), warning.fix.as_deref().unwrap())).collect();
    let at = "save/function.json: function save:";
    let kind = format!(
        r#"{at} mcpToolTrigger.toolProperties[0].propertyType: "str" is not a type, so the property has no type"#
    );
    let path = format!("{at} blob[file].path: {{mcptoolargs.Text}} names no property of the tool");
    let expected = [
        ("host.json: extensions.mcp.severName: is not a setting and has no effect", r#"write "serverName""#),
        (&*kind, r#"write "string""#),
        (&*path, "write {mcptoolargs.text}"),
    ];
    assert_eq!(warnings, expected);
}

#[tokio::test]
async fn an_early_answer_that_is_not_possible_is_reported() {
    let setting = |name: &str| format!("AzureFunctionsJobHost__extensions__mcp__tasks__{name}");
    let answer = "return 'done';";
    let mut strict = tool("strict");
    strict["outputSchema"] = json!({"type": "object"}).to_string().into();
    for (tools, second, expected) in [
        (
            "true",
            tool("Task_Result"),
            "has no effect, because it needs the tool name Task_Result, which function second has",
        ),
        (
            "true",
            strict,
            "does not apply to function second, because an answer without the result would break its output schema",
        ),
        ("false", tool("other"), "has no effect, because no tool runs as a task"),
    ] {
        let launch = node(&[("first", json!([tool("first")]), answer), ("second", json!([second]), answer)]);
        let launch = launch.setting(&setting("tools"), tools).setting(&setting("answerAfter"), "00:00:20");
        let host = launch.serve();
        let warnings: Vec<&str> =
            host.report.warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(warnings, [format!("host.json: extensions.mcp.tasks.answerAfter {expected}")]);
        let listed = host.client(Way::Alone).await.list("tools/list", "tools").await;
        let offers = listed.iter().any(|tool| tool["name"] == "task_result");
        assert_eq!(offers, expected.starts_with("does not apply"), "{expected}");
    }
}
