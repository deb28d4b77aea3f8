//! The mapping functions of field mappings.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bindpost_azure_search_model::ApiError;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::indexers::definition::IndexerObject;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MappingTransform {
    /// If `token` is true, the last character is the number of padding characters, as in
    /// .NET's UrlTokenEncode.
    Base64Encode {
        token: bool,
    },
    Base64Decode {
        token: bool,
    },
    ExtractToken {
        delimiter: String,
        position: usize,
    },
    JsonArrayToStrings,
    UrlEncode,
    UrlDecode,
    FixedLengthEncode,
    ToJson,
}

/// The names of all functions.
const KNOWN: [(&str, &str); 8] = [
    ("base64Encode", "base64Encode"),
    ("base64Decode", "base64Decode"),
    ("extractTokenAtPosition", "extractTokenAtPosition"),
    ("jsonArrayToStringCollection", "jsonArrayToStringCollection"),
    ("urlEncode", "urlEncode"),
    ("urlDecode", "urlDecode"),
    ("fixedLengthEncode", "fixedLengthEncode"),
    ("toJson", "toJson"),
];

impl MappingTransform {
    /// Parses the value of `mappingFunction`.
    pub(crate) fn parse(given: &IndexerObject<'_>) -> Result<Self, ApiError> {
        given.allow_only(&["name", "parameters"])?;
        given.required_text("name")?;
        let parameters = given.object_or_empty("parameters")?;
        let name = given.choice("name", &KNOWN)?.unwrap_or_default();
        parameters.allow_only(match name {
            "base64Encode" => &["useHttpServerUtilityUrlTokenEncode"],
            "base64Decode" => &["useHttpServerUtilityUrlTokenDecode", "useHttpServerUtilityUrlTokenEncode"],
            "extractTokenAtPosition" => &["delimiter", "position"],
            _ => &[],
        })?;
        let token = || {
            let encode = parameters.boolean("useHttpServerUtilityUrlTokenEncode")?;
            Ok::<_, ApiError>(encode.unwrap_or(true))
        };
        let token_decode =
            || parameters.boolean("useHttpServerUtilityUrlTokenDecode")?.map_or_else(token, Ok);
        Ok(match name {
            "base64Encode" => Self::Base64Encode { token: token()? },
            "base64Decode" => Self::Base64Decode { token: token_decode()? },
            "extractTokenAtPosition" => {
                let delimiter = parameters.required_text("delimiter")?.to_owned();
                let position = parameters.integer_in("position", 0..=usize::MAX)?;
                let position = position.ok_or_else(|| parameters.missing("position"))?;
                Self::ExtractToken { delimiter, position }
            }
            "jsonArrayToStringCollection" => Self::JsonArrayToStrings,
            "urlEncode" => Self::UrlEncode,
            "urlDecode" => Self::UrlDecode,
            "fixedLengthEncode" => Self::FixedLengthEncode,
            _ => Self::ToJson,
        })
    }

    pub(super) fn apply(&self, value: Value) -> Result<Value, String> {
        if *self == Self::ToJson {
            return Ok(match value {
                Value::Null => Value::Null,
                value => Value::String(value.to_string()),
            });
        }
        let text = match value {
            Value::Null => return Ok(Value::Null),
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            // The value already has the result type.
            value @ Value::Array(_) if *self == Self::JsonArrayToStrings => return Ok(value),
            _ => return Err("the mapping function needs text.".to_owned()),
        };
        Ok(Value::String(match self {
            Self::Base64Encode { token: true } => token_encode(text.as_bytes()),
            Self::Base64Encode { token: false } => URL_SAFE_NO_PAD.encode(text),
            Self::Base64Decode { token } => decode(&text, *token).ok_or("it is not base64 of UTF-8 text.")?,
            Self::ExtractToken { delimiter, position } => {
                let token = text.split(delimiter.as_str()).nth(*position);
                token.ok_or_else(|| format!("it has no token at position {position}."))?.to_owned()
            }
            Self::JsonArrayToStrings if text.trim().is_empty() => return Ok(Value::Array(Vec::new())),
            Self::JsonArrayToStrings => {
                let list: Vec<Value> = serde_json::from_str(&text)
                    .map_err(|_| "it is not a JSON array such as [\"a\",\"b\"].".to_owned())?;
                return Ok(Value::Array(list));
            }
            Self::UrlEncode => url_encode(&text),
            Self::UrlDecode => percent_decode(&text, true).ok_or("it is not URL-encoded text.")?,
            Self::FixedLengthEncode => URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes())),
            Self::ToJson => text,
        }))
    }
}

pub(super) fn token_encode(bytes: &[u8]) -> String {
    let mut text = URL_SAFE_NO_PAD.encode(bytes);
    if !text.is_empty() {
        text.push(match text.len() % 4 {
            2 => '2',
            3 => '1',
            _ => '0',
        });
    }
    text
}

fn decode(text: &str, token: bool) -> Option<String> {
    let text = if token { text.get(..text.len().saturating_sub(1))? } else { text.trim_end_matches('=') };
    let bytes = URL_SAFE_NO_PAD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok()?;
    String::from_utf8(bytes).ok()
}

/// Encodes as .NET does: spaces become plus signs, and hexadecimal digits are lower case.
fn url_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'!' | b'*' | b'(' | b')' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02x}")),
        }
    }
    encoded
}

/// Returns `None` if the bytes are not UTF-8. A percent sign without two digits is literal.
pub(in crate::indexers) fn percent_decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'%', [high, low, others @ ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                match (digit(high), digit(low)) {
                    (Some(high), Some(low)) => {
                        bytes.push(high * 16 + low);
                        rest = others;
                    }
                    _ => bytes.push(b'%'),
                }
            }
            (b'+', _) if plus_is_space => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use bindpost_net_json::JsonPlace;
    use serde_json::json;

    use super::*;

    fn parse(function: &Value) -> Result<MappingTransform, ApiError> {
        MappingTransform::parse(&IndexerObject::new(function, JsonPlace::at("mappingFunction"))?)
    }

    fn apply(name: &str, parameters: Value, value: Value) -> Result<Value, String> {
        parse(&json!({"name": name, "parameters": parameters})).unwrap().apply(value)
    }

    #[test]
    fn functions_return_the_documented_results() {
        let token = json!({"useHttpServerUtilityUrlTokenEncode": false});
        let cases = [
            ("base64Encode", json!({}), json!("00>00?00"), json!("MDA-MDA_MDA1")),
            ("base64Encode", token.clone(), json!("00>00?00"), json!("MDA-MDA_MDA")),
            ("base64Decode", json!({}), json!("MDA-MDA_MDA1"), json!("00>00?00")),
            ("base64Decode", token.clone(), json!("MDA-MDA_MDA"), json!("00>00?00")),
            ("base64Decode", token, json!("MDA+MDA/MDA="), json!("00>00?00")),
            (
                "extractTokenAtPosition",
                json!({"delimiter": " ", "position": 0}),
                json!("Jane Doe"),
                json!("Jane"),
            ),
            ("jsonArrayToStringCollection", json!({}), json!("[\"red\",\"blue\"]"), json!(["red", "blue"])),
            ("urlEncode", json!({}), json!("<hello> x"), json!("%3chello%3e+x")),
            ("urlDecode", json!({}), json!("%3chello%3e+x%"), json!("<hello> x%")),
            ("toJson", json!({}), json!({"a": [1]}), json!("{\"a\":[1]}")),
            ("base64Encode", json!({}), json!(null), json!(null)),
        ];
        for (name, parameters, value, expected) in cases {
            assert_eq!(apply(name, parameters, value.clone()), Ok(expected), "{name} of {value}");
        }
        let short = apply("fixedLengthEncode", json!({}), json!("a")).unwrap();
        let long = apply("fixedLengthEncode", json!({}), json!("a".repeat(5000))).unwrap();
        assert_eq!(short.as_str().unwrap().len(), long.as_str().unwrap().len());
    }

    #[test]
    fn errors_explain_invalid_values() {
        let position = json!({"delimiter": ",", "position": 3});
        assert!(apply("extractTokenAtPosition", position, json!("a,b")).unwrap_err().contains("position 3"));
        assert!(
            apply("jsonArrayToStringCollection", json!({}), json!("a,b")).unwrap_err().contains("JSON array")
        );
        assert!(apply("base64Decode", json!({}), json!("%%%")).unwrap_err().contains("base64"));
        assert!(apply("urlEncode", json!({}), json!({})).unwrap_err().contains("text"));
    }

    #[test]
    fn unknown_functions_and_missing_parameters_are_rejected() {
        for (function, named) in [
            (json!({"name": "reverse"}), "'mappingFunction.name' must be one of base64Encode"),
            (json!({"name": "extractTokenAtPosition"}), "'mappingFunction.parameters.delimiter' is required"),
            (json!({"name": "toJson", "parameter": {}}), "'mappingFunction.parameter' is unknown"),
            (json!({"name": "toJson", "parameters": []}), "'mappingFunction.parameters' must be an object"),
            (
                json!({"name": "base64Encode", "parameters": {"useHttpServerUtilityUrlTokenEncode": "no"}}),
                "useHttpServerUtilityUrlTokenEncode' must be true or false",
            ),
        ] {
            let error = parse(&function).unwrap_err();
            assert!(error.message.contains(named), "{error}");
        }
    }
}
