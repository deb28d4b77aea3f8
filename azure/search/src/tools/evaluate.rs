//! `evaluateRelevance`: computes nDCG, recall, precision and reciprocal rank from judged queries, for
//! one variant or for two that are compared.

pub(crate) mod measure;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;

use bindpost_mcp_server::{Context, Entry, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use self::measure::{RankingMeasures, ScoredHit, measure};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolOutline};
use crate::tools::reading::ServiceReader;

/// Maximum number of concurrent queries.
const AT_ONCE: usize = 4;
/// Number of further hits to read, to detect ties at the end of the page.
const BEYOND: usize = 10;

/// Returns the tool.
pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let parameters = "Search parameters for all queries, e.g. {scoringProfile, searchMode, vectorQueries}; indexName for \
                      another index";
    let properties = json!({
        "indexName": {"type": "string"},
        "queries": {"type": "array", "minItems": 1, "maxItems": 200, "items": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "search": {"type": "string"},
                "judgments": {"type": "object", "minProperties": 1, "description": "key: grade; 0 is irrelevant",
                    "additionalProperties": {"type": "number", "minimum": 0, "maximum": 10}},
                "overrides": {"type": "object", "description": "Search parameters of this query"}
            },
            "required": ["search", "judgments"]
        }},
        "k": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "baseline": {"type": "object", "description": parameters},
        "candidate": {"type": "object", "description": "The same, to compare with the baseline"},
        "clientRequestId": {"type": "string"}
    });
    let description = "Measures search quality with judged queries: nDCG@k, recall@k, precision@k, MRR, per query and mean. \
                       Compares two sets of search parameters or two indexes and lists gains and losses.";
    // Two hundred queries in two variants take long on a service that throttles.
    let entry =
        ToolOutline::new("evaluateRelevance", description, READS, properties, &["indexName", "queries"])
            .typed(shared, run)
            .timeout(None);
    vec![entry.into()]
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EvaluateArguments {
    index_name: String,
    queries: Vec<JudgedQuery>,
    k: Option<usize>,
    baseline: Option<Map<String, Value>>,
    candidate: Option<Map<String, Value>>,
    client_request_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct JudgedQuery {
    id: Option<String>,
    search: String,
    judgments: BTreeMap<String, f64>,
    overrides: Option<Map<String, Value>>,
}

/// One way to search: an index and parameters.
#[derive(Clone, Debug)]
struct EvaluationVariant {
    index: String,
    key: String,
    parameters: Map<String, Value>,
}

/// The measures of one query in one variant, or its failure.
type Outcome = Result<RankingMeasures, ServiceFailure>;

/// A query with the outcome of each variant.
#[derive(Debug)]
pub(crate) struct EvaluatedQuery {
    query: JudgedQuery,
    baseline: Outcome,
    candidate: Option<Outcome>,
}

async fn run(
    shared: Arc<SearchServerState>,
    context: Context,
    arguments: EvaluateArguments,
) -> Result<Value, ToolError> {
    let reader = ServiceReader::new(&shared, arguments.client_request_id);
    let k = arguments.k.unwrap_or(10);
    let baseline = variant(&reader, &arguments.index_name, arguments.baseline.unwrap_or_default()).await?;
    let candidate = match arguments.candidate {
        Some(parameters) => Some(variant(&reader, &arguments.index_name, parameters).await?),
        None => None,
    };
    let mut judged: BTreeMap<usize, EvaluatedQuery> = BTreeMap::new();
    let mut running = JoinSet::new();
    let total = arguments.queries.len();
    let mut waiting = arguments.queries.into_iter().enumerate();
    loop {
        while running.len() < AT_ONCE {
            let Some((number, query)) = waiting.next() else { break };
            let (reader, baseline, candidate) = (reader.clone(), baseline.clone(), candidate.clone());
            running.spawn(async move {
                let first = measure_query(&reader, &baseline, &query, k).await;
                let second = match &candidate {
                    Some(candidate) => Some(measure_query(&reader, candidate, &query, k).await),
                    None => None,
                };
                (number, EvaluatedQuery { query, baseline: first, candidate: second })
            });
        }
        let Some(done) = running.join_next().await else { break };
        let (number, done) =
            done.map_err(|error| ToolError::with_source("a query was not finished", error))?;
        judged.insert(number, done);
        let message = format!("{} of {total} queries", judged.len());
        context.progress(judged.len() as f64, Some(total as f64), Some(&message)).await;
    }
    let judged: Vec<EvaluatedQuery> = judged.into_values().collect();
    // If every query fails, the failure is returned once.
    if let Some(Err(failure)) = judged.first().map(|first| &first.baseline)
        && judged.iter().all(|one| one.baseline.is_err())
    {
        return Err(failure.clone().with("queriesFailed", total).into());
    }
    let mut answer = report::report(&judged, k, candidate.is_some(), shared.answer_bytes);
    if let Some(members) = answer.as_object_mut() {
        members.insert("baseline".to_owned(), variant_json(&baseline));
        if let Some(candidate) = &candidate {
            members.insert("candidate".to_owned(), variant_json(candidate));
        }
    }
    Ok(answer)
}

async fn variant(
    reader: &ServiceReader,
    index: &str,
    mut parameters: Map<String, Value>,
) -> Result<EvaluationVariant, ServiceFailure> {
    let named = match parameters.remove("indexName") {
        None => index.to_owned(),
        Some(Value::String(name)) => name,
        Some(_) => {
            return Err(ServiceFailure::new(
                Kind::InvalidRequest,
                "`indexName` of a variant must be a string",
            ));
        }
    };
    let index = reader.index(&named).await?;
    let key = index.key().to_owned();
    Ok(EvaluationVariant { index: index.name, key, parameters })
}

fn variant_json(variant: &EvaluationVariant) -> Value {
    json!({"indexName": variant.index, "parameters": variant.parameters})
}

async fn measure_query(
    reader: &ServiceReader,
    variant: &EvaluationVariant,
    query: &JudgedQuery,
    k: usize,
) -> Outcome {
    let mut body = Map::from_iter([("search".to_owned(), json!(query.search))]);
    body.extend(variant.parameters.clone());
    body.extend(query.overrides.clone().unwrap_or_default());
    body.insert("select".to_owned(), json!(variant.key));
    body.insert("top".to_owned(), json!(k + BEYOND));
    let found = reader.search(&variant.index, body).await?;
    let partial = found.partial_reason();
    let hits = found.documents().iter().filter_map(|document| {
        let key = document.get(&variant.key)?.as_str()?.to_owned();
        // The semantic ranker sorts by its own score.
        let score = document.get("@search.rerankerScore").filter(|score| score.is_number());
        let score = score.or(document.get("@search.score")).and_then(Value::as_f64);
        Some(ScoredHit { key, score: score.unwrap_or_default() })
    });
    let mut measures = measure(&hits.collect::<Vec<_>>(), &query.judgments, k);
    measures.note = partial;
    Ok(measures)
}
