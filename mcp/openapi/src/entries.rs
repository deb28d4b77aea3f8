//! Operations as tools, in the form that fits the budget of `tools/list`.

use bindpost_mcp_protocol::{Tool, ToolAnnotations};
use bindpost_mcp_server::{Entry, Hints, Parts, Signature, ToolEntry, ToolError};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::bridge::offered::{Offered, as_object};
use crate::bridge::{Bridge, Form, short, text};
use crate::document::Document;
use crate::schema::Purpose;
use crate::three_tools;

/// The definitions of tools, and how they came out.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) form: Form,
    pub(crate) bytes: usize,
    pub(crate) tools: Vec<Tool>,
}

/// What a tool shows of its operation's schemas, from the most to the least.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rung {
    Whole,
    Short,
    ShortInputs,
}

/// The first form that fits the budget, whatever else has to go.
pub(crate) fn list(document: &Document, offered: &[Offered], scheme: &str, budget: usize) -> List {
    for (rung, form) in
        [(Rung::Whole, Form::Whole), (Rung::Short, Form::Short), (Rung::ShortInputs, Form::Short)]
    {
        let mut bytes = br#"{"tools":[]}"#.len();
        let mut tools = Vec::new();
        for one in offered {
            let tool = define(document, one, scheme, rung);
            bytes += size(&tool) + usize::from(!tools.is_empty());
            tools.push(tool);
            // A document may have a thousand operations: the rest need not be written.
            if bytes > budget {
                break;
            }
        }
        if bytes <= budget {
            return List { form, bytes, tools };
        }
    }
    let tools = three_tools::definitions(offered);
    let bytes = size(&Listed { tools: &tools });
    List { form: Form::ThreeTools, bytes, tools }
}

#[derive(Serialize)]
struct Listed<'a> {
    tools: &'a [Tool],
}

fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX / 2, |bytes| bytes.len())
}

fn define(document: &Document, offered: &Offered, scheme: &str, rung: Rung) -> Tool {
    let mut description = text::describe(&offered.operation);
    let input_schema = match rung {
        Rung::Whole => offered.whole_input(document),
        Rung::Short | Rung::ShortInputs => {
            let input = offered.input();
            let short = as_object(short(document, &input, Purpose::Input, scheme));
            if offered.operation.body.is_some() && short != offered.whole_input(document) {
                let more = format!(" Whole schema: {scheme}-schema://{}", offered.name);
                description = text::sentences(&description, text::LONGEST.saturating_sub(more.len())) + &more;
            }
            short
        }
    };
    let output_schema = match rung {
        Rung::Whole => offered.whole_output(document),
        Rung::Short => {
            let output = offered.output(document);
            output.map(|output| as_object(short(document, &output, Purpose::Output, scheme)))
        }
        Rung::ShortInputs => None,
    };
    Tool {
        name: offered.name.clone(),
        description: Some(description),
        input_schema,
        output_schema,
        annotations: Some(annotations(offered.hints)),
        ..Tool::default()
    }
}

pub(crate) fn annotations(hints: Hints) -> ToolAnnotations {
    let Hints { read_only, destructive, idempotent, open_world } = hints;
    ToolAnnotations {
        read_only_hint: Some(read_only),
        destructive_hint: Some(destructive),
        idempotent_hint: Some(idempotent),
        open_world_hint: Some(open_world),
        ..ToolAnnotations::default()
    }
}

/// A tool for each operation.
pub(crate) fn tools(bridge: &Bridge, definitions: &[Tool]) -> Vec<Entry> {
    let shared = bridge.shared();
    let entry = |(at, definition): (usize, &Tool)| {
        let bridge = bridge.clone();
        let run = move |parts: Parts| {
            let bridge = bridge.clone();
            async move {
                let shared = bridge.shared();
                let offered = shared.offered.get(at).ok_or_else(|| ToolError::new("this tool is gone"))?;
                let arguments = arguments(&parts)?;
                shared.call(offered, arguments, &parts.context).await
            }
        };
        // The bridge checks arguments by itself, against the whole schema; answers are the service's, not ours.
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

/// The arguments of a call, as an object.
pub(crate) fn arguments(parts: &Parts) -> Result<Map<String, Value>, ToolError> {
    serde_json::from_str(parts.context.arguments_json())
        .map_err(|error| ToolError::new(format!("invalid arguments: {error}")))
}
