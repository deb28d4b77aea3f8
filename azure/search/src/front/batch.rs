//! `uploadDocuments`: a batch of documents, and what became of each.

use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::{Entry, ToolError};
use serde_json::{Value, json};

use crate::client::odata_key;
use crate::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tool::{DESTROYS, ToolArguments, ToolOutline};

/// The service takes no more at once.
const LARGEST_BATCH: usize = 1_000;
const ACTION: &str = "@search.action";

pub(super) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    if shared.read_only {
        return Vec::new();
    }
    let description = "Upload, merge or delete up to 1000 documents. Answers what became of each: failed ones come first. \
        A document's own `@search.action` counts before `action`; delete needs the key field only.";
    let properties = json!({
        "indexName": {"type": "string"},
        "documents": {"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": LARGEST_BATCH},
        "action": {"enum": ["upload", "merge", "mergeOrUpload", "delete"], "default": "upload"},
        "clientRequestId": {"type": "string"},
    });
    let required = &["indexName", "documents"];
    let outline = ToolOutline::new("uploadDocuments", description, DESTROYS, properties, required);
    vec![outline.entry(shared, |shared, arguments| async move { upload(&shared, arguments).await })]
}

/// How many documents of a batch are deleted by it. Whatever way the word is written: rather ask once too often.
pub(crate) fn deletions(documents: &[Value]) -> usize {
    let action = |document: &Value| document.get(ACTION)?.as_str().map(|action| action.trim().to_lowercase());
    documents.iter().filter(|document| action(document).as_deref() == Some("delete")).count()
}

async fn upload(shared: &SearchServerState, mut arguments: ToolArguments) -> Result<Value, ToolError> {
    let documents = arguments.take("documents");
    let index = arguments.name("indexName")?;
    let Some(Value::Array(mut documents)) = documents else {
        return Err(
            ServiceFailure::new(Kind::InvalidRequest, "`documents` must be a list of documents").into()
        );
    };
    let action = arguments.text("action").unwrap_or("upload");
    for members in documents.iter_mut().filter_map(Value::as_object_mut) {
        let own = members.entry(ACTION).or_insert(Value::Null);
        if own.is_null() {
            *own = action.into();
        }
    }
    let deletes = deletions(&documents);
    if deletes > 0 {
        let many = if deletes == 1 { "1 document".to_owned() } else { format!("{deletes} documents") };
        let question = format!("Delete {many} from the index {index:?}? It cannot be undone.");
        shared.confirm(&arguments.context, &question).await?;
    }
    let path = format!("indexes{}/docs/search.index", odata_key(index));
    let call = shared.client.post(path, json!({"value": documents})).request_id(arguments.request_id());
    let mut answer = call.send().await?;
    let results = answer.body.get_mut("value").map(Value::take);
    let Some(Value::Array(results)) = results else {
        let message = "the service did not say what became of the documents; look before you send them again";
        return Err(ServiceFailure::new(Kind::ServerError, message).into());
    };
    batch_result(results, answer.status, shared.answer_bytes)
}

/// What became of the documents: a failure only if none was taken.
fn batch_result(results: Vec<Value>, status: u16, budget: usize) -> Result<Value, ToolError> {
    let went_well = |result: &Value| result.get("status").and_then(Value::as_bool).unwrap_or_default();
    let (succeeded, failed): (Vec<Value>, Vec<Value>) = results.into_iter().partition(went_well);
    let (good, bad) = (succeeded.len(), failed.len());
    // Keys of documents that went well are the first to go when there is not room for all.
    let mut items: Vec<Value> = failed.into_iter().chain(succeeded).collect();
    let fit = count_fitting(&items, budget.saturating_sub(512));
    let omitted = items.len() - fit;
    items.truncate(fit);
    if good == 0 && bad > 0 {
        let mut failure =
            ServiceFailure::new(Kind::InvalidRequest, format!("none of the {bad} documents was taken"));
        failure.status = Some(status);
        return Err(failure.with("items", items).with("failed", bad).into());
    }
    let mut told = json!({"succeeded": good, "failed": bad, "items": items});
    if omitted > 0 {
        told["omittedItems"] = omitted.into();
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_documents_come_first_and_are_told_before_all_others() {
        let result = |key: String, status: bool| json!({"key": key, "status": status, "statusCode": 200});
        let results = (0..1000).map(|at| result(format!("document-{at}"), at != 999)).collect();
        let told = batch_result(results, 207, 4096).unwrap();
        assert_eq!((&told["succeeded"], &told["failed"]), (&json!(999), &json!(1)));
        assert_eq!(told["items"][0]["key"], "document-999");
        let shown = told["items"].as_array().unwrap().len() as u64;
        assert_eq!(told["omittedItems"].as_u64(), Some(1000 - shown));
        assert!(told.to_string().len() <= 4096);
    }
}
