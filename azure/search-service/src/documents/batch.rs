//! A batch of actions on documents, as `docs/search.index` takes it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Document;
use super::merge::DocumentPatch;
use super::scan::decode;
use super::shape::DocumentShape;
use super::value::shorten;
use super::walk::DocumentCanonicalizer;
use crate::ApiError;

const ACTIONS: usize = 1000;
const KEY_LENGTH: usize = 1024;

/// What is to be done with one document.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchEntry {
    /// Empty when the document has none.
    pub key: String,
    /// `Err` says why this document is refused (status 400); the others of the batch are not concerned.
    pub action: Result<DocumentAction, String>,
    /// The reason is its key. Clients get no part of such a batch done; indexers leave the document out.
    pub bad_key: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DocumentAction {
    Upload(Document),
    /// Fails with 404 when there is no such document.
    Merge(DocumentPatch),
    MergeOrUpload(DocumentPatch),
    Delete,
}

/// Reads a batch. An error concerns all of it: it is no JSON, or has names and types that the schema does not have.
///
/// The same key may come several times; the actions are applied in order.
pub fn parse_batch(body: &[u8], shape: &DocumentShape) -> Result<Vec<BatchEntry>, ApiError> {
    let text = std::str::from_utf8(body)
        .map_err(|error| ApiError::invalid(format!("The body is not UTF-8: {error}.")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let refused = |reason: String| {
        ApiError::invalid(format!(
            "The body is not a batch of documents: {reason}. It looks like {{\"value\":[{{\"@search.action\":\"upload\", …}}]}}."
        ))
    };
    // serde would take a list for the members in their order.
    if !text.trim_start().starts_with('{') {
        return Err(refused("it is no JSON object".to_owned()));
    }
    let envelope: BatchBody = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    let documents = envelope.value;
    if documents.is_empty() || documents.len() > ACTIONS {
        return Err(ApiError::invalid(format!(
            "The request is invalid. Details: actions : There are {} actions in the batch; send 1 to {ACTIONS}.",
            documents.len()
        )));
    }
    let mut items = Vec::with_capacity(documents.len());
    let mut walk = DocumentCanonicalizer::new();
    for (number, document) in documents.into_iter().enumerate() {
        let item = parse_entry(document.get(), shape, &mut walk).map_err(|reason| {
            ApiError::invalid(format!("The request is invalid. Details: actions : {number}: {reason}"))
        })?;
        items.push(item);
    }
    Ok(items)
}

#[derive(Deserialize)]
struct BatchBody<'a> {
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
}

/// Refuses a batch in which a document has no key, or none that can be one.
pub fn check_keys(items: &[BatchEntry]) -> Result<(), ApiError> {
    let wrong = items.iter().enumerate().find(|(_, item)| item.bad_key);
    let Some((number, BatchEntry { action: Err(reason), key, .. })) = wrong else { return Ok(()) };
    let message = format!("The request is invalid. Details: actions : {number}: {reason}");
    let code = if key.is_empty() { "InvalidRequestParameter" } else { "InvalidName" };
    Err(ApiError::new(http::StatusCode::BAD_REQUEST, code, message))
}

fn parse_entry<'a>(
    text: &'a str,
    shape: &DocumentShape,
    walk: &mut DocumentCanonicalizer<'a>,
) -> Result<BatchEntry, String> {
    let name = match walk.open(text, &shape.root)? {
        None => "upload".into(),
        Some(raw) => decode(raw).unwrap_or_default(),
    };
    let whole = match name.as_ref() {
        "upload" => true,
        "merge" | "mergeOrUpload" | "delete" => false,
        other => {
            return Err(format!(
                "'@search.action' is '{}', but it must be upload, merge, mergeOrUpload or delete.",
                shorten(other)
            ));
        }
    };
    let mut json = Vec::with_capacity(text.len() + 64);
    let written = walk.write(&shape.root, whole, &mut json);
    let key = walk.key.take();
    let problem = walk.problem.take();
    let values = std::mem::take(&mut walk.values);
    written?;
    let Some(key) = key else {
        let name = shape.root.members.iter().find(|member| member.key).map_or("", |member| member.name());
        return Ok(BatchEntry {
            key: String::new(),
            action: Err(format!(
                "Document key cannot be missing or empty. Give it a string in the field '{name}'."
            )),
            bad_key: true,
        });
    };
    if let Err(reason) = check_key(&key) {
        return Ok(BatchEntry { key, action: Err(reason), bad_key: true });
    }
    let action = match (name.as_ref(), problem) {
        // What else the document holds does not matter any more.
        ("delete", _) => Ok(DocumentAction::Delete),
        (_, Some(problem)) => Err(problem),
        ("merge", None) => Ok(DocumentAction::Merge(DocumentPatch { key: key.clone(), json })),
        ("mergeOrUpload", None) => {
            Ok(DocumentAction::MergeOrUpload(DocumentPatch { key: key.clone(), json }))
        }
        (_, None) => Ok(DocumentAction::Upload(Document { key: key.clone(), json, values })),
    };
    Ok(BatchEntry { key, action, bad_key: false })
}

fn check_key(key: &str) -> Result<(), String> {
    let fits = !key.is_empty()
        && key.len() <= KEY_LENGTH
        && !key.starts_with('_')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'='));
    if fits {
        return Ok(());
    }
    Err(format!(
        "Invalid document key: '{}'. Keys have 1 to {KEY_LENGTH} letters, digits, underscores, dashes and equal signs, and do not start with an underscore. Other values can be encoded as URL-safe Base64.",
        shorten(key)
    ))
}
