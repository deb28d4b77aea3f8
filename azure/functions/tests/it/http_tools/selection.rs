//! Which functions are tools, and how they are described.

use std::fs;

use super::*;
use crate::client::{Way, within};

for_python_and_node!(
    functions_are_tools_with_schemas_and_hints,
    names_and_patterns_select_functions,
    tools_change_with_host_json,
);

/// The functions that are tools by `true`, in the order in which routes are tried.
const ALL: [&str; 10] =
    ["Failing", "GetOrder", "Hidden", "Moved", "Orders", "Parts", "Reply", "Rest", "Waiting", "Wild"];

async fn functions_are_tools_with_schemas_and_hints(language: Language) {
    let host = launch_with(language, &json!(true)).serve();
    assert_eq!(http_tools(&host), ALL);
    for client in &mut host.clients().await {
        let tools = client.list("tools/list", "tools").await;
        let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap().clone();
        let order = tool("GetOrder");
        assert_eq!(order["annotations"]["readOnlyHint"], true);
        let id = &order["inputSchema"]["properties"]["id"];
        assert_eq!((&id["type"], &id["minimum"]), (&json!("integer"), &json!(1)));
        assert_eq!(order["inputSchema"]["required"], json!(["id"]));
        let orders = tool("Orders");
        let properties = &orders["inputSchema"]["properties"];
        assert_eq!(properties["method"]["enum"], json!(["GET", "POST", "DELETE"]));
        assert_eq!(properties["query"]["additionalProperties"], json!({"type": "string"}));
        assert!(properties["body"].is_object());
        assert_eq!(orders["inputSchema"]["required"], json!(["method"]));
        let hints = &orders["annotations"];
        assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(false), &json!(true)));
        let parts = tool("Parts");
        assert_eq!(parts["annotations"]["idempotentHint"], true);
        assert_eq!(parts["inputSchema"].get("required"), None);
        assert_eq!(parts["inputSchema"]["properties"]["first"]["default"], "one");
        assert_eq!(tool("Rest")["inputSchema"]["properties"]["path"]["type"], "string");
        // A function for all methods offers the usual ones.
        let hidden = &tool("Hidden")["inputSchema"]["properties"]["method"]["enum"];
        let usual = if language == Language::Node {
            json!(["GET", "POST"])
        } else {
            json!(["GET", "POST", "PUT", "PATCH", "DELETE"])
        };
        assert_eq!(*hidden, usual);
        let description = order["description"].as_str().unwrap();
        let properties = &order["inputSchema"]["properties"];
        if language == Language::Python {
            // The docstring describes the function and its query.
            assert_eq!(description, "Returns one order.");
            assert_eq!(id["description"], "The number of the order.");
            let lines = json!({"type": "boolean", "description": "Whether the lines are included, which takes longer."});
            assert_eq!(properties["lines"], lines);
            assert_eq!(properties["most"]["type"], "integer");
            assert_eq!((properties.get("query"), properties.get("req")), (None, None));
        } else {
            assert_eq!(description, "GET /api/orders/{id}");
            assert!(properties["query"].is_object());
        }
    }
    let row = host.report.tools.iter().find(|tool| tool.name == "Orders").unwrap();
    assert_eq!((row.function.as_str(), row.http.as_deref()), ("Orders", Some("GET,POST,DELETE /api/orders")));
    let undescribed = warnings(&host, "has no description: models choose tools by it");
    assert!(undescribed.iter().any(|(message, _)| message.starts_with("tool Orders ")), "{undescribed:?}");
    let clashes = warnings(&host, "is left out");
    assert_eq!(clashes.len(), 1, "{clashes:?}");
    assert!(
        clashes[0].0.starts_with(
            "function Greet: the tool Greet of its HTTP trigger is left out: function tool_greet"
        )
    );
}

async fn names_and_patterns_select_functions(language: Language) {
    for (http_tools_member, expected) in [
        (json!(["GetOrder", "re*"]), &["GetOrder", "Reply", "Rest"][..]),
        (json!({"include": ["*order*"], "exclude": ["GETORDER"]}), &["Orders"]),
        (json!("parts"), &["Parts"]),
        (json!(false), &[]),
        (json!([]), &[]),
    ] {
        let host = launch_with(language, &http_tools_member).serve();
        assert_eq!(http_tools(&host), expected, "{http_tools_member}");
        let mut client = host.client(Way::LATEST).await;
        assert_eq!(client.list("tools/list", "tools").await.len(), expected.len() + 1);
    }
    let host = launch_with(
        language,
        &json!({"include": ["GetOrdr", "Masters", "greet", "zz*"], "exclude": ["Hiden"]}),
    )
    .serve();
    assert_eq!(http_tools(&host), [""; 0]);
    let idle = warnings(&host, "matches no function with an HTTP trigger");
    let at = "host.json: extensions.mcp.httpTools";
    let fix = "write the name of a function or an operationId; * matches any text";
    assert_eq!(
        idle,
        [
            (
                format!("{at}: \"GetOrdr\" matches no function with an HTTP trigger").as_str(),
                "write \"GetOrder\""
            ),
            (format!("{at}: \"zz*\" matches no function with an HTTP trigger").as_str(), fix),
            (
                format!("{at}: \"Hiden\" matches no function with an HTTP trigger").as_str(),
                "write \"Hidden\""
            ),
        ]
    );
    let admin = warnings(&host, "function Masters is not a tool");
    assert!(admin[0].0.ends_with("its authLevel is admin, and only the master key opens it"), "{admin:?}");
}

async fn tools_change_with_host_json(language: Language) {
    let host = launch_with(language, &json!(["GetOrder"])).options(|options| options.watch = true).serve();
    let mut client = host.client(Way::LATEST).await;
    assert_eq!(content(&mut client, "GetOrder", json!({"id": 7})).await["id"], "7");
    fs::write(host.file("host.json"), host_json(&json!(["Orders"]))).unwrap();
    let names = |tools: Vec<Value>| -> Vec<String> {
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    within(async {
        while names(client.list("tools/list", "tools").await) != ["greet", "Orders"] {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(content(&mut client, "Orders", json!({"method": "GET"})).await["method"], "GET");
    // A new document changes the tools too.
    let document = json!({"openapi": "3.0.0", "info": {"title": "Orders", "version": "1"}, "paths": {"/api/orders": {
        "get": {"operationId": "listOrders", "summary": "Lists orders.", "responses": {"200": {"description": "Orders"}}}}}});
    fs::write(host.file("openapi.json"), document.to_string()).unwrap();
    within(async {
        while names(client.list("tools/list", "tools").await) != ["greet", "listOrders"] {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn settings_select_functions() {
    let prefix = "AzureFunctionsJobHost__extensions__mcp__httpTools";
    let launch = || launch_with(Language::Python, &json!(false));
    let host = launch()
        .setting(&format!("{prefix}__0"), "GetOrder")
        .setting(&format!("{prefix}__1"), "Rest")
        .serve();
    assert_eq!(http_tools(&host), ["GetOrder", "Rest"]);
    let host = launch().setting(&format!("{prefix}__include"), "Rest").serve();
    assert_eq!(http_tools(&host), ["Rest"]);
}

#[tokio::test]
async fn functions_whose_responses_stream_are_left_out() {
    let host = Launch::copy_of("tests/apps/http-stream-node")
        .node("4.16.5")
        .file("host.json", &host_json(&json!(true)))
        .serve();
    assert_eq!(http_tools(&host), [""; 0]);
    let left_out = warnings(&host, "the responses of this app stream, and a tool has one result");
    assert_eq!(left_out.len(), 4, "{left_out:?}");
}
