//! Converts source values to the types of fields. Text rows have no numbers, and files have no dates.

use bindpost_azure_search_model::definition::field::{FieldType, IndexField, PrimitiveType};
use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};
use serde_json::{Map, Number, Value};

/// Converts a value to the type of the field. The error explains why that is impossible.
pub(super) fn convert(value: Value, field: &IndexField) -> Result<Value, String> {
    match (field.kind, value) {
        (_, Value::Null) => Ok(Value::Null),
        (FieldType::One(primitive), value) => one(value, primitive),
        (FieldType::Many(primitive), Value::Array(list)) => {
            list.into_iter().map(|element| one(element, primitive)).collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        (FieldType::Many(PrimitiveType::String), Value::String(_)) => Err(
            "it is text and the field is a collection. Use the mapping function jsonArrayToStringCollection for text such as [\"a\",\"b\"].".to_owned(),
        ),
        (FieldType::Complex, value) => complex(value, field),
        (FieldType::ManyComplex, Value::Array(list)) => {
            list.into_iter().map(|element| complex(element, field)).collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
        (FieldType::Many(_) | FieldType::ManyComplex, _) => {
            Err("it is a single value and the field is a collection.".to_owned())
        }
    }
}

fn complex(value: Value, field: &IndexField) -> Result<Value, String> {
    let Value::Object(mut members) = value else {
        return Err("it is not an object and the field is complex.".to_owned());
    };
    let mut fields = Map::new();
    for subfield in &field.fields {
        let found = members.get_mut(&subfield.name).map(Value::take).or_else(|| {
            let mut others = members.iter_mut();
            others.find(|(name, _)| name.eq_ignore_ascii_case(&subfield.name)).map(|(_, value)| value.take())
        });
        if let Some(value) = found {
            let value = convert(value, subfield).map_err(|why| format!("in '{}', {why}", subfield.name))?;
            fields.insert(subfield.name.clone(), value);
        }
    }
    Ok(Value::Object(fields))
}

fn one(value: Value, primitive: PrimitiveType) -> Result<Value, String> {
    let refused = |value: &Value, what: &str| {
        let mut shown = value.to_string();
        if let Some((cut, _)) = shown.char_indices().nth(60) {
            shown.truncate(cut);
            shown.push('…');
        }
        Err(format!("{shown} is not {what}."))
    };
    match (primitive, value) {
        (_, Value::Null) => Ok(Value::Null),
        (PrimitiveType::String, value @ Value::String(_)) => Ok(value),
        (PrimitiveType::String, value @ (Value::Number(_) | Value::Bool(_))) => {
            Ok(Value::String(value.to_string()))
        }
        (PrimitiveType::String, value) => {
            refused(&value, "text; use the mapping function toJson for objects and arrays")
        }
        // An empty cell of a table is null.
        (_, Value::String(text)) if text.trim().is_empty() => Ok(Value::Null),
        (PrimitiveType::Boolean, value @ Value::Bool(_)) => Ok(value),
        (PrimitiveType::Boolean, value) => match &value {
            Value::String(text) if text.trim().eq_ignore_ascii_case("true") || text.trim() == "1" => {
                Ok(Value::Bool(true))
            }
            Value::String(text) if text.trim().eq_ignore_ascii_case("false") || text.trim() == "0" => {
                Ok(Value::Bool(false))
            }
            _ => refused(&value, "true or false"),
        },
        (PrimitiveType::Int32 | PrimitiveType::Int64, value) => {
            let number = match &value {
                Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(whole)),
                Value::String(text) => text.trim().parse().ok(),
                _ => None,
            };
            let fits = |number: &i64| primitive == PrimitiveType::Int64 || i32::try_from(*number).is_ok();
            match number.filter(fits) {
                Some(number) => Ok(Value::from(number)),
                None => refused(&value, "a whole number that fits"),
            }
        }
        (PrimitiveType::DateTimeOffset, value) => match value.as_str().and_then(date) {
            Some(date) => Ok(Value::from(date.to_rfc3339_opts(SecondsFormat::AutoSi, true))),
            None => refused(&value, "a date such as 2024-01-31T12:00:00Z"),
        },
        (PrimitiveType::GeographyPoint, value @ Value::Object(_)) => Ok(value),
        (PrimitiveType::GeographyPoint, value) => {
            let point = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            match point.filter(Value::is_object) {
                Some(point) => Ok(point),
                None => refused(&value, "a GeoJSON point"),
            }
        }
        (_, value @ Value::Number(_)) => Ok(value),
        (_, value) => {
            let text = value.as_str().map(str::trim);
            if text.is_some_and(|text| matches!(text, "NaN" | "INF" | "-INF")) {
                return Ok(value);
            }
            match text.and_then(|text| text.parse().ok()).and_then(Number::from_f64) {
                Some(number) => Ok(Value::Number(number)),
                None => refused(&value, "a number"),
            }
        }
    }
}

fn whole(number: f64) -> Option<i64> {
    // Every whole number up to 2^53 has an exact f64, so the conversion is lossless.
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

/// Parses dates in the formats of files. Dates without a time zone are UTC.
fn date(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(date) = DateTime::parse_from_rfc3339(text) {
        return Some(date.with_timezone(&Utc));
    }
    for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%m/%d/%Y %H:%M:%S"] {
        if let Ok(date) = NaiveDateTime::parse_from_str(text, format) {
            return Some(date.and_utc());
        }
    }
    let day = ["%Y-%m-%d", "%m/%d/%Y"]
        .into_iter()
        .find_map(|format| NaiveDate::parse_from_str(text, format).ok())?;
    Some(day.and_hms_opt(0, 0, 0)?.and_utc())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_becomes_numbers_booleans_and_dates() {
        let cases = [
            (json!("12"), PrimitiveType::Int32, json!(12)),
            (json!(" 12 "), PrimitiveType::Int64, json!(12)),
            (json!(3.0), PrimitiveType::Int32, json!(3)),
            (json!("1.5"), PrimitiveType::Double, json!(1.5)),
            (json!("NaN"), PrimitiveType::Double, json!("NaN")),
            (json!("True"), PrimitiveType::Boolean, json!(true)),
            (json!("0"), PrimitiveType::Boolean, json!(false)),
            (json!(""), PrimitiveType::Int32, json!(null)),
            (json!(""), PrimitiveType::String, json!("")),
            (json!(5), PrimitiveType::String, json!("5")),
            (json!("2016-01-12"), PrimitiveType::DateTimeOffset, json!("2016-01-12T00:00:00Z")),
            (
                json!("2016-01-12T10:00:00+02:00"),
                PrimitiveType::DateTimeOffset,
                json!("2016-01-12T08:00:00Z"),
            ),
            (json!("1/31/2024"), PrimitiveType::DateTimeOffset, json!("2024-01-31T00:00:00Z")),
        ];
        for (value, primitive, expected) in cases {
            assert_eq!(one(value.clone(), primitive), Ok(expected), "{value} as {primitive:?}");
        }
    }

    #[test]
    fn rejects_invalid_values_and_shows_them() {
        for (value, primitive) in [
            (json!("x1"), PrimitiveType::Int32),
            (json!(4_000_000_000_i64), PrimitiveType::Int32),
            (json!(1.5), PrimitiveType::Int64),
            (json!("maybe"), PrimitiveType::Boolean),
            (json!(2), PrimitiveType::Boolean),
            (json!("yesterday"), PrimitiveType::DateTimeOffset),
            (json!({}), PrimitiveType::String),
            (json!([1]), PrimitiveType::Double),
            (json!("5,1"), PrimitiveType::GeographyPoint),
        ] {
            let why = one(value.clone(), primitive).unwrap_err();
            assert!(why.contains(&value.to_string()), "{why}");
        }
    }
}
