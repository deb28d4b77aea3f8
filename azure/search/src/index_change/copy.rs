//! Copies the documents of one index to another, page by page.

use std::time::Duration;

use bindpost_mcp_server::Context;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::fields::{self, DefinitionField};
use super::live::count;
use crate::client::{ServiceRequest, ServiceResponse, odata_key};
use crate::failure::{Kind, ServiceFailure};
use crate::indexer_runs::watch::{is_transient, retry_after};
use crate::shared::SearchServerState;

/// The service skips no more documents than this.
const LONGEST_SKIP: u64 = 100_000;
const FIRST_PAGE: usize = 50;
const LARGEST_PAGE: usize = 1_000;
/// As large as a page should be; the service takes batches of 16 MB.
const PAGE_BYTES: usize = 4 << 20;
/// How often a call is sent that the service has no time for. A long copy should not end by a busy minute.
const BUSY_TRIES: u32 = 6;
/// How often a batch is sent again for the documents that the service was too busy for.
const UPLOAD_TRIES: u32 = 4;
/// How long a service may take until it counts what it was given.
const COUNT_PATIENCE: Duration = Duration::from_secs(30);

/// How the documents are read, in an order that does not change between pages.
#[derive(Clone, Debug)]
pub(super) struct CopyPaging {
    key: String,
    /// Where the next page begins: behind the last key, or else so many documents on.
    by_key: bool,
    is_sorted: bool,
    select: Vec<String>,
    /// Fields that become texts, and those that become lists of one.
    into_texts: Vec<String>,
    into_lists: Vec<String>,
    /// The old key is read to find the way, and is no field of the new index.
    drops_key: bool,
}

impl CopyPaging {
    /// The best way there is, or why there is none.
    pub(super) fn choose(
        old: &[DefinitionField],
        new: &[DefinitionField],
        documents: u64,
    ) -> Result<CopyPaging, String> {
        let key = fields::key(old).ok_or("the live index shows no key field")?;
        let new_key = fields::key(new).ok_or("the wanted definition has no key field")?;
        if !old.iter().any(|field| field.path == new_key.path) {
            let path = &new_key.path;
            return Err(format!(
                "the new key '{path}' is no field of the live index, so no document has one"
            ));
        }
        let (by_key, is_sorted) = (key.flag("filterable") && key.flag("sortable"), key.flag("sortable"));
        if !by_key && documents > LONGEST_SKIP {
            return Err(format!(
                "the key '{}' is not filterable and sortable, so {LONGEST_SKIP} documents can be copied at most, and \
                 there are {documents}: index the new index from the source",
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

    pub(super) fn warning(&self) -> Option<String> {
        let why = "is not filterable and sortable: documents are copied by position, and some may be missed if \
                   somebody writes meanwhile";
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

    /// A document as the new index takes it.
    fn action(&self, document: &Value) -> Option<Value> {
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

/// Copies everything. Progress is told page by page; the number of copied documents comes back.
pub(super) async fn copy(
    shared: &SearchServerState,
    context: &Context,
    paging: &CopyPaging,
    (from, to): (&str, &str),
    total: u64,
) -> Result<u64, ServiceFailure> {
    let mut top = FIRST_PAGE;
    let mut after: Option<String> = None;
    let mut copied: u64 = 0;
    loop {
        let request = paging.request(after.as_deref(), copied, top);
        let path = format!("indexes{}/docs/search.post.search", odata_key(from));
        let answer = match send_with_retry(|| shared.client.post(path.clone(), request.clone())).await {
            Err(failure) if is_too_large(&failure) && top > 1 => {
                top /= 2;
                continue;
            }
            answer => answer?,
        };
        let page = answer.body.get("value").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(last) = page.last() else { return Ok(copied) };
        let actions: Vec<Value> = page.iter().filter_map(|document| paging.action(document)).collect();
        let bytes: usize = actions.iter().map(|action| action.to_string().len()).sum();
        upload(shared, to, actions).await?;
        copied += u64::try_from(page.len()).unwrap_or(0);
        after = last.get(&paging.key).and_then(Value::as_str).map(str::to_owned);
        if paging.by_key && after.is_none() {
            let text = format!("a document of \"{from}\" came without its key '{}'", paging.key);
            return Err(ServiceFailure::new(Kind::ServerError, text));
        }
        top = (PAGE_BYTES / (bytes / page.len()).max(1)).clamp(1, LARGEST_PAGE);
        let message = format!("copied {copied} of {} documents to {to}", total.max(copied));
        context.progress(as_number(copied), Some(as_number(total.max(copied))), Some(&message)).await;
    }
}

/// Sends a call that may be sent twice until the service has time for it.
async fn send_with_retry<'a>(
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

/// Without a status it was not the service that refused: the answer is larger than we take.
fn is_too_large(failure: &ServiceFailure) -> bool {
    failure.status.is_none() && failure.kind == Kind::InvalidRequest
}

fn as_number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Writes a batch. What the service was too busy for is sent again; anything else that fails ends the copy.
async fn upload(
    shared: &SearchServerState,
    index: &str,
    mut actions: Vec<Value>,
) -> Result<(), ServiceFailure> {
    let mut pause = Duration::from_millis(500);
    for attempt in 1..=UPLOAD_TRIES {
        let path = format!("indexes{}/docs/search.index", odata_key(index));
        // An upload may be sent twice: it says the same.
        let batch = json!({"value": actions});
        let answer = send_with_retry(|| shared.client.post(path.clone(), batch.clone())).await?;
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
            let text = format!("\"{index}\" refused some of the documents");
            return Err(ServiceFailure::new(Kind::InvalidRequest, text).with("documents", told));
        }
        // Outcomes come in the order of the actions.
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

/// Waits until both indexes count the same.
pub(super) async fn wait_for_equal_counts(
    shared: &SearchServerState,
    from: &str,
    to: &str,
) -> Result<u64, ServiceFailure> {
    let deadline = Instant::now() + COUNT_PATIENCE;
    let mut pause = Duration::from_millis(200);
    loop {
        let (old, new) = (count(shared, from).await?, count(shared, to).await?);
        if old == new {
            return Ok(new);
        }
        if Instant::now() + pause > deadline {
            let text = format!(
                "\"{from}\" has {old} documents and \"{to}\" {new}: somebody wrote meanwhile. Stop what writes to it \
                 (indexers, uploads) and apply again"
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
    fn pages_begin_behind_the_last_key_and_quotes_in_it_stay_text() {
        let key = json!([{"name": "id", "type": "Edm.String", "key": true}]);
        let by_key = paging(key.clone(), key, 1_000_000).unwrap();
        assert_eq!(by_key.request(Some("a'b"), 7, 10)["filter"], "id gt 'a''b'");
        assert_eq!(by_key.request(None, 0, 10).get("filter"), None);
    }

    #[test]
    fn values_are_fitted_to_types_that_hold_them() {
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
