//! Builds the tools of the server: definitions, arguments and results.

mod arguments;

use std::future::Future;
use std::sync::Arc;

use bindpost_mcp_protocol::{CallToolResult, Tool};
use bindpost_mcp_server::nearest::nearest;
use bindpost_mcp_server::{CallParts, Context, Entry, Signature, ToolEntry, ToolError, ToolHints};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::everyday::{KINDS, name_of, read_list};

pub(crate) use arguments::ToolArguments;

/// Hints of a tool that changes nothing.
pub(crate) const READS: ToolHints =
    ToolHints { read_only: true, destructive: false, idempotent: true, open_world: false };
/// Hints of a tool that may delete or replace data.
pub(crate) const DESTROYS: ToolHints =
    ToolHints { read_only: false, destructive: true, idempotent: true, open_world: false };

/// The definition of a tool.
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

    /// Returns the tool that runs `run`, whose result is an object.
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

    /// Returns the tool for work that may take long. It has no timeout.
    pub(crate) fn long<Fut>(
        self,
        shared: &Arc<SearchServerState>,
        run: impl Fn(Arc<SearchServerState>, ToolArguments) -> Fut + Send + Sync + 'static,
    ) -> Entry
    where
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.tool(shared, run).timeout(None).into()
    }

    /// Returns the tool, for typed arguments.
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
                ServiceFailure::new(Kind::InvalidRequest, format!("invalid arguments: {error}"))
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
            title: Some(title(&name)),
            name: name.clone(),
            description: Some(description),
            input_schema: schema.into(),
            output_schema: output.map(Into::into),
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

/// Returns the title of a tool, for people: `createOrUpdateIndex` is "Create or update index".
fn title(name: &str) -> String {
    let mut title = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        match letter {
            _ if title.is_empty() => title.push(letter.to_ascii_uppercase()),
            'A'..='Z' => title.extend([' ', letter.to_ascii_lowercase()]),
            _ => title.push(letter),
        }
    }
    title
}

/// Adds the caller's request id and, if the index does not exist, a similar name to a failure. A
/// failure that is not JSON is not changed.
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
            format!("The index or alias {index:?} does not exist; did you mean {near}?").into(),
        );
    }
    if let Some(id) = request_id {
        told.insert("clientRequestId".to_owned(), id.into());
    }
    ToolError::new(format!("{:#}", Value::Object(told)))
}

/// Returns the existing index or alias with the most similar name. Returns `None` if this one exists,
/// or if no name is similar.
async fn nearest_index(shared: &SearchServerState, name: &str) -> Option<String> {
    let mut names = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.has_path("indexes") || kind.has_path("aliases")) {
        // A query key cannot list indexes, so nothing is added.
        let items = read_list(kind, shared, Some("name"), None).await.unwrap_or_default();
        names.extend(items.iter().map(|item| name_of(item).to_owned()));
    }
    let known: Vec<&str> = names.iter().map(String::as_str).filter(|known| !known.is_empty()).collect();
    match known.contains(&name) {
        true => None,
        false => nearest(name, &known).map(str::to_owned),
    }
}

/// Returns one page of a list as a tool result.
pub(crate) fn page(items: Vec<Value>, next_cursor: Option<String>) -> Value {
    let mut page = json!({"items": items, "hasMore": next_cursor.is_some()});
    if let Some(cursor) = next_cursor {
        page["nextCursor"] = cursor.into();
    }
    page
}

/// Returns a number with its noun: `1 query`, `2 queries`.
pub(crate) fn pluralized(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// Returns the members of a JSON object.
pub(crate) fn into_members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Returns the beginning of a text, or all of it if it is short.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
