//! Limits the number of parts of a message before it is decoded.
//!
//! A part may have two bytes on the wire and some hundred in memory. Without this limit, a message of the
//! maximum size could need more than a hundred times its size in memory.

use std::collections::BTreeMap;

use bytes::Buf as _;
use prost::encoding::{WireType, decode_key, decode_varint};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// The maximum number of elements in the lists of one message. Responses have a few outputs, and apps
/// some hundred functions.
pub(crate) const MAX_PARTS: usize = 250_000;

/// Messages up to this size are not checked, because they cannot have too many parts.
const SMALL: usize = 64 << 10;

/// The fields of a message whose messages contain lists, by field number, with the shapes of those messages.
struct MessageShape(&'static [(u32, &'static MessageShape)]);

static PLAIN: MessageShape = MessageShape(&[]);
/// Lists of bytes and of strings.
static BODY: MessageShape = MessageShape(&[(8, &PLAIN), (9, &PLAIN)]);
/// A body. Maps and cookies are fields of the message itself. HTTP within a body is not counted, because the decoder
/// limits the depth.
static HTTP: MessageShape = MessageShape(&[(4, &BODY)]);
static TYPED_DATA: MessageShape = MessageShape(&[(5, &HTTP), (8, &PLAIN), (9, &PLAIN)]);
static PARAMETER: MessageShape = MessageShape(&[(2, &TYPED_DATA)]);
static FUNCTION: MessageShape = MessageShape(&[(6, &PLAIN), (16, &PLAIN)]);
static LOAD_REQUEST: MessageShape = MessageShape(&[(2, &FUNCTION)]);
static INVOCATION_REQUEST: MessageShape = MessageShape(&[(3, &PARAMETER), (4, &PARAMETER)]);
static INVOCATION_RESPONSE: MessageShape = MessageShape(&[(2, &PARAMETER), (4, &TYPED_DATA)]);
static INIT_RESPONSE: MessageShape = MessageShape(&[(4, &PLAIN)]);
static MESSAGE: MessageShape = MessageShape(&[
    (2, &PLAIN),
    (4, &INVOCATION_REQUEST),
    (5, &INVOCATION_RESPONSE),
    (8, &LOAD_REQUEST),
    (9, &PLAIN),
    (16, &INIT_RESPONSE),
    (17, &PLAIN),
    (30, &MessageShape(&[(1, &FUNCTION)])),
    (31, &MessageShape(&[(1, &LOAD_REQUEST)])),
    (32, &MessageShape(&[(1, &PLAIN)])),
]);

/// A message has too many parts.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more than {MAX_PARTS} parts")]
pub(crate) struct TooManyParts;

/// Counts the fields of a protobuf message and of its nested messages, up to the limit. A message that cannot
/// be read is rejected later by the decoder.
pub(crate) fn check_protobuf(message: &[u8]) -> Result<(), TooManyParts> {
    let mut left = MAX_PARTS;
    if message.len() > SMALL { count(message, &MESSAGE, &mut left) } else { Ok(()) }
}

fn count(mut message: &[u8], shape: &MessageShape, left: &mut usize) -> Result<(), TooManyParts> {
    while let Ok((field, wire)) = decode_key(&mut message) {
        *left = left.checked_sub(1).ok_or(TooManyParts)?;
        let length = match wire {
            WireType::Varint if decode_varint(&mut message).is_ok() => 0,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => match decode_varint(&mut message).map(usize::try_from) {
                Ok(Ok(length)) => length,
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        let Some(content) = message.get(..length) else { return Ok(()) };
        if let Some((_, within)) = shape.0.iter().find(|(number, _)| *number == field) {
            count(content, within, left)?;
        }
        message.advance(length);
    }
    Ok(())
}

/// Deserializes a JSON list up to the limit.
pub(crate) fn deserialize_limited_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct LimitedListVisitor<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for LimitedListVisitor<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = list.next_element()? {
                if elements.len() == MAX_PARTS {
                    return Err(A::Error::custom(TooManyParts));
                }
                elements.push(element);
            }
            Ok(elements)
        }
    }
    deserializer.deserialize_seq(LimitedListVisitor(std::marker::PhantomData))
}

/// Deserializes a JSON object up to the limit.
pub(crate) fn deserialize_limited_map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    struct LimitedMapVisitor<T>(std::marker::PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for LimitedMapVisitor<T> {
        type Value = BTreeMap<String, T>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BTreeMap<String, T>, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some((name, value)) = map.next_entry()? {
                if entries.len() == MAX_PARTS {
                    return Err(A::Error::custom(TooManyParts));
                }
                entries.insert(name, value);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(LimitedMapVisitor(std::marker::PhantomData))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::proto::streaming_message::Content;
    use super::super::proto::typed_data::Data;
    use super::super::proto::*;
    use super::*;

    fn message(content: Content) -> Vec<u8> {
        StreamingMessage { request_id: "r".into(), content: Some(content) }.encode_to_vec()
    }

    /// Messages with every list that a worker can send.
    fn lists(length: usize) -> Vec<Vec<u8>> {
        let value = |data| Some(TypedData { data: Some(data) });
        let answer = |return_value| {
            message(Content::InvocationResponse(InvocationResponse { return_value, ..Default::default() }))
        };
        vec![
            message(Content::InvocationResponse(InvocationResponse {
                output_data: vec![ParameterBinding::default(); length],
                ..Default::default()
            })),
            message(Content::InvocationRequest(InvocationRequest {
                input_data: vec![ParameterBinding::default(); length],
                ..Default::default()
            })),
            message(Content::FunctionMetadataResponse(FunctionMetadataResponse {
                function_metadata_results: vec![RpcFunctionMetadata::default(); length],
                ..Default::default()
            })),
            message(Content::FunctionLoadRequestCollection(FunctionLoadRequestCollection {
                function_load_requests: vec![FunctionLoadRequest::default(); length],
            })),
            message(Content::FunctionLoadResponseCollection(FunctionLoadResponseCollection {
                function_load_responses: vec![FunctionLoadResponse::default(); length],
            })),
            answer(value(Data::Http(Box::new(RpcHttp {
                headers: (0..length).map(|number| (number.to_string(), String::new())).collect(),
                ..Default::default()
            })))),
            answer(value(Data::Http(Box::new(RpcHttp {
                cookies: vec![RpcHttpCookie::default(); length],
                ..Default::default()
            })))),
            answer(value(Data::CollectionString(CollectionString { string: vec![String::new(); length] }))),
            answer(value(Data::CollectionBytes(CollectionBytes { bytes: vec![Default::default(); length] }))),
        ]
    }

    #[test]
    fn lists_are_counted_at_every_depth() {
        for (number, message) in lists(MAX_PARTS + 1).iter().enumerate() {
            assert_eq!(check_protobuf(message), Err(TooManyParts), "{number}");
        }
        for (number, message) in lists(MAX_PARTS - 100).iter().enumerate() {
            assert_eq!(check_protobuf(message), Ok(()), "{number}");
        }
    }

    /// Bytes that a function returns are not parsed, even if they look like a message.
    #[test]
    fn values_are_not_parsed() {
        let inner = lists(MAX_PARTS + 1).swap_remove(0);
        let data = Some(TypedData { data: Some(Data::Bytes(inner.into())) });
        let response = InvocationResponse { return_value: data, ..Default::default() };
        assert_eq!(check_protobuf(&message(Content::InvocationResponse(response))), Ok(()));
    }
}
