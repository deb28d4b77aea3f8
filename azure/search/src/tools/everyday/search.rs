//! `searchDocuments`: the complete query language, with pages of limited size.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::{Entry, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::known::IndexCache;
use crate::service::client::{ServiceResponse, odata_key};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolArguments, ToolOutline, page};

const TOOL: &str = "searchDocuments";
/// Default and maximum number of hits in one result.
const PAGE: u64 = 20;
const LARGEST_PAGE: u64 = 1_000;
/// Maximum `skip` of the service.
const LARGEST_SKIP: u64 = 100_000;
/// Without a definition, an array of at least this many numbers is treated as a vector.
const VECTOR_LENGTH: usize = 16;

/// Arguments that are not members of the request, or are converted separately.
const OWN: &[&str] = &["indexName", "cursor", "limit", "top", "clientRequestId"];
/// Lists of names that the service accepts as one string.
const JOINED: &[&str] = &["searchFields", "select", "orderby", "highlight"];

pub(super) fn entries(shared: &Arc<SearchServerState>, known: &Arc<IndexCache>) -> Vec<Entry> {
    let description = "Search the documents of an index (or alias) by words, filter, facets, vectors or all together. \
        Returns `items` (fields plus `@search.*`), `count`, `@search.facets`; next page by `cursor`. Start with a small `limit` \
        and `select`; see getIndex for fields, buildFilter for filters.";
    let names = |description: &str| json!({"type": ["string", "array"], "description": description});
    let properties = json!({
        "indexName": {"type": "string"},
        "search": {"type": "string", "description": "words; * or absent: all"},
        "queryType": {"enum": ["simple", "full", "semantic"], "description": "full: Lucene syntax (field:word, word~, \"a b\"~3, /regex/, ^boost)"},
        "searchMode": {"enum": ["any", "all"]},
        "searchFields": names("fields to search"),
        "filter": {"type": "string", "description": "OData: rating ge 4 and tags/any(t: t eq 'x')"},
        "orderby": names("such as rating desc; search.score(); geo.distance(…)"),
        "select": names("fields to return; vectors only if named here"),
        "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE, "description": "hits in one result"},
        "top": {"type": "integer", "minimum": 0, "maximum": LARGEST_PAGE, "description": "same as limit; 0 for count and facets only"},
        "skip": {"type": "integer", "minimum": 0, "maximum": LARGEST_SKIP},
        "cursor": {"type": "string", "description": "nextCursor of the previous result; needs indexName only"},
        "count": {"type": "boolean"},
        "facets": {"type": "array", "items": {"type": "string"}, "description": "such as category,count:10 or price,interval:50"},
        "highlight": names("fields"),
        "highlightPreTag": {"type": "string"},
        "highlightPostTag": {"type": "string"},
        "scoringProfile": {"type": "string"},
        "scoringParameters": {"type": "array", "items": {"type": "string"}, "description": "name-value1,value2"},
        "scoringStatistics": {"enum": ["local", "global"]},
        "minimumCoverage": {"type": "number"},
        "sessionId": {"type": "string"},
        "vectorQueries": {"type": "array", "items": {"type": "object"}, "description": "[{kind: vector, vector: […], fields, k}] or {kind: text, text, …}; search-schema://VectorQuery"},
        "vectorFilterMode": {"type": "string"},
        "hybridSearch": {"type": "object"},
        "semanticConfiguration": {"type": "string"},
        "semanticQuery": {"type": "string"},
        "semanticErrorHandling": {"type": "string"},
        "semanticMaxWaitInMilliseconds": {"type": "integer"},
        "semanticFields": {"type": "string"},
        "answers": {"type": "string"},
        "captions": {"type": "string"},
        "queryRewrites": {"type": "string"},
        "queryLanguage": {"type": "string"},
        "speller": {"type": "string"},
        "debug": {"type": "string"},
        "clientRequestId": {"type": "string"},
    });
    let known = known.clone();
    let entry = ToolOutline::new(TOOL, description, READS, properties, &["indexName"])
        .output(json!({"type": "object", "required": ["items", "hasMore"]}))
        .entry(shared, move |shared, arguments| {
            let known = known.clone();
            async move { search(&shared, &known, arguments).await }
        });
    vec![entry]
}

/// The position of the next page.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SearchCursor {
    /// The complete next request.
    Request { index: String, body: Value },
    /// The position only, if the request is too long for a cursor. The caller repeats the request.
    Place { skip: u64, digest: u64 },
}

async fn search(
    shared: &SearchServerState,
    known: &IndexCache,
    arguments: ToolArguments,
) -> Result<Value, ToolError> {
    let index = arguments.name("indexName")?.to_owned();
    let mut body = request_of(&arguments);
    let digest = digest_of(&index, &body);
    let mut skip = body.get("skip").and_then(Value::as_u64).unwrap_or_default();
    if let (Some(limit), Some(top)) = (arguments.whole_number("limit"), arguments.whole_number("top"))
        && limit != top
    {
        let message =
            format!("`limit` is {limit} and `top` is {top}, but both mean the same; set only one of them");
        return Err(ServiceFailure::new(Kind::InvalidRequest, message).into());
    }
    let mut limit = arguments.whole_number("limit").or_else(|| arguments.whole_number("top"));
    if let Some(cursor) = arguments.text("cursor") {
        match shared.cursors.verify(TOOL, arguments.caller(), cursor).map_err(ServiceFailure::from)? {
            SearchCursor::Request { index: of, body: Value::Object(next) }
                if of == index && repeats(&body, &next) =>
            {
                skip = next.get("skip").and_then(Value::as_u64).unwrap_or_default();
                limit = limit.or_else(|| next.get("top")?.as_u64());
                body = next;
            }
            SearchCursor::Place { skip: at, digest: of } if of == digest => skip = at,
            _ => {
                let message = "`cursor` belongs to another search; repeat the arguments of that search, or remove `cursor`";
                return Err(ServiceFailure::new(Kind::InvalidRequest, message).into());
            }
        }
    }
    let limit = limit.unwrap_or(PAGE).min(LARGEST_PAGE);
    body.insert("skip".to_owned(), skip.into());
    // One more hit than requested shows whether there are more.
    body.insert("top".to_owned(), if limit == 0 { 0 } else { (limit + 1).min(LARGEST_PAGE) }.into());

    let path = format!("indexes{}/docs/search.post.search", odata_key(&index));
    let call = shared.client.post(path, Value::Object(body.clone())).repeatable();
    let mut answer = call.request_id(arguments.request_id()).send().await?;
    let selected = body.get("select").and_then(Value::as_str).unwrap_or_default();
    let hits = answer.body.get_mut("value").map(Value::take);
    let Some(Value::Array(mut hits)) = hits else {
        return Err(
            ServiceFailure::new(Kind::ServerError, "the service returned no list of documents").into()
        );
    };
    let omitted = leave_vectors_out(shared, known, &index, selected, &mut hits).await;
    let found = hits.len();
    let rest = head_of(answer, &omitted);
    let budget = shared.answer_bytes.saturating_sub(rest.to_string().len() + 512);
    let fit = count_fitting(&hits, budget).min(limit as usize);
    hits.truncate(fit);

    let service_next = rest.get("@search.nextPageParameters").cloned();
    // At the maximum page size, a full page may be followed by another.
    let mut more = found > fit || found as u64 == LARGEST_PAGE;
    let mut next = body;
    if !more && let Some(Value::Object(parameters)) = service_next.clone() {
        // The service stopped early and returned the next request.
        next.extend(parameters);
        more = true;
    } else {
        next.insert("skip".to_owned(), (skip + fit as u64).into());
    }
    let mut told = page(hits, None);
    if let (Value::Object(told), Value::Object(rest)) = (&mut told, rest) {
        told.extend(rest.into_iter().filter(|(name, _)| name != "@search.nextPageParameters"));
    }
    if more && limit > 0 {
        next.insert("top".to_owned(), limit.into());
        // Facets are the same on every page.
        next.remove("facets");
        add_next_cursor(shared, &arguments, &index, next, digest, &mut told);
    }
    Ok(told)
}

/// Builds the request of the service from the arguments.
fn request_of(arguments: &ToolArguments) -> Map<String, Value> {
    let mut body = Map::new();
    for (name, value) in arguments.iter().filter(|(name, _)| !OWN.contains(name)) {
        let value = match arguments.joined_names(name).filter(|_| JOINED.contains(&name)) {
            Some(names) => names.into(),
            None => value.clone(),
        };
        body.insert(name.to_owned(), value);
    }
    if let Some(skip) = arguments.whole_number("skip") {
        body.insert("skip".to_owned(), skip.into());
    }
    body
}

/// Returns whether the arguments beside a cursor match the request of the cursor.
fn repeats(given: &Map<String, Value>, before: &Map<String, Value>) -> bool {
    let mut members = given.iter().filter(|(name, _)| !["skip", "facets"].contains(&name.as_str()));
    members.all(|(name, value)| before.get(name) == Some(value))
}

/// Returns a hash of the request that a position belongs to.
fn digest_of(index: &str, body: &Map<String, Value>) -> u64 {
    let mut digest = DefaultHasher::new();
    json!([index, body]).to_string().hash(&mut digest);
    digest.finish()
}

/// Adds the cursor of the next page.
fn add_next_cursor(
    shared: &SearchServerState,
    arguments: &ToolArguments,
    index: &str,
    next: Map<String, Value>,
    digest: u64,
    told: &mut Value,
) {
    told["hasMore"] = true.into();
    let skip = next.get("skip").and_then(Value::as_u64).unwrap_or_default();
    if skip > LARGEST_SKIP {
        told["note"] =
            "The service skips no more than 100,000 hits. Narrow the search, or continue with a filter on a \
                        sortable field: orderby it, and filter from the last value on."
                .into();
        return;
    }
    let caller = arguments.caller();
    let request = SearchCursor::Request { index: index.to_owned(), body: Value::Object(next) };
    if let Some(cursor) = shared.cursors.sign(TOOL, caller, &request) {
        told["nextCursor"] = cursor.into();
    } else if let Some(cursor) = shared.cursors.sign(TOOL, caller, &SearchCursor::Place { skip, digest }) {
        told["nextCursor"] = cursor.into();
        told["note"] =
            "The request is too long for a cursor: repeat all its arguments together with the cursor.".into();
    }
}

/// Returns everything but the hits: `@search.*` as in the response, the count, and which parts failed.
fn head_of(answer: ServiceResponse, omitted: &[String]) -> Value {
    let Value::Object(mut head) = answer.body else { return json!({}) };
    head.remove("value");
    if let Some(count) = head.remove("@odata.count") {
        head.insert("count".to_owned(), count);
    }
    let mut take = |name: &str| head.remove(name).filter(|value| !value.is_null());
    let reason = take("@search.semanticPartialResponseReason");
    let part = take("@search.semanticPartialResponseType");
    if answer.status == 206 || reason.is_some() {
        let mut partial = Map::new();
        partial.insert("reason".to_owned(), reason.unwrap_or_else(|| "unknown".into()));
        partial.extend(part.map(|part| ("results".to_owned(), part)));
        let note = "The result is partial: it was found without the part that failed.";
        partial.insert("note".to_owned(), note.into());
        head.insert("partial".to_owned(), Value::Object(partial));
    }
    if !omitted.is_empty() {
        head.insert("omittedVectorFields".to_owned(), omitted.into());
    }
    Value::Object(head)
}

/// Removes vectors that were not selected from documents, and returns their names.
pub(super) async fn leave_vectors_out(
    shared: &SearchServerState,
    known: &IndexCache,
    index: &str,
    selected: &str,
    documents: &mut [Value],
) -> Vec<String> {
    let is_numbers = |value: &Value| {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        !items.is_empty() && items.iter().all(Value::is_number)
    };
    let selected: Vec<&str> = selected.split(',').map(str::trim).collect();
    let members = documents.iter().filter_map(Value::as_object).flatten();
    let candidates: BTreeSet<String> = members
        .filter(|(name, value)| is_numbers(value) && !selected.contains(&name.as_str()))
        .map(|(name, _)| name.clone())
        .collect();
    // Most documents contain no array of numbers, so the definition is not needed.
    if candidates.is_empty() {
        return Vec::new();
    }
    let facts = known.index(shared, index).await;
    let is_long = |value: &Value| value.as_array().is_some_and(|items| items.len() >= VECTOR_LENGTH);
    let mut omitted = BTreeSet::new();
    for members in documents.iter_mut().filter_map(Value::as_object_mut) {
        for name in &candidates {
            let is_vector = match &facts {
                Some(facts) => facts.vectors.contains(name),
                None => members.get(name).is_some_and(is_long),
            };
            if is_vector && members.remove(name).is_some() {
                omitted.insert(name.clone());
            }
        }
    }
    omitted.into_iter().collect()
}
