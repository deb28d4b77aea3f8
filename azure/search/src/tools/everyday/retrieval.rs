//! `retrieve`: a knowledge agent answers from its sources.

use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::{Entry, ToolError};
use serde_json::{Map, Value, json};

use super::kinds::kind_of;
use crate::service::client::odata_key;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolArguments, ToolOutline};

pub(super) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let description = "Ask a knowledge agent (knowledge base): passages found in its sources, with activity and references. \
        Give `query`, or `messages` of a conversation.";
    let properties = json!({
        "agentName": {"type": "string"},
        "query": {"type": "string", "description": "one question"},
        "messages": {"type": "array", "items": {"type": "object"}, "description": "[{role: user|assistant, content: text}]"},
        "knowledgeSourceParams": {"type": "array", "items": {"type": "object"}, "description": "per source, such as [{knowledgeSourceName, kind: searchIndex, filterAddOn}]"},
        "clientRequestId": {"type": "string"},
    });
    let outline = ToolOutline::new("retrieve", description, READS, properties, &["agentName"]);
    vec![outline.entry(shared, |shared, arguments| async move { retrieve(&shared, &arguments).await })]
}

async fn retrieve(shared: &SearchServerState, arguments: &ToolArguments) -> Result<Value, ToolError> {
    let path = kind_of("agents").map_or("agents", |kind| kind.path(&shared.client));
    let path = format!("{path}{}/retrieve", odata_key(arguments.name("agentName")?));
    let mut body = Map::new();
    let messages = arguments.get("messages").and_then(Value::as_array);
    match (arguments.text("query"), messages) {
        (None, Some(messages)) => {
            let messages: Vec<Value> = messages.iter().cloned().map(message).collect();
            body.insert("messages".to_owned(), messages.into());
        }
        (Some(query), None) if shared.client.has_knowledge_bases() => {
            body.insert("intents".to_owned(), json!([{"type": "semantic", "search": query}]));
        }
        (Some(query), None) => {
            body.insert("messages".to_owned(), json!([message(json!({"role": "user", "content": query}))]));
        }
        _ => {
            return Err(ServiceFailure::new(Kind::InvalidRequest, "set either `query` or `messages`").into());
        }
    }
    if let Some(parameters) = arguments.get("knowledgeSourceParams") {
        body.insert("knowledgeSourceParams".to_owned(), parameters.clone());
    }
    let call = shared.client.post(path, Value::Object(body)).repeatable();
    let answer = call.request_id(arguments.request_id()).send().await?;
    let mut told = answer.body;
    if answer.status == 206 {
        told["partial"] = json!({"reason": "some of the sources did not answer; see `activity`"});
    }
    truncate_references(&mut told, shared.answer_bytes);
    Ok(told)
}

/// Returns a message in the form of the service: its content is a list of parts.
fn message(mut message: Value) -> Value {
    if let Some(text) = message.get("content").and_then(Value::as_str) {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    message
}

/// Removes references that do not fit, from the end. The answer itself is kept.
fn truncate_references(told: &mut Value, budget: usize) {
    let over = told.to_string().len().saturating_sub(budget);
    if over == 0 {
        return;
    }
    if let Some(references) = told.get_mut("references").and_then(Value::as_array_mut) {
        let size: usize = references.iter().map(|reference| reference.to_string().len() + 1).sum();
        let fit = count_fitting(references, size.saturating_sub(over));
        let omitted = references.len() - fit;
        references.truncate(fit);
        told["omittedReferences"] = omitted.into();
    }
}
