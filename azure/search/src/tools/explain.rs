//! `explainSearch`: runs one query in several variants, shows the tokens of each analyzer, and explains
//! why a document is missing.

mod document;
mod filtered;
mod terms;
mod variants;

use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::{Context, Entry, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::terms::QueryTerms;
use self::variants::{QueryVariant, VariantRun};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolOutline, pluralized};
use crate::tools::reading::{IndexDescription, ServiceReader};

/// Returns the tool.
pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let properties = json!({
        "indexName": {"type": "string"},
        "search": {"type": "string"},
        "variants": {"type": "array", "maxItems": 12, "items": {"type": ["string", "object"]}, "description":
            "Default: all that the index supports. Names: any, all, full, profile:NAME, semantic, vector, hybrid; or objects of \
             search parameters, with `name`"},
        "filter": {"type": "string"},
        "searchFields": {"type": "array", "items": {"type": "string"}},
        "scoringParameters": {"type": "array", "items": {"type": "string"}},
        "vector": {"type": "array", "items": {"type": "number"}, "description": "The query's embedding"},
        "key": {"type": "string", "description": "Explain why this document is missing or where it ranks"},
        "top": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        "clientRequestId": {"type": "string"}
    });
    let description = "Explains a search: runs it in variants side by side (searchMode any and all, full Lucene, scoring \
                       profiles, semantic, vector, hybrid) with hits and ranks, shows the tokens of each analyzer, \
                       and explains why a document (`key`) is not found: filter, words, mode or rank.";
    vec![
        ToolOutline::new("explainSearch", description, READS, properties, &["indexName", "search"])
            .typed(shared, run)
            .into(),
    ]
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplainArguments {
    index_name: String,
    search: String,
    variants: Option<Vec<Value>>,
    filter: Option<String>,
    search_fields: Option<Vec<String>>,
    scoring_parameters: Option<Vec<String>>,
    vector: Option<Vec<f64>>,
    key: Option<String>,
    top: Option<usize>,
    client_request_id: Option<String>,
}

impl ExplainArguments {
    fn top(&self) -> usize {
        self.top.unwrap_or(10)
    }

    /// Returns the fields to search, or `None` for all.
    fn selected_fields(&self) -> Option<&[String]> {
        self.search_fields.as_deref().filter(|fields| !fields.is_empty())
    }
}

/// Input of every step of an explanation.
struct ExplainRequest<'a> {
    reader: &'a ServiceReader,
    index: &'a IndexDescription,
    arguments: &'a ExplainArguments,
}

async fn run(
    shared: Arc<SearchServerState>,
    _: Context,
    arguments: ExplainArguments,
) -> Result<Value, ToolError> {
    let reader = ServiceReader::new(&shared, arguments.client_request_id.clone());
    let index = reader.index(&arguments.index_name).await?;
    if let Some(unknown) = unknown_field(&index, &arguments) {
        return Err(unknown.into());
    }
    let question = ExplainRequest { reader: &reader, index: &index, arguments: &arguments };
    let mut reasons = Vec::new();
    let (variants, left_out) = variants::choose(&question)?;
    let mut ran = Vec::new();
    for variant in variants {
        ran.push(variants::run(&question, variant).await);
    }
    // If every variant failed in the same way, the request is invalid.
    if let Some(failure) = ran.first().and_then(|first| first.failure.clone())
        && ran.iter().all(|ran| ran.failure.is_some())
    {
        return Err(failure.into());
    }
    let terms = terms::analyze_query(&question).await?;
    let without_filter = variants::count_without_filter(&question, &ran).await;
    reasons.extend(count_reasons(&ran, without_filter));
    reasons.extend(terms.reasons());
    // Half of the size is for the hits, a quarter for their ranks. The rest is short.
    let room = shared.answer_bytes / 2 / ran.len().max(1);
    let mut ranks = side_by_side(&ran);
    ranks.truncate(count_fitting(&ranks, shared.answer_bytes / 4));
    let mut answer = json!({
        "index": index.name,
        "variants": ran.iter().map(|ran| ran.to_json(room)).collect::<Vec<_>>(),
        "sideBySide": ranks,
        "tokens": terms.to_json(),
    });
    if let Some(key) = &arguments.key {
        let (document, found) = document::explain(&question, key, &ran, &terms).await?;
        // The explanation of the document comes first.
        reasons.splice(0..0, found);
        answer["document"] = document;
    }
    reasons.extend(left_out);
    answer["reasons"] = json!(reasons);
    Ok(answer)
}

fn unknown_field(index: &IndexDescription, arguments: &ExplainArguments) -> Option<ServiceFailure> {
    let texts: Vec<&str> = index.texts(None).iter().map(|field| field.path.as_str()).collect();
    let searched = arguments.selected_fields()?;
    let unknown = searched.iter().find(|path| !texts.contains(&path.as_str()))?;
    let near = bindpost_mcp_server::nearest::nearest(unknown, &texts);
    let fix = match near {
        Some(near) => format!("write {near}"),
        None => format!("searchable are: {}", texts.join(", ")),
    };
    let message =
        format!("`searchFields` contains {unknown}, which is not a searchable text field of the index");
    Some(ServiceFailure::new(Kind::InvalidRequest, message).with("fix", fix))
}

/// Returns the rank of each key in each variant. Keys are in the order in which the variants return them.
fn side_by_side(ran: &[VariantRun]) -> Vec<Value> {
    let mut keys: Vec<&str> = Vec::new();
    for key in ran.iter().flat_map(|ran| ran.hits.iter().map(|hit| hit.key.as_str())) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let ranks = |key: &str| -> Map<String, Value> {
        let of = |ran: &VariantRun| (ran.variant.name.clone(), json!(ran.rank(key)));
        ran.iter().filter(|ran| ran.failure.is_none()).map(of).collect()
    };
    keys.into_iter().map(|key| json!({"key": key, "ranks": ranks(key)})).collect()
}

/// Returns reasons from the counts of the variants.
fn count_reasons(ran: &[VariantRun], without_filter: Option<u64>) -> Vec<String> {
    let count = |name: &str| ran.iter().find(|ran| ran.variant.name == name).and_then(|ran| ran.count);
    let mut reasons = Vec::new();
    match (count(QueryVariant::ANY), count(QueryVariant::ALL)) {
        (Some(0), _) if without_filter.is_some_and(|count| count > 0) => reasons.push(format!(
            "No document that matches the filter contains any of the words; without the filter {}.",
            pluralized(without_filter.unwrap_or_default(), "document does", "documents do")
        )),
        (Some(0), _) => reasons.push("No document contains any of the words.".to_owned()),
        (Some(any), Some(0)) => {
            reasons.push(format!(
                "searchMode all finds nothing: no document contains all the words; any finds {any}."
            ));
        }
        (Some(any), Some(all)) if all < any => {
            reasons.push(format!("searchMode all finds {all} of the {any} documents that any finds."));
        }
        _ => {}
    }
    for ran in ran {
        if let Some(failure) = &ran.failure {
            let name = &ran.variant.name;
            // A feature that the service does not support is not an error of the caller.
            reasons.push(match failure.code.as_deref() {
                Some("NotSupportedByEmbeddedService") => {
                    format!("{name}: not supported by the embedded service. {}", first_line(&failure.message))
                }
                _ => format!("{name} was rejected: {}", first_line(&failure.message)),
            });
        }
    }
    reasons
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns whether a field is among the searched fields.
fn searched_fields<'a>(
    question: &ExplainRequest<'a>,
) -> Vec<&'a bindpost_azure_search_model::definition::IndexField> {
    question.index.texts(question.arguments.selected_fields())
}
