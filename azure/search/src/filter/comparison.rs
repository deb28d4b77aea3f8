//! Comparisons of one value: the operator, and a constant of the field's type.

use bindpost_azure_search_service::definition::{Field, Primitive};
use bindpost_azure_search_service::odata::date;
use serde_json::{Map, Value};

use super::problem::Problem;
use crate::reading::{literal, type_name};

/// A piece of a filter.
pub(super) struct Text {
    pub(super) text: String,
    /// Whether it can stand beside `and`, `or` and after `not` as it is.
    pub(super) closed: bool,
}

impl Text {
    pub(super) fn closed(text: String) -> Option<Text> {
        Some(Text { text, closed: true })
    }

    pub(super) fn open(text: String) -> Option<Text> {
        Some(Text { text, closed: false })
    }

    pub(super) fn as_operand(&self) -> String {
        if self.closed { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// A comparison of one value.
pub(super) fn one_value(
    field: &Field,
    primitive: Primitive,
    written: &str,
    op: &str,
    members: &Map<String, Value>,
) -> Result<Text, Problem> {
    let value = members.get("value");
    let is_point = primitive == Primitive::GeographyPoint;
    if op == "geoDistance" || is_point {
        return match (op, is_point) {
            ("geoDistance", true) => near(written, members),
            ("geoDistance", false) => Err(Problem::new("wrongType", "geoDistance is for fields of points.")),
            _ => {
                Err(Problem::new("wrongType", "Points are compared by geoDistance, exists and missing only."))
            }
        };
    }
    match op {
        "in" | "search.in" => {
            let values = value.and_then(Value::as_array).filter(|values| !values.is_empty());
            one_of(field, primitive, written, values.ok_or_else(|| no_value(op))?)
        }
        "between" => {
            let Some([from, to]) = value.and_then(Value::as_array).map(Vec::as_slice) else {
                return Err(no_value(op).fix("give value: [from, to]"));
            };
            ordered(primitive, op)?;
            let (from, to) = (constant(field, primitive, from)?, constant(field, primitive, to)?);
            Ok(Text { text: format!("{written} ge {from} and {written} le {to}"), closed: false })
        }
        _ => {
            let value = value.ok_or_else(|| no_value(op))?;
            if value.is_null() && !["eq", "ne"].contains(&op) {
                return Err(Problem::new("wrongType", "null is compared by eq and ne only.")
                    .fix("use exists or missing"));
            }
            if !["eq", "ne"].contains(&op) {
                ordered(primitive, op)?;
            }
            let constant =
                if value.is_null() { "null".to_owned() } else { constant(field, primitive, value)? };
            Ok(Text { text: format!("{written} {op} {constant}"), closed: true })
        }
    }
}

fn ordered(primitive: Primitive, op: &str) -> Result<(), Problem> {
    match primitive {
        Primitive::Boolean => {
            Err(Problem::new("wrongType", format!("true and false have no order for {op}."))
                .fix("use eq or ne"))
        }
        _ => Ok(()),
    }
}

/// One of several values. Strings go into `search.in`, which is quick with thousands of them.
pub(super) fn one_of(
    field: &Field,
    primitive: Primitive,
    written: &str,
    values: &[Value],
) -> Result<Text, Problem> {
    let constants: Vec<String> =
        values.iter().map(|value| constant(field, primitive, value)).collect::<Result<_, _>>()?;
    if let [one] = constants.as_slice() {
        return Ok(Text { text: format!("{written} eq {one}"), closed: true });
    }
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let delimiter = [',', '|', ';', '~', '\u{1f}']
        .into_iter()
        .find(|delimiter| texts.iter().all(|text| !text.contains(*delimiter)))
        // An empty value would get lost between two delimiters.
        .filter(|_| primitive == Primitive::String && texts.iter().all(|text| !text.is_empty()));
    Ok(match delimiter {
        Some(delimiter) => {
            let list = literal(&texts.join(&delimiter.to_string()));
            Text { text: format!("search.in({written}, {list}, '{delimiter}')"), closed: true }
        }
        None => {
            let parts: Vec<String> = constants.iter().map(|one| format!("{written} eq {one}")).collect();
            Text { text: parts.join(" or "), closed: false }
        }
    })
}

/// A value as filters write it, if it is one of the field's type.
fn constant(field: &Field, primitive: Primitive, value: &Value) -> Result<String, Problem> {
    let wrong = |expected: &str| {
        let path = &field.path;
        let message =
            format!("'{path}' is of type {} and cannot be compared with {value}.", type_name(field.kind));
        Problem::new("wrongType", message).field(path).fix(format!("give {expected}"))
    };
    match (primitive, value) {
        (Primitive::String, Value::String(text)) => Ok(literal(text)),
        (Primitive::String, _) => Err(wrong("a text")),
        (Primitive::Boolean, Value::Bool(value)) => Ok(value.to_string()),
        (Primitive::Boolean, _) => Err(wrong("true or false, without quotes")),
        (Primitive::Int32 | Primitive::Int64, Value::Number(number)) if number.as_i64().is_some() => {
            Ok(number.to_string())
        }
        (Primitive::Int32 | Primitive::Int64, _) => Err(wrong("a whole number, without quotes")),
        (Primitive::Double, Value::Number(number)) => Ok(number.to_string()),
        (Primitive::Double, _) => Err(wrong("a number, without quotes")),
        (Primitive::DateTimeOffset, Value::String(text)) => {
            let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.clone() };
            date::parse(&whole).map(|_| whole).ok_or_else(|| wrong("a date such as 2024-01-31T12:00:00Z"))
        }
        _ => Err(wrong("a date such as 2024-01-31T12:00:00Z")),
    }
}

fn near(written: &str, members: &Map<String, Value>) -> Result<Text, Problem> {
    let needed = || {
        Problem::new("wrongType", "geoDistance needs a point and a number of kilometres.")
            .fix("give point: [longitude, latitude] and km: 10")
    };
    let number = |value: Option<&Value>, most: f64| {
        value.and_then(Value::as_f64).filter(|number| number.abs() <= most).ok_or_else(needed)
    };
    let point = members.get("point").ok_or_else(needed)?;
    let (longitude, latitude) = match point {
        Value::Array(_) => (point.get(0), point.get(1)),
        _ => (
            point.get("longitude").or(point.get("lon")).or(point.get("lng")),
            point.get("latitude").or(point.get("lat")),
        ),
    };
    let (longitude, latitude) = (number(longitude, 180.0)?, number(latitude, 90.0)?);
    let kilometres = number(members.get("km"), f64::MAX)?;
    let text = format!("geo.distance({written}, geography'POINT({longitude} {latitude})') le {kilometres}");
    Ok(Text { text, closed: true })
}

/// A value is missing.
pub(super) fn no_value(op: &str) -> Problem {
    let fix = match op {
        "in" | "contains" | "containsAll" => "give value: ['a', 'b']",
        _ => "give value: …",
    };
    Problem::new("form", format!("`{op}` needs a value.")).fix(fix)
}
