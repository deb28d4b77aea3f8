//! Generated filters: what is printed is read back, and two evaluators agree.

use std::collections::HashMap;

use chrono::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::ast::Operator;
use super::super::parser::{self, Constant, Expression, Kind};
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
        let tree = parser::filter(&text).map_err(|_| TestCaseError::fail(text.clone()))?;
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

/// The second evaluator: it follows names through the tree without types, as a reader of the text would.
fn simple<'a>(
    expression: &Expression<'_>,
    document: &'a Value,
    variables: &mut HashMap<String, &'a Value>,
) -> bool {
    match &expression.kind {
        Kind::And(parts) => parts.iter().all(|part| simple(part, document, variables)),
        Kind::Or(parts) => parts.iter().any(|part| simple(part, document, variables)),
        Kind::Not(inner) => !simple(inner, document, variables),
        Kind::Constant(constant) => *constant == Constant::Boolean(true),
        Kind::Path(_) => look(expression, document, variables) == json!(true),
        Kind::Compare { left, operator, right } => {
            let Kind::Constant(constant) = &right.kind else { panic!("a constant stands on the right") };
            let value = match &left.kind {
                Kind::Call { arguments, .. } => distance(arguments, document, variables),
                _ => look(left, document, variables),
            };
            let equal = *operator == Operator::Equal;
            match (constant, &value) {
                (Constant::Null, _) => value.is_null() == equal,
                (_, Value::Null) => *operator == Operator::NotEqual,
                (Constant::Boolean(constant), _) => (value == *constant) == equal,
                (Constant::Integer(constant), Value::Number(number)) if number.is_i64() => {
                    by(*operator, number.as_i64().unwrap().partial_cmp(constant))
                }
                (Constant::Double(constant), _) => {
                    let number = match value.as_str() {
                        Some(name) => name.to_lowercase().parse().unwrap(),
                        None => value.as_f64().unwrap(),
                    };
                    by(*operator, number.partial_cmp(constant))
                }
                (Constant::String(constant), _) => {
                    by(*operator, value.as_str().unwrap().as_bytes().partial_cmp(constant.as_bytes()))
                }
                (Constant::Date(constant), _) => {
                    let date = DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap();
                    by(*operator, date.timestamp_millis().partial_cmp(constant))
                }
                other => panic!("{other:?}"),
            }
        }
        Kind::Collection { path, all, lambda } => {
            let names = Expression { at: 0, kind: Kind::Path(path.clone()) };
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
        Kind::Call { function: "search.in", arguments } => {
            let value = look(&arguments[0], document, variables);
            let list = text(&arguments[1]);
            list.split('|').any(|item| !item.is_empty() && value == item)
        }
        Kind::Call { function: "geo.intersects", arguments } => {
            let value = look(&arguments[0], document, variables);
            let Kind::Constant(Constant::Geography(shape)) = &arguments[1].kind else { panic!("a polygon") };
            // All generated rings are boxes, so the corners suffice.
            let numbers: Vec<f64> =
                shape.split(['(', ')', ',', ' ']).filter_map(|number| number.parse().ok()).collect();
            !value.is_null() && {
                let at = |index: usize| value["coordinates"][index].as_f64().unwrap();
                (numbers[0]..=numbers[4]).contains(&at(0)) && (numbers[1]..=numbers[5]).contains(&at(1))
            }
        }
        Kind::Call { arguments, .. } => text(&arguments[0]).len().is_multiple_of(2),
    }
}

fn by(operator: Operator, order: Option<std::cmp::Ordering>) -> bool {
    match operator {
        Operator::Equal => order.is_some_and(|order| order.is_eq()),
        Operator::NotEqual => order.is_none_or(|order| order.is_ne()),
        Operator::Less => order.is_some_and(|order| order.is_lt()),
        Operator::LessOrEqual => order.is_some_and(|order| order.is_le()),
        Operator::Greater => order.is_some_and(|order| order.is_gt()),
        Operator::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
    }
}

fn text<'e>(expression: &'e Expression<'_>) -> &'e str {
    let Kind::Constant(Constant::String(text)) = &expression.kind else { panic!("a text") };
    text
}

fn look<'a>(
    expression: &Expression<'_>,
    document: &'a Value,
    variables: &HashMap<String, &'a Value>,
) -> Value {
    find(expression, document, variables).clone()
}

fn find<'a>(
    expression: &Expression<'_>,
    document: &'a Value,
    variables: &HashMap<String, &'a Value>,
) -> &'a Value {
    let Kind::Path(names) = &expression.kind else { panic!("a path: {expression:?}") };
    let (start, rest) = match variables.get(names[0].text) {
        Some(element) => (*element, &names[1..]),
        None => (document, &names[..]),
    };
    rest.iter().fold(start, |value, name| &value[name.text])
}

/// By vectors instead of haversines.
fn distance(arguments: &[Expression<'_>], document: &Value, variables: &HashMap<String, &Value>) -> Value {
    let value = find(&arguments[0], document, variables);
    let Kind::Constant(Constant::Geography(shape)) = &arguments[1].kind else { panic!("a point") };
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
