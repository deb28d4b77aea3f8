//! Comparisons of one value: an operator, and a constant of the field's type.

use bindpost_azure_search_model::definition::{IndexField, PrimitiveType};
use bindpost_azure_search_model::odata::date;
use serde_json::{Map, Value};

use super::problem::FilterProblem;
use crate::tools::reading::{odata_literal, type_name};

/// A part of a filter.
pub(super) struct FilterText {
    pub(super) text: String,
    /// Whether it can be an operand of `and`, `or` and `not` without parentheses.
    pub(super) closed: bool,
}

impl FilterText {
    pub(super) fn closed(text: String) -> Option<FilterText> {
        Some(FilterText { text, closed: true })
    }

    pub(super) fn open(text: String) -> Option<FilterText> {
        Some(FilterText { text, closed: false })
    }

    pub(super) fn as_operand(&self) -> String {
        if self.closed { self.text.clone() } else { format!("({})", self.text) }
    }
}

/// Returns the comparison of a field with one value.
pub(super) fn one_value(
    field: &IndexField,
    primitive: PrimitiveType,
    written: &str,
    op: &str,
    members: &Map<String, Value>,
) -> Result<FilterText, FilterProblem> {
    let value = members.get("value");
    let is_point = primitive == PrimitiveType::GeographyPoint;
    if op == "geoDistance" || is_point {
        return match (op, is_point) {
            ("geoDistance", true) => geo_distance(written, members),
            ("geoDistance", false) => Err(FilterProblem::new(
                "wrongType",
                "geoDistance is only valid for fields of type Edm.GeographyPoint.",
            )),
            _ => Err(FilterProblem::new("wrongType", "Points support only geoDistance, exists and missing.")),
        };
    }
    match op {
        "in" | "search.in" => {
            let values = value.and_then(Value::as_array).filter(|values| !values.is_empty());
            one_of(field, primitive, written, values.ok_or_else(|| missing_value(op))?)
        }
        "between" => {
            let Some([from, to]) = value.and_then(Value::as_array).map(Vec::as_slice) else {
                return Err(missing_value(op).fix("set value: [from, to]"));
            };
            check_ordered(primitive, op)?;
            let (from, to) = (constant(field, primitive, from)?, constant(field, primitive, to)?);
            Ok(FilterText { text: format!("{written} ge {from} and {written} le {to}"), closed: false })
        }
        _ => {
            let value = value.ok_or_else(|| missing_value(op))?;
            if value.is_null() && !["eq", "ne"].contains(&op) {
                return Err(FilterProblem::new("wrongType", "null supports only eq and ne.")
                    .fix("use exists or missing"));
            }
            if !["eq", "ne"].contains(&op) {
                check_ordered(primitive, op)?;
            }
            let constant =
                if value.is_null() { "null".to_owned() } else { constant(field, primitive, value)? };
            Ok(FilterText { text: format!("{written} {op} {constant}"), closed: true })
        }
    }
}

fn check_ordered(primitive: PrimitiveType, op: &str) -> Result<(), FilterProblem> {
    match primitive {
        PrimitiveType::Boolean => {
            Err(FilterProblem::new("wrongType", format!("true and false have no order for {op}."))
                .fix("use eq or ne"))
        }
        _ => Ok(()),
    }
}

/// Returns the comparison with a list of values. Strings use `search.in`, which is fast for thousands
/// of values.
pub(super) fn one_of(
    field: &IndexField,
    primitive: PrimitiveType,
    written: &str,
    values: &[Value],
) -> Result<FilterText, FilterProblem> {
    let constants: Vec<String> =
        values.iter().map(|value| constant(field, primitive, value)).collect::<Result<_, _>>()?;
    if let [one] = constants.as_slice() {
        return Ok(FilterText { text: format!("{written} eq {one}"), closed: true });
    }
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let delimiter = [',', '|', ';', '~', '\u{1f}']
        .into_iter()
        .find(|delimiter| texts.iter().all(|text| !text.contains(*delimiter)))
        // An empty value would be lost between two delimiters.
        .filter(|_| primitive == PrimitiveType::String && texts.iter().all(|text| !text.is_empty()));
    Ok(match delimiter {
        Some(delimiter) => {
            let list = odata_literal(&texts.join(&delimiter.to_string()));
            FilterText { text: format!("search.in({written}, {list}, '{delimiter}')"), closed: true }
        }
        None => {
            let parts: Vec<String> = constants.iter().map(|one| format!("{written} eq {one}")).collect();
            FilterText { text: parts.join(" or "), closed: false }
        }
    })
}

/// Returns a value as an OData constant, if it has the field's type.
fn constant(field: &IndexField, primitive: PrimitiveType, value: &Value) -> Result<String, FilterProblem> {
    let wrong = |expected: &str| {
        let path = &field.path;
        let message =
            format!("'{path}' is of type {} and cannot be compared with {value}.", type_name(field.kind));
        FilterProblem::new("wrongType", message).field(path).fix(format!("give {expected}"))
    };
    match (primitive, value) {
        (PrimitiveType::String, Value::String(text)) => Ok(odata_literal(text)),
        (PrimitiveType::String, _) => Err(wrong("a string")),
        (PrimitiveType::Boolean, Value::Bool(value)) => Ok(value.to_string()),
        (PrimitiveType::Boolean, _) => Err(wrong("true or false, without quotes")),
        (PrimitiveType::Int32 | PrimitiveType::Int64, Value::Number(number)) if number.as_i64().is_some() => {
            Ok(number.to_string())
        }
        (PrimitiveType::Int32 | PrimitiveType::Int64, _) => Err(wrong("a whole number, without quotes")),
        (PrimitiveType::Double, Value::Number(number)) => Ok(number.to_string()),
        (PrimitiveType::Double, _) => Err(wrong("a number, without quotes")),
        (PrimitiveType::DateTimeOffset, Value::String(text)) => {
            let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.clone() };
            date::parse(&whole).map(|_| whole).ok_or_else(|| wrong("a date such as 2024-01-31T12:00:00Z"))
        }
        _ => Err(wrong("a date such as 2024-01-31T12:00:00Z")),
    }
}

fn geo_distance(written: &str, members: &Map<String, Value>) -> Result<FilterText, FilterProblem> {
    let needed = || {
        FilterProblem::new("wrongType", "geoDistance needs a point and a number of kilometres.")
            .fix("set point: [longitude, latitude] and km: 10")
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
    Ok(FilterText { text, closed: true })
}

/// Returns the problem of a missing value.
pub(super) fn missing_value(op: &str) -> FilterProblem {
    let fix = match op {
        "in" | "contains" | "containsAll" => "set value: ['a', 'b']",
        _ => "set value: …",
    };
    FilterProblem::new("form", format!("`{op}` requires a value.")).fix(fix)
}
