//! Three tools that replace the tools of all operations: find, describe and call. They
//! use the same selection.

mod find;

use std::sync::{Arc, OnceLock};

use bindpost_mcp_protocol::{CallToolResult, Tool, ToolAnnotations};
use bindpost_mcp_server::nearest::nearest;
use bindpost_mcp_server::{CallParts, Context, Entry, Signature, ToolEntry, ToolError, ToolHints};
use serde_json::{Map, Value, json};

use crate::bridge::offered::{OfferedOperation, as_object};
use crate::bridge::{Bridge, short_schema, text};
use crate::entries::{annotations, arguments};
use crate::reply::CallFailure;
use crate::schema::SchemaPurpose;
use find::OperationIndex;

const FIND: &str = "findOperations";
const DESCRIBE: &str = "describeOperation";
const CALL: &str = "callOperation";

/// The maximum size of schemas that are returned whole.
const WHOLE: usize = 24 * 1024;

/// Returns the definitions of the three tools.
pub(crate) fn definitions(offered: &[OfferedOperation]) -> Vec<Tool> {
    let reading = ToolHints { read_only: true, destructive: false, idempotent: true, open_world: false };
    let all = |is: fn(&ToolHints) -> bool| offered.iter().all(|offered| is(&offered.hints));
    let calling = ToolHints {
        read_only: all(|hints| hints.read_only),
        destructive: !all(|hints| !hints.destructive),
        idempotent: all(|hints| hints.idempotent),
        open_world: true,
    };
    let tool =
        |(name, title): (&str, &str), description: String, input_schema: Value, hints: ToolHints| Tool {
            name: name.to_owned(),
            title: Some(title.to_owned()),
            description: Some(description),
            input_schema: input_schema.into(),
            // Some clients know the title only as a hint. Here it counts for the size of the list.
            annotations: Some(ToolAnnotations { title: Some(title.to_owned()), ..annotations(hints) }),
            ..Tool::default()
        };
    vec![
        tool(
            (FIND, "Find operations"),
            match offered.len() {
                1 => "Searches the only operation of the service by keyword. Start here.".to_owned(),
                count => format!("Searches the {count} operations of the service by keyword. Start here."),
            },
            json!({"type": "object", "properties": {
                "query": {"type": "string", "description": "Keywords in name, path or summary"},
                "tag": {"type": "string"},
                "method": {"type": "string", "description": "GET, POST, …"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
                "cursor": {"type": "string", "description": "nextCursor of the previous page"}
            }, "additionalProperties": false}),
            reading,
        ),
        tool(
            (DESCRIBE, "Describe operation"),
            "Returns the schemas of an operation. Large schemas are shortened; `definition` returns one part whole."
                .to_owned(),
            json!({"type": "object", "properties": {
                "operation": {"type": "string", "description": "Id from findOperations"},
                "definition": {"type": "string", "description": "A name from `definitions`"}
            }, "additionalProperties": false}),
            reading,
        ),
        tool(
            (CALL, "Call operation"),
            "Calls an operation of the service. Describe it first.".to_owned(),
            json!({"type": "object", "properties": {
                "operation": {"type": "string", "description": "Id from findOperations"},
                "arguments": {"type": "object", "description": "See describeOperation", "additionalProperties": true},
                "cursor": {"type": "string", "description": "nextCursor (or nextAnswerCursor) of the previous page"}
            }, "required": ["operation"], "additionalProperties": false}),
            calling,
        ),
    ]
}

/// Returns the entries of the three tools.
pub(crate) fn entries(bridge: &Bridge, definitions: &[Tool]) -> Vec<Entry> {
    let finder: Arc<OnceLock<OperationIndex>> = Arc::default();
    let entry = |definition: &Tool| {
        let (bridge, finder, name) = (bridge.clone(), finder.clone(), definition.name.clone());
        let run = move |parts: CallParts| {
            let (bridge, finder, name) = (bridge.clone(), finder.clone(), name.clone());
            async move {
                let arguments = arguments(&parts)?;
                match name.as_str() {
                    FIND => {
                        let finder = finder.get_or_init(|| OperationIndex::new(&bridge.state().offered));
                        find::find(bridge.state(), finder, &arguments, &parts.context)
                    }
                    DESCRIBE => describe(&bridge, &arguments),
                    _ => call(&bridge, arguments, &parts.context).await,
                }
            }
        };
        let entry = ToolEntry::with_signature(definition.name.clone(), Signature::new(), run)
            .definition(definition.clone());
        // Models sometimes write nested arguments as a string. The handler accepts both forms.
        match definition.name == CALL {
            true => {
                let mut checked = Value::from(definition.input_schema.clone());
                checked["properties"]["arguments"] = json!({"type": ["object", "string", "null"]});
                entry.checked_by(checked).into()
            }
            false => entry.into(),
        }
    };
    definitions.iter().map(entry).collect()
}

fn text_of<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Runs `describeOperation`.
fn describe(bridge: &Bridge, arguments: &Map<String, Value>) -> Result<CallToolResult, ToolError> {
    let shared = bridge.state();
    if let Some(name) = text_of(arguments, "definition") {
        let Some(whole) = shared.definition(name) else {
            let known: Vec<&str> = shared.definitions().iter().map(String::as_str).collect();
            let hint = nearest(name, &known).map(|meant| format!("; did you mean {meant:?}?"));
            let text = format!("unknown definition {name:?}{}", hint.unwrap_or_default());
            return Ok(CallFailure::invalid(text).into_result());
        };
        if whole.to_string().len() <= WHOLE {
            return Ok(CallToolResult::structured(json!({"definition": name, "schema": whole})));
        }
        let names = names_in([&whole]);
        let short = match shared.document.definitions.get(name) {
            Some(definition) => {
                short_schema(&shared.document, definition, SchemaPurpose::Input, &shared.scheme)
            }
            None => json!({}),
        };
        return Ok(CallToolResult::structured(
            json!({"definition": name, "schema": short, "definitions": names}),
        ));
    }
    let Some(name) = text_of(arguments, "operation") else {
        return Ok(CallFailure::invalid("give `operation`, or `definition`".to_owned()).into_result());
    };
    let offered = shared.find(name).ok_or_else(|| shared.unknown_operation(name))?;
    let operation = &offered.operation;
    let (document, scheme) = (&shared.document, &shared.scheme);
    let mut said = json!({
        "operation": offered.display_id(),
        "method": operation.method.as_str(),
        "path": text::visible_text(&operation.path),
        "description": text::describe(operation),
        "readOnly": offered.hints.read_only,
        "destructive": offered.hints.destructive,
    });
    if !operation.scopes.is_empty() {
        said["scopes"] = json!(operation.scopes);
    }
    let input = offered.whole_input(document);
    let output = offered.whole_output(document).unwrap_or(Value::Null);
    let (input_size, output_size) = (input.to_string().len(), output.to_string().len());
    let input_fits = input_size <= WHOLE;
    let output_fits = output_size + if input_fits { input_size } else { 0 } <= WHOLE;
    let shortened = [(!input_fits).then_some(&input), (!output_fits).then_some(&output)];
    if !(input_fits && output_fits) {
        said["definitions"] = json!(names_in(shortened.into_iter().flatten()));
    }
    said["inputSchema"] = match input_fits {
        true => input,
        false => as_object(short_schema(document, &offered.input(), SchemaPurpose::Input, scheme)),
    };
    said["outputSchema"] = match offered.output(document).filter(|_| !output_fits) {
        Some(output) => as_object(short_schema(document, &output, SchemaPurpose::Output, scheme)),
        None => output,
    };
    Ok(CallToolResult::structured(said))
}

/// Returns the names of all definitions in the schemas.
fn names_in<'a>(schemas: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let defined = schemas.into_iter().filter_map(|schema| schema.get("$defs")?.as_object());
    let mut names: Vec<String> = defined.flatten().map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// Runs `callOperation`.
async fn call(
    bridge: &Bridge,
    mut given: Map<String, Value>,
    context: &Context,
) -> Result<CallToolResult, ToolError> {
    let shared = bridge.state();
    let name = text_of(&given, "operation").unwrap_or_default().to_owned();
    let offered = shared.find(&name).ok_or_else(|| shared.unknown_operation(&name))?;
    let read = match given.remove("arguments") {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(arguments)) => Some(arguments),
        Some(Value::String(text)) => serde_json::from_str(&text).ok(),
        Some(_) => None,
    };
    let Some(mut arguments) = read else {
        return Ok(CallFailure::invalid("`arguments` must be an object".to_owned()).into_result());
    };
    if let Some(cursor) = given.remove("cursor").filter(|cursor| !cursor.is_null()) {
        arguments.insert(offered.cursor.to_owned(), cursor);
    }
    shared.call(offered, arguments, context).await
}
