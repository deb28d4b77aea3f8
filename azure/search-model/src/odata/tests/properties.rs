//! Property tests with generated filters: printed filters parse back, and two evaluators agree.

use std::collections::HashMap;

use chrono::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::ast::ComparisonOperator;
use super::super::parser::{self, OdataConstant, OdataExpression, OdataExpressionKind};
use super::super::{matches, parse_filter, parse_orderby};
use super::generate::{Place, condition, document, print};
use super::{hotel, hotels};

proptest! {
    #[test]
    fn a_printed_filter_is_read_back(filter in condition(Place::Root, 3)) {
        let text = print(&filter, 0);
        prop_assert_eq!(parse_filter(&text, &hotels()).map_err(|error| format!("{text}: {error}")), Ok(filter));
    }

    #[test]
    fn both_evaluators_agree(filter in condition(Place::Root, 3), document in document()) {
        let text = print(&filter, 0);
        let tree = parser::parse_expression(&text).map_err(|_| TestCaseError::fail(text.clone()))?;
        let mut variables = HashMap::new();
        let expected = simple(&tree, &document, &mut variables);
        let found = matches(&filter, &document, &mut |wanted| wanted.search.len().is_multiple_of(2));
        prop_assert_eq!(found, expected, "{} on {}", text, document);
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,60}") {
        let _ = parse_filter(&text, &hotels());
        let _ = parse_orderby(&text, &hotels());
    }

    #[test]
    fn no_order_of_words_makes_it_panic(words in vec(select(WORDS), 0..30), joined in select(vec!["", " "])) {
        let text = words.join(joined);
        if let Ok(filter) = parse_filter(&text, &hotels()) {
            matches(&filter, &hotel(), &mut |_| true);
        }
        let _ = parse_orderby(&text, &hotels());
    }
}

const WORDS: &[&str] = &[
    "(",
    ")",
    ",",
    ":",
    "/",
    "and",
    "or",
    "not",
    "eq",
    "ne",
    "lt",
    "ge",
    "any",
    "all",
    "any(",
    "t",
    "t:",
    "rating",
    "category",
    "tags",
    "rooms",
    "address",
    "city",
    "baseRate",
    "location",
    "isOpen",
    "search.in(",
    "geo.distance(",
    "geography'POINT(1 2)'",
    "geography'",
    "search.ismatch(",
    "'a'",
    "'",
    "''",
    "5",
    "-",
    "1.5e3",
    "null",
    "true",
    "INF",
    "2024-01-31T00:00:00Z",
    "2024-",
    "desc",
    "asc",
    "search.score()",
    "é",
    "\u{0}",
    ".",
];

/// The second evaluator. It resolves names in the untyped tree, independently of the checked filter.
fn simple<'a>(
    expression: &OdataExpression<'_>,
    document: &'a Value,
    variables: &mut HashMap<String, &'a Value>,
) -> bool {
    match &expression.kind {
        OdataExpressionKind::And(parts) => parts.iter().all(|part| simple(part, document, variables)),
        OdataExpressionKind::Or(parts) => parts.iter().any(|part| simple(part, document, variables)),
        OdataExpressionKind::Not(inner) => !simple(inner, document, variables),
        OdataExpressionKind::Constant(constant) => *constant == OdataConstant::Boolean(true),
        OdataExpressionKind::Path(_) => look(expression, document, variables) == json!(true),
        OdataExpressionKind::Compare { left, operator, right } => {
            let OdataExpressionKind::Constant(constant) = &right.kind else {
                panic!("expected a constant on the right")
            };
            let value = match &left.kind {
                OdataExpressionKind::Call { arguments, .. } => distance(arguments, document, variables),
                _ => look(left, document, variables),
            };
            let equal = *operator == ComparisonOperator::Equal;
            match (constant, &value) {
                (OdataConstant::Null, _) => value.is_null() == equal,
                (_, Value::Null) => *operator == ComparisonOperator::NotEqual,
                (OdataConstant::Boolean(constant), _) => (value == *constant) == equal,
                (OdataConstant::Integer(constant), Value::Number(number)) if number.is_i64() => {
                    by(*operator, number.as_i64().unwrap().partial_cmp(constant))
                }
                (OdataConstant::Double(constant), _) => {
                    let number = match value.as_str() {
                        Some(name) => name.to_lowercase().parse().unwrap(),
                        None => value.as_f64().unwrap(),
                    };
                    by(*operator, number.partial_cmp(constant))
                }
                (OdataConstant::String(constant), _) => {
                    by(*operator, value.as_str().unwrap().as_bytes().partial_cmp(constant.as_bytes()))
                }
                (OdataConstant::Date(constant), _) => {
                    let date = DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap();
                    by(*operator, date.timestamp_millis().partial_cmp(constant))
                }
                other => panic!("{other:?}"),
            }
        }
        OdataExpressionKind::Collection { path, all, lambda } => {
            let names = OdataExpression { at: 0, kind: OdataExpressionKind::Path(path.clone()) };
            let elements = find(&names, document, variables).as_array().unwrap();
            let Some(lambda) = lambda else { return !elements.is_empty() };
            let count = elements
                .iter()
                .filter(|element| {
                    variables.insert(lambda.variable.text.to_owned(), element);
                    simple(&lambda.body, document, variables)
                })
                .count();
            variables.remove(lambda.variable.text);
            if *all { count == elements.len() } else { count > 0 }
        }
        OdataExpressionKind::Call { function: "search.in", arguments } => {
            let value = look(&arguments[0], document, variables);
            let list = text(&arguments[1]);
            list.split('|').any(|item| !item.is_empty() && value == item)
        }
        OdataExpressionKind::Call { function: "geo.intersects", arguments } => {
            let value = look(&arguments[0], document, variables);
            let OdataExpressionKind::Constant(OdataConstant::Geography(shape)) = &arguments[1].kind else {
                panic!("expected a polygon")
            };
            // All generated rings are boxes, so the corners are sufficient.
            let numbers: Vec<f64> =
                shape.split(['(', ')', ',', ' ']).filter_map(|number| number.parse().ok()).collect();
            !value.is_null() && {
                let at = |index: usize| value["coordinates"][index].as_f64().unwrap();
                (numbers[0]..=numbers[4]).contains(&at(0)) && (numbers[1]..=numbers[5]).contains(&at(1))
            }
        }
        OdataExpressionKind::Call { arguments, .. } => text(&arguments[0]).len().is_multiple_of(2),
    }
}

fn by(operator: ComparisonOperator, order: Option<std::cmp::Ordering>) -> bool {
    match operator {
        ComparisonOperator::Equal => order.is_some_and(|order| order.is_eq()),
        ComparisonOperator::NotEqual => order.is_none_or(|order| order.is_ne()),
        ComparisonOperator::Less => order.is_some_and(|order| order.is_lt()),
        ComparisonOperator::LessOrEqual => order.is_some_and(|order| order.is_le()),
        ComparisonOperator::Greater => order.is_some_and(|order| order.is_gt()),
        ComparisonOperator::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
    }
}

fn text<'e>(expression: &'e OdataExpression<'_>) -> &'e str {
    let OdataExpressionKind::Constant(OdataConstant::String(text)) = &expression.kind else {
        panic!("expected a text")
    };
    text
}

fn look<'a>(
    expression: &OdataExpression<'_>,
    document: &'a Value,
    variables: &HashMap<String, &'a Value>,
) -> Value {
    find(expression, document, variables).clone()
}

fn find<'a>(
    expression: &OdataExpression<'_>,
    document: &'a Value,
    variables: &HashMap<String, &'a Value>,
) -> &'a Value {
    let OdataExpressionKind::Path(names) = &expression.kind else { panic!("no path: {expression:?}") };
    let (start, rest) = match variables.get(names[0].text) {
        Some(element) => (*element, &names[1..]),
        None => (document, &names[..]),
    };
    rest.iter().fold(start, |value, name| &value[name.text])
}

/// Computes the distance with vectors instead of haversines.
fn distance(
    arguments: &[OdataExpression<'_>],
    document: &Value,
    variables: &HashMap<String, &Value>,
) -> Value {
    let value = find(&arguments[0], document, variables);
    let OdataExpressionKind::Constant(OdataConstant::Geography(shape)) = &arguments[1].kind else {
        panic!("expected a point")
    };
    let numbers: Vec<f64> = shape.split(['(', ')', ' ']).filter_map(|number| number.parse().ok()).collect();
    if value.is_null() {
        return Value::Null;
    }
    let unit = |longitude: f64, latitude: f64| {
        let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
        [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
    };
    let at = |index: usize| value["coordinates"][index].as_f64().unwrap();
    let (from, to) = (unit(at(0), at(1)), unit(numbers[0], numbers[1]));
    let cosine: f64 = from.iter().zip(to).map(|(from, to)| from * to).sum();
    json!(cosine.clamp(-1.0, 1.0).acos() * 6_371.008_771_4)
}
