//! What a response contains of a document: the texts that ground an answer, and its source data.

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexSchema, PrimitiveType, SemanticConfiguration};
use serde_json::{Map, Value};

use super::request::RetrievalSource;
use crate::documents::FieldSelection;
use crate::engine::highlight;
use crate::engine::snapshot::IndexSnapshot;

/// How the documents of one source are read.
pub(super) struct DocumentGrounding<'a> {
    key: &'a str,
    /// The semantic configuration, with retrievable fields only. In an index without one, the content is all texts.
    configuration: SemanticConfiguration,
    /// The fields of the source data. `None` returns none.
    source_data: Option<FieldSelection>,
}

/// A document of a response.
#[derive(Default)]
pub(super) struct GroundedDocument {
    pub key: Value,
    /// The title, terms and content.
    pub passage: Map<String, Value>,
    /// Null if the request does not want it.
    pub source_data: Value,
}

impl<'a> DocumentGrounding<'a> {
    pub(super) fn new(source: &RetrievalSource, snapshot: &'a IndexSnapshot) -> Result<Self, ApiError> {
        let definition = &snapshot.plan.definition;
        let schema = &definition.schema;
        let name = source.semantic_configuration.as_deref();
        let configuration = definition.semantic.find(name);
        if let (Some(name), None) = (name, configuration) {
            return Err(ApiError::invalid(format!(
                "The knowledge source '{}' names the semantic configuration '{name}', which the index '{}' does not have.",
                source.name, source.index
            )));
        }
        let shown = |path: &String| schema.find(path).is_some_and(|field| field.retrievable);
        let mut configuration = configuration.cloned().unwrap_or_else(|| all_texts(schema));
        configuration.title = configuration.title.filter(shown);
        configuration.content.retain(shown);
        configuration.keywords.retain(shown);
        let source_data = match (&source.source_data, source.with_source_data) {
            (_, false) => None,
            (Some(names), true) => Some(FieldSelection::parse(names, schema)?),
            (None, true) => Some(FieldSelection::all(schema)),
        };
        Ok(Self { key: &schema.key().name, configuration, source_data })
    }

    /// Reads a stored document.
    pub(super) fn read(&self, json: &[u8]) -> GroundedDocument {
        // Stored documents are valid JSON.
        let document: Value = serde_json::from_slice(json).unwrap_or_default();
        let mut passage = Map::new();
        let SemanticConfiguration { title, content, keywords, .. } = &self.configuration;
        if title.is_some() {
            passage.insert("title".to_owned(), joined(&document, title, " "));
        }
        if !keywords.is_empty() {
            passage.insert("terms".to_owned(), joined(&document, keywords, ", "));
        }
        passage.insert("content".to_owned(), joined(&document, content, "\n"));
        GroundedDocument {
            key: document.get(self.key).cloned().unwrap_or_default(),
            passage,
            source_data: self.source_data.as_ref().map(|fields| selected(fields, json)).unwrap_or_default(),
        }
    }
}

/// Returns a configuration whose content is every text of a document.
fn all_texts(schema: &IndexSchema) -> SemanticConfiguration {
    let leaves = schema.leaves().into_iter();
    let texts = leaves.filter(|field| field.kind.primitive() == Some(PrimitiveType::String));
    SemanticConfiguration {
        name: String::new(),
        title: None,
        content: texts.map(|field| field.path.clone()).collect(),
        keywords: Vec::new(),
    }
}

/// Returns the texts of these fields in one string.
fn joined<'p>(document: &Value, paths: impl IntoIterator<Item = &'p String>, separator: &str) -> Value {
    let texts = paths.into_iter().flat_map(|path| highlight::texts(document, path));
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    texts.join(separator).into()
}

/// Returns the selected members of a document.
fn selected(selection: &FieldSelection, json: &[u8]) -> Value {
    let mut members = b"{".to_vec();
    selection.write(json, &mut members);
    members.push(b'}');
    serde_json::from_slice(&members).unwrap_or_default()
}
