//! Tests every version of the language libraries that added MCP features: clients can list and use everything
//! that an app can declare with it.

use serde_json::{Value, json};

use crate::client::{Client, Way};
use crate::java_apps::built::BuiltApp;
use crate::served::{Launch, Served};

fn python(version: &str) -> Served {
    Launch::copy_of(&format!("tests/apps/libraries/python-{version}")).python(version).serve()
}

fn node(version: &str) -> Served {
    Launch::copy_of(&format!("tests/apps/libraries/node-{version}")).node(version).serve()
}

/// Checks the entries that all these apps have in common.
async fn offers_and_runs_everything(host: &Served) -> Client {
    let mut client = host.client(Way::LATEST).await;
    let tools = client.list("tools/list", "tools").await;
    let greet = tools.iter().find(|tool| tool["name"] == "greet").unwrap();
    assert_eq!(greet["description"], "Greets.");
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Whom."},
            "times": {"type": "integer", "description": "How often."},
        },
        "required": ["name"],
    });
    assert_eq!(greet["inputSchema"], schema);
    let about = json!({"uri": "info://about", "name": "about", "mimeType": "text/plain"});
    assert_eq!(client.list("resources/list", "resources").await, [about]);
    let item = json!({"uriTemplate": "item://{id}", "name": "item"});
    assert_eq!(client.list("resources/templates/list", "resourceTemplates").await, [item]);
    let code = json!({"name": "code", "description": "What.", "required": true});
    let review = json!({"name": "review", "arguments": [code]});
    assert_eq!(client.list("prompts/list", "prompts").await, [review]);

    assert_eq!(client.text("greet", json!({"name": "Ada"})).await, "Hello Ada!");
    assert_eq!(client.text("greet", json!({"name": "Ada", "times": 2})).await, "Hello Ada! Hello Ada!");
    let about = json!({"uri": "info://about", "mimeType": "text/plain", "text": "About this app."});
    assert_eq!(client.read("info://about").await, about);
    assert_eq!(client.read("item://7").await["text"], "The item item://7.");
    let review = client.prompt("review", json!({"code": "x = 1"})).await;
    assert_eq!(review, [("user".to_owned(), "Review x = 1".to_owned())]);
    client
}

/// Returns the schema types of the arguments of `every_type`, by name, and the required arguments.
async fn every_type(client: &mut Client) -> (Vec<(String, Value)>, Value) {
    let tools = client.list("tools/list", "tools").await;
    let schema = &tools.iter().find(|tool| tool["name"] == "every_type").unwrap()["inputSchema"];
    let types = schema["properties"].as_object().unwrap().iter();
    let types = types.map(|(name, property)| {
        let items = &property["items"]["type"];
        (name.clone(), if items.is_null() { property["type"].clone() } else { json!([items]) })
    });
    let mut types: Vec<(String, Value)> = types.collect();
    types.sort_by(|one, other| one.0.cmp(&other.0));
    (types, schema["required"].clone())
}

fn expected_types() -> Vec<(String, Value)> {
    [
        ("flag", json!("boolean")),
        ("maybe", json!("string")),
        ("part", json!("number")),
        ("several", json!(["integer"])),
        ("text", json!("string")),
        ("whole", json!("integer")),
    ]
    .map(|(name, kind)| (name.to_owned(), kind))
    .to_vec()
}

fn arguments_of_every_type() -> Value {
    json!({"text": "a", "whole": 1, "part": 0.5, "flag": true, "several": [1, 2]})
}

#[tokio::test]
async fn python_1_24() {
    offers_and_runs_everything(&python("1.24.0")).await;
}

#[tokio::test]
async fn python_1_25() {
    let host = python("1.25.0");
    let mut client = offers_and_runs_everything(&host).await;
    let (types, required) = every_type(&mut client).await;
    assert_eq!(types, expected_types());
    assert_eq!(required, json!(["text", "whole", "part", "flag", "several"]));
    assert_eq!(client.text("every_type", arguments_of_every_type()).await, "every_type a 1 0.5 True [1, 2] ");
}

#[tokio::test]
async fn node_4_8() {
    offers_and_runs_everything(&node("4.8.0")).await;
}

#[tokio::test]
async fn node_4_12() {
    offers_and_runs_everything(&node("4.12.0")).await;
}

#[tokio::test]
async fn node_4_16() {
    let host = node("4.16.5");
    let mut client = offers_and_runs_everything(&host).await;
    let (types, required) = every_type(&mut client).await;
    assert_eq!(types, expected_types());
    assert_eq!(required, json!(["text", "whole", "part", "flag", "several"]));
    assert_eq!(client.text("every_type", arguments_of_every_type()).await, "every_type a 1 0.5 true 1,2 ");
    assert_eq!(client.text("generic", json!({})).await, "generic");
}

const JAVA: &str = r#"
package demo;
import com.microsoft.azure.functions.annotation.*;
import java.util.*;
public class Functions {
    public String greet(@McpToolTrigger(name = "greet", description = "Greets.") String context,
            @McpToolProperty(name = "name", propertyType = "string", description = "Whom.", isRequired = true) String name,
            @McpToolProperty(name = "times", propertyType = "integer", description = "How often.") Optional<Integer> times) {
        return String.join(" ", Collections.nCopies(times.orElse(1), "Hello " + name + "!"));
    }
    public String everyType(@McpToolTrigger(name = "every_type", description = "Takes all.") String context,
            @McpToolProperty(name = "text", propertyType = "string", description = "t", isRequired = true) String text,
            @McpToolProperty(name = "whole", propertyType = "integer", description = "w", isRequired = true) long whole,
            @McpToolProperty(name = "part", propertyType = "number", description = "p", isRequired = true) double part,
            @McpToolProperty(name = "flag", propertyType = "boolean", description = "f", isRequired = true) boolean flag,
            @McpToolProperty(name = "several", propertyType = "integer", description = "s", isRequired = true, isArray = true) List<Integer> several,
            @McpToolProperty(name = "maybe", propertyType = "string", description = "m") String maybe) {
        return "every_type " + text + " " + whole + " " + part + " " + flag + " " + several + " " + maybe;
    }
    public String about(@McpResourceTrigger(name = "context") String context) { return "About this app."; }
    public static class Call { String uri; }
    public String item(@McpResourceTrigger(name = "context") Call call) { return "The item " + call.uri + "."; }
    public String review(@McpPromptTrigger(name = "review") String context, @McpPromptArgument(name = "code") String code) {
        return "Review " + code;
    }
}
"#;

/// Returns the bindings that the Maven plugin writes for a tool: members that equal their default are left out.
fn java_tool(name: &str, description: &str, properties: &[(&str, &str, &str, bool, bool)]) -> Vec<Value> {
    let mut list = Vec::new();
    let mut bindings = vec![Value::Null];
    for (name, kind, description, required, is_array) in properties {
        let mut members = json!({"propertyName": name, "propertyType": kind, "description": description});
        if *required {
            members["isRequired"] = json!(true);
        }
        if *is_array {
            members["isArray"] = json!(true);
        }
        list.push(members.clone());
        members["type"] = json!("mcpToolProperty");
        members["direction"] = json!("in");
        members["name"] = json!(name);
        bindings.push(members);
    }
    bindings[0] = json!({
        "type": "mcpToolTrigger", "direction": "in", "name": name, "toolName": name, "description": description,
        "toolProperties": json!(list).to_string(),
    });
    bindings
}

/// The library has the annotations of tools. Those of resources and prompts are the declarations of the worker.
#[tokio::test]
async fn java_3_2() {
    let greet = [("name", "string", "Whom.", true, false), ("times", "integer", "How often.", false, false)];
    let every_type_properties = [
        ("text", "string", "t", true, false),
        ("whole", "integer", "w", true, false),
        ("part", "number", "p", true, false),
        ("flag", "boolean", "f", true, false),
        ("several", "integer", "s", true, true),
        ("maybe", "string", "m", false, false),
    ];
    let resource = |uri: &str, name: &str| json!({"type": "mcpResourceTrigger", "direction": "in", "name": "context", "uri": uri, "resourceName": name});
    let mut about = resource("info://about", "about");
    about["mimeType"] = json!("text/plain");
    let arguments = json!([{"name": "code", "description": "What.", "required": true}]).to_string();
    let review = json!({
        "type": "mcpPromptTrigger", "direction": "in", "name": "review", "promptName": "review",
        "promptArguments": arguments,
    });
    let code = json!({
        "type": "mcpPromptArgument", "direction": "in", "name": "code", "argumentName": "code",
        "description": "What.", "isRequired": true,
    });
    let app = BuiltApp::new()
        .source("demo/Functions.java", JAVA)
        .with_library()
        .function("Greet", "demo.Functions.greet", &java_tool("greet", "Greets.", &greet))
        .function(
            "EveryType",
            "demo.Functions.everyType",
            &java_tool("every_type", "Takes all.", &every_type_properties),
        )
        .function("About", "demo.Functions.about", &[about])
        .function("Item", "demo.Functions.item", &[resource("item://{id}", "item")])
        .function("Review", "demo.Functions.review", &[review, code]);
    let host = app.launch().await.serve();
    let mut client = offers_and_runs_everything(&host).await;
    let (types, required) = every_type(&mut client).await;
    assert_eq!(types, expected_types());
    assert_eq!(required, json!(["text", "whole", "part", "flag", "several"]));
    assert_eq!(client.text("every_type", arguments_of_every_type()).await, "every_type a 1 0.5 true [1, 2] ");
}
