//! How every tool of the server is made: what lists show of it, the arguments of a call, and what is told.

mod arguments;

use std::future::Future;
use std::sync::Arc;

use bindpost_mcp_protocol::{CallToolResult, Tool};
use bindpost_mcp_server::nearest::nearest;
use bindpost_mcp_server::{CallParts, Context, Entry, Signature, ToolEntry, ToolError, ToolHints};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::failure::{Kind, ServiceFailure};
use crate::front::{KINDS, name_of, read_list};
use crate::shared::SearchServerState;

pub(crate) use arguments::ToolArguments;

/// It changes nothing.
pub(crate) const READS: ToolHints =
    ToolHints { read_only: true, destructive: false, idempotent: true, open_world: false };
/// It takes something away, or may.
pub(crate) const DESTROYS: ToolHints =
    ToolHints { read_only: false, destructive: true, idempotent: true, open_world: false };

/// What lists show of a tool.
pub(crate) struct ToolOutline {
    name: String,
    description: String,
    hints: ToolHints,
    properties: Value,
    required: Vec<&'static str>,
    output: Option<Value>,
}

impl ToolOutline {
    pub(crate) fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        hints: ToolHints,
        properties: Value,
        required: &[&'static str],
    ) -> ToolOutline {
        ToolOutline {
            name: name.into(),
            description: description.into(),
            hints,
            properties,
            required: required.to_vec(),
            output: None,
        }
    }

    pub(crate) fn output(mut self, schema: Value) -> ToolOutline {
        self.output = Some(schema);
        self
    }

    /// The tool that answers what `run` gives, which is an object.
    pub(crate) fn entry<Fut>(
        self,
        shared: &Arc<SearchServerState>,
        run: impl Fn(Arc<SearchServerState>, ToolArguments) -> Fut + Send + Sync + 'static,
    ) -> Entry
    where
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.tool(shared, run).into()
    }

    /// The same, for arguments that have a type of their own.
    pub(crate) fn typed<A, Fut>(
        self,
        shared: &Arc<SearchServerState>,
        run: fn(Arc<SearchServerState>, Context, A) -> Fut,
    ) -> ToolEntry
    where
        A: DeserializeOwned + Send + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.tool(shared, move |shared, arguments| async move {
            let (context, members) = arguments.into_parts();
            let arguments = serde_json::from_value(Value::Object(members)).map_err(|error| {
                ServiceFailure::new(Kind::InvalidRequest, format!("the arguments cannot be read: {error}"))
            })?;
            run(shared, context, arguments).await
        })
    }

    fn tool<Fut>(
        self,
        shared: &Arc<SearchServerState>,
        run: impl Fn(Arc<SearchServerState>, ToolArguments) -> Fut + Send + Sync + 'static,
    ) -> ToolEntry
    where
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let ToolOutline { name, description, hints, properties, required, output } = self;
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        let definition = Tool {
            name: name.clone(),
            description: Some(description),
            input_schema: schema,
            output_schema: output,
            ..Tool::default()
        };
        let shared = Arc::clone(shared);
        let run = move |parts: CallParts| {
            let arguments = ToolArguments::from_parts(parts);
            let request_id = arguments.request_id().map(str::to_owned);
            let index = arguments.text("indexName").map(str::to_owned);
            let shared = Arc::clone(&shared);
            let running = run(Arc::clone(&shared), arguments);
            async move {
                let mut answer = match running.await {
                    Ok(answer) => answer,
                    Err(error) => return Err(with_request_details(error, &shared, index, request_id).await),
                };
                if let (Some(id), Some(members)) = (request_id, answer.as_object_mut()) {
                    members.insert("clientRequestId".to_owned(), id.into());
                }
                Ok(CallToolResult::structured(answer))
            }
        };
        ToolEntry::with_signature(name, Signature::new(), run).definition(definition).hints(hints)
    }
}

/// A failure with the caller's id of the request and, where there is no such index, the name that may be meant. What is
/// not told as JSON stays as it is.
async fn with_request_details(
    error: ToolError,
    shared: &SearchServerState,
    index: Option<String>,
    request_id: Option<String>,
) -> ToolError {
    let Ok(Value::Object(mut told)) = serde_json::from_str(&error.to_string()) else { return error };
    if let Some(index) = index.filter(|_| told.get("status").and_then(Value::as_u64) == Some(404))
        && let Some(near) = nearest_index(shared, &index).await
    {
        told.insert("didYouMean".to_owned(), near.clone().into());
        told.insert(
            "hint".to_owned(),
            format!("There is no index or alias {index:?}; did you mean {near}?").into(),
        );
    }
    if let Some(id) = request_id {
        told.insert("clientRequestId".to_owned(), id.into());
    }
    ToolError::new(format!("{:#}", Value::Object(told)))
}

/// The index or alias whose name is nearest to one that there is not; `None` if there is one, or nothing is near.
async fn nearest_index(shared: &SearchServerState, name: &str) -> Option<String> {
    let mut names = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.has_path("indexes") || kind.has_path("aliases")) {
        // A key for queries cannot list; then there is nothing to add.
        let items = read_list(kind, shared, Some("name"), None).await.unwrap_or_default();
        names.extend(items.iter().map(|item| name_of(item).to_owned()));
    }
    let known: Vec<&str> = names.iter().map(String::as_str).filter(|known| !known.is_empty()).collect();
    match known.contains(&name) {
        true => None,
        false => nearest(name, &known).map(str::to_owned),
    }
}

/// One page of a list as its tool answers it.
pub(crate) fn page(items: Vec<Value>, next_cursor: Option<String>) -> Value {
    let mut page = json!({"items": items, "hasMore": next_cursor.is_some()});
    if let Some(cursor) = next_cursor {
        page["nextCursor"] = cursor.into();
    }
    page
}

/// A number and what it counts: `1 query`, `2 queries`.
pub(crate) fn pluralized(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// The members of what was written as an object.
pub(crate) fn into_members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The beginning of a text, whole if it is short.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
