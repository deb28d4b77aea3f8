//! Suggestions (documents) and completions (words) for typed text.

use bindpost_azure_search_model::definition::Suggester;
use bindpost_azure_search_model::odata::{parse_filter, parse_orderby};
use bindpost_azure_search_model::{ApiError, RequestObject};
use serde_json::{Value, json};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query};

use super::parameters::{read_names, read_parameters};
use super::run::FILTER_BYTES;
use super::scope::{SearchScope, SynonymMaps};
use crate::analysis::SUGGEST_ANALYZER;
use crate::budget::{Budget, JsonBuffer, parsed_bytes};
use crate::documents::FieldSelection;
use crate::engine::autocomplete::{AutocompleteMode, autocomplete};
use crate::engine::columns::FieldColumns;
use crate::engine::highlight::{self, HighlightTags};
use crate::engine::snapshot::IndexSnapshot;
use crate::engine::suggest::{TypedWords, result_limit, source_fields, suggest_query};
use crate::engine::top::{OrderedTopDocs, SearchHit};
use crate::engine::watch::BudgetCollector;

const SUGGEST: &[&str] = &[
    "search",
    "suggesterName",
    "filter",
    "fuzzy",
    "highlightPreTag",
    "highlightPostTag",
    "minimumCoverage",
    "orderby",
    "searchFields",
    "select",
    "top",
];
const AUTOCOMPLETE: &[&str] = &[
    "search",
    "suggesterName",
    "autocompleteMode",
    "filter",
    "fuzzy",
    "highlightPreTag",
    "highlightPostTag",
    "minimumCoverage",
    "searchFields",
    "top",
];

/// The common parts of both requests.
struct TypingRequest {
    words: TypedWords,
    fields: Vec<String>,
    filter: Option<Box<dyn Query>>,
    tags: Option<HighlightTags>,
    top: usize,
    coverage: bool,
}

impl TypingRequest {
    fn parse(
        given: &RequestObject<'_>,
        snapshot: &IndexSnapshot,
        synonyms: &SynonymMaps,
        budget: &Budget,
    ) -> Result<Self, ApiError> {
        let suggester = suggester(given, snapshot)?;
        let needed =
            || ApiError::parameter("search", "'search' is required. It is the text that the user has typed.");
        let mut analyzer = suggest_analyzer(snapshot)?;
        let words = TypedWords::parse(
            given.text("search")?.ok_or_else(needed)?,
            &mut analyzer,
            given.boolean("fuzzy")?.unwrap_or(false),
        )?;
        let filter = match given.text("filter")?.map(str::trim).filter(|filter| !filter.is_empty()) {
            Some(filter) => {
                budget.take_memory(filter.len().saturating_mul(FILTER_BYTES));
                let filter = parse_filter(filter, &snapshot.plan.definition.schema)?;
                Some(SearchScope { snapshot, synonyms, profile: None, budget }.filter_query(&filter)?)
            }
            None => None,
        };
        Ok(Self {
            words,
            fields: source_fields(read_names(given, "searchFields")?.as_deref(), &suggester.source_fields)?,
            filter,
            tags: HighlightTags::parse(given.text("highlightPreTag")?, given.text("highlightPostTag")?)?,
            top: result_limit("$top", given.integer("top")?)?,
            coverage: given.number("minimumCoverage")?.is_some(),
        })
    }

    fn columns(&self, snapshot: &IndexSnapshot) -> Vec<FieldColumns> {
        self.fields.iter().map(|path| snapshot.plan.columns.for_field(path)).collect()
    }
}

/// Handles a suggest request.
pub fn suggest(
    body: &Value,
    snapshot: &IndexSnapshot,
    synonyms: &SynonymMaps,
    budget: &Budget,
) -> Result<JsonBuffer, ApiError> {
    let given = read_parameters(body, SUGGEST)?;
    let typed = TypingRequest::parse(&given, snapshot, synonyms, budget)?;
    let plan = &snapshot.plan;
    let schema = &plan.definition.schema;
    let selection =
        match read_names(&given, "select")?.as_deref().map(str::trim).filter(|select| !select.is_empty()) {
            Some(select) => FieldSelection::parse(select, schema)?,
            None => FieldSelection::parse(&schema.key().name, schema)?,
        };
    let order = parse_orderby(read_names(&given, "orderby")?.as_deref().unwrap_or_default(), schema)?;
    let columns: Vec<_> = typed.columns(snapshot).into_iter().filter_map(|columns| columns.suggest).collect();
    let mut query = suggest_query(&typed.words, &columns, budget);
    if let Some(filter) = &typed.filter {
        query = Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::Must, filter.box_clone())]));
    }
    let failed = |error| ApiError::internal("looking for suggestions", error);
    let hits: Vec<SearchHit> = if order.is_empty() {
        let top = TopDocs::with_limit(typed.top).order_by_score();
        let hits = snapshot.searcher.search(&query, &(BudgetCollector(budget.clone()), top));
        hits.map_err(failed)?.1.into_iter().map(|(score, address)| SearchHit { score, address }).collect()
    } else {
        let top = OrderedTopDocs::new(&order, typed.top, None, schema, &plan.columns, budget)?;
        snapshot.searcher.search(&query, &(BudgetCollector(budget.clone()), top)).map_err(failed)?.1
    };
    let mut analyzer = suggest_analyzer(snapshot)?;
    let mut answer = JsonBuffer::new(budget);
    let body = &mut answer.bytes;
    head(&typed, body);
    let mut first = true;
    for hit in hits {
        let Some(number) = snapshot.number(hit.address) else { continue };
        snapshot.documents.read(number, |json| {
            budget.check();
            let _memory = budget.reserve_memory(parsed_bytes(json));
            let document: Value = serde_json::from_slice(json).unwrap_or_default();
            let texts = typed.fields.iter().flat_map(|path| highlight::texts(&document, path));
            let texts = texts.inspect(|_| budget.check());
            let text =
                typed.words.display_text(texts, &mut analyzer, typed.tags.as_ref()).unwrap_or_default();
            if !std::mem::take(&mut first) {
                body.push(b',');
            }
            body.extend_from_slice(br#"{"@search.text":"#);
            body.extend_from_slice(Value::from(text).to_string().as_bytes());
            let start = body.len();
            body.push(b',');
            selection.write(json, body);
            if body.len() == start + 1 {
                body.pop();
            }
            body.push(b'}');
        })?;
    }
    body.extend_from_slice(b"]}");
    answer.account_growth();
    Ok(answer)
}

/// Handles an autocomplete request.
pub fn complete(
    body: &Value,
    snapshot: &IndexSnapshot,
    synonyms: &SynonymMaps,
    budget: &Budget,
) -> Result<JsonBuffer, ApiError> {
    let given = read_parameters(body, AUTOCOMPLETE)?;
    let typed = TypingRequest::parse(&given, snapshot, synonyms, budget)?;
    let mode = AutocompleteMode::parse(given.text("autocompleteMode")?)?;
    let columns = typed.columns(snapshot);
    let filter = typed.filter.as_deref();
    let completions = autocomplete(
        &snapshot.searcher,
        &columns,
        &typed.words,
        mode,
        filter,
        typed.top,
        typed.tags.as_ref(),
        budget,
    );
    let completions = completions.map_err(|error| ApiError::internal("completing words", error))?;
    let list =
        serde_json::to_vec(&completions).map_err(|error| ApiError::internal("writing a response", error))?;
    let mut answer = JsonBuffer::new(budget);
    head(&typed, &mut answer.bytes);
    answer.bytes.pop();
    answer.bytes.extend_from_slice(&list);
    answer.bytes.push(b'}');
    answer.account_growth();
    Ok(answer)
}

/// Writes a response up to its list of values.
fn head(typed: &TypingRequest, body: &mut Vec<u8>) {
    let coverage = if typed.coverage { "\"@search.coverage\":100.0," } else { "" };
    body.extend_from_slice(format!("{{{coverage}\"value\":[").as_bytes());
}

fn suggester<'a>(given: &RequestObject<'_>, snapshot: &'a IndexSnapshot) -> Result<&'a Suggester, ApiError> {
    let suggesters = &snapshot.plan.definition.suggesters;
    let known = || {
        let names: Vec<&str> = suggesters.iter().map(|suggester| suggester.name.as_str()).collect();
        json!(names).to_string()
    };
    let Some(name) = given.text("suggesterName")? else {
        let message = format!("'suggesterName' is required. The suggesters of the index are {}.", known());
        return Err(ApiError::parameter("suggesterName", message));
    };
    suggesters.iter().find(|suggester| suggester.name == name).ok_or_else(|| {
        let message = format!("The index has no suggester '{name}'. Its suggesters are {}.", known());
        ApiError::parameter("suggesterName", message)
    })
}

fn suggest_analyzer(snapshot: &IndexSnapshot) -> Result<tantivy::tokenizer::TextAnalyzer, ApiError> {
    let analyzer = snapshot.plan.analyzers.get(SUGGEST_ANALYZER);
    analyzer.ok_or_else(|| ApiError::internal("looking for suggestions", "the suggest analyzer is missing"))
}
