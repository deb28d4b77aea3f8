//! Evaluates a filter on one stored document. This is the reference for every condition: evaluation on
//! columns must give the same results. Conditions on the elements of complex collections are only
//! evaluated here.

use serde_json::Value;

use super::ast::{ComparisonOperator, FieldPath, FilterLiteral, GeoPoint, OdataFilter, TextMatch};
use super::{date, geo};

/// Whether the document matches the filter. `text` evaluates `search.ismatch` and
/// `search.ismatchscoring`.
pub fn matches(filter: &OdataFilter, document: &Value, text: &mut dyn FnMut(&TextMatch) -> bool) -> bool {
    matches_watched(filter, document, text, &|| ())
}

/// Like [`matches()`]. `look` is called for every element of a collection.
pub fn matches_watched(
    filter: &OdataFilter,
    document: &Value,
    text: &mut dyn FnMut(&TextMatch) -> bool,
    look: &dyn Fn(),
) -> bool {
    FilterEvaluation { document, elements: Vec::new(), text, look }.is_match(filter)
}

/// Reads a GeoJSON point.
pub fn geojson_point(value: &Value) -> Option<GeoPoint> {
    let mut coordinates = value.get("coordinates")?.as_array()?.iter().map(Value::as_f64);
    Some(GeoPoint { longitude: coordinates.next()??, latitude: coordinates.next()?? })
}

struct FilterEvaluation<'a, 't> {
    document: &'a Value,
    /// The current elements of the lambdas, the innermost last.
    elements: Vec<&'a Value>,
    text: &'t mut dyn FnMut(&TextMatch) -> bool,
    look: &'t dyn Fn(),
}

impl<'a> FilterEvaluation<'a, '_> {
    fn is_match(&mut self, filter: &OdataFilter) -> bool {
        match filter {
            OdataFilter::Constant(value) => *value,
            OdataFilter::And(parts) => parts.iter().all(|part| self.is_match(part)),
            OdataFilter::Or(parts) => parts.iter().any(|part| self.is_match(part)),
            OdataFilter::Not(inner) => !self.is_match(inner),
            OdataFilter::Compare { path, operator, value } => compare(self.value(path), *operator, value),
            OdataFilter::In { path, values } => self
                .value(path)
                .as_str()
                .is_some_and(|text| values.binary_search_by(|value| value.as_str().cmp(text)).is_ok()),
            OdataFilter::Any { path, condition } => {
                let elements = self.collection(path);
                match condition {
                    None => !elements.is_empty(),
                    Some(condition) => {
                        elements.iter().any(|element| self.is_element_match(element, condition))
                    }
                }
            }
            OdataFilter::All { path, condition } => {
                self.collection(path).iter().all(|element| self.is_element_match(element, condition))
            }
            OdataFilter::Distance { path, point: from, operator, kilometres } => {
                geojson_point(self.value(path)).is_some_and(|point| {
                    satisfies_operator(&geo::kilometres(*from, point), *operator, kilometres)
                })
            }
            OdataFilter::Within { path, ring } => {
                geojson_point(self.value(path)).is_some_and(|point| geo::ring_contains(ring, point))
            }
            OdataFilter::Match(wanted) => (self.text)(wanted),
        }
    }

    fn is_element_match(&mut self, element: &'a Value, condition: &OdataFilter) -> bool {
        (self.look)();
        self.elements.push(element);
        let holds = self.is_match(condition);
        self.elements.pop();
        holds
    }

    fn value(&self, path: &FieldPath) -> &'a Value {
        let start = match path.lambda {
            None => Some(self.document),
            Some(up) => self.elements.iter().rev().nth(up).copied(),
        };
        path.members
            .iter()
            .try_fold(start.unwrap_or(&Value::Null), |value, name| value.get(name))
            .unwrap_or(&Value::Null)
    }

    fn collection(&self, path: &FieldPath) -> &'a [Value] {
        self.value(path).as_array().map_or(&[], Vec::as_slice)
    }
}

fn compare(value: &Value, operator: ComparisonOperator, literal: &FilterLiteral) -> bool {
    let answer = match literal {
        FilterLiteral::Null => return (operator == ComparisonOperator::Equal) == value.is_null(),
        FilterLiteral::Boolean(literal) => {
            value.as_bool().map(|value| satisfies_operator(&value, operator, literal))
        }
        FilterLiteral::Integer(literal) => {
            value.as_i64().map(|value| satisfies_operator(&value, operator, literal))
        }
        FilterLiteral::Double(literal) => {
            double(value).map(|value| satisfies_operator(&value, operator, literal))
        }
        FilterLiteral::String(literal) => {
            value.as_str().map(|value| satisfies_operator(value, operator, literal.as_str()))
        }
        FilterLiteral::Date(literal) => {
            value.as_str().and_then(date::parse).map(|value| satisfies_operator(&value, operator, literal))
        }
    };
    // A missing value is not equal to any other value and has no order.
    answer.unwrap_or(operator == ComparisonOperator::NotEqual)
}

/// Reads a number. JSON has no infinite numbers, so documents use strings for them.
fn double(value: &Value) -> Option<f64> {
    match value.as_str() {
        None => value.as_f64(),
        Some("NaN") => Some(f64::NAN),
        Some("INF") => Some(f64::INFINITY),
        Some("-INF") => Some(f64::NEG_INFINITY),
        Some(_) => None,
    }
}

pub fn satisfies_operator<T: PartialOrd + ?Sized>(left: &T, operator: ComparisonOperator, right: &T) -> bool {
    match operator {
        ComparisonOperator::Equal => left == right,
        ComparisonOperator::NotEqual => left != right,
        ComparisonOperator::Less => left < right,
        ComparisonOperator::LessOrEqual => left <= right,
        ComparisonOperator::Greater => left > right,
        ComparisonOperator::GreaterOrEqual => left >= right,
    }
}
