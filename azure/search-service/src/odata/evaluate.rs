//! A filter on one document as it is stored. The plain reading of every condition: columns must give the same answers,
//! and conditions on the elements of complex collections have no other.

use serde_json::Value;

use super::ast::{Filter, Literal, Operator, Path, Point, TextMatch};
use super::{date, geo};

/// `text` answers for `search.ismatch` and `search.ismatchscoring`.
pub fn matches(filter: &Filter, document: &Value, text: &mut dyn FnMut(&TextMatch) -> bool) -> bool {
    matches_watched(filter, document, text, &|| ())
}

/// The same; `look` is called for every element of a collection.
pub(crate) fn matches_watched(
    filter: &Filter,
    document: &Value,
    text: &mut dyn FnMut(&TextMatch) -> bool,
    look: &dyn Fn(),
) -> bool {
    Evaluation { document, elements: Vec::new(), text, look }.holds(filter)
}

/// A point as documents have it: GeoJSON.
pub fn point(value: &Value) -> Option<Point> {
    let mut coordinates = value.get("coordinates")?.as_array()?.iter().map(Value::as_f64);
    Some(Point { longitude: coordinates.next()??, latitude: coordinates.next()?? })
}

struct Evaluation<'a, 't> {
    document: &'a Value,
    /// Where the lambdas are, the innermost last.
    elements: Vec<&'a Value>,
    text: &'t mut dyn FnMut(&TextMatch) -> bool,
    look: &'t dyn Fn(),
}

impl<'a> Evaluation<'a, '_> {
    fn holds(&mut self, filter: &Filter) -> bool {
        match filter {
            Filter::Constant(value) => *value,
            Filter::And(parts) => parts.iter().all(|part| self.holds(part)),
            Filter::Or(parts) => parts.iter().any(|part| self.holds(part)),
            Filter::Not(inner) => !self.holds(inner),
            Filter::Compare { path, operator, value } => compare(self.value(path), *operator, value),
            Filter::In { path, values } => self
                .value(path)
                .as_str()
                .is_some_and(|text| values.binary_search_by(|value| value.as_str().cmp(text)).is_ok()),
            Filter::Any { path, condition } => {
                let elements = self.collection(path);
                match condition {
                    None => !elements.is_empty(),
                    Some(condition) => elements.iter().any(|element| self.holds_for(element, condition)),
                }
            }
            Filter::All { path, condition } => {
                self.collection(path).iter().all(|element| self.holds_for(element, condition))
            }
            Filter::Distance { path, point: from, operator, kilometres } => point(self.value(path))
                .is_some_and(|point| ordered(&geo::kilometres(*from, point), *operator, kilometres)),
            Filter::Within { path, ring } => {
                point(self.value(path)).is_some_and(|point| geo::within(ring, point))
            }
            Filter::Match(wanted) => (self.text)(wanted),
        }
    }

    fn holds_for(&mut self, element: &'a Value, condition: &Filter) -> bool {
        (self.look)();
        self.elements.push(element);
        let holds = self.holds(condition);
        self.elements.pop();
        holds
    }

    fn value(&self, path: &Path) -> &'a Value {
        let start = match path.lambda {
            None => Some(self.document),
            Some(up) => self.elements.iter().rev().nth(up).copied(),
        };
        path.members
            .iter()
            .try_fold(start.unwrap_or(&Value::Null), |value, name| value.get(name))
            .unwrap_or(&Value::Null)
    }

    fn collection(&self, path: &Path) -> &'a [Value] {
        self.value(path).as_array().map_or(&[], Vec::as_slice)
    }
}

fn compare(value: &Value, operator: Operator, literal: &Literal) -> bool {
    let answer = match literal {
        Literal::Null => return (operator == Operator::Equal) == value.is_null(),
        Literal::Boolean(literal) => value.as_bool().map(|value| ordered(&value, operator, literal)),
        Literal::Integer(literal) => value.as_i64().map(|value| ordered(&value, operator, literal)),
        Literal::Double(literal) => double(value).map(|value| ordered(&value, operator, literal)),
        Literal::String(literal) => value.as_str().map(|value| ordered(value, operator, literal.as_str())),
        Literal::Date(literal) => {
            value.as_str().and_then(date::parse).map(|value| ordered(&value, operator, literal))
        }
    };
    // A missing value differs from every other and has no order.
    answer.unwrap_or(operator == Operator::NotEqual)
}

/// JSON has no infinite numbers; documents name them.
fn double(value: &Value) -> Option<f64> {
    match value.as_str() {
        None => value.as_f64(),
        Some("NaN") => Some(f64::NAN),
        Some("INF") => Some(f64::INFINITY),
        Some("-INF") => Some(f64::NEG_INFINITY),
        Some(_) => None,
    }
}

pub(crate) fn ordered<T: PartialOrd + ?Sized>(left: &T, operator: Operator, right: &T) -> bool {
    match operator {
        Operator::Equal => left == right,
        Operator::NotEqual => left != right,
        Operator::Less => left < right,
        Operator::LessOrEqual => left <= right,
        Operator::Greater => left > right,
        Operator::GreaterOrEqual => left >= right,
    }
}
