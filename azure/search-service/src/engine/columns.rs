//! The tantivy schema of an index: the columns of each field.
//!
//! The schema does not contain the documents. A hit gives the number of a document, and the number finds
//! the stored JSON.

use std::collections::{BTreeSet, HashMap};

use bindpost_azure_search_model::definition::{IndexField, IndexSchema, PrimitiveType};
use tantivy::schema::{
    Field as Column, IndexRecordOption, NumericOptions, Schema as TantivySchema, TextFieldIndexing,
    TextOptions,
};

use crate::analysis::{PAIRS_ANALYZER, SUGGEST_ANALYZER};

/// The columns of one field. A field has only the columns that its attributes need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldColumns {
    /// Analyzed words with positions, for full-text search. Only strings have it.
    pub text: Option<Column>,
    /// Whole values, for filters, sorting and facets. The column is indexed and fast. Strings are
    /// normalized, and dates are `i64` milliseconds.
    pub value: Option<Column>,
    /// The latitude of points, as a fast column.
    pub latitude: Option<Column>,
    pub longitude: Option<Column>,
    /// Lower-case words for suggesters. The `pairs` column has adjacent words joined by a space.
    pub suggest: Option<Column>,
    pub pairs: Option<Column>,
}

/// All columns of an index.
#[derive(Debug, Clone)]
pub struct IndexColumns {
    /// The number of a document in the store. The column is indexed, because updates delete by it, and fast.
    pub number: Column,
    by_path: HashMap<String, FieldColumns>,
    schema: TantivySchema,
}

impl IndexColumns {
    /// Builds the columns. `suggested` holds the paths of all source fields of suggesters.
    pub fn new(schema: &IndexSchema, suggested: &BTreeSet<String>) -> Self {
        let mut builder = TantivySchema::builder();
        let number = builder.add_u64_field("#", NumericOptions::default().set_indexed().set_fast());
        let mut by_path = HashMap::new();
        for field in schema.leaves() {
            let mut columns = FieldColumns::default();
            let path = &field.path;
            if let (true, Some(analyzer)) =
                (field.searchable && field.vector.is_none(), &field.index_analyzer)
            {
                columns.text = Some(builder.add_text_field(&format!("text:{path}"), words(analyzer)));
            }
            if suggested.contains(path) {
                columns.suggest =
                    Some(builder.add_text_field(&format!("suggest:{path}"), words(SUGGEST_ANALYZER)));
                let pairs = TextFieldIndexing::default()
                    .set_tokenizer(PAIRS_ANALYZER)
                    .set_fieldnorms(false)
                    .set_index_option(IndexRecordOption::Basic);
                let pairs = TextOptions::default().set_indexing_options(pairs);
                columns.pairs = Some(builder.add_text_field(&format!("pairs:{path}"), pairs));
            }
            if needs_value(field) {
                let name = format!("value:{path}");
                let numeric = NumericOptions::default().set_indexed().set_fast();
                match field.kind.primitive() {
                    Some(PrimitiveType::String) => {
                        columns.value = Some(builder.add_text_field(&name, whole()))
                    }
                    Some(PrimitiveType::Boolean) => {
                        columns.value = Some(builder.add_bool_field(&name, numeric))
                    }
                    Some(PrimitiveType::Double) => {
                        columns.value = Some(builder.add_f64_field(&name, numeric))
                    }
                    Some(PrimitiveType::Int32 | PrimitiveType::Int64 | PrimitiveType::DateTimeOffset) => {
                        columns.value = Some(builder.add_i64_field(&name, numeric));
                    }
                    Some(PrimitiveType::GeographyPoint) => {
                        let fast = NumericOptions::default().set_fast();
                        columns.latitude =
                            Some(builder.add_f64_field(&format!("latitude:{path}"), fast.clone()));
                        columns.longitude = Some(builder.add_f64_field(&format!("longitude:{path}"), fast));
                    }
                    _ => {}
                }
            }
            by_path.insert(path.clone(), columns);
        }
        Self { number, by_path, schema: builder.build() }
    }

    /// Returns the columns of the field at a path. Complex and unknown fields have none.
    pub fn for_field(&self, path: &str) -> FieldColumns {
        self.by_path.get(path).copied().unwrap_or_default()
    }

    pub fn schema(&self) -> &TantivySchema {
        &self.schema
    }
}

/// Returns whether the field needs a value column. The key always has one, because equal scores are
/// ordered by it. Filters can use it only if the key is filterable.
fn needs_value(field: &IndexField) -> bool {
    field.key || field.filterable || field.sortable || field.facetable
}

fn words(analyzer: &str) -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(analyzer)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    TextOptions::default().set_indexing_options(indexing)
}

fn whole() -> TextOptions {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    TextOptions::default().set_indexing_options(indexing).set_fast("raw")
}
