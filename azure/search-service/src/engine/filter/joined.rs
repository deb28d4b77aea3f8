//! Combines comparisons of one field with many values into one look-up in a set.

use bindpost_azure_search_model::odata::ast::{ComparisonOperator, FieldPath, FilterLiteral, OdataFilter};

/// Returns an equivalent filter that is cheaper to evaluate. `f eq 'a' or f eq 'b'` becomes a set of
/// values. `f ne 'a' and f ne 'b'` becomes the negated set, which also matches documents without a value.
pub(crate) fn join_comparisons(filter: &OdataFilter) -> OdataFilter {
    match filter {
        OdataFilter::Or(parts) => join(parts, ComparisonOperator::Equal, OdataFilter::Or, |set| set),
        OdataFilter::And(parts) => {
            join(parts, ComparisonOperator::NotEqual, OdataFilter::And, |set| OdataFilter::Not(Box::new(set)))
        }
        OdataFilter::Not(inner) => OdataFilter::Not(Box::new(join_comparisons(inner))),
        OdataFilter::Any { path, condition: Some(condition) } => {
            OdataFilter::Any { path: path.clone(), condition: Some(Box::new(join_comparisons(condition))) }
        }
        OdataFilter::All { path, condition } => {
            OdataFilter::All { path: path.clone(), condition: Box::new(join_comparisons(condition)) }
        }
        other => other.clone(),
    }
}

fn join(
    parts: &[OdataFilter],
    joins: ComparisonOperator,
    together: impl FnOnce(Vec<OdataFilter>) -> OdataFilter,
    as_condition: impl Fn(OdataFilter) -> OdataFilter,
) -> OdataFilter {
    let mut sets: Vec<(&FieldPath, Vec<String>)> = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        match part {
            OdataFilter::Compare { path, operator, value: FilterLiteral::String(value) }
                if *operator == joins =>
            {
                match sets.iter_mut().find(|(known, _)| *known == path) {
                    Some((_, values)) => values.push(value.clone()),
                    None => sets.push((path, vec![value.clone()])),
                }
            }
            other => rest.push(join_comparisons(other)),
        }
    }
    for (path, mut values) in sets {
        rest.push(match values.as_slice() {
            [only] => {
                let value = FilterLiteral::String(only.clone());
                OdataFilter::Compare { path: path.clone(), operator: joins, value }
            }
            _ => {
                // The values are searched as a sorted list.
                values.sort_unstable();
                values.dedup();
                as_condition(OdataFilter::In { path: path.clone(), values })
            }
        });
    }
    match rest.pop() {
        Some(only) if rest.is_empty() => only,
        last => {
            rest.extend(last);
            together(rest)
        }
    }
}
