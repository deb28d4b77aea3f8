//! Copies the documents of one index to another, page by page.

use std::time::Duration;

use bindpost_mcp_server::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::fields::{self, DefinitionField};
use super::live::count;
use crate::service::client::{SearchClient, ServiceRequest, ServiceResponse, odata_key};
use crate::service::failure::{Kind, ServiceFailure};
use crate::tools::indexer_runs::watch::{is_transient, retry_after};

/// Maximum `skip` of the service.
const LONGEST_SKIP: u64 = 100_000;
const FIRST_PAGE: usize = 50;
const LARGEST_PAGE: usize = 1_000;
/// Target size of a page. The service accepts batches of 16 MB.
const PAGE_BYTES: usize = 4 << 20;
/// Maximum number of attempts of a call while the service is busy, so that a long copy
/// survives a busy minute.
const BUSY_TRIES: u32 = 6;
/// Maximum number of attempts for documents that the service was too busy to index.
const UPLOAD_TRIES: u32 = 4;
/// How long the document count of the service may lag behind.
const COUNT_PATIENCE: Duration = Duration::from_secs(30);

/// How the documents are read, in an order that is stable between pages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CopyPaging {
    key: String,
    /// Whether the next page begins after the last key. Otherwise it begins at a position.
    by_key: bool,
    is_sorted: bool,
    select: Vec<String>,
    /// Fields that are converted to strings, and fields that are converted to arrays of one.
    into_texts: Vec<String>,
    into_lists: Vec<String>,
    /// The old key is read for paging, but is not a field of the new index.
    drops_key: bool,
}

impl CopyPaging {
    /// Returns the best way to copy, or why the documents cannot be copied.
    pub(crate) fn choose(
        old: &[DefinitionField],
        new: &[DefinitionField],
        documents: u64,
    ) -> Result<CopyPaging, String> {
        let key = fields::key(old).ok_or("the live index has no key field")?;
        let new_key = fields::key(new).ok_or("the wanted definition has no key field")?;
        if !old.iter().any(|field| field.path == new_key.path) {
            let path = &new_key.path;
            return Err(format!(
                "the new key '{path}' is not a field of the live index, so documents have no value for it"
            ));
        }
        let (by_key, is_sorted) = (key.flag("filterable") && key.flag("sortable"), key.flag("sortable"));
        if !by_key && documents > LONGEST_SKIP {
            return Err(format!(
                "the key '{}' is not filterable and sortable, so at most {LONGEST_SKIP} documents can be copied, but \
                 the index has {documents}: fill the new index from the source",
                key.path
            ));
        }
        let mut paging = CopyPaging {
            key: key.path.clone(),
            by_key,
            is_sorted,
            select: Vec::new(),
            into_texts: Vec::new(),
            into_lists: Vec::new(),
            drops_key: false,
        };
        for before in old {
            let Some(after) = new.iter().find(|field| field.path == before.path) else { continue };
            if before.is_complex() != after.is_complex() {
                return Err(format!(
                    "'{}' cannot be copied from {} to {}",
                    before.path,
                    before.kind(),
                    after.kind()
                ));
            }
            if before.is_complex() {
                continue;
            }
            paging.select.push(before.path.clone());
            if after.kind() == format!("Collection({})", before.kind()) {
                paging.into_lists.push(before.path.clone());
            } else if after.kind() == "Edm.String" && before.kind() != "Edm.String" {
                paging.into_texts.push(before.path.clone());
            }
        }
        if !paging.select.contains(&paging.key) {
            paging.select.push(paging.key.clone());
            paging.drops_key = true;
        }
        Ok(paging)
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let why = "is not filterable and sortable: documents are copied by position, and some may be missed if \
                   the index changes during the copy";
        (!self.by_key).then(|| format!("the key '{}' {why}", self.key))
    }

    fn request(&self, after: Option<&str>, skip: u64, top: usize) -> Value {
        let mut request = json!({"search": "*", "select": self.select.join(","), "top": top});
        if self.is_sorted {
            request["orderby"] = format!("{} asc", self.key).into();
        }
        match (self.by_key, after) {
            (true, Some(after)) => {
                request["filter"] = format!("{} gt '{}'", self.key, after.replace('\'', "''")).into();
            }
            (true, None) => {}
            (false, _) => request["skip"] = skip.into(),
        }
        request
    }

    /// Converts a document for the new index.
    pub(crate) fn action(&self, document: &Value) -> Option<Value> {
        let mut action: Map<String, Value> = document.as_object()?.clone();
        let is_dropped = |name: &str| self.drops_key && name == self.key;
        action.retain(|name, _| !name.starts_with('@') && !is_dropped(name));
        for (name, value) in &mut action {
            self.convert_value(name, value);
        }
        action.insert("@search.action".to_owned(), "upload".into());
        Some(Value::Object(action))
    }

    fn convert_value(&self, path: &str, value: &mut Value) {
        match value {
            Value::Null => {}
            Value::Object(members) => {
                members
                    .iter_mut()
                    .for_each(|(name, value)| self.convert_value(&format!("{path}/{name}"), value));
            }
            Value::Array(list) => list.iter_mut().for_each(|value| self.convert_value(path, value)),
            value if self.into_lists.iter().any(|list| list == path) => *value = json!([value.take()]),
            Value::Number(_) | Value::Bool(_) if self.into_texts.iter().any(|text| text == path) => {
                *value = value.to_string().into();
            }
            _ => {}
        }
    }
}

/// How far the documents of an index were read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CopyPosition {
    /// The last key.
    after: Option<String>,
    pub(crate) documents: u64,
}

/// Reads the documents of an index page by page.
#[derive(Debug)]
pub(crate) struct PageReader {
    client: SearchClient,
    index: String,
    paging: CopyPaging,
    position: CopyPosition,
    /// An OData filter of the documents.
    filter: Option<String>,
    /// Size of the next page.
    top: usize,
}

impl PageReader {
    pub(crate) fn new(
        client: SearchClient,
        index: &str,
        paging: CopyPaging,
        position: CopyPosition,
    ) -> PageReader {
        PageReader { client, index: index.to_owned(), paging, position, filter: None, top: FIRST_PAGE }
    }

    /// Reads only the documents that an OData filter selects.
    pub(crate) fn filter(mut self, filter: Option<String>) -> Self {
        self.filter = filter;
        self
    }

    /// Returns the position after the last page.
    pub(crate) fn position(&self) -> &CopyPosition {
        &self.position
    }

    /// Returns the next documents, or none at the end.
    pub(crate) async fn next_page(&mut self) -> Result<Vec<Value>, ServiceFailure> {
        let path = format!("indexes{}/docs/search.post.search", odata_key(&self.index));
        let mut body = loop {
            let mut request =
                self.paging.request(self.position.after.as_deref(), self.position.documents, self.top);
            if let Some(filter) = &self.filter {
                request["filter"] = match request["filter"].as_str() {
                    Some(after) => format!("({filter}) and {after}").into(),
                    None => filter.as_str().into(),
                };
            }
            match send_with_retry(|| self.client.post(path.clone(), request.clone())).await {
                Err(failure) if is_too_large(&failure) && self.top > 1 => self.top /= 2,
                answer => break answer?.body,
            }
        };
        let Some(Value::Array(page)) = body.get_mut("value").map(Value::take) else { return Ok(Vec::new()) };
        let Some(last) = page.last() else { return Ok(page) };
        self.position.after = last.get(&self.paging.key).and_then(Value::as_str).map(str::to_owned);
        if self.paging.by_key && self.position.after.is_none() {
            let text = format!("a document of \"{}\" came without its key '{}'", self.index, self.paging.key);
            return Err(ServiceFailure::new(Kind::ServerError, text));
        }
        self.position.documents += u64::try_from(page.len()).unwrap_or(0);
        let bytes: usize = page.iter().map(|document| document.to_string().len()).sum();
        self.top = (PAGE_BYTES / (bytes / page.len()).max(1)).clamp(1, LARGEST_PAGE);
        Ok(page)
    }
}

/// Copies all documents. Reports progress after each page and returns the number of copied documents.
pub(super) async fn copy(
    client: &SearchClient,
    context: &Context,
    paging: &CopyPaging,
    (from, to): (&str, &str),
    total: u64,
) -> Result<u64, ServiceFailure> {
    let mut reader = PageReader::new(client.clone(), from, paging.clone(), CopyPosition::default());
    loop {
        let page = reader.next_page().await?;
        let copied = reader.position().documents;
        if page.is_empty() {
            return Ok(copied);
        }
        upload(client, to, page.iter().filter_map(|document| paging.action(document)).collect()).await?;
        let message = format!("copied {copied} of {} documents to {to}", total.max(copied));
        context.progress(as_number(copied), Some(as_number(total.max(copied))), Some(&message)).await;
    }
}

/// Sends a repeatable call, and retries while the service is busy.
pub(crate) async fn send_with_retry<'a>(
    call: impl Fn() -> ServiceRequest<'a>,
) -> Result<ServiceResponse, ServiceFailure> {
    let mut pause = Duration::from_millis(500);
    let mut tries = 1;
    loop {
        match call().repeatable().send().await {
            Err(failure) if tries < BUSY_TRIES && is_transient(&failure) => {
                tries += 1;
                sleep(retry_after(&failure).unwrap_or(pause)).await;
                pause *= 2;
            }
            sent => return sent,
        }
    }
}

/// A failure without a status means that the response exceeds our size limit.
fn is_too_large(failure: &ServiceFailure) -> bool {
    failure.status.is_none() && failure.kind == Kind::InvalidRequest
}

fn as_number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Writes a batch. Documents that the service was too busy for are retried. Any other failure ends the copy.
pub(crate) async fn upload(
    client: &SearchClient,
    index: &str,
    mut actions: Vec<Value>,
) -> Result<(), ServiceFailure> {
    let mut pause = Duration::from_millis(500);
    for attempt in 1..=UPLOAD_TRIES {
        let path = format!("indexes{}/docs/search.index", odata_key(index));
        // An upload is idempotent, so it may be sent twice.
        let batch = json!({"value": actions});
        let answer = send_with_retry(|| client.post(path.clone(), batch.clone())).await?;
        let outcomes = answer.body.get("value").and_then(Value::as_array).cloned().unwrap_or_default();
        let failed = |outcome: &Value| outcome.get("status").and_then(Value::as_bool) == Some(false);
        let is_busy = |outcome: &Value| matches!(outcome["statusCode"].as_u64(), Some(409 | 422 | 429 | 503));
        let broken: Vec<&Value> =
            outcomes.iter().filter(|outcome| failed(outcome) && !is_busy(outcome)).take(5).collect();
        if !broken.is_empty() {
            let told: Vec<Value> = broken
                .iter()
                .map(|outcome| json!({"key": outcome["key"], "message": outcome["errorMessage"]}))
                .collect();
            let text = format!("\"{index}\" rejected some of the documents");
            return Err(ServiceFailure::new(Kind::InvalidRequest, text).with("documents", told));
        }
        // Results have the order of the actions.
        let mut outcomes = outcomes.iter();
        actions.retain(|_| outcomes.next().is_some_and(failed));
        if actions.is_empty() {
            return Ok(());
        }
        if attempt < UPLOAD_TRIES {
            sleep(pause).await;
            pause *= 2;
        }
    }
    let text = format!("\"{index}\" was too busy for {} documents", actions.len());
    Err(ServiceFailure::new(Kind::RateLimited, text))
}

/// Waits until both indexes have the same document count.
pub(crate) async fn wait_for_equal_counts(
    client: &SearchClient,
    from: &str,
    to: &str,
) -> Result<u64, ServiceFailure> {
    let deadline = Instant::now() + COUNT_PATIENCE;
    let mut pause = Duration::from_millis(200);
    loop {
        let (old, new) = (count(client, from).await?, count(client, to).await?);
        if old == new {
            return Ok(new);
        }
        if Instant::now() + pause > deadline {
            let text = format!(
                "\"{from}\" has {old} documents and \"{to}\" has {new}: documents were written during the copy. Stop all writers \
                 (indexers, uploads), then apply again"
            );
            return Err(ServiceFailure::new(Kind::Conflict, text));
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(4));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paging(old: Value, new: Value, documents: u64) -> Result<CopyPaging, String> {
        CopyPaging::choose(
            &fields::all(&json!({"fields": old})),
            &fields::all(&json!({"fields": new})),
            documents,
        )
    }

    #[test]
    fn keys_that_cannot_be_filtered_are_copied_by_position_up_to_a_limit() {
        let key = json!([{"name": "id", "type": "Edm.String", "key": true, "filterable": false}]);
        let by_position = paging(key.clone(), key.clone(), 100_000).unwrap();
        assert!(by_position.warning().is_some());
        assert_eq!(by_position.request(Some("a"), 50, 10)["skip"], 50);
        assert!(paging(key.clone(), key, 100_001).unwrap_err().contains("100000"));
    }

    #[test]
    fn pages_begin_after_the_last_key_and_its_quotes_are_escaped() {
        let key = json!([{"name": "id", "type": "Edm.String", "key": true}]);
        let by_key = paging(key.clone(), key, 1_000_000).unwrap();
        assert_eq!(by_key.request(Some("a'b"), 7, 10)["filter"], "id gt 'a''b'");
        assert_eq!(by_key.request(None, 0, 10).get("filter"), None);
    }

    #[test]
    fn values_are_converted_to_compatible_types() {
        let old = json!([
            {"name": "id", "type": "Edm.String", "key": true}, {"name": "n", "type": "Edm.Int32"},
            {"name": "tag", "type": "Edm.String"}, {"name": "gone", "type": "Edm.String"},
            {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [{"name": "n", "type": "Edm.Int32"}]}
        ]);
        let new = json!([
            {"name": "id", "type": "Edm.String", "key": true}, {"name": "n", "type": "Edm.String"},
            {"name": "tag", "type": "Collection(Edm.String)"},
            {"name": "rooms", "type": "Collection(Edm.ComplexType)", "fields": [{"name": "n", "type": "Edm.String"}]}
        ]);
        let paging = paging(old, new, 1).unwrap();
        assert_eq!(paging.select, ["id", "n", "tag", "rooms/n"]);
        let document =
            json!({"@search.score": 1.0, "id": "1", "n": 5, "tag": "a", "rooms": [{"n": 1}, {"n": null}]});
        assert_eq!(
            paging.action(&document).unwrap(),
            json!({"@search.action": "upload", "id": "1", "n": "5", "tag": ["a"], "rooms": [{"n": "1"}, {"n": null}]})
        );
    }
}
