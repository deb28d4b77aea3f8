//! Parses text in the simple and in the full syntax, and runs the query over several fields. It is rejected
//! with a reason, or returns documents.

#![cfg_attr(fuzzing, no_main)]

use std::sync::LazyLock;

use bindpost_azure_search_model::definition::IndexDefinition;
use bindpost_azure_search_model::syntax::synonyms::{CompiledSynonyms, SynonymRules};
use bindpost_azure_search_model::syntax::{parse_full, parse_simple};
use bindpost_azure_search_service::internals::{Budget, IndexPlan, SearchField, TextSearch};
use serde_json::json;
use tantivy::collector::Count;
use tantivy::schema::TantivyDocument;
use tantivy::tokenizer::TokenStream as _;
use tantivy::{Index, IndexWriter, Searcher};

const FIELDS: [(&str, &str); 3] = [("title", "standard.lucene"), ("body", "en.lucene"), ("code", "keyword")];
const TEXTS: [&str; 4] = ["running the wi-fi", "a wireless network, running", "A-1", ""];

struct Texts {
    plan: IndexPlan,
    searcher: Searcher,
    synonyms: CompiledSynonyms,
}

static TEXTS_INDEX: LazyLock<Texts> = LazyLock::new(|| {
    let mut fields = vec![json!({"name": "id", "type": "Edm.String", "key": true, "searchable": false})];
    fields.extend(
        FIELDS.map(|(name, analyzer)| json!({"name": name, "type": "Edm.String", "analyzer": analyzer})),
    );
    let definition = IndexDefinition::parse(&json!({"name": "texts", "fields": fields}));
    let plan = IndexPlan::new(definition.expect("a good definition")).expect("known analyzers");
    let index = Index::create_in_ram(plan.columns.schema().clone());
    plan.analyzers.register_all(FIELDS.into_iter().map(|(_, analyzer)| analyzer), index.tokenizers());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).expect("memory");
    for text in TEXTS {
        let mut document = TantivyDocument::new();
        for (name, _) in FIELDS {
            document.add_text(plan.columns.for_field(name).text.expect("a text column"), text);
        }
        writer.add_document(document).expect("room");
    }
    writer.commit().expect("a commit");
    let searcher = index.reader().expect("a reader").searcher();
    let mut analyzer = plan.analyzers.get("en.lucene").expect("an analyzer");
    let synonyms = SynonymRules::parse("wi-fi, wireless network\nrun => walk, go").expect("good rules");
    let synonyms = synonyms.compile(&mut |text| {
        let mut words = Vec::new();
        analyzer.token_stream(text).process(&mut |token| words.push(token.text.clone()));
        words
    });
    Texts { plan, searcher, synonyms }
});

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let text = bindpost_fuzz::text(data);
    let Texts { plan, searcher, synonyms } = &*TEXTS_INDEX;
    let field = |name: &str| -> Option<SearchField<'_>> {
        let (path, analyzer) = FIELDS.into_iter().find(|(path, _)| *path == name)?;
        let column = plan.columns.for_field(path).text?;
        let synonyms = (path == "body").then_some(synonyms);
        Some(SearchField { path, column, weight: 1.5, analyzer: plan.analyzers.get(analyzer)?, synonyms })
    };
    let is_field = |name: &str| FIELDS.iter().any(|(path, _)| *path == name);
    for parsed in [parse_simple(text), parse_full(text, &is_field)] {
        let node = match parsed {
            Ok(node) => node,
            Err(error) => {
                assert!(error.status == 400 && !error.message.is_empty(), "{error:?}");
                continue;
            }
        };
        let others = |name: &str| field(name);
        let mut found = Vec::new();
        let budget = Budget::unlimited();
        for all in [false, true] {
            let fields = ["title", "body"].into_iter().filter_map(field).collect();
            let search = TextSearch { node: &node, fields, others: &others, all, budget: &budget };
            let built = match search.build() {
                Ok(built) => built,
                Err(error) => {
                    assert!(error.status == 400 && !error.message.is_empty(), "{error:?}");
                    continue;
                }
            };
            assert!(built.highlight.iter().all(|term| is_field(&term.path)));
            found.push(searcher.search(&built.query, &Count).expect("an answer"));
        }
        assert!(found.iter().all(|count| *count <= TEXTS.len()));
    }
}
