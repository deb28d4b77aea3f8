//! `uploadDocuments`: sends a batch of documents and returns the result of each.

use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::{Entry, ToolError};
use serde_json::{Value, json};

use crate::service::client::odata_key;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{DESTROYS, ToolArguments, ToolOutline};

/// Maximum size of a batch in the service.
const LARGEST_BATCH: usize = 1_000;
const ACTION: &str = "@search.action";

pub(super) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    if shared.read_only {
        return Vec::new();
    }
    let description = "Upload, merge or delete up to 1000 documents. Returns the result of each, failed ones first. \
        A document's own `@search.action` overrides `action`; delete needs the key field only.";
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

/// Returns how many documents the batch deletes. The action is compared without case and spaces, so
/// that a confirmation is never skipped.
pub(crate) fn deletions(documents: &[Value]) -> usize {
    let action = |document: &Value| document.get(ACTION)?.as_str().map(|action| action.trim().to_lowercase());
    documents.iter().filter(|document| action(document).as_deref() == Some("delete")).count()
}

async fn upload(shared: &SearchServerState, mut arguments: ToolArguments) -> Result<Value, ToolError> {
    let documents = arguments.take("documents");
    let index = arguments.name("indexName")?;
    let Some(Value::Array(mut documents)) = documents else {
        return Err(
            ServiceFailure::new(Kind::InvalidRequest, "`documents` must be an array of documents").into()
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
        let message =
            "the service returned no results for the documents; check the index before you send them again";
        return Err(ServiceFailure::new(Kind::ServerError, message).into());
    };
    batch_result(results, answer.status, shared.answer_bytes)
}

/// Returns the results of a batch. It is a failure only if no document was accepted.
fn batch_result(results: Vec<Value>, status: u16, budget: usize) -> Result<Value, ToolError> {
    let went_well = |result: &Value| result.get("status").and_then(Value::as_bool).unwrap_or_default();
    let (succeeded, failed): (Vec<Value>, Vec<Value>) = results.into_iter().partition(went_well);
    let (good, bad) = (succeeded.len(), failed.len());
    // If not all results fit, those of successful documents are omitted first.
    let mut items: Vec<Value> = failed.into_iter().chain(succeeded).collect();
    let fit = count_fitting(&items, budget.saturating_sub(512));
    let omitted = items.len() - fit;
    items.truncate(fit);
    if good == 0 && bad > 0 {
        let mut failure =
            ServiceFailure::new(Kind::InvalidRequest, format!("none of the {bad} documents was accepted"));
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
    fn failed_documents_are_returned_before_all_others() {
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
