//! Functions with an HTTP trigger as tools: the fixture apps `tests/apps/http-tools-*`.

/// Creates a test for each scenario and each language.
macro_rules! for_python_and_node {
    ($($scenario:ident),+ $(,)?) => {
        mod python {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Python).await;
            })+
        }
        mod node {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(crate::served::Language::Node).await;
            })+
        }
    };
}

mod attacks;
mod calls;
mod documents;
mod handler;
mod selection;

use serde_json::{Value, json};

use crate::client::Client;
use crate::served::{Language, Launch, Served};

/// Returns the fixture app in this language, not served yet.
fn launch(language: Language) -> Launch {
    match language {
        Language::Python => Launch::copy_of("tests/apps/http-tools-python").python("1.25.0"),
        Language::Node => Launch::copy_of("tests/apps/http-tools-node").node("4.16.5"),
        Language::Java => panic!("there is no such app in Java"),
    }
}

/// Returns the fixture app with this value of `httpTools`.
fn launch_with(language: Language, http_tools: &Value) -> Launch {
    launch(language).file("host.json", &host_json(http_tools))
}

fn host_json(http_tools: &Value) -> String {
    json!({"version": "2.0", "extensions": {"mcp": {"httpTools": http_tools}}}).to_string()
}

/// Returns the names of the tools by HTTP triggers, as the report lists them.
fn http_tools(host: &Served) -> Vec<&str> {
    let rows = host.report.tools.iter().filter(|tool| tool.http.is_some());
    rows.map(|tool| tool.name.as_str()).collect()
}

/// Returns the warnings that contain a text, each with its fix.
fn warnings<'a>(host: &'a Served, part: &str) -> Vec<(&'a str, &'a str)> {
    let found = host.report.warnings.iter().filter(|warning| warning.message.contains(part));
    found.map(|warning| (warning.message.as_str(), warning.fix.as_deref().unwrap_or_default())).collect()
}

/// Returns the structured content of a successful call.
async fn content(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    assert_ne!(result["isError"], true, "{:?} {tool}: {result}", client.way);
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {result}"));
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"], "{tool}");
    result["structuredContent"].clone()
}

/// Returns the error of a failed call.
async fn failure(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|_| json!({"message": text}))
}
