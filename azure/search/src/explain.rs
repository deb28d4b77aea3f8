//! `explainSearch`: one query in several variants side by side, the words that analyzers make of it, and why a
//! document is missing.

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
use crate::failure::{Kind, ServiceFailure};
use crate::reading::{IndexDescription, ServiceReader};
use crate::shared::SearchServerState;
use crate::tool::{READS, ToolOutline, pluralized};

/// The tool.
pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let properties = json!({
        "indexName": {"type": "string"},
        "search": {"type": "string"},
        "variants": {"type": "array", "maxItems": 12, "items": {"type": ["string", "object"]}, "description":
            "Default: all that the index has. Names: any, all, full, profile:NAME, semantic, vector, hybrid; or objects of \
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
                       profiles, semantic, vector, hybrid) with hits and ranks, shows the tokens each analyzer makes of it, \
                       and says why a document (`key`) is not found: filter, words, mode or rank.";
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

    /// The fields searched, if not all are.
    fn selected_fields(&self) -> Option<&[String]> {
        self.search_fields.as_deref().filter(|fields| !fields.is_empty())
    }
}

/// What every step of an explanation looks at.
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
    // Every variant failed alike: the request is wrong, not the variant.
    if let Some(failure) = ran.first().and_then(|first| first.failure.clone())
        && ran.iter().all(|ran| ran.failure.is_some())
    {
        return Err(failure.into());
    }
    let terms = terms::analyze_query(&question).await?;
    let without_filter = variants::count_without_filter(&question, &ran).await;
    reasons.extend(count_reasons(&ran, without_filter));
    reasons.extend(terms.reasons());
    // Half for the hits, a quarter for their ranks; the rest is short.
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
        // What was asked for comes first.
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
    let message = format!("`searchFields` names {unknown}, which is no searchable text field of the index");
    Some(ServiceFailure::new(Kind::InvalidRequest, message).with("fix", fix))
}

/// The rank of each key in each variant, keys in the order in which variants show them.
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

/// What the counts of the variants say.
fn count_reasons(ran: &[VariantRun], without_filter: Option<u64>) -> Vec<String> {
    let count = |name: &str| ran.iter().find(|ran| ran.variant.name == name).and_then(|ran| ran.count);
    let mut reasons = Vec::new();
    match (count(QueryVariant::ANY), count(QueryVariant::ALL)) {
        (Some(0), _) if without_filter.is_some_and(|count| count > 0) => reasons.push(format!(
            "No document that passes the filter has any of the words; without the filter {}.",
            pluralized(without_filter.unwrap_or_default(), "document has one", "documents have one")
        )),
        (Some(0), _) => reasons.push("No document has any of the words.".to_owned()),
        (Some(any), Some(0)) => {
            reasons.push(format!(
                "searchMode all finds nothing: no document has all the words; any finds {any}."
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
            // What a service does not do at all is no mistake of the caller.
            reasons.push(match failure.code.as_deref() {
                Some("NotSupportedByEmbeddedService") => {
                    format!("{name}: the embedded service cannot do this. {}", first_line(&failure.message))
                }
                _ => format!("{name} was refused: {}", first_line(&failure.message)),
            });
        }
    }
    reasons
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Whether a field is among those that the words are looked for in.
fn searched_fields<'a>(
    question: &ExplainRequest<'a>,
) -> Vec<&'a bindpost_azure_search_service::definition::IndexField> {
    question.index.texts(question.arguments.selected_fields())
}
