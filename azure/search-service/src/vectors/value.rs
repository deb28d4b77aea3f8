//! A vector in JSON: an array of numbers that fit the field.

use bindpost_azure_search_model::definition::{PrimitiveType, VectorAttributes};
use serde_json::Value;

/// Returns the length of a vector of the field.
pub(crate) fn vector_length(field: &VectorAttributes) -> usize {
    if field.packed_bits { field.dimensions / 8 } else { field.dimensions }
}

/// Parses a vector of a document. The elements of the field have the given type.
///
/// The error is the end of a sentence that starts with the path, such as `must be an array of numbers`.
/// The length is not checked here, because documents and queries have different messages for it.
pub(crate) fn parse_vector(element: PrimitiveType, value: &Value) -> Result<Vec<f32>, String> {
    let items = value.as_array().ok_or("must be an array of numbers")?;
    let (least, most, whole) = range(element);
    let mut vector = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let number =
            item.as_f64().ok_or_else(|| format!("must have numbers only, but item {at} is not a number"))?;
        if number < least || number > most || (whole && number.fract() != 0.0) {
            let kind = if whole { "whole numbers" } else { "numbers" };
            return Err(format!("must have {kind} from {least} to {most}, but item {at} is {number}"));
        }
        vector.push(number as f32);
    }
    Ok(vector)
}

/// Returns the range of an element type, and whether it is an integer type.
fn range(element: PrimitiveType) -> (f64, f64, bool) {
    match element {
        PrimitiveType::Half => (-65504.0, 65504.0, false),
        PrimitiveType::Int16 => (-32768.0, 32767.0, true),
        PrimitiveType::SByte => (-128.0, 127.0, true),
        PrimitiveType::Byte => (0.0, 255.0, true),
        _ => (f64::from(f32::MIN), f64::from(f32::MAX), false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_all_types_are_parsed() {
        assert_eq!(parse_vector(PrimitiveType::Single, &json!([1, -2.5, 1e10])).unwrap(), [1.0, -2.5, 1e10]);
        assert_eq!(parse_vector(PrimitiveType::SByte, &json!([-128, 127])).unwrap(), [-128.0, 127.0]);
        assert_eq!(parse_vector(PrimitiveType::Byte, &json!([0, 255.0])).unwrap(), [0.0, 255.0]);
    }

    #[test]
    fn errors_name_the_invalid_item() {
        for (element, value, message) in [
            (PrimitiveType::Single, json!("AAAA"), "an array of numbers"),
            (PrimitiveType::Single, json!([1, "2"]), "item 1 is not a number"),
            (PrimitiveType::Single, json!([1e39]), "item 0 is 1"),
            (PrimitiveType::Half, json!([0, 65505]), "to 65504, but item 1"),
            (PrimitiveType::Int16, json!([1.5]), "whole numbers from -32768"),
            (PrimitiveType::Byte, json!([3, -1]), "from 0 to 255, but item 1 is -1"),
        ] {
            let error = parse_vector(element, &value).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
