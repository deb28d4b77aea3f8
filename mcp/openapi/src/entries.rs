//! Operations as tools, in a form that fits the budget of `tools/list`.

use bindpost_mcp_protocol::{Tool, ToolAnnotations};
use bindpost_mcp_server::{CallParts, Entry, Signature, ToolEntry, ToolError, ToolHints};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::bridge::offered::{OfferedOperation, as_object};
use crate::bridge::{Bridge, ToolForm, short_schema, text};
use crate::document::Document;
use crate::schema::SchemaPurpose;
use crate::three_tools;

/// The definitions of the tools and their form.
#[derive(Debug)]
pub(crate) struct ToolList {
    pub(crate) form: ToolForm,
    pub(crate) bytes: usize,
    pub(crate) tools: Vec<Tool>,
}

/// How much of an operation's schemas a tool shows, from the most to the least.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaDetail {
    Whole,
    Short,
    ShortInputs,
}

/// Returns the tools in the most detailed form that fits the budget.
pub(crate) fn build_tool_list(
    document: &Document,
    offered: &[OfferedOperation],
    scheme: &str,
    budget: usize,
) -> ToolList {
    for (rung, form) in [
        (SchemaDetail::Whole, ToolForm::Whole),
        (SchemaDetail::Short, ToolForm::Short),
        (SchemaDetail::ShortInputs, ToolForm::Short),
    ] {
        let mut bytes = br#"{"tools":[]}"#.len();
        let mut tools = Vec::new();
        for one in offered {
            let tool = define_tool(document, one, scheme, rung);
            bytes += size(&tool) + usize::from(!tools.is_empty());
            tools.push(tool);
            // A document may have a thousand operations. Stop as soon as the budget is exceeded.
            if bytes > budget {
                break;
            }
        }
        if bytes <= budget {
            return ToolList { form, bytes, tools };
        }
    }
    let tools = three_tools::definitions(offered);
    let bytes = size(&ToolsPayload { tools: &tools });
    ToolList { form: ToolForm::ThreeTools, bytes, tools }
}

#[derive(Serialize)]
struct ToolsPayload<'a> {
    tools: &'a [Tool],
}

fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX / 2, |bytes| bytes.len())
}

fn define_tool(document: &Document, offered: &OfferedOperation, scheme: &str, rung: SchemaDetail) -> Tool {
    let mut description = text::describe(&offered.operation);
    let input_schema = match rung {
        SchemaDetail::Whole => offered.whole_input(document),
        SchemaDetail::Short | SchemaDetail::ShortInputs => {
            let input = offered.input();
            let short = as_object(short_schema(document, &input, SchemaPurpose::Input, scheme));
            if offered.operation.body.is_some() && short != offered.whole_input(document) {
                let more = format!(" Whole schema: {scheme}-schema://{}", offered.name);
                description = text::sentences(&description, text::LONGEST.saturating_sub(more.len())) + &more;
            }
            short
        }
    };
    let output_schema = match rung {
        SchemaDetail::Whole => offered.whole_output(document),
        SchemaDetail::Short => {
            let output = offered.output(document);
            output.map(|output| as_object(short_schema(document, &output, SchemaPurpose::Output, scheme)))
        }
        SchemaDetail::ShortInputs => None,
    };
    Tool {
        name: offered.name.clone(),
        description: Some(description),
        input_schema: input_schema.into(),
        output_schema: output_schema.map(Into::into),
        annotations: Some(annotations(offered.hints)),
        ..Tool::default()
    }
}

pub(crate) fn annotations(hints: ToolHints) -> ToolAnnotations {
    let ToolHints { read_only, destructive, idempotent, open_world } = hints;
    ToolAnnotations {
        read_only_hint: Some(read_only),
        destructive_hint: Some(destructive),
        idempotent_hint: Some(idempotent),
        open_world_hint: Some(open_world),
        ..ToolAnnotations::default()
    }
}

/// Returns one tool per operation.
pub(crate) fn tools(bridge: &Bridge, definitions: &[Tool]) -> Vec<Entry> {
    let shared = bridge.state();
    let entry = |(at, definition): (usize, &Tool)| {
        let bridge = bridge.clone();
        let run = move |parts: CallParts| {
            let bridge = bridge.clone();
            async move {
                let shared = bridge.state();
                let offered =
                    shared.offered.get(at).ok_or_else(|| ToolError::new("this tool no longer exists"))?;
                let arguments = arguments(&parts)?;
                shared.call(offered, arguments, &parts.context).await
            }
        };
        // The bridge checks the arguments itself, against the whole schema. Responses of the service are
        // not checked.
        let entry = ToolEntry::with_signature(definition.name.clone(), Signature::new(), run)
            .definition(definition.clone())
            .without_validation()
            .without_output_validation();
        match shared.offered.get(at).filter(|_| shared.enforces_scopes) {
            Some(offered) => entry.scopes(&offered.operation.scopes).into(),
            None => entry.into(),
        }
    };
    definitions.iter().enumerate().map(entry).collect()
}

/// Returns the arguments of a call as an object.
pub(crate) fn arguments(parts: &CallParts) -> Result<Map<String, Value>, ToolError> {
    serde_json::from_str(parts.context.arguments_json())
        .map_err(|error| ToolError::new(format!("invalid arguments: {error}")))
}
