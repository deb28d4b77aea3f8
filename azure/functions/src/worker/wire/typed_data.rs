//! Converts between our `Datum` and the protocol's `TypedData`, and defines the JSON of `TypedData`.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::http_data;
use super::parts;
use super::proto::typed_data::Data;
use super::proto::{CollectionBytes, CollectionSInt64, TypedData};
use crate::datum::Datum;

/// Encodes an input. `Nothing` becomes a `TypedData` without data, which is how a missing blob is sent.
pub(crate) fn encode_input(datum: Datum) -> TypedData {
    TypedData {
        data: match datum {
            Datum::Nothing => None,
            Datum::Text(text) => Some(Data::String(text)),
            Datum::Json(json) => Some(Data::Json(json)),
            Datum::Bytes(bytes) => Some(Data::Bytes(bytes)),
            Datum::Int(number) => Some(Data::Int(number)),
            Datum::Double(number) => Some(Data::Double(number)),
            Datum::HttpRequest(request) => Some(Data::Http(Box::new(http_data::encode_request(*request)))),
            // Functions are not given responses.
            Datum::HttpResponse(_) => None,
        },
    }
}

/// Encodes a value of the trigger metadata. Numbers are sent as text, because Python's public worker
/// rejects them there.
pub(crate) fn encode_metadata(datum: Datum) -> TypedData {
    encode_input(match datum {
        Datum::Int(number) => Datum::Text(number.to_string()),
        Datum::Double(number) => Datum::Text(number.to_string()),
        other => other,
    })
}

/// Decodes an output. Collections become JSON arrays, and an unknown kind becomes `Nothing`.
pub(crate) fn decode_output(value: TypedData) -> Datum {
    match value.data {
        None => Datum::Nothing,
        Some(Data::String(text)) => Datum::Text(text),
        Some(Data::Json(json)) => Datum::Json(json),
        Some(Data::Bytes(bytes) | Data::Stream(bytes)) => Datum::Bytes(bytes),
        Some(Data::Int(number)) => Datum::Int(number),
        Some(Data::Double(number)) => Datum::Double(number),
        Some(Data::Http(http)) => Datum::HttpResponse(Box::new(http_data::decode_response(*http))),
        Some(Data::CollectionString(it)) => json_array(&it.string),
        Some(Data::CollectionDouble(it)) => json_array(&it.double),
        Some(Data::CollectionSint64(it)) => json_array(&it.sint64),
        Some(Data::CollectionBytes(it)) => {
            json_array(&it.bytes.iter().map(|bytes| STANDARD.encode(bytes)).collect::<Vec<_>>())
        }
    }
}

fn json_array<T: Serialize>(items: &[T]) -> Datum {
    // Lists of strings and numbers always have a JSON form.
    Datum::Json(serde_json::to_string(items).unwrap_or_default())
}

impl Serialize for TypedData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.data {
            None => {}
            Some(Data::String(text)) => map.serialize_entry("string", text)?,
            Some(Data::Json(json)) => map.serialize_entry("json", json)?,
            Some(Data::Bytes(bytes)) => map.serialize_entry("bytes", &Base64Bytes(bytes.clone()))?,
            Some(Data::Stream(bytes)) => map.serialize_entry("stream", &Base64Bytes(bytes.clone()))?,
            // 64 bit integers are text in protobuf's JSON, because many parsers support only doubles.
            Some(Data::Int(number)) => map.serialize_entry("int", &number.to_string())?,
            Some(Data::Double(number)) => map.serialize_entry("double", number)?,
            Some(Data::Http(http)) => map.serialize_entry("http", http)?,
            Some(Data::CollectionBytes(it)) => map.serialize_entry("collectionBytes", it)?,
            Some(Data::CollectionString(it)) => map.serialize_entry("collectionString", it)?,
            Some(Data::CollectionDouble(it)) => map.serialize_entry("collectionDouble", it)?,
            Some(Data::CollectionSint64(it)) => map.serialize_entry("collectionSint64", it)?,
        }
        map.end()
    }
}

/// The members of a value.
#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum TypedDataMember {
    String,
    Json,
    Bytes,
    Stream,
    Int,
    Double,
    Http,
    CollectionBytes,
    CollectionString,
    CollectionDouble,
    CollectionSint64,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for TypedData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TypedDataVisitor)
    }
}

struct TypedDataVisitor;

impl<'de> Visitor<'de> for TypedDataVisitor {
    type Value = TypedData;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TypedData, A::Error> {
        let mut value = TypedData::default();
        while let Some(member) = map.next_key()? {
            let data = match member {
                TypedDataMember::String => map.next_value::<Option<_>>()?.map(Data::String),
                TypedDataMember::Json => map.next_value::<Option<_>>()?.map(Data::Json),
                TypedDataMember::Bytes => {
                    map.next_value::<Option<Base64Bytes>>()?.map(|it| Data::Bytes(it.0))
                }
                TypedDataMember::Stream => {
                    map.next_value::<Option<Base64Bytes>>()?.map(|it| Data::Stream(it.0))
                }
                TypedDataMember::Int => map.next_value::<Option<JsonInt64>>()?.map(|it| Data::Int(it.0)),
                TypedDataMember::Double => map.next_value::<Option<_>>()?.map(Data::Double),
                TypedDataMember::Http => map.next_value::<Option<_>>()?.map(Data::Http),
                TypedDataMember::CollectionBytes => map.next_value::<Option<_>>()?.map(Data::CollectionBytes),
                TypedDataMember::CollectionString => {
                    map.next_value::<Option<_>>()?.map(Data::CollectionString)
                }
                TypedDataMember::CollectionDouble => {
                    map.next_value::<Option<_>>()?.map(Data::CollectionDouble)
                }
                TypedDataMember::CollectionSint64 => {
                    map.next_value::<Option<_>>()?.map(Data::CollectionSint64)
                }
                TypedDataMember::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            value.data = data.or(value.data);
        }
        Ok(value)
    }
}

/// Bytes as base64 text with the standard alphabet and padding.
struct Base64Bytes(Bytes);

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Base64Visitor;
        impl Visitor<'_> for Base64Visitor {
            type Value = Base64Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 text")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Base64Bytes, E> {
                STANDARD.decode(text).map(|bytes| Base64Bytes(bytes.into())).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Base64Visitor)
    }
}

/// A 64 bit integer, written as a number or as text.
#[derive(Clone, Copy)]
struct JsonInt64(i64);

impl<'de> Deserialize<'de> for JsonInt64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum NumberOrText<'a> {
            Number(i64),
            #[serde(borrow)]
            Text(Cow<'a, str>),
        }
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Ok(Self(number)),
            NumberOrText::Text(text) => text.parse().map(Self).map_err(de::Error::custom),
        }
    }
}

/// The one member of a byte collection.
#[derive(serde::Deserialize)]
#[serde(default)]
#[derive(Default)]
struct BytesMember {
    #[serde(deserialize_with = "parts::deserialize_limited_list")]
    bytes: Vec<Base64Bytes>,
}

impl Serialize for CollectionBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items: Vec<_> = self.bytes.iter().map(|bytes| Base64Bytes(bytes.clone())).collect();
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("bytes", &items)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for CollectionBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = BytesMember::deserialize(deserializer)?.bytes;
        Ok(Self { bytes: items.into_iter().map(|it| it.0).collect() })
    }
}

/// The one member of an integer collection.
#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct IntegersMember {
    sint64: Vec<JsonInt64>,
}

impl Serialize for CollectionSInt64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items: Vec<_> = self.sint64.iter().map(i64::to_string).collect();
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("sint64", &items)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for CollectionSInt64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = IntegersMember::deserialize(deserializer)?.sint64;
        Ok(Self { sint64: items.into_iter().map(|it| it.0).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::{
        CollectionDouble, CollectionString, NullableDouble, NullableString, NullableTimestamp, RpcHttp,
        RpcHttpCookie, Timestamp,
    };
    use super::*;

    fn all() -> Vec<TypedData> {
        [
            Data::String("ü \u{1F600}".into()),
            Data::Json("{\"a\":1}".into()),
            Data::Bytes(Bytes::from_static(b"\x00\x01\xff")),
            Data::Stream(Bytes::from_static(b"s")),
            Data::Int(i64::MIN),
            Data::Double(0.1),
            Data::Http(Box::new(RpcHttp {
                method: "GET".into(),
                url: "http://localhost/".into(),
                headers: [("accept".to_owned(), "*/*".to_owned())].into(),
                nullable_query: [("q".to_owned(), NullableString { value: Some(String::new()) })].into(),
                cookies: vec![RpcHttpCookie {
                    name: "a".into(),
                    max_age: Some(NullableDouble { value: Some(0.5) }),
                    expires: Some(NullableTimestamp { value: Some(Timestamp { seconds: -1, nanos: 2 }) }),
                    same_site: 2,
                    ..RpcHttpCookie::default()
                }],
                body: Some(Box::new(TypedData { data: Some(Data::Bytes(Bytes::from_static(b"\xff"))) })),
                status_code: "201".into(),
                ..RpcHttp::default()
            })),
            Data::CollectionBytes(CollectionBytes { bytes: vec![Bytes::from_static(b"\x00")] }),
            Data::CollectionString(CollectionString { string: vec!["a".into(), "b".into()] }),
            Data::CollectionDouble(CollectionDouble { double: vec![1.5] }),
            Data::CollectionSint64(CollectionSInt64 { sint64: vec![-1, i64::MAX] }),
        ]
        .into_iter()
        .map(|data| TypedData { data: Some(data) })
        .chain([TypedData::default()])
        .collect()
    }

    #[test]
    fn every_kind_round_trips_through_json_and_protobuf() {
        for value in all() {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<TypedData>(&json).unwrap(), value, "{json}");
            let bytes = prost::Message::encode_to_vec(&value);
            assert_eq!(<TypedData as prost::Message>::decode(&*bytes).unwrap(), value);
        }
    }

    #[test]
    fn collections_become_json() {
        let texts: Vec<_> = all()
            .into_iter()
            .map(decode_output)
            .filter_map(|datum| match datum {
                Datum::Json(text) => Some(text),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["{\"a\":1}", "[\"AA==\"]", "[\"a\",\"b\"]", "[1.5]", "[-1,9223372036854775807]"]);
    }

    #[test]
    fn an_unknown_kind_is_decoded_as_nothing() {
        let value: TypedData = serde_json::from_str(r#"{"modelBindingData":{"version":"1.0"}}"#).unwrap();
        assert_eq!(decode_output(value), Datum::Nothing);
        // Field 12 (model binding data), three bytes long.
        let value = <TypedData as prost::Message>::decode(&[0x62, 3, 0x0a, 1, b'x'][..]).unwrap();
        assert_eq!(decode_output(value), Datum::Nothing);
    }

    #[test]
    fn metadata_encodes_numbers_as_text() {
        assert_eq!(encode_metadata(Datum::Int(3)), TypedData { data: Some(Data::String("3".into())) });
        assert_eq!(encode_metadata(Datum::Double(0.5)), TypedData { data: Some(Data::String("0.5".into())) });
        assert_eq!(encode_metadata(Datum::Nothing), TypedData::default());
    }

    #[test]
    fn base64_without_padding_is_rejected() {
        assert!(serde_json::from_str::<TypedData>(r#"{"bytes":"AA"}"#).is_err());
        assert!(serde_json::from_str::<TypedData>(r#"{"int":"5"}"#).is_ok());
        assert!(serde_json::from_str::<TypedData>(r#"{"int":5}"#).is_ok());
    }
}
