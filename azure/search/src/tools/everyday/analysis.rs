//! `getIndexStats` and `analyzeText`.

use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::Entry;
use serde_json::{Map, Value, json};

use crate::service::client::odata_key;
use crate::service::failure::ServiceFailure;
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolArguments, ToolOutline};

pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    vec![analyze_tool(shared), stats_tool(shared)]
}

fn stats_tool(shared: &Arc<SearchServerState>) -> Entry {
    let description = "Number of documents and bytes of an index.";
    let properties = json!({"indexName": {"type": "string"}, "clientRequestId": {"type": "string"}});
    let number = json!({"type": "number"});
    let output = json!({"type": "object", "properties": {"documentCount": number, "storageSize": number}});
    ToolOutline::new("getIndexStats", description, READS, properties, &["indexName"]).output(output).entry(
        shared,
        |shared, arguments| async move {
            let path = format!("indexes{}/search.stats", odata_key(arguments.name("indexName")?));
            Ok(shared.client.get(path).request_id(arguments.request_id()).send().await?.body)
        },
    )
}

fn analyze_tool(shared: &Arc<SearchServerState>) -> Entry {
    let description = "Show the tokens that an analyzer (or a tokenizer with filters, or a normalizer) of an index produces from a text.";
    let names = json!({"type": "array", "items": {"type": "string"}});
    let properties = json!({
        "indexName": {"type": "string"},
        "text": {"type": "string"},
        "analyzer": {"type": "string", "description": "default: standard.lucene"},
        "tokenizer": {"type": "string"},
        "normalizer": {"type": "string"},
        "tokenFilters": names,
        "charFilters": names,
        "clientRequestId": {"type": "string"},
    });
    ToolOutline::new("analyzeText", description, READS, properties, &["indexName", "text"])
        .output(json!({"type": "object", "required": ["tokens"]}))
        .entry(shared, |shared, arguments| async move { Ok(analyze(&shared, &arguments).await?) })
}

async fn analyze(shared: &SearchServerState, arguments: &ToolArguments) -> Result<Value, ServiceFailure> {
    let path = format!("indexes{}/search.analyze", odata_key(arguments.name("indexName")?));
    let given = arguments.iter().filter(|(name, _)| !["indexName", "clientRequestId"].contains(name));
    let mut body: Map<String, Value> = given.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    if !["analyzer", "tokenizer", "normalizer"].iter().any(|name| body.contains_key(*name)) {
        body.insert("analyzer".to_owned(), "standard.lucene".into());
    }
    let call = shared.client.post(path, Value::Object(body)).repeatable();
    let mut answer = call.request_id(arguments.request_id()).send().await?.body;
    if let Some(tokens) = answer.get_mut("tokens").and_then(Value::as_array_mut) {
        let fit = count_fitting(tokens, shared.answer_bytes);
        let omitted = tokens.len() - fit;
        tokens.truncate(fit);
        if omitted > 0 {
            answer["omittedTokens"] = omitted.into();
        }
    }
    Ok(answer)
}
