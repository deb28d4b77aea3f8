//! Single values: checks them, writes them canonically, and reads them.

use std::borrow::Cow;
use std::io::Write;

use bindpost_azure_search_model::definition::{FieldType, PrimitiveType, type_name};
use bindpost_net_json::cut::{elements, members};
use bindpost_net_json::text::decode;

use super::FieldValue;
use super::date::{parse_date, write_date};
use super::shape::MemberShape;

const HALF_LARGEST: f32 = 65_504.0;

/// Checks and writes a value that is not null, and whose field is no string field.
///
/// A string with the text of a boolean or a number is converted, as Azure AI Search does by the rules of OData. No
/// other type becomes a string.
pub(super) fn write_scalar(
    member: &MemberShape,
    primitive: PrimitiveType,
    raw: &str,
    out: &mut Vec<u8>,
) -> Result<FieldValue, String> {
    let wrong = || conversion_error(member, primitive, raw);
    match primitive {
        PrimitiveType::Boolean => {
            let value = match scalar_text(raw).as_deref() {
                Some(text) if text.eq_ignore_ascii_case("true") => true,
                Some(text) if text.eq_ignore_ascii_case("false") => false,
                _ => return Err(wrong()),
            };
            out.extend_from_slice(if value { b"true" } else { b"false" });
            Ok(FieldValue::Boolean(value))
        }
        PrimitiveType::Int32 | PrimitiveType::Int64 => {
            let value: i64 = scalar_text(raw).and_then(|text| text.parse().ok()).ok_or_else(wrong)?;
            if primitive == PrimitiveType::Int32 && i32::try_from(value).is_err() {
                return Err(wrong());
            }
            // Writing to memory cannot fail.
            let _ = write!(out, "{value}");
            Ok(FieldValue::Integer(value))
        }
        PrimitiveType::Double => {
            let value = double(raw).ok_or_else(wrong)?;
            match value {
                _ if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
                f64::INFINITY => out.extend_from_slice(b"\"INF\""),
                f64::NEG_INFINITY => out.extend_from_slice(b"\"-INF\""),
                _ => write_number(value, out),
            }
            Ok(FieldValue::Double(value))
        }
        PrimitiveType::DateTimeOffset => {
            let text = decode(raw).ok_or_else(wrong)?;
            let value = parse_date(&text).ok_or_else(|| {
                format!("{} Write dates with their offset, such as 2024-01-31T12:00:00Z.", wrong())
            })?;
            out.push(b'"');
            write_date(value, out);
            out.push(b'"');
            Ok(FieldValue::Date(value))
        }
        PrimitiveType::GeographyPoint => {
            let (lon, lat) = point(raw).map_err(|reason| format!("{} {reason}", wrong()))?;
            out.extend_from_slice(br#"{"type":"Point","coordinates":["#);
            write_number(lon, out);
            out.push(b',');
            write_number(lat, out);
            out.extend_from_slice(br#"],"crs":{"type":"name","properties":{"name":"EPSG:4326"}}}"#);
            Ok(FieldValue::Point { lon, lat })
        }
        // Strings are handled by the canonicalizer. The other types occur only in vectors.
        PrimitiveType::String
        | PrimitiveType::Single
        | PrimitiveType::Half
        | PrimitiveType::Int16
        | PrimitiveType::SByte
        | PrimitiveType::Byte => Err(wrong()),
    }
}

/// Returns the text of a literal, or of a string without the spaces around it.
fn scalar_text(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.starts_with('"') {
        return Some(Cow::Borrowed(raw));
    }
    Some(match decode(raw)? {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    })
}

/// Reads a number, or a string with a number. Only strings can be infinite or NaN.
fn double(raw: &str) -> Option<f64> {
    let text = scalar_text(raw)?;
    match text.as_ref() {
        "INF" | "Infinity" => return Some(f64::INFINITY),
        "-INF" | "-Infinity" => return Some(f64::NEG_INFINITY),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    // Rust would also accept `inf` and `infinity` in any case.
    let number =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|value: &f64| number && value.is_finite())
}

/// Checks and writes a vector. Returns `None` for an empty one, which means no vector.
pub(super) fn write_vector(
    member: &MemberShape,
    primitive: PrimitiveType,
    length: usize,
    raw: &str,
    out: &mut Vec<u8>,
) -> Result<Option<Vec<f32>>, String> {
    let Some(inside) = raw.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return Err(type_mismatch(member, raw));
    };
    if inside.trim_ascii().is_empty() {
        out.extend_from_slice(b"[]");
        return Ok(None);
    }
    let mut vector = Vec::with_capacity(length);
    out.push(b'[');
    // Numbers contain no commas, and other elements are rejected.
    for (at, element) in inside.split(',').enumerate() {
        let element = element.trim_ascii();
        let number = number(primitive, element).ok_or_else(|| {
            format!(
                "Element {at} of the vector field '{}': {}",
                member.path,
                conversion_error(member, primitive, element)
            )
        })?;
        if at < length {
            if at > 0 {
                out.push(b',');
            }
            if matches!(primitive, PrimitiveType::Single | PrimitiveType::Half) {
                let _ = serde_json::to_writer(&mut *out, &number);
            } else {
                out.extend_from_slice(element.as_bytes());
            }
        }
        vector.push(number);
    }
    out.push(b']');
    if vector.len() != length {
        return Err(format!(
            "The vectors of field '{}' have {length} elements, but this one has {}.",
            member.path,
            vector.len()
        ));
    }
    Ok(Some(vector))
}

#[allow(clippy::cast_precision_loss, reason = "the range of each type fits into 24 bits")]
fn number(primitive: PrimitiveType, raw: &str) -> Option<f32> {
    let whole = |low: i32, high: i32| -> Option<f32> {
        // `-0` would be written differently than it is read.
        let number: i32 = raw.parse().ok().filter(|_| raw != "-0")?;
        (low..=high).contains(&number).then_some(number as f32)
    };
    match primitive {
        PrimitiveType::Single => raw.parse().ok().filter(|number: &f32| number.is_finite()),
        PrimitiveType::Half => raw.parse().ok().filter(|number: &f32| number.abs() <= HALF_LARGEST),
        PrimitiveType::Int16 => whole(-32_768, 32_767),
        PrimitiveType::SByte => whole(-128, 127),
        PrimitiveType::Byte => whole(0, 255),
        _ => None,
    }
}

/// Returns longitude and latitude of a GeoJSON point. The error describes the expected form.
fn point(raw: &str) -> Result<(f64, f64), &'static str> {
    const SHAPE: &str = r#"Write points as {"type":"Point","coordinates":[longitude,latitude]}."#;
    let mut is_point = false;
    let mut coordinates = None;
    for (name, value) in members(raw).ok_or(SHAPE)? {
        match name {
            "type" => is_point = value == "\"Point\"",
            "coordinates" => coordinates = Some(value),
            "crs" => {
                if value != "null" && !is_known_system(value) {
                    return Err("The only coordinate system is EPSG:4326. Remove 'crs'.");
                }
            }
            name if name.contains('@') => {}
            _ => return Err(SHAPE),
        }
    }
    let mut found = coordinates.and_then(elements).ok_or(SHAPE)?;
    let mut next = || found.next().and_then(|raw| raw.parse::<f64>().ok());
    let (Some(lon), Some(lat), None) = (next(), next(), found.next()) else { return Err(SHAPE) };
    if !is_point {
        return Err(SHAPE);
    }
    if !(-180.0..=180.0).contains(&lon) || !(-90.0..=90.0).contains(&lat) {
        return Err("The longitude comes first, from -180 to 180, then the latitude, from -90 to 90.");
    }
    Ok((lon, lat))
}

fn is_known_system(raw: &str) -> bool {
    let find = |raw, wanted| members(raw)?.find(|(name, _)| *name == wanted).map(|(_, value)| value);
    find(raw, "properties").and_then(|properties| find(properties, "name")) == Some("\"EPSG:4326\"")
}

pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    // Strings always have a form in JSON, and writing to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

fn write_number(number: f64, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, &number);
}

/// The error message for a value whose type differs from that of the field.
pub(super) fn type_mismatch(member: &MemberShape, raw: &str) -> String {
    format!(
        "Cannot convert {} to the expected type '{}' of field '{}'.",
        describe_json(raw),
        type_name(member.kind),
        member.path
    )
}

fn conversion_error(member: &MemberShape, primitive: PrimitiveType, raw: &str) -> String {
    format!(
        "Cannot convert the literal '{}' to the expected type '{}' of field '{}'.",
        shorten(raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw)),
        match primitive {
            PrimitiveType::Single => "Edm.Single",
            PrimitiveType::Half => "Edm.Half",
            PrimitiveType::Int16 => "Edm.Int16",
            PrimitiveType::SByte => "Edm.SByte",
            PrimitiveType::Byte => "Edm.Byte",
            other => type_name(FieldType::One(other)),
        },
        member.path
    )
}

pub(super) fn describe_json(raw: &str) -> String {
    match raw.as_bytes().first() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') => "an array".to_owned(),
        Some(b'"') => "a string".to_owned(),
        _ => format!("the literal '{}'", shorten(raw)),
    }
}

/// Shortens a text of the client for error messages.
pub(super) fn shorten(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
