//! Checks whether a document matches a filter, and finds the values that do not.

use bindpost_azure_search_model::odata::ast::OdataFilter;
use bindpost_azure_search_model::odata::{matches, parse_filter};
use serde_json::{Map, Value, json};

use super::ExplainRequest;
use crate::service::failure::ServiceFailure;
use crate::tools::builder::{into_members, shortened};
use crate::tools::reading::{odata_literal, values_at};

/// The result of a filter for one document.
#[derive(Debug)]
pub(super) struct FilterVerdict {
    /// `None` if it is unknown.
    pub(super) passes: Option<bool>,
    pub(super) reason: Option<String>,
}

/// Asks the service if the key is filterable. Otherwise evaluates the filter locally.
pub(super) async fn check(
    question: &ExplainRequest<'_>,
    key: &str,
    document: &Value,
) -> Result<FilterVerdict, ServiceFailure> {
    let Some(filter) = question.arguments.filter.as_deref().filter(|filter| !filter.trim().is_empty()) else {
        return Ok(FilterVerdict { passes: Some(true), reason: None });
    };
    let tree = parse_filter(filter, &question.index.schema).ok();
    let passes = match by_key(question, key, filter) {
        Some(whole) => {
            let body = json!({"search": "*", "filter": whole, "top": 0, "count": true});
            question
                .reader
                .search(&question.index.name, into_members(body))
                .await?
                .count()
                .map(|count| count > 0)
        }
        None => tree.as_ref().and_then(|tree| evaluate_locally(tree, document)),
    };
    let reason = match passes {
        Some(true) => None,
        Some(false) => {
            let values = tree.map(|tree| failing(&tree, document)).unwrap_or_default();
            Some(match values.is_empty() {
                true => "The filter excludes it.".to_owned(),
                false => format!("The filter excludes it: in the document {}.", values.join(", ")),
            })
        }
        None => Some(
            "It is unknown whether it matches the filter: the key is not filterable, and the filter uses more than \
             the retrievable values."
                .to_owned(),
        ),
    };
    Ok(FilterVerdict { passes, reason })
}

/// Returns the filter restricted to this document, or `None` if the key is not filterable.
pub(super) fn by_key(question: &ExplainRequest<'_>, key: &str, filter: &str) -> Option<String> {
    let field = question.index.schema.key();
    let this = format!("{} eq {}", field.name, odata_literal(key));
    field.filterable.then(|| match filter.trim().is_empty() {
        true => this,
        false => format!("{this} and ({filter})"),
    })
}

/// Evaluates the filter on the retrieved document. Returns `None` if a part needs the service.
fn evaluate_locally(filter: &OdataFilter, document: &Value) -> Option<bool> {
    let mut asked = false;
    let holds = matches(filter, document, &mut |_| {
        asked = true;
        true
    });
    (!asked).then_some(holds)
}

/// Returns the values of the fields in the conditions that are false: `rating is 3`.
fn failing(filter: &OdataFilter, document: &Value) -> Vec<String> {
    let parts: Vec<&OdataFilter> = match filter {
        OdataFilter::And(parts) => parts.iter().collect(),
        one => vec![one],
    };
    let mut fields = Vec::new();
    for part in parts.into_iter().filter(|part| evaluate_locally(part, document) == Some(false)) {
        collect(part, &mut fields);
    }
    fields.into_iter().map(|path| format!("{path} is {}", value(document, &path))).collect()
}

fn value(document: &Value, path: &str) -> String {
    let values = values_at(document, path);
    match values.as_slice() {
        [] => "not set".to_owned(),
        [one] => shortened(&one.to_string(), 60),
        several => shortened(&json!(several).to_string(), 100),
    }
}

fn collect(filter: &OdataFilter, fields: &mut Vec<String>) {
    let path = match filter {
        OdataFilter::And(parts) | OdataFilter::Or(parts) => {
            return parts.iter().for_each(|part| collect(part, fields));
        }
        OdataFilter::Not(inner) => return collect(inner, fields),
        OdataFilter::Any { path, condition: Some(inner) } => match &**inner {
            // A primitive element has no path of its own. A complex element has its own paths.
            OdataFilter::Compare { path, .. } | OdataFilter::In { path, .. } => path,
            other => {
                collect(other, fields);
                path
            }
        },
        OdataFilter::Compare { path, .. }
        | OdataFilter::In { path, .. }
        | OdataFilter::Any { path, .. }
        | OdataFilter::All { path, .. }
        | OdataFilter::Distance { path, .. }
        | OdataFilter::Within { path, .. } => path,
        OdataFilter::Constant(_) | OdataFilter::Match(_) => return,
    };
    if !fields.contains(&path.field) {
        fields.push(path.field.clone());
    }
}

/// Adds a condition on the key to a request.
pub(super) fn restrict_to_key(
    question: &ExplainRequest<'_>,
    key: &str,
    body: &mut Map<String, Value>,
) -> bool {
    let filter = body.get("filter").and_then(Value::as_str).unwrap_or_default();
    match by_key(question, key, filter) {
        Some(whole) => {
            body.insert("filter".to_owned(), whole.into());
            true
        }
        None => false,
    }
}
