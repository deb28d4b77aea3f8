//! Found documents as JSON: stored bytes are copied, not parsed, wherever nothing is to be taken out of them.

use std::io::Write as _;

use serde_json::{Map, Value, json};

use super::request::{SearchRequest, Syntax};
use super::run::{Found, FoundDocument};
use crate::ApiError;
use crate::documents::Selection;
use crate::engine::highlight::{self, HighlightField, Tags};
use crate::engine::snapshot::Snapshot;
use crate::engine::text::{Highlight, HighlightTerm};

/// An answer's body, and whether it is all that was asked for (200) or a part of it (206).
pub struct Answer {
    pub body: Vec<u8>,
    pub partial: bool,
}

/// `next_link`: the address that the next page is asked at.
pub fn write(
    request: &SearchRequest,
    found: &Found,
    snapshot: &Snapshot,
    context: Option<&str>,
    next_link: &dyn Fn(&Map<String, Value>) -> String,
) -> Result<Answer, ApiError> {
    let schema = &snapshot.plan.definition.schema;
    let selection = match request.select.as_deref().map(str::trim).filter(|select| !select.is_empty()) {
        Some(select) => Selection::parse(select, schema)?,
        None => Selection::all(schema),
    };
    let marker = Marker::new(request, found, snapshot)?;
    let mut head = Map::new();
    if let Some(context) = context {
        head.insert("@odata.context".to_owned(), context.into());
    }
    if let Some(count) = found.count {
        head.insert("@odata.count".to_owned(), count.into());
    }
    if request.minimum_coverage {
        head.insert("@search.coverage".to_owned(), json!(100.0));
    }
    if let Some(facets) = &found.facets {
        head.insert("@search.facets".to_owned(), Value::Object(facets.clone()));
    }
    let partial = request.syntax == Syntax::Semantic;
    if partial {
        // The ranker would come after keywords and vectors; what these found is the whole answer here.
        head.insert("@search.semanticPartialResponseReason".to_owned(), "capacityOverloaded".into());
        head.insert("@search.semanticPartialResponseType".to_owned(), "baseResults".into());
    }
    let next = if found.more { request.next_page() } else { None };
    if let Some(next) = &next {
        head.insert("@search.nextPageParameters".to_owned(), next.clone());
    }
    let mut body =
        serde_json::to_vec(&head).map_err(|error| ApiError::internal("writing an answer", error))?;
    // The object is open again for the documents.
    body.pop();
    if !head.is_empty() {
        body.push(b',');
    }
    body.extend_from_slice(br#""value":["#);
    let mut first = true;
    for document in &found.documents {
        let start = body.len();
        if !first {
            body.push(b',');
        }
        match write_document(document, &selection, &marker, snapshot, &mut body)? {
            true => first = false,
            false => body.truncate(start),
        }
    }
    body.push(b']');
    if let Some(next) = next.as_ref().and_then(Value::as_object) {
        body.extend_from_slice(br#","@odata.nextLink":"#);
        body.extend_from_slice(Value::from(next_link(next)).to_string().as_bytes());
    }
    body.push(b'}');
    Ok(Answer { body, partial })
}

fn write_document(
    document: &FoundDocument,
    selection: &Selection,
    marker: &Marker<'_>,
    snapshot: &Snapshot,
    body: &mut Vec<u8>,
) -> Result<bool, ApiError> {
    let written = snapshot.documents.read(document.number, |json| {
        // Writing to memory does not fail.
        let _ = write!(body, "{{\"@search.score\":{}", Score(document.score));
        marker.write(json, body);
        let start = body.len();
        body.push(b',');
        selection.write(json, body);
        if body.len() == start + 1 {
            body.pop();
        }
        body.push(b'}');
    })?;
    Ok(written.is_some())
}

/// A score as JSON: always with a fraction, as doubles are written.
struct Score(f32);

impl std::fmt::Display for Score {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let finite = if self.0.is_finite() { self.0 } else { f32::MAX };
        write!(formatter, "{finite:?}")
    }
}

/// Writes `@search.highlights`.
struct Marker<'a> {
    fields: Vec<(HighlightField, Vec<&'a HighlightTerm>, tantivy::tokenizer::TextAnalyzer)>,
    tags: Tags,
}

impl<'a> Marker<'a> {
    fn new(request: &SearchRequest, found: &'a Found, snapshot: &Snapshot) -> Result<Self, ApiError> {
        let plan = &snapshot.plan;
        let schema = &plan.definition.schema;
        let (before, after) = &request.highlight_tags;
        let tags = Tags::parse(before.as_deref(), after.as_deref())?.unwrap_or_default();
        let mut fields = Vec::new();
        for field in highlight::parse_fields(request.highlight.as_deref().unwrap_or_default(), schema)? {
            let terms: Vec<_> = found.highlight.iter().filter(|term| term.path == field.path).collect();
            let analyzer = schema.find(&field.path).and_then(|field| field.index_analyzer.as_deref());
            if let (false, Some(analyzer)) =
                (terms.is_empty(), analyzer.and_then(|name| plan.analyzers.get(name)))
            {
                fields.push((field, terms, analyzer));
            }
        }
        Ok(Self { fields, tags })
    }

    fn write(&self, json: &[u8], body: &mut Vec<u8>) {
        if self.fields.is_empty() {
            return;
        }
        let document: Value = serde_json::from_slice(json).unwrap_or_default();
        let mut marked = Map::new();
        for (field, terms, analyzer) in &self.fields {
            let texts = highlight::texts(&document, &field.path);
            let single = |token: &str| {
                terms.iter().any(|term| !matches!(term.kind, Highlight::Phrase { .. }) && term.matches(token))
            };
            let phrases: Vec<highlight::Phrase> = terms
                .iter()
                .filter_map(|term| match &term.kind {
                    Highlight::Phrase { words, .. } => Some(words.clone()),
                    _ => None,
                })
                .collect();
            let found = highlight::Found { word: &single, phrases: &phrases };
            let fragments =
                highlight::fragments(&texts, &mut analyzer.clone(), found, field.fragments, &self.tags);
            if !fragments.is_empty() {
                marked.insert(field.path.clone(), fragments.into());
            }
        }
        if !marked.is_empty() {
            body.extend_from_slice(br#","@search.highlights":"#);
            body.extend_from_slice(Value::Object(marked).to_string().as_bytes());
        }
    }
}
