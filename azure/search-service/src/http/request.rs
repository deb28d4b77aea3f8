//! The query parameters, headers and JSON body of a request.

use std::fmt;

use bindpost_azure_search_model::ApiError;
use http::HeaderMap;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::resources::MatchConditions;

use super::answer::MetadataLevel;
use super::route::decode;
use super::version::ApiVersion;

/// The decoded query parameters.
#[derive(Debug, Default)]
pub(crate) struct QueryOptions(Vec<(String, String)>);

impl QueryOptions {
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, ApiError> {
        let parts = query.unwrap_or_default().split('&').filter(|part| !part.is_empty());
        let pairs = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            // A plus sign is a space, as in forms.
            let text = |part: &str| decode(&part.replace('+', " "));
            Ok((text(name)?, text(value)?))
        });
        Ok(Self(pairs.collect::<Result<_, ApiError>>()?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns a query parameter that must not be repeated.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.iter().filter(|(given, _)| *given == name).map(|(_, value)| value);
        let first = values.next();
        if values.next().is_some() {
            return Err(ApiError::invalid(format!(
                "The query parameter '{name}' is repeated. Send it once."
            )));
        }
        Ok(first)
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<bool, ApiError> {
        self.one(name)?.map_or(Ok(false), |value| boolean(name, value))
    }

    /// Returns the API version of the request. Any dated version is accepted.
    pub(crate) fn api_version(&self) -> Result<ApiVersion, ApiError> {
        let known =
            "Every version of the form YYYY-MM-DD or YYYY-MM-DD-preview is accepted, such as 2025-09-01";
        let Some(version) = self.one("api-version")? else {
            return Err(ApiError::new(
                http::StatusCode::BAD_REQUEST,
                "MissingApiVersionParameter",
                format!("The query parameter 'api-version' is missing. {known}."),
            ));
        };
        ApiVersion::parse(version).ok_or_else(|| {
            let shown: String = version.chars().take(40).collect();
            ApiError::new(
                http::StatusCode::BAD_REQUEST,
                "InvalidApiVersionParameter",
                format!("The api-version '{shown}' is not valid. {known}."),
            )
        })
    }
}

pub(crate) fn boolean(name: &str, value: &str) -> Result<bool, ApiError> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(ApiError::invalid(format!("The query parameter '{name}' must be true or false."))),
    }
}

/// The headers that this service uses.
pub(crate) struct RequestHeaders<'a>(pub(crate) &'a HeaderMap);

impl<'a> RequestHeaders<'a> {
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.to_str().ok().map(str::trim)
    }

    pub(crate) fn conditions(&self) -> MatchConditions {
        let owned = |name| self.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
        MatchConditions { if_match: owned("if-match"), if_none_match: owned("if-none-match") }
    }

    /// Returns whether the response to an update must contain the definition, and not only its ETag.
    pub(crate) fn wants_representation(&self) -> bool {
        let all = self.0.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let mut preferences = all.flat_map(|value| value.split([',', ';']));
        preferences.any(|preference| {
            let bare: String = preference.chars().filter(|c| !c.is_whitespace() && *c != '"').collect();
            bare.eq_ignore_ascii_case("return=representation")
        })
    }

    pub(crate) fn metadata(&self) -> MetadataLevel {
        let accept = self.get("accept").unwrap_or_default().to_ascii_lowercase();
        let level = accept.split_once("odata.metadata=").map_or("", |(_, level)| level);
        let level = level.split([';', ',', ' ']).next().unwrap_or_default().trim_matches('"');
        match level {
            "none" => MetadataLevel::None,
            "full" => MetadataLevel::Full,
            _ => MetadataLevel::Minimal,
        }
    }

    /// Returns the client's request id if it can be sent back.
    pub(crate) fn client_request_id(&self) -> Option<&'a str> {
        let id = self.get("x-ms-client-request-id").or_else(|| self.get("client-request-id"))?;
        (!id.is_empty() && id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_graphic())).then_some(id)
    }
}

/// Parses a body. The content type is ignored, because some clients send none.
pub(crate) fn parse_json(body: &[u8]) -> Result<Value, ApiError> {
    let text = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    if text.trim_ascii().is_empty() {
        return Err(ApiError::invalid("The request has no body. Send a JSON object."));
    }
    serde_json::from_slice::<StrictJson>(text)
        .map(|strict| strict.0)
        .map_err(|error| ApiError::invalid(format!("The body of the request is not valid JSON: {error}.")))
}

/// Parses a JSON object. An empty body becomes an empty object.
pub(crate) fn parse_optional_object(body: &[u8]) -> Result<Value, ApiError> {
    if body.trim_ascii().is_empty() { Ok(Value::Object(Map::new())) } else { parse_object(body) }
}

pub(crate) fn parse_object(body: &[u8]) -> Result<Value, ApiError> {
    let value = parse_json(body)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(ApiError::invalid("The body of the request must be a JSON object."))
}

/// A JSON value without repeated object members.
struct StrictJson(Value);

impl<'de> Deserialize<'de> for StrictJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(StrictJson)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(StrictJson(element)) = elements.next_element()? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(de::Error::custom(format_args!("the member '{name}' is repeated")));
            }
            let StrictJson(value) = members.next_value()?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(query: &str) -> Result<String, ApiError> {
        let options = QueryOptions::parse(Some(query))?;
        options.api_version().map(|version| version.to_string())
    }

    #[test]
    fn accepts_any_dated_version() {
        for good in [
            "2017-11-11",
            "2023-11-01",
            "2024-05-01-preview",
            "2025-08-01-Preview",
            "2026-04-01",
            "2031-01-01",
        ] {
            assert_eq!(version(&format!("api-version={good}")).unwrap(), good);
        }
        for bad in ["", "latest", "2025-13-01", "2025-1-1", "2025-08-01-beta", "ü"] {
            let error = version(&format!("api-version={bad}")).unwrap_err();
            assert_eq!(error.code, "InvalidApiVersionParameter", "{bad}");
            assert!(error.message.contains("YYYY-MM-DD-preview"), "{error}");
        }
        assert_eq!(version("").unwrap_err().code, "MissingApiVersionParameter");
        assert!(version("api-version=2025-09-01&api-version=2025-09-01").is_err());
    }

    #[test]
    fn query_parameters_are_decoded() {
        let options = QueryOptions::parse(Some("$filter=a%20eq+%27%2B%27&%24top=5&&empty")).unwrap();
        assert_eq!(options.one("$filter").unwrap(), Some("a eq '+'"));
        assert_eq!(options.one("$top").unwrap(), Some("5"));
        assert_eq!(options.one("empty").unwrap(), Some(""));
        assert!(QueryOptions::parse(Some("a=%zz")).is_err());
    }

    #[test]
    fn json_errors_name_their_position() {
        let error = parse_json(b"{\"a\": 1,\n \"b\": }").unwrap_err();
        assert!(error.message.contains("line 2 column 7"), "{error}");
        let error = parse_json(br#"{"a": {"b": 1, "b": 2}}"#).unwrap_err();
        assert!(error.message.contains("'b' is repeated at line 1 column 18"), "{error}");
        assert!(parse_json(b"").unwrap_err().message.contains("no body"));
        let deep = "[".repeat(100_000);
        assert!(parse_json(deep.as_bytes()).unwrap_err().message.contains("recursion limit"));
        assert!(parse_object(b"[]").is_err());
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_values_are_unchanged() {
        let text = br#"{"a":[1,-2,2.5,"x\u00e9",true,null,18446744073709551615]}"#;
        let with_mark = [b"\xEF\xBB\xBF".as_slice(), text].concat();
        assert_eq!(parse_json(&with_mark).unwrap(), serde_json::from_slice::<Value>(text).unwrap());
    }

    #[test]
    fn accept_and_prefer_are_parsed_leniently() {
        let headers = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, http::HeaderValue::from_static(value));
            headers
        };
        let level = |value| RequestHeaders(&headers("accept", value)).metadata();
        assert_eq!(level("application/json;odata.metadata=none"), MetadataLevel::None);
        assert_eq!(level("application/json; odata.metadata=full; charset=utf-8"), MetadataLevel::Full);
        assert_eq!(level("*/*"), MetadataLevel::Minimal);
        assert!(RequestHeaders(&headers("prefer", "wait=5, return=representation")).wants_representation());
        assert!(!RequestHeaders(&headers("prefer", "return=minimal")).wants_representation());
    }
}
