//! Tantivy alone, used as plainly and as quickly as its documentation suggests: the columns of the service's index, one
//! writer with the same memory, one commit. It has to return documents, so that their JSON is in its store.
use serde_json::{json, Value};
use std::ops::Bound;
use std::path::Path;
use std::time::Duration;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, Query, RangeQuery, TermQuery};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions, Value as _, STORED,
};
use tantivy::tokenizer::{
    Language, LowerCaser, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer, TokenStream,
};
use tantivy::{Index, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, Term};

use crate::corpus::{self, Corpus};
use crate::figures;

/// As the service has it.
const WRITER_BYTES: usize = 64 << 20;
const ANALYZER: &str = "english";
const TOP: usize = 10;
/// So many documents are made up at once: to ask for the time takes some, too.
const CHUNK: usize = 1000;

pub fn run(folder: &Path, documents: usize, queries: usize) -> Value {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).expect("a folder");
    let corpus = Corpus::new();
    let (schema, columns) = schema();
    let index = Index::create_in_dir(folder, schema).expect("an index");
    index.tokenizers().register(ANALYZER, analyzer());
    let indexing = write(&index, &columns, &corpus, documents);
    let after_indexing = figures::memory();
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().expect("a reader");
    let searcher = tantivy::IndexReader::searcher(&reader);
    assert_eq!(searcher.num_docs() as usize, documents);
    let start = analyzer;
    let search = |analyzer: &mut TextAnalyzer, number| {
        found(&searcher, &columns, analyzer, &corpus.query(number))
            .iter()
            .filter(|json| !json.is_empty())
            .count()
    };
    // Reads all pages once before anything is measured.
    figures::searches(queries.div_ceil(10), 1, start, search);
    let measure = |threads| {
        let before = figures::process();
        let mut figures = figures::searches(queries, threads, start, search).json();
        figures["cpu_s"] = json!((figures::process() - before).as_secs_f64());
        figures
    };
    let (alone, crowd) = (measure(1), measure(16));
    json!({
        "indexing": indexing,
        "after_indexing": after_indexing,
        "segments": searcher.segment_readers().len(),
        "searching": {"1": alone, "16": crowd},
        "after_searching": figures::memory(),
    })
}

struct Columns {
    json: Field,
    id: Field,
    title: Field,
    body: Field,
    category: Field,
    tags: Field,
    price: Field,
    rating: Field,
    published: Field,
    in_stock: Field,
}

fn schema() -> (Schema, Columns) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let words = TextOptions::default().set_indexing_options(words);
    let whole = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    let whole = TextOptions::default().set_indexing_options(whole).set_fast("raw");
    let numeric = NumericOptions::default().set_indexed().set_fast();
    let columns = Columns {
        json: schema.add_bytes_field("json", STORED),
        id: schema.add_text_field("id", whole.clone()),
        title: schema.add_text_field("title", words.clone()),
        body: schema.add_text_field("body", words),
        category: schema.add_text_field("category", whole.clone()),
        tags: schema.add_text_field("tags", whole),
        price: schema.add_f64_field("price", numeric.clone()),
        rating: schema.add_i64_field("rating", numeric.clone()),
        published: schema.add_i64_field("published", numeric.clone()),
        in_stock: schema.add_bool_field("inStock", numeric),
    };
    (schema.build(), columns)
}

fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(LowerCaser)
        .filter(StopWordFilter::new(Language::English).expect("English"))
        .filter(Stemmer::new(Language::English))
        .build()
}

fn write(index: &Index, columns: &Columns, corpus: &Corpus, documents: usize) -> Value {
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES).expect("a writer");
    let before = figures::process();
    let mut making = Duration::ZERO;
    for first in (0..documents).step_by(CHUNK) {
        let before = figures::thread();
        let made = (first..documents.min(first + CHUNK)).map(|number| {
            let document = corpus.document(number);
            let json = document.json();
            (document, json)
        });
        let made: Vec<_> = made.collect();
        making += figures::thread() - before;
        for (document, json) in made {
            writer.add_document(columns.row(document, json)).expect("a document");
        }
    }
    writer.commit().expect("a commit");
    writer.wait_merging_threads().expect("merges");
    // No time by the clock: documents are made up while the writer is busy with others.
    json!({"cpu_s": (figures::process() - before - making).as_secs_f64()})
}

impl Columns {
    fn row(&self, document: corpus::Document, json: String) -> TantivyDocument {
        let mut row = TantivyDocument::new();
        row.add_bytes(self.json, json.as_bytes());
        row.add_text(self.id, document.id);
        row.add_text(self.title, document.title);
        row.add_text(self.body, document.body);
        row.add_text(self.category, document.category);
        for tag in document.tags {
            row.add_text(self.tags, tag);
        }
        row.add_f64(self.price, document.price);
        row.add_i64(self.rating, document.rating);
        row.add_i64(self.published, document.published * 1000);
        row.add_bool(self.in_stock, document.in_stock);
        row
    }
}

/// The JSON of the best documents.
fn found(
    searcher: &Searcher,
    columns: &Columns,
    analyzer: &mut TextAnalyzer,
    query: &corpus::Query,
) -> Vec<Vec<u8>> {
    let mut words: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    analyzer.token_stream(&query.words).process(&mut |token| {
        for column in [columns.title, columns.body] {
            let term = Term::from_field_text(column, &token.text);
            words.push((Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
        }
    });
    let category = Term::from_field_text(columns.category, &query.category);
    let category = TermQuery::new(category, IndexRecordOption::Basic);
    let price = Bound::Excluded(Term::from_field_f64(columns.price, query.price));
    let price = RangeQuery::new(Bound::Unbounded, price);
    let silent = |query: Box<dyn Query>| Box::new(ConstScoreQuery::new(query, 0.0));
    let query = BooleanQuery::new(vec![
        (Occur::Must, Box::new(BooleanQuery::new(words))),
        (Occur::Must, silent(Box::new(category))),
        (Occur::Must, silent(Box::new(price))),
    ]);
    let hits = searcher.search(&query, &TopDocs::with_limit(TOP).order_by_score()).expect("hits");
    let json = |(_, address)| {
        let document: TantivyDocument = searcher.doc(address).expect("a document");
        document.get_first(columns.json).and_then(|json| json.as_bytes()).unwrap_or_default().to_vec()
    };
    hits.into_iter().map(json).collect()
}
