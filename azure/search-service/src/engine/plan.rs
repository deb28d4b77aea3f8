//! The parts of an index that are built once from its definition and read by every request.

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexDefinition, IndexField};
use serde_json::Value;
use sha2::Digest as _;
use tantivy::TantivyDocument;
use tantivy::tokenizer::TokenizerManager;

use super::columns::{FieldColumns, IndexColumns};
use crate::analysis::{AnalyzerRegistry, Normalizer, PAIRS_ANALYZER, SUGGEST_ANALYZER};
use crate::documents::{Document, DocumentShape, FieldValue};
use crate::vectors::VectorSearch;

/// The parts of an index that are built once from its definition and read by every request.
pub struct IndexPlan {
    pub definition: IndexDefinition,
    pub analyzers: AnalyzerRegistry,
    pub columns: IndexColumns,
    pub shape: DocumentShape,
    pub vector_search: VectorSearch,
    /// The leaves of the schema, in the order of [`Document::values`].
    pub(super) leaves: Vec<IndexField>,
    /// The columns of the leaves, in the same order.
    leaf_columns: Vec<FieldColumns>,
}

impl IndexPlan {
    pub fn new(definition: IndexDefinition) -> Result<Self, ApiError> {
        let analyzers = AnalyzerRegistry::new(&definition.json)?;
        let schema = &definition.schema;
        for field in schema.leaves() {
            for name in [&field.index_analyzer, &field.search_analyzer].into_iter().flatten() {
                analyzers.check(name)?;
            }
            if let Some(name) = &field.normalizer {
                analyzers.check_normalizer(name)?;
            }
        }
        let vector_search = VectorSearch::parse(definition.json.get("vectorSearch").unwrap_or(&Value::Null))?;
        for field in schema.leaves() {
            if let Some(vector) = &field.vector {
                vector_search.check(&field.path, vector)?;
            }
        }
        let columns = IndexColumns::new(schema, &definition.suggester_paths());
        let shape = DocumentShape::new(schema);
        let leaves: Vec<IndexField> = schema.leaves().into_iter().cloned().collect();
        let leaf_columns = leaves.iter().map(|field| columns.for_field(&field.path)).collect();
        Ok(Self { analyzers, columns, shape, vector_search, leaves, leaf_columns, definition })
    }

    /// Returns a hash of the names and types of all fields. Documents are written in the order of the fields.
    pub(super) fn shape_number(&self) -> u64 {
        let mut hasher = sha2::Sha256::new();
        for field in &self.leaves {
            hasher.update(format!("{}:{:?};", field.path, field.kind));
        }
        hasher.finalize().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    pub(super) fn tokenizers(&self) -> TokenizerManager {
        let manager = TokenizerManager::default();
        let names = self.leaves.iter().filter_map(|field| field.index_analyzer.as_deref());
        self.analyzers.register_all(names.chain([SUGGEST_ANALYZER, PAIRS_ANALYZER]), &manager);
        manager
    }

    pub(super) fn tantivy_document(&self, number: u64, document: Document) -> TantivyDocument {
        let mut row = TantivyDocument::new();
        row.add_u64(self.columns.number, number);
        for (leaf, value) in document.values {
            let Some(columns) = self.leaf_columns.get(leaf) else { continue };
            match value {
                FieldValue::Text(text) => {
                    for column in [columns.text, columns.suggest, columns.pairs].into_iter().flatten() {
                        row.add_text(column, &text);
                    }
                    if let Some(column) = columns.value {
                        match self.normalizer(leaf) {
                            Some(normalizer) => row.add_text(column, normalizer.apply(&text)),
                            None => row.add_text(column, &text),
                        }
                    }
                }
                FieldValue::Boolean(value) => {
                    columns.value.into_iter().for_each(|column| row.add_bool(column, value))
                }
                FieldValue::Integer(value) | FieldValue::Date(value) => {
                    columns.value.into_iter().for_each(|column| row.add_i64(column, value));
                }
                // Comparisons do not distinguish the two zeros, so only one is stored.
                FieldValue::Double(value) => {
                    columns.value.into_iter().for_each(|column| row.add_f64(column, value + 0.0));
                }
                FieldValue::Point { lon, lat } => {
                    if let (Some(latitude), Some(longitude)) = (columns.latitude, columns.longitude) {
                        row.add_f64(latitude, lat);
                        row.add_f64(longitude, lon);
                    }
                }
                FieldValue::Vector(_) => {}
            }
        }
        row
    }

    fn normalizer(&self, leaf: usize) -> Option<&Normalizer> {
        self.analyzers.normalizer(self.leaves.get(leaf)?.normalizer.as_deref()?)
    }
}
