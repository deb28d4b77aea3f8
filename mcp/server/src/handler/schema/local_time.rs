//! Times without a zone, like `chrono::NaiveTime` and `NaiveDateTime`.
//!
//! JSON Schema has no format for them. schemars calls them `partial-time` and `partial-date-time`, which no
//! client knows. Clients get the formats `time` and `date-time` instead. These require a zone, so a value
//! in UTC is accepted, and its `Z` is removed before it is validated and decoded.

use serde_json::{Map, Value};

/// Names of schemars, and the formats of JSON Schema that are nearest to them.
const FORMATS: [(&str, &str); 2] = [("partial-time", "time"), ("partial-date-time", "date-time")];

/// The maximum depth of schemas and values in which times are found.
const MAX_DEPTH: usize = 64;

fn local_format(schema: &Map<String, Value>) -> Option<(&'static str, &'static str)> {
    let format = schema.get("format")?.as_str()?;
    FORMATS.into_iter().find(|(name, _)| *name == format)
}

/// Replaces the formats of schemars by those that clients know.
pub(super) fn rename_format(schema: &mut Map<String, Value>) {
    if let Some((_, known)) = local_format(schema) {
        schema.insert("format".to_owned(), known.into());
    }
}

/// Removes the formats of schemars. Clients validate results, and no known format fits their values.
pub(super) fn drop_format(schema: &mut Map<String, Value>) {
    if local_format(schema).is_some() {
        schema.remove("format");
    }
}

/// Returns whether a schema describes times without a zone.
pub(super) fn is_described_by(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => local_format(members).is_some() || members.values().any(is_described_by),
        Value::Array(parts) => parts.iter().any(is_described_by),
        _ => false,
    }
}

/// Returns what a value of this format is, for error messages.
pub(super) fn expectation(format: &str) -> Option<&'static str> {
    match format {
        "partial-time" => Some("a time without a zone, like \"10:30:00\""),
        "partial-date-time" => Some("a date and time without a zone, like \"2026-11-15T10:30:00\""),
        _ => None,
    }
}

/// Returns whether a text is a time without a zone: `10:30:00`, `10:30:00.25`.
pub(super) fn is_time(text: &str) -> bool {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let mut number = |most: u32| parts.next().and_then(two_digits).is_some_and(|number| number <= most);
    // The second 60 is a leap second.
    let fits = number(23) && number(59) && number(60);
    fits && parts.next().is_none() && !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit())
}

/// Returns whether a text is a date and a time without a zone: `2026-11-15T10:30:00`.
pub(super) fn is_date_time(text: &str) -> bool {
    text.split_once('T').is_some_and(|(date, time)| is_date(date) && is_time(time))
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let year = parts.next().filter(|year| year.len() == 4).and_then(|year| year.parse::<u32>().ok());
    let (month, day) = (parts.next().and_then(two_digits), parts.next().and_then(two_digits));
    let (Some(year), Some(month), Some(day), None) = (year, month, day, parts.next()) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn two_digits(text: &str) -> Option<u32> {
    let is_number = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Removes the `Z` of times that the schema describes without a zone. `root` is the whole schema.
pub(super) fn drop_utc(root: &Value, schema: &Value, value: &mut Value, depth: usize) {
    let Value::Object(members) = schema else { return };
    if depth > MAX_DEPTH {
        return;
    }
    let depth = depth + 1;
    if let (Value::String(text), Some((format, _))) = (&mut *value, local_format(members))
        && let Some(local) = text.strip_suffix(['Z', 'z'])
        && (if format == "partial-time" { is_time(local) } else { is_date_time(local) })
    {
        text.pop();
    }
    for (keyword, part) in members {
        match (keyword.as_str(), part, &mut *value) {
            ("properties", Value::Object(parts), Value::Object(values)) => {
                for (name, part) in parts {
                    if let Some(value) = values.get_mut(name) {
                        drop_utc(root, part, value, depth);
                    }
                }
            }
            ("additionalProperties", part, Value::Object(values)) => {
                let known = members.get("properties");
                let is_known = |name: &str| known.is_some_and(|known| known.get(name).is_some());
                let others = values.iter_mut().filter(|(name, _)| !is_known(name));
                others.for_each(|(_, value)| drop_utc(root, part, value, depth));
            }
            ("items", part, Value::Array(values)) => {
                values.iter_mut().for_each(|value| drop_utc(root, part, value, depth));
            }
            ("prefixItems", Value::Array(parts), Value::Array(values)) => {
                parts.iter().zip(values).for_each(|(part, value)| drop_utc(root, part, value, depth));
            }
            // An alternative that accepts the text as it is has precedence.
            ("anyOf" | "oneOf", Value::Array(parts), Value::String(_)) if parts.iter().any(is_other_text) => {
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(parts), value) => {
                parts.iter().for_each(|part| drop_utc(root, part, value, depth));
            }
            ("$ref", Value::String(reference), value) => {
                let place = reference.strip_prefix('#').and_then(|place| root.pointer(place));
                if let Some(part) = place {
                    drop_utc(root, part, value, depth);
                }
            }
            _ => {}
        }
    }
}

fn is_other_text(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    members.get("type").and_then(Value::as_str) == Some("string") && local_format(members).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_and_dates_are_checked_to_the_digit() {
        for good in ["00:00:00", "23:59:59", "23:59:60", "10:30:00.0", "10:30:00.123456789"] {
            assert!(is_time(good), "{good}");
        }
        for bad in
            ["", "10:30", "24:00:00", "10:60:00", "10:30:61", "1:2:3", "10:30:00.", "10:30:00Z", "+1:00:00"]
        {
            assert!(!is_time(bad), "{bad}");
        }
        for good in ["2028-02-29T10:30:00", "2000-02-29T00:00:00.5", "2026-12-31T23:59:59"] {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "2027-02-29T10:30:00",
            "1900-02-29T10:30:00",
            "2026-13-01T10:30:00",
            "2026-04-31T10:30:00",
            "2026-11-15 10:30:00",
            "2026-11-15",
            "26-11-15T10:30:00",
            "2026-00-01T10:30:00",
            "2026-01-00T10:30:00",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

    #[test]
    fn utc_is_dropped_only_where_the_schema_has_no_zone() {
        let time = json!({"type": "string", "format": "partial-time"});
        let schema = json!({
            "properties": {
                "at": time, "name": {"type": "string"}, "list": {"items": {"$ref": "#/$defs/slot"}},
                "pair": {"prefixItems": [time, {"type": "string"}]},
                "either": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "partial-date-time"}]},
                "maybe": {"anyOf": [time, {"type": "null"}]},
            },
            "additionalProperties": time,
            "$defs": {"slot": {"properties": {"from": time, "next": {"$ref": "#/$defs/slot"}}}, "loop": {"$ref": "#/$defs/loop"}},
        });
        let mut value = json!({
            "at": "10:30:00Z", "name": "10:30:00Z", "list": [{"from": "01:00:00z", "next": {"from": "02:00:00Z"}}],
            "pair": ["03:00:00Z", "03:00:00Z"], "either": "2026-01-01T00:00:00Z", "maybe": "04:00:00Z",
            "other": "05:00:00Z", "wrong": "99:00:00Z",
        });
        drop_utc(&schema, &schema, &mut value, 0);
        assert_eq!(
            value,
            json!({
                "at": "10:30:00", "name": "10:30:00Z", "list": [{"from": "01:00:00", "next": {"from": "02:00:00"}}],
                "pair": ["03:00:00", "03:00:00Z"], "either": "2026-01-01T00:00:00Z", "maybe": "04:00:00",
                "other": "05:00:00", "wrong": "99:00:00Z",
            })
        );
        // A reference to itself ends.
        drop_utc(&schema, &schema["$defs"]["loop"], &mut value, 0);
    }
}
