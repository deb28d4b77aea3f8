//! Parses the batches of document actions in `docs/search.index`.

use std::borrow::Cow;

use bindpost_azure_search_model::ApiError;
use bindpost_net_json::cut::{decode_name, members};
use bindpost_net_json::text::decode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Document;
use super::merge::DocumentPatch;
use super::shape::DocumentShape;
use super::value::shorten;
use super::walk::DocumentCanonicalizer;

const ACTIONS: usize = 1000;
const KEY_LENGTH: usize = 1024;

/// One action of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchEntry {
    /// The document key. Empty if the document has none.
    pub key: String,
    /// The action. `Err` is the reason why this document is rejected (status 400). The other documents
    /// of the batch are not affected.
    pub action: Result<DocumentAction, String>,
    /// Whether `action` is an error about the key. Client requests reject the whole batch. Indexers
    /// skip the document.
    pub bad_key: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DocumentAction {
    Upload(Document),
    /// Fails with 404 if the document does not exist.
    Merge(DocumentPatch),
    MergeOrUpload(DocumentPatch),
    Delete,
}

/// Parses a batch. An error affects the whole batch: it is not valid JSON, or it uses names or types
/// that are not in the schema.
///
/// A key may occur several times. The actions are applied in order.
pub fn parse_batch(body: &[u8], shape: &DocumentShape) -> Result<Vec<BatchEntry>, ApiError> {
    let text = std::str::from_utf8(body)
        .map_err(|error| ApiError::invalid(format!("The body is not UTF-8: {error}.")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let refused = |reason: String| {
        ApiError::invalid(format!(
            "The body is not a batch of documents: {reason}. The expected form is {{\"value\":[{{\"@search.action\":\"upload\", …}}]}}."
        ))
    };
    // serde would accept an array as the members in order.
    if !text.trim_start().starts_with('{') {
        return Err(refused("it is not a JSON object".to_owned()));
    }
    let envelope: BatchBody = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    let documents = envelope.value;
    if documents.is_empty() || documents.len() > ACTIONS {
        return Err(ApiError::invalid(format!(
            "The request is invalid. Details: actions : There are {} actions in the batch. Send 1 to {ACTIONS} actions.",
            documents.len()
        )));
    }
    let mut items = Vec::with_capacity(documents.len());
    let mut walk = DocumentCanonicalizer::new();
    for (number, document) in documents.into_iter().enumerate() {
        let item = parse_entry(document.get(), shape, &mut walk).map_err(|reason| {
            let key = key_of(document.get(), shape).map(|key| format!("Document '{}': ", shorten(&key)));
            let key = key.unwrap_or_default();
            ApiError::invalid(format!("The request is invalid. Details: actions : {number}: {key}{reason}"))
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

/// Rejects a batch in which a document has no key or an invalid key.
pub(crate) fn check_keys(items: &[BatchEntry]) -> Result<(), ApiError> {
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
        // A delete needs only the key. Problems with other fields are ignored.
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

/// Returns the key of a document that cannot be parsed, for its error.
fn key_of<'a>(text: &'a str, shape: &DocumentShape) -> Option<Cow<'a, str>> {
    let name = shape.root.members.iter().find(|member| member.key)?.name();
    let (_, raw) = members(text)?.find(|(raw, _)| decode_name(raw).as_deref() == Some(name))?;
    decode(raw)
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
        "Invalid document key: '{}'. Keys must have 1 to {KEY_LENGTH} letters, digits, underscores, dashes and equal signs, and must not start with an underscore. Encode other values as URL-safe Base64.",
        shorten(key)
    ))
}
