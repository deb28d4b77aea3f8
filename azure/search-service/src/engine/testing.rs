//! Small in-memory indexes for the tests of this folder, with simple analyzers.

use std::collections::BTreeSet;

use bindpost_azure_search_model::definition::{FieldType, IndexField, IndexSchema, PrimitiveType};
use chrono::DateTime;
use serde_json::Value;
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::Field as Column;
use tantivy::tokenizer::{LowerCaser, SimpleTokenizer, TextAnalyzer, Token, TokenStream, Tokenizer};
use tantivy::{Index, IndexWriter, Searcher, TantivyDocument};

use super::columns::IndexColumns;
use crate::analysis::{PAIRS_ANALYZER, SUGGEST_ANALYZER};

pub(crate) struct TestIndex {
    pub(crate) schema: IndexSchema,
    pub(crate) columns: IndexColumns,
    pub(crate) index: Index,
}

/// Returns a field with all attributes that its type allows.
pub(crate) fn field(name: &str, kind: FieldType) -> IndexField {
    let text = kind.primitive() == Some(PrimitiveType::String);
    let point = kind.primitive() == Some(PrimitiveType::GeographyPoint);
    IndexField {
        filterable: true,
        facetable: !point,
        searchable: text,
        index_analyzer: text.then(|| SUGGEST_ANALYZER.to_owned()),
        ..IndexField::new(name, kind)
    }
}

/// Returns an analyzer for lower-case words.
pub(crate) fn words() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).build()
}

impl TestIndex {
    /// Builds an index with `per_segment` documents in each segment. The key is `id`. Fields are read
    /// from the root only.
    pub(crate) fn new(
        mut fields: Vec<IndexField>,
        suggested: &[&str],
        documents: &[Value],
        per_segment: usize,
    ) -> Self {
        fields.insert(
            0,
            IndexField { key: true, ..IndexField::new("id", FieldType::One(PrimitiveType::String)) },
        );
        let schema = IndexSchema::new(fields).unwrap();
        let suggested: BTreeSet<String> = suggested.iter().map(|path| (*path).to_owned()).collect();
        let columns = IndexColumns::new(&schema, &suggested);
        let index = Index::create_in_ram(columns.schema().clone());
        index.tokenizers().register(SUGGEST_ANALYZER, words());
        index.tokenizers().register(PAIRS_ANALYZER, TextAnalyzer::from(PairTokenizer));
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for segment in documents.chunks(per_segment) {
            for document in segment {
                writer.add_document(row(&schema, &columns, document)).unwrap();
            }
            writer.commit().unwrap();
        }
        drop(writer);
        Self { schema, columns, index }
    }

    pub(crate) fn searcher(&self) -> Searcher {
        self.index.reader().unwrap().searcher()
    }

    pub(crate) fn value(&self, path: &str) -> Column {
        self.columns.for_field(path).value.unwrap()
    }
}

fn row(schema: &IndexSchema, columns: &IndexColumns, document: &Value) -> TantivyDocument {
    let mut row = TantivyDocument::new();
    for field in schema.leaves() {
        let found = columns.for_field(&field.path);
        let values = match &document[&field.name] {
            Value::Null => Vec::new(),
            Value::Array(list) => list.iter().collect(),
            one => vec![one],
        };
        for value in values {
            if let (Some(latitude), Some(longitude)) = (found.latitude, found.longitude) {
                row.add_f64(longitude, value["coordinates"][0].as_f64().unwrap());
                row.add_f64(latitude, value["coordinates"][1].as_f64().unwrap());
            }
            for column in [found.text, found.suggest, found.pairs].into_iter().flatten() {
                row.add_text(column, value.as_str().unwrap());
            }
            let Some(column) = found.value else { continue };
            match field.kind.primitive().unwrap() {
                PrimitiveType::String => row.add_text(column, value.as_str().unwrap()),
                PrimitiveType::Boolean => row.add_bool(column, value.as_bool().unwrap()),
                PrimitiveType::Double => row.add_f64(column, value.as_f64().unwrap()),
                PrimitiveType::DateTimeOffset => row.add_i64(column, moment(value.as_str().unwrap())),
                _ => row.add_i64(column, value.as_i64().unwrap()),
            }
        }
    }
    row
}

pub(crate) fn moment(date: &str) -> i64 {
    DateTime::parse_from_rfc3339(date).unwrap().timestamp_millis()
}

/// Tokenizes pairs of adjacent words joined by a space.
#[derive(Clone)]
struct PairTokenizer;

struct PairStream {
    tokens: Vec<Token>,
    at: usize,
}

impl Tokenizer for PairTokenizer {
    type TokenStream<'a> = PairStream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> PairStream {
        let mut single = Vec::new();
        words().token_stream(text).process(&mut |token| single.push(token.clone()));
        let pair = |two: &[Token]| Token {
            offset_to: two[1].offset_to,
            text: format!("{} {}", two[0].text, two[1].text),
            ..two[0].clone()
        };
        PairStream { tokens: single.windows(2).map(pair).collect(), at: 0 }
    }
}

impl TokenStream for PairStream {
    fn advance(&mut self) -> bool {
        self.at += 1;
        self.at <= self.tokens.len()
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at - 1]
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens[self.at - 1]
    }
}
