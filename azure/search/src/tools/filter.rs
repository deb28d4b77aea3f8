//! `buildFilter`: builds an OData filter from a form, or checks an existing filter.

mod comparison;
mod form;
mod problem;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use bindpost_azure_search_model::odata::parse_filter;
use bindpost_mcp_server::{Context, Entry, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::problem::FilterProblem;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{READS, ToolOutline, into_members};
use crate::tools::reading::{self, IndexDescription, ServiceReader};

/// Returns the tool.
pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let properties = json!({
        "indexName": {"type": "string"},
        "conditions": {"type": "object", "description": "{all:[…]}, {any:[…]}, {not:…} or {field:'a/b', op, value}; \
            op: eq ne gt ge lt le; in, containsAll (value: list); between (value: [from, to]); exists, missing; \
            contains (an element of a collection); startsWith; matches (words; field optional, mode any|all); \
            geoDistance (point: [longitude, latitude], km). on: any|all compares the elements of a collection; \
            {field:'rooms', on:'any', where:{…}} holds for one element"},
        "filter": {"type": "string", "description": "OData to check instead"},
        "tryIt": {"type": "boolean", "default": true, "description": "Count matching documents, look up real values"},
        "clientRequestId": {"type": "string"}
    });
    let description = "Builds an OData filter for an index from a form, with the right quotes and types, or checks one. \
                       Reports the field and the rule of each problem, values that exist, and how many documents match.";
    vec![
        ToolOutline::new("buildFilter", description, READS, properties, &["indexName"])
            .typed(shared, run)
            .into(),
    ]
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilterArguments {
    index_name: String,
    conditions: Option<Value>,
    filter: Option<String>,
    try_it: Option<bool>,
    client_request_id: Option<String>,
}

async fn run(
    shared: Arc<SearchServerState>,
    _: Context,
    arguments: FilterArguments,
) -> Result<Value, ToolError> {
    let reader = ServiceReader::new(&shared, arguments.client_request_id.clone());
    let index = reader.index(&arguments.index_name).await?;
    if arguments.conditions.is_none() && arguments.filter.is_none() {
        let failure = ServiceFailure::new(
            Kind::InvalidRequest,
            "set `conditions` to build a filter, or `filter` to check one",
        );
        return Err(failure.with("filterableFields", filterable(&index)).into());
    }
    let try_it = arguments.try_it.unwrap_or(true);
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    let built = arguments.conditions.as_ref().map(|conditions| {
        let built = form::build(conditions, &index);
        problems.extend(built.problems);
        notes.extend(built.notes);
        built.filter
    });
    let text = match (arguments.filter, built) {
        (Some(given), Some(built)) => format!("({given}) and ({built})"),
        (Some(given), None) => given,
        (None, built) => built.unwrap_or_default(),
    };
    if !problems.is_empty() {
        return Ok(answer(Value::Null, problems, notes, Map::new()));
    }
    let tree = match parse_filter(&text, &index.schema) {
        Ok(tree) => tree,
        Err(error) => {
            let problem = FilterProblem::from_parse_error(&error.message, &text, &index);
            // The service decides, because it may be newer than this parser.
            if try_it && let Ok(matches) = count(&reader, &index, &text).await {
                notes.push(format!("the service accepts it, although it seems invalid: {}", problem.message));
                let more = Map::from_iter([("matches".to_owned(), matches.into())]);
                return Ok(answer(text.into(), Vec::new(), notes, more));
            }
            return Ok(answer(Value::Null, vec![problem], notes, Map::new()));
        }
    };
    let mut more = Map::new();
    if try_it {
        match count(&reader, &index, &text).await {
            Ok(matches) => {
                more.insert("matches".to_owned(), matches.into());
            }
            Err(failure) if failure.kind == Kind::InvalidRequest => {
                problems.push(
                    FilterProblem::new("refusedByService", failure.message)
                        .fix("correct what the service reports"),
                );
            }
            Err(failure) => return Err(failure.into()),
        }
        let known = values::look_up(&reader, &index, &tree).await?;
        problems.extend(known.problems);
        if !known.examples.is_empty() {
            more.insert("examples".to_owned(), Value::Object(known.examples));
        }
    }
    Ok(answer(text.into(), problems, notes, more))
}

async fn count(
    reader: &ServiceReader,
    index: &IndexDescription,
    filter: &str,
) -> Result<Option<u64>, ServiceFailure> {
    let body = json!({"search": "*", "filter": filter, "count": true, "top": 0});
    Ok(reader.search(&index.name, into_members(body)).await?.count())
}

fn answer(
    filter: Value,
    problems: Vec<FilterProblem>,
    notes: Vec<String>,
    more: Map<String, Value>,
) -> Value {
    let valid = problems.iter().all(|problem| !problem.is_fatal());
    let mut answer = into_members(json!({"filter": filter, "valid": valid, "problems": problems}));
    answer.extend(more);
    if !notes.is_empty() {
        answer.insert("notes".to_owned(), notes.into());
    }
    Value::Object(answer)
}

/// Returns the filterable fields.
fn filterable(index: &IndexDescription) -> Vec<Value> {
    let leaves = index.schema.leaves().into_iter().filter(|field| field.filterable);
    leaves.map(|field| format!("{} ({})", field.path, reading::type_name(field.kind)).into()).collect()
}
