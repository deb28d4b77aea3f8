//! Whether a document passes a filter, and which of its values say no.

use bindpost_azure_search_service::odata::ast::OdataFilter;
use bindpost_azure_search_service::odata::{matches, parse_filter};
use serde_json::{Map, Value, json};

use super::ExplainRequest;
use crate::failure::ServiceFailure;
use crate::reading::{odata_literal, values_at};
use crate::tool::{into_members, shortened};

/// What a filter makes of a document.
#[derive(Debug)]
pub(super) struct FilterVerdict {
    /// `None` when it cannot be told.
    pub(super) passes: Option<bool>,
    pub(super) reason: Option<String>,
}

/// Asks the service, if the key can be filtered by; otherwise compares the document here.
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
                true => "The filter leaves it out.".to_owned(),
                false => format!("The filter leaves it out: in the document {}.", values.join(", ")),
            })
        }
        None => Some(
            "Whether it passes the filter cannot be told: the key is not filterable, and the filter looks at more than \
             the values that are shown."
                .to_owned(),
        ),
    };
    Ok(FilterVerdict { passes, reason })
}

/// The filter for this document alone; `None` when the key is not filterable.
pub(super) fn by_key(question: &ExplainRequest<'_>, key: &str, filter: &str) -> Option<String> {
    let field = question.index.schema.key();
    let this = format!("{} eq {}", field.name, odata_literal(key));
    field.filterable.then(|| match filter.trim().is_empty() {
        true => this,
        false => format!("{this} and ({filter})"),
    })
}

/// The filter on the document as it is shown. `None` when it has a part that only the service can answer.
fn evaluate_locally(filter: &OdataFilter, document: &Value) -> Option<bool> {
    let mut asked = false;
    let holds = matches(filter, document, &mut |_| {
        asked = true;
        true
    });
    (!asked).then_some(holds)
}

/// The values in the document of the fields in those parts that do not hold: `rating is 3`.
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
            // The element itself is what counts; a complex one has its own paths.
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
