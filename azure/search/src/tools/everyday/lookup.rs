//! `getDocument`, `countDocuments`, `suggest` and `autocomplete`.

use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::{Entry, ToolError};
use serde_json::{Map, Value, json};

use super::known::IndexCache;
use super::search::leave_vectors_out;
use crate::service::client::odata_key;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolArguments, ToolOutline};

pub(super) fn entries(shared: &Arc<SearchServerState>, known: &Arc<IndexCache>) -> Vec<Entry> {
    vec![
        get_tool(shared, known),
        typeahead_tool(&SUGGEST, shared, known),
        typeahead_tool(&AUTOCOMPLETE, shared, known),
        count_tool(shared),
    ]
}

fn get_tool(shared: &Arc<SearchServerState>, known: &Arc<IndexCache>) -> Entry {
    let properties = json!({
        "indexName": {"type": "string"},
        "key": {"type": "string"},
        "select": {"type": ["string", "array"], "description": "fields; vectors only if named"},
        "clientRequestId": {"type": "string"},
    });
    let known = known.clone();
    ToolOutline::new("getDocument", "Get one document by its key.", READS, properties, &["indexName", "key"])
        .entry(shared, move |shared, arguments| {
            let known = known.clone();
            async move { Ok(get(&shared, &known, &arguments).await?) }
        })
}

async fn get(
    shared: &SearchServerState,
    known: &IndexCache,
    arguments: &ToolArguments,
) -> Result<Value, ServiceFailure> {
    let (index, key) = (arguments.name("indexName")?, arguments.name("key")?);
    let path = format!("indexes{}/docs{}", odata_key(index), odata_key(key));
    let mut call = shared.client.get(path).request_id(arguments.request_id());
    let select = arguments.joined_names("select").unwrap_or_default();
    if !select.is_empty() {
        call = call.query("$select", select.clone());
    }
    let mut answer = call.send().await.map_err(|failure| match failure.status {
        // The service does not report whether the document or the index is missing.
        Some(404) => failure
            .with("hint", "Either the index has no document with this key, or the index does not exist."),
        _ => failure,
    })?;
    let documents = std::slice::from_mut(&mut answer.body);
    let omitted = leave_vectors_out(shared, known, index, &select, documents).await;
    if !omitted.is_empty() {
        answer.body["omittedVectorFields"] = omitted.into();
    }
    // Selected fields are always returned, whatever their length.
    if select.is_empty() {
        leave_longest_out(&mut answer.body, shared.answer_bytes);
    }
    Ok(answer.body)
}

/// Removes the longest fields from a document that is too long for a result, and lists them.
fn leave_longest_out(document: &mut Value, budget: usize) {
    let Some(members) = document.as_object_mut() else { return };
    let size = |value: &Value| value.to_string().len();
    let mut sizes: Vec<(usize, String)> =
        members.iter().map(|(name, value)| (size(value), name.clone())).collect();
    let mut total: usize = sizes.iter().map(|(size, name)| size + name.len() + 4).sum();
    sizes.sort_unstable();
    let mut omitted = Vec::new();
    while total > budget
        && let Some((size, name)) = sizes.pop()
    {
        members.remove(&name);
        total -= size;
        omitted.push(json!({"field": name, "bytes": size}));
    }
    if !omitted.is_empty() {
        members.insert("omittedFields".to_owned(), omitted.into());
        members.insert(
            "note".to_owned(),
            "The document is too long. Select the fields to read in `select`.".into(),
        );
    }
}

fn count_tool(shared: &Arc<SearchServerState>) -> Entry {
    let properties = json!({"indexName": {"type": "string"}, "clientRequestId": {"type": "string"}});
    ToolOutline::new("countDocuments", "Count all documents of an index.", READS, properties, &["indexName"])
        .entry(shared, |shared, arguments| async move {
            let path = format!("indexes{}/docs/$count", odata_key(arguments.name("indexName")?));
            let answer = shared.client.get(path).request_id(arguments.request_id()).send().await?;
            Ok(json!({"count": answer.body}))
        })
}

/// One of the two tools that complete a typed text.
struct TypeaheadTool {
    name: &'static str,
    path: &'static str,
    description: &'static str,
    properties: fn() -> Value,
}

const SUGGEST: TypeaheadTool = TypeaheadTool {
    name: "suggest",
    path: "search.post.suggest",
    description: "Documents that match a partially typed text, by the index's suggester.",
    properties: || json!({"orderby": {"type": ["string", "array"]}, "select": {"type": ["string", "array"]}}),
};

const AUTOCOMPLETE: TypeaheadTool = TypeaheadTool {
    name: "autocomplete",
    path: "search.post.autocomplete",
    description: "Words that complete a partially typed text, by the index's suggester.",
    properties: || json!({"autocompleteMode": {"enum": ["oneTerm", "twoTerms", "oneTermWithContext"]}}),
};

fn typeahead_tool(
    tool: &'static TypeaheadTool,
    shared: &Arc<SearchServerState>,
    known: &Arc<IndexCache>,
) -> Entry {
    let mut properties = json!({
        "indexName": {"type": "string"},
        "search": {"type": "string", "description": "the typed text"},
        "suggesterName": {"type": "string", "description": "default: the index's only one"},
        "filter": {"type": "string"},
        "fuzzy": {"type": "boolean"},
        "searchFields": {"type": ["string", "array"]},
        "top": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
        "minimumCoverage": {"type": "number"},
        "highlightPreTag": {"type": "string"},
        "highlightPostTag": {"type": "string"},
        "clientRequestId": {"type": "string"},
    });
    if let (Some(properties), Value::Object(own)) = (properties.as_object_mut(), (tool.properties)()) {
        properties.extend(own);
    }
    let known = known.clone();
    ToolOutline::new(tool.name, tool.description, READS, properties, &["indexName", "search"])
        .output(json!({"type": "object", "required": ["items"]}))
        .entry(shared, move |shared, arguments| {
            let known = known.clone();
            async move { run_typeahead(tool, &shared, &known, &arguments).await }
        })
}

async fn run_typeahead(
    tool: &TypeaheadTool,
    shared: &SearchServerState,
    known: &IndexCache,
    arguments: &ToolArguments,
) -> Result<Value, ToolError> {
    let index = arguments.name("indexName")?;
    let mut body = Map::new();
    for (name, value) in arguments.iter().filter(|(name, _)| !["indexName", "clientRequestId"].contains(name))
    {
        let is_joined = ["searchFields", "select", "orderby"].contains(&name);
        let joined = arguments.joined_names(name).filter(|_| is_joined).map(Value::from);
        body.insert(name.to_owned(), joined.unwrap_or_else(|| value.clone()));
    }
    if let Some(top) = arguments.whole_number("top") {
        body.insert("top".to_owned(), top.into());
    }
    if !body.contains_key("suggesterName") {
        body.insert("suggesterName".to_owned(), suggester_of(shared, known, index).await?.into());
    }
    let path = format!("indexes{}/docs/{}", odata_key(index), tool.path);
    let call = shared.client.post(path, Value::Object(body)).repeatable();
    let mut answer = call.request_id(arguments.request_id()).send().await?.body;
    let items = answer.get_mut("value").map(Value::take);
    let Some(Value::Array(mut items)) = items else {
        return Err(ServiceFailure::new(Kind::ServerError, "the service returned no list").into());
    };
    let fit = count_fitting(&items, shared.answer_bytes);
    let omitted = items.len() - fit;
    items.truncate(fit);
    let mut told = json!({"items": items});
    if let Some(coverage) = answer.get("@search.coverage") {
        told["@search.coverage"] = coverage.clone();
    }
    if omitted > 0 {
        told["omitted"] = omitted.into();
    }
    Ok(told)
}

/// Returns the only suggester of an index.
async fn suggester_of(
    shared: &SearchServerState,
    known: &IndexCache,
    index: &str,
) -> Result<String, ServiceFailure> {
    let facts = known.index(shared, index).await;
    let suggesters = facts.as_ref().map(|facts| facts.suggesters.as_slice());
    let message = match suggesters {
        Some([only]) => return Ok(only.clone()),
        Some([]) => format!(
            "the index {index:?} has no suggester. Define one with createOrUpdateIndex (`suggesters`), or use searchDocuments \
             with a prefix: `word*`"
        ),
        Some(several) => format!("set `suggesterName` to one of {}", several.join(", ")),
        None => "set `suggesterName`: the definition of the index cannot be read".to_owned(),
    };
    Err(ServiceFailure::new(Kind::InvalidRequest, message))
}
