//! Comparisons with many values of one field, as one look into a set of them.

use crate::odata::ast::{Filter, Literal, Operator, Path};

/// The same condition with less to do: `f eq 'a' or f eq 'b'` becomes a set of values, and `f ne 'a' and f ne 'b'` its
/// negation, which also holds where there is no value.
pub fn joined(filter: &Filter) -> Filter {
    match filter {
        Filter::Or(parts) => join(parts, Operator::Equal, Filter::Or, |set| set),
        Filter::And(parts) => join(parts, Operator::NotEqual, Filter::And, |set| Filter::Not(Box::new(set))),
        Filter::Not(inner) => Filter::Not(Box::new(joined(inner))),
        Filter::Any { path, condition: Some(condition) } => {
            Filter::Any { path: path.clone(), condition: Some(Box::new(joined(condition))) }
        }
        Filter::All { path, condition } => {
            Filter::All { path: path.clone(), condition: Box::new(joined(condition)) }
        }
        other => other.clone(),
    }
}

fn join(
    parts: &[Filter],
    joins: Operator,
    together: impl FnOnce(Vec<Filter>) -> Filter,
    as_condition: impl Fn(Filter) -> Filter,
) -> Filter {
    let mut sets: Vec<(&Path, Vec<String>)> = Vec::new();
    let mut rest = Vec::new();
    for part in parts {
        match part {
            Filter::Compare { path, operator, value: Literal::String(value) } if *operator == joins => {
                match sets.iter_mut().find(|(known, _)| *known == path) {
                    Some((_, values)) => values.push(value.clone()),
                    None => sets.push((path, vec![value.clone()])),
                }
            }
            other => rest.push(joined(other)),
        }
    }
    for (path, mut values) in sets {
        rest.push(match values.as_slice() {
            [only] => {
                let value = Literal::String(only.clone());
                Filter::Compare { path: path.clone(), operator: joins, value }
            }
            _ => {
                // They are searched as a sorted list.
                values.sort_unstable();
                values.dedup();
                as_condition(Filter::In { path: path.clone(), values })
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
