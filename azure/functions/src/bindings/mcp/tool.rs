//! Reads an `mcpToolTrigger`.

use bindpost_mcp_protocol::{Tool, ToolSchema};
use serde_json::Value;

use super::{additions, schema};
use crate::function::ToolTrigger;
use crate::json::ConfigReader;

/// The maximum length of a tool name that clients accept.
const LONGEST_NAME: usize = 128;

/// Reads the trigger and reports its problems and warnings. A function with problems is not created.
pub(crate) fn read_tool_trigger(parameter: String, members: &ConfigReader<'_>) -> ToolTrigger {
    let name = members.required_text("toolName").unwrap_or_default();
    check_name(&name, members);
    let properties = schema::properties(members);
    let (input_schema, required) = if members.flag("useWorkerInputSchema").unwrap_or(false) {
        let input = worker_schema(members, &name).unwrap_or_default();
        let required = schema::required_names(&input);
        (input, required)
    } else {
        schema::generated(&properties)
    };
    let output_schema = schema_text(members, "outputSchema")
        .and_then(|text| schema::given(members, "outputSchema", "Output", &name, &text));
    let tool = Tool {
        name,
        title: members.text("title"),
        description: members.text("description"),
        input_schema,
        output_schema,
        annotations: additions::tool_annotations(members),
        icons: additions::icons(members),
        execution: None,
        meta: super::metadata(members),
        extra: Default::default(),
    };
    let uses_result_schema = members.flag("useResultSchema").unwrap_or(false);
    let task_support = additions::task_support(members);
    ToolTrigger { parameter, tool, required, uses_result_schema, task_support }
}

/// Warns of a tool name that not all clients accept. Clients send tool names to models, which accept few characters.
/// The extension does not check them, so a mistake would show only when a model rejects the whole list. Other clients
/// accept any name.
fn check_name(name: &str, members: &ConfigReader<'_>) {
    let allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '/' | '-');
    if name.chars().all(allowed) && name.len() <= LONGEST_NAME {
        return;
    }
    let message = format!("{name:?} is not a tool name that all MCP clients accept");
    let better: String =
        name.trim().chars().map(|char| if allowed(char) { char } else { '_' }).take(LONGEST_NAME).collect();
    let fix =
        format!("use 1 to {LONGEST_NAME} of the characters A-Z a-z 0-9 _ . / -, for example {better:?}");
    members.report_warning("toolName", message, fix);
}

fn worker_schema(members: &ConfigReader<'_>, tool: &str) -> Option<ToolSchema> {
    match schema_text(members, "inputSchema") {
        Some(text) => schema::given(members, "inputSchema", "Input", tool, &text),
        None => {
            let fix = "give inputSchema a text that holds a JSON schema, or remove useWorkerInputSchema";
            members.report_problem("inputSchema", "InputSchema is null or invalid. ", Some(fix));
            None
        }
    }
}

/// Returns the text of a schema, unless it is absent or empty. A schema that is not a text is reported.
fn schema_text(members: &ConfigReader<'_>, name: &str) -> Option<String> {
    match members.value(name)? {
        Value::Object(_) => {
            members.report_problem(
                name,
                "must be a text that holds a JSON schema",
                Some("put the JSON into a text"),
            );
            None
        }
        _ => members.text(name).filter(|text| !text.is_empty()),
    }
}
