//! Looks up the values that documents have, for filters that compare with other values.

use std::collections::BTreeMap;

use bindpost_azure_search_model::odata::ast::{ComparisonOperator, FilterLiteral, OdataFilter};
use bindpost_mcp_server::nearest::{distance, letter_count};
use serde_json::{Map, Value, json};

use super::problem::FilterProblem;
use crate::service::failure::{Kind, ServiceFailure};
use crate::tools::builder::shortened;
use crate::tools::reading::{IndexDescription, ServiceReader};

/// Maximum number of values of a field to compare with.
const MAX_VALUES: usize = 1000;
/// Maximum number of fields whose values are requested.
const MAX_FIELDS: usize = 10;
const EXAMPLES: usize = 5;

/// The values of the fields in a filter.
#[derive(Debug, Default)]
pub(super) struct KnownValues {
    /// Problems for values that no document has.
    pub(super) problems: Vec<FilterProblem>,
    /// The most frequent values of each field.
    pub(super) examples: Map<String, Value>,
}

/// Requests the facets of the fields that a filter compares with strings.
pub(super) async fn look_up(
    reader: &ServiceReader,
    index: &IndexDescription,
    filter: &OdataFilter,
) -> Result<KnownValues, ServiceFailure> {
    let mut wanted = BTreeMap::new();
    collect(filter, &mut wanted);
    wanted.retain(|path, _| index.schema.find(path).is_some_and(|field| field.facetable));
    let facets: Vec<String> =
        wanted.keys().take(MAX_FIELDS).map(|path| format!("{path},count:{MAX_VALUES}")).collect();
    let mut known = KnownValues::default();
    if facets.is_empty() {
        return Ok(known);
    }
    let body = Map::from_iter([
        ("search".to_owned(), json!("*")),
        ("top".to_owned(), json!(0)),
        ("facets".to_owned(), json!(facets)),
    ]);
    let found = match reader.search(&index.name, body).await {
        Ok(found) => found,
        // A filter is usable without known values.
        Err(failure) if failure.kind == Kind::InvalidRequest => return Ok(known),
        Err(failure) => return Err(failure),
    };
    for (path, values) in wanted.into_iter().take(MAX_FIELDS) {
        let buckets = found.facet(&path);
        let texts: Vec<&str> = buckets.iter().filter_map(|(value, _)| value.as_str()).collect();
        let examples: Vec<&Value> = buckets.iter().map(|(value, _)| *value).take(EXAMPLES).collect();
        known.examples.insert(path.clone(), json!(examples));
        let normalized = index.schema.find(&path).is_some_and(|field| field.normalizer.is_some());
        // With so many values the wanted value may be among those not returned.
        if buckets.len() >= MAX_VALUES {
            continue;
        }
        for value in values {
            let is = |text: &&str| **text == value || (normalized && text.eq_ignore_ascii_case(&value));
            if texts.iter().any(is) {
                continue;
            }
            let near = nearest_values(&value, &texts);
            let fix = match near.is_empty() {
                true => "see `examples` for values that documents have".to_owned(),
                false => format!("did you mean {}?", near.join(" or ")),
            };
            let message = format!("No document has the value '{}'.", shortened(&value, 60));
            known.problems.push(FilterProblem::new("valueNotFound", message).field(&path).fix(fix));
        }
    }
    Ok(known)
}

/// Collects the strings that fields must equal, by path. Negated comparisons are skipped.
fn collect(filter: &OdataFilter, wanted: &mut BTreeMap<String, Vec<String>>) {
    match filter {
        OdataFilter::And(parts) | OdataFilter::Or(parts) => {
            parts.iter().for_each(|part| collect(part, wanted))
        }
        OdataFilter::Compare {
            path,
            operator: ComparisonOperator::Equal,
            value: FilterLiteral::String(text),
        } => {
            wanted.entry(path.field.clone()).or_default().push(text.clone());
        }
        OdataFilter::In { path, values } => {
            wanted.entry(path.field.clone()).or_default().extend(values.clone())
        }
        OdataFilter::Any { condition: Some(condition), .. } => collect(condition, wanted),
        _ => {}
    }
}

/// Returns at most three values with a similar spelling, or that contain the value.
fn nearest_values(value: &str, known: &[&str]) -> Vec<String> {
    let most = (letter_count(value) / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .filter_map(|candidate| {
            let contains = !value.is_empty() && candidate.to_lowercase().contains(&value.to_lowercase());
            let apart = distance(value, candidate);
            (apart <= most || contains)
                .then_some((if contains { apart.min(most) } else { apart }, *candidate))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, value)| format!("'{value}'")).collect()
}
