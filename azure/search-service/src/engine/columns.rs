//! The tantivy schema behind an index: which columns each of its fields has.
//!
//! Documents themselves are not in it: hits lead to a number, and the number to the stored JSON.

use std::collections::{BTreeSet, HashMap};

use tantivy::schema::{
    Field as Column, IndexRecordOption, NumericOptions, Schema as TantivySchema, TextFieldIndexing,
    TextOptions,
};

use crate::definition::{IndexField, IndexSchema, PrimitiveType};

/// The analyzer of suggester columns; registered beside those of the index.
pub const SUGGEST_ANALYZER: &str = "bindpost.suggest";
/// The same, two words at a time.
pub const PAIRS_ANALYZER: &str = "bindpost.pairs";

/// The columns of one field. A field has only those that its attributes ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldColumns {
    /// Analyzed words with positions: what full text search reads. Strings only.
    pub text: Option<Column>,
    /// Whole values: filters, order and facets. Strings (after the normalizer) are indexed and fast; numbers, booleans
    /// and dates (`i64` milliseconds) too.
    pub value: Option<Column>,
    /// Coordinates of points, fast.
    pub latitude: Option<Column>,
    pub longitude: Option<Column>,
    /// Lower-case words, and pairs of neighbours joined by a space, for suggesters.
    pub suggest: Option<Column>,
    pub pairs: Option<Column>,
}

/// All columns of an index.
#[derive(Debug, Clone)]
pub struct IndexColumns {
    /// The number of a document in the store: indexed (updates delete by it) and fast.
    pub number: Column,
    by_path: HashMap<String, FieldColumns>,
    schema: TantivySchema,
}

impl IndexColumns {
    /// `suggested`: the paths that suggesters name as their sources.
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

    /// The columns of the field at a path; none for complex fields and unknown ones.
    pub fn for_field(&self, path: &str) -> FieldColumns {
        self.by_path.get(path).copied().unwrap_or_default()
    }

    pub fn schema(&self) -> &TantivySchema {
        &self.schema
    }
}

/// The key always has one: documents are found by it in filters like `id eq '1'` only when it is filterable, but order
/// between equal scores goes by it.
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
