//! Writes the matching documents as JSON. Stored bytes are copied without parsing unless fields must
//! be removed.

use std::collections::HashSet;
use std::io::Write as _;

use bindpost_azure_search_model::ApiError;
use serde_json::{Map, Value, json};
use tantivy::tokenizer::TextAnalyzer;

use super::request::{QuerySyntax, SearchRequest};
use super::run::{FoundDocument, SearchResults};
use crate::budget::{Budget, JsonBuffer, parsed_bytes};
use crate::documents::FieldSelection;
use crate::engine::highlight::{self, HighlightField, HighlightTags};
use crate::engine::snapshot::IndexSnapshot;
use crate::engine::text::{HighlightKind, HighlightTerm};

/// The body of a search response. `partial` selects status 206 instead of 200.
pub struct SearchAnswer {
    pub body: JsonBuffer,
    pub partial: bool,
}

/// Writes the response of a search. `next_link` returns the URL of the next page.
pub fn write(
    request: &SearchRequest,
    found: &SearchResults,
    snapshot: &IndexSnapshot,
    context: Option<&str>,
    next_link: &dyn Fn(&Map<String, Value>) -> String,
    budget: &Budget,
) -> Result<SearchAnswer, ApiError> {
    let schema = &snapshot.plan.definition.schema;
    let selection = match request.select.as_deref().map(str::trim).filter(|select| !select.is_empty()) {
        Some(select) => FieldSelection::parse(select, schema)?,
        None => FieldSelection::all(schema),
    };
    let marker = HighlightWriter::new(request, found, snapshot, budget)?;
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
    let partial = request.syntax == QuerySyntax::Semantic;
    if partial {
        // There is no semantic ranker. The response has the results of keywords and vectors, and no answers.
        head.insert("@search.answers".to_owned(), json!([]));
        head.insert("@search.semanticPartialResponseReason".to_owned(), "capacityOverloaded".into());
        head.insert("@search.semanticPartialResponseType".to_owned(), "baseResults".into());
    }
    let next = if found.more { request.next_page() } else { None };
    if let Some(next) = &next {
        head.insert("@search.nextPageParameters".to_owned(), next.clone());
    }
    let mut text = JsonBuffer::new(budget);
    serde_json::to_writer(&mut text.bytes, &head)
        .map_err(|error| ApiError::internal("writing a response", error))?;
    // The closing brace is removed, because more members follow.
    text.bytes.pop();
    if !head.is_empty() {
        text.bytes.push(b',');
    }
    if let Some(facets) = &found.facets {
        text.bytes.extend_from_slice(br#""@search.facets":"#);
        facets.write(&mut text);
        text.bytes.push(b',');
    }
    text.bytes.extend_from_slice(br#""value":["#);
    let mut first = true;
    for document in &found.documents {
        budget.check();
        let start = text.bytes.len();
        if !first {
            text.bytes.push(b',');
        }
        match write_document(document, &selection, &marker, snapshot, &mut text.bytes)? {
            true => first = false,
            false => text.bytes.truncate(start),
        }
        text.account_growth();
    }
    text.bytes.push(b']');
    if let Some(next) = next.as_ref().and_then(Value::as_object) {
        text.bytes.extend_from_slice(br#","@odata.nextLink":"#);
        text.bytes.extend_from_slice(Value::from(next_link(next)).to_string().as_bytes());
    }
    text.bytes.push(b'}');
    text.account_growth();
    Ok(SearchAnswer { body: text, partial })
}

fn write_document(
    document: &FoundDocument,
    selection: &FieldSelection,
    marker: &HighlightWriter<'_>,
    snapshot: &IndexSnapshot,
    body: &mut Vec<u8>,
) -> Result<bool, ApiError> {
    let written = snapshot.documents.read(document.number, |json| {
        // Writing to memory does not fail.
        let _ = write!(body, "{{\"@search.score\":{}", JsonScore(document.score));
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

/// A score as JSON, always with a fraction, like doubles.
struct JsonScore(f32);

impl std::fmt::Display for JsonScore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let finite = if self.0.is_finite() { self.0 } else { f32::MAX };
        write!(formatter, "{finite:?}")
    }
}

/// Writes `@search.highlights`.
struct HighlightWriter<'a> {
    fields: Vec<HighlightedField<'a>>,
    tags: HighlightTags,
    budget: &'a Budget,
}

/// A field with its matching terms.
struct HighlightedField<'a> {
    field: HighlightField,
    words: HashSet<&'a str>,
    patterns: Vec<&'a HighlightTerm>,
    phrases: Vec<highlight::Phrase>,
    analyzer: TextAnalyzer,
}

impl<'a> HighlightWriter<'a> {
    fn new(
        request: &SearchRequest,
        found: &'a SearchResults,
        snapshot: &IndexSnapshot,
        budget: &'a Budget,
    ) -> Result<Self, ApiError> {
        let plan = &snapshot.plan;
        let schema = &plan.definition.schema;
        let (before, after) = &request.highlight_tags;
        let tags = HighlightTags::parse(before.as_deref(), after.as_deref())?.unwrap_or_default();
        let mut fields = Vec::new();
        for field in highlight::parse_fields(request.highlight.as_deref().unwrap_or_default(), schema)? {
            let analyzer = schema.find(&field.path).and_then(|field| field.index_analyzer.as_deref());
            let Some(analyzer) = analyzer.and_then(|name| plan.analyzers.get(name)) else { continue };
            let (mut words, mut patterns, mut phrases) = (HashSet::new(), Vec::new(), Vec::new());
            for term in found.highlight.iter().filter(|term| term.path == field.path) {
                match &term.kind {
                    HighlightKind::Term(word) => _ = words.insert(word.as_str()),
                    HighlightKind::Phrase { words, .. } => phrases.push(words.clone()),
                    HighlightKind::Pattern(_) => patterns.push(term),
                }
            }
            if !(words.is_empty() && patterns.is_empty() && phrases.is_empty()) {
                fields.push(HighlightedField { field, words, patterns, phrases, analyzer });
            }
        }
        Ok(Self { fields, tags, budget })
    }

    fn write(&self, json: &[u8], body: &mut Vec<u8>) {
        if self.fields.is_empty() {
            return;
        }
        let _memory = self.budget.reserve_memory(parsed_bytes(json));
        let document: Value = serde_json::from_slice(json).unwrap_or_default();
        let mut marked = Map::new();
        for field in &self.fields {
            let texts = highlight::texts(&document, &field.field.path);
            let word = |token: &str| {
                self.budget.check();
                field.words.contains(token) || field.patterns.iter().any(|pattern| pattern.matches(token))
            };
            let found = highlight::HighlightMatcher { word: &word, phrases: &field.phrases };
            let (analyzer, most) = (&mut field.analyzer.clone(), field.field.fragments);
            let fragments = highlight::fragments(&texts, analyzer, found, most, &self.tags, self.budget);
            if !fragments.is_empty() {
                marked.insert(field.field.path.clone(), fragments.into());
            }
        }
        if !marked.is_empty() {
            body.extend_from_slice(br#","@search.highlights":"#);
            body.extend_from_slice(Value::Object(marked).to_string().as_bytes());
        }
    }
}
