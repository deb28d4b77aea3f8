//! The tools that most calls are: definitions of every kind, and documents.
//!
//! What a tool takes and answers is decided here; how the service is called is `client.rs`.

mod analysis;
mod arguments;
mod batch;
mod definitions;
mod differences;
mod kinds;
mod known;
mod lookup;
mod retrieval;
mod search;
mod secrets;

use std::future::Future;
use std::sync::Arc;

use bindpost_mcp_protocol::{CallToolResult, Tool};
use bindpost_mcp_server::{Entry, Hints, Parts, Signature, ToolEntry, ToolError};
use serde_json::{Map, Value, json};

use crate::shared::Shared;

pub(crate) use arguments::Arguments;
pub(crate) use definitions::{name_of, read, read_list};
pub(crate) use kinds::{DefinitionKind, KINDS};
pub(crate) use secrets::hide_secrets;

use known::Known;

/// The tools of this module.
pub(crate) fn entries(shared: &Arc<Shared>) -> Vec<Entry> {
    let known = Arc::new(Known::default());
    let mut entries = definitions::entries(shared);
    entries.extend(analysis::entries(shared));
    entries.extend(search::entries(shared, &known));
    entries.extend(lookup::entries(shared, &known));
    entries.extend(batch::entries(shared));
    entries.extend(retrieval::entries(shared));
    entries
}

/// It changes nothing.
const READS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

/// What lists show of a tool.
struct Outline {
    name: String,
    description: String,
    hints: Hints,
    properties: Value,
    required: Vec<&'static str>,
    output: Option<Value>,
}

impl Outline {
    fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        hints: Hints,
        properties: Value,
        required: &[&'static str],
    ) -> Outline {
        Outline {
            name: name.into(),
            description: description.into(),
            hints,
            properties,
            required: required.to_vec(),
            output: None,
        }
    }

    fn output(mut self, schema: Value) -> Outline {
        self.output = Some(schema);
        self
    }

    /// The tool that answers what `run` gives, which is an object.
    fn entry<Fut>(self, run: impl Fn(Arguments) -> Fut + Send + Sync + 'static) -> Entry
    where
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let Outline { name, description, hints, properties, required, output } = self;
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties);
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        let definition = Tool {
            name: name.clone(),
            description: Some(description),
            input_schema: Value::Object(schema),
            output_schema: output,
            ..Tool::default()
        };
        let run = move |parts: Parts| {
            let arguments = Arguments::of(parts);
            let request_id = arguments.text("clientRequestId").map(str::to_owned);
            let running = run(arguments);
            async move {
                let mut answer = running.await?;
                if let (Some(id), Some(members)) = (request_id, answer.as_object_mut()) {
                    members.insert("clientRequestId".to_owned(), id.into());
                }
                Ok(CallToolResult::structured(answer))
            }
        };
        ToolEntry::with_signature(name, Signature::new(), run).definition(definition).hints(hints).into()
    }
}

/// One page of a list as its tool answers it.
fn page(items: Vec<Value>, next_cursor: Option<String>) -> Value {
    let mut page = json!({"items": items, "hasMore": next_cursor.is_some()});
    if let Some(cursor) = next_cursor {
        page["nextCursor"] = cursor.into();
    }
    page
}
