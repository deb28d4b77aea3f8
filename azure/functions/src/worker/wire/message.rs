//! The JSON of a `StreamingMessage`, for our own workers. It is protobuf's JSON mapping with
//! enums as numbers.
//!
//! A oneof is written as the member that is set. The visitor decodes that member directly into its
//! type, without an intermediate tree, because payloads may have many megabytes. Unknown members and
//! null members are ignored. The JSON of `TypedData` is in `typed_data.rs`. The JSON of plain messages
//! is derived (`build.rs`).

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::proto::streaming_message::Content;
use super::proto::{Period, StreamingMessage};

impl Serialize for StreamingMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if !self.request_id.is_empty() {
            map.serialize_entry("requestId", &self.request_id)?;
        }
        match &self.content {
            None => {}
            Some(Content::RpcLog(it)) => map.serialize_entry("rpcLog", it)?,
            Some(Content::InvocationRequest(it)) => map.serialize_entry("invocationRequest", it)?,
            Some(Content::InvocationResponse(it)) => map.serialize_entry("invocationResponse", it)?,
            Some(Content::FunctionLoadRequest(it)) => map.serialize_entry("functionLoadRequest", it)?,
            Some(Content::FunctionLoadResponse(it)) => map.serialize_entry("functionLoadResponse", it)?,
            Some(Content::WorkerStatusRequest(it)) => map.serialize_entry("workerStatusRequest", it)?,
            Some(Content::WorkerStatusResponse(it)) => map.serialize_entry("workerStatusResponse", it)?,
            Some(Content::WorkerTerminate(it)) => map.serialize_entry("workerTerminate", it)?,
            Some(Content::WorkerInitResponse(it)) => map.serialize_entry("workerInitResponse", it)?,
            Some(Content::WorkerInitRequest(it)) => map.serialize_entry("workerInitRequest", it)?,
            Some(Content::StartStream(it)) => map.serialize_entry("startStream", it)?,
            Some(Content::InvocationCancel(it)) => map.serialize_entry("invocationCancel", it)?,
            Some(Content::FunctionsMetadataRequest(it)) => {
                map.serialize_entry("functionsMetadataRequest", it)?;
            }
            Some(Content::FunctionMetadataResponse(it)) => {
                map.serialize_entry("functionMetadataResponse", it)?;
            }
            Some(Content::FunctionLoadRequestCollection(it)) => {
                map.serialize_entry("functionLoadRequestCollection", it)?;
            }
            Some(Content::FunctionLoadResponseCollection(it)) => {
                map.serialize_entry("functionLoadResponseCollection", it)?;
            }
        }
        map.end()
    }
}

/// The members of a message.
#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum MessageMember {
    RequestId,
    RpcLog,
    InvocationRequest,
    InvocationResponse,
    FunctionLoadRequest,
    FunctionLoadResponse,
    WorkerStatusRequest,
    WorkerStatusResponse,
    WorkerTerminate,
    WorkerInitResponse,
    WorkerInitRequest,
    StartStream,
    InvocationCancel,
    FunctionsMetadataRequest,
    FunctionMetadataResponse,
    FunctionLoadRequestCollection,
    FunctionLoadResponseCollection,
    #[serde(other)]
    Unknown,
}

impl<'de> Deserialize<'de> for StreamingMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = StreamingMessage;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StreamingMessage, A::Error> {
        let mut message = StreamingMessage::default();
        while let Some(member) = map.next_key()? {
            let content = match member {
                MessageMember::RequestId => {
                    message.request_id = map.next_value::<Option<String>>()?.unwrap_or_default();
                    continue;
                }
                MessageMember::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                MessageMember::RpcLog => map.next_value::<Option<_>>()?.map(Content::RpcLog),
                MessageMember::InvocationRequest => {
                    map.next_value::<Option<_>>()?.map(Content::InvocationRequest)
                }
                MessageMember::InvocationResponse => {
                    map.next_value::<Option<_>>()?.map(Content::InvocationResponse)
                }
                MessageMember::FunctionLoadRequest => {
                    map.next_value::<Option<_>>()?.map(Content::FunctionLoadRequest)
                }
                MessageMember::FunctionLoadResponse => {
                    map.next_value::<Option<_>>()?.map(Content::FunctionLoadResponse)
                }
                MessageMember::WorkerStatusRequest => {
                    map.next_value::<Option<_>>()?.map(Content::WorkerStatusRequest)
                }
                MessageMember::WorkerStatusResponse => {
                    map.next_value::<Option<_>>()?.map(Content::WorkerStatusResponse)
                }
                MessageMember::WorkerTerminate => {
                    map.next_value::<Option<_>>()?.map(Content::WorkerTerminate)
                }
                MessageMember::WorkerInitResponse => {
                    map.next_value::<Option<_>>()?.map(Content::WorkerInitResponse)
                }
                MessageMember::WorkerInitRequest => {
                    map.next_value::<Option<_>>()?.map(Content::WorkerInitRequest)
                }
                MessageMember::StartStream => map.next_value::<Option<_>>()?.map(Content::StartStream),
                MessageMember::InvocationCancel => {
                    map.next_value::<Option<_>>()?.map(Content::InvocationCancel)
                }
                MessageMember::FunctionsMetadataRequest => {
                    map.next_value::<Option<_>>()?.map(Content::FunctionsMetadataRequest)
                }
                MessageMember::FunctionMetadataResponse => {
                    map.next_value::<Option<_>>()?.map(Content::FunctionMetadataResponse)
                }
                MessageMember::FunctionLoadRequestCollection => {
                    map.next_value::<Option<_>>()?.map(Content::FunctionLoadRequestCollection)
                }
                MessageMember::FunctionLoadResponseCollection => {
                    map.next_value::<Option<_>>()?.map(Content::FunctionLoadResponseCollection)
                }
            };
            message.content = content.or(message.content);
        }
        Ok(message)
    }
}

/// Writes a duration as protobuf's JSON does: `"5s"` or `"0.250000000s"`.
impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.nanos == 0 {
            serializer.collect_str(&format_args!("{}s", self.seconds))
        } else {
            serializer.collect_str(&format_args!("{}.{:09}s", self.seconds, self.nanos))
        }
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The host uses no period from a worker.
        IgnoredAny::deserialize(deserializer).map(|_| Period::default())
    }
}

impl From<std::time::Duration> for Period {
    fn from(duration: std::time::Duration) -> Self {
        Self {
            seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::typed_data::Data;
    use super::super::proto::{InvocationResponse, ParameterBinding, StatusResult, TypedData};
    use super::*;

    #[test]
    fn reads_a_response_of_our_workers() {
        let text = r#"{"requestId":"r","invocationResponse":{"invocationId":"7","outputData":[{"name":"file","data":{"string":"x"}}],"returnValue":{"string":"ok"},"result":{"status":1}}}"#;
        let message: StreamingMessage = serde_json::from_str(text).unwrap();
        let string = |text: &str| Some(TypedData { data: Some(Data::String(text.into())) });
        assert_eq!(
            message,
            StreamingMessage {
                request_id: "r".into(),
                content: Some(Content::InvocationResponse(InvocationResponse {
                    invocation_id: "7".into(),
                    output_data: vec![ParameterBinding { name: "file".into(), data: string("x") }],
                    result: Some(StatusResult { status: 1, ..StatusResult::default() }),
                    return_value: string("ok"),
                })),
            }
        );
    }

    #[test]
    fn unknown_members_and_messages_are_ignored() {
        let text = r#"{"workerHeartbeat":{"a":[1,{}]},"requestId":null,"startStream":null}"#;
        let message: StreamingMessage = serde_json::from_str(text).unwrap();
        assert_eq!(message, StreamingMessage::default());
    }

    #[test]
    fn unset_members_are_not_written() {
        let message = StreamingMessage {
            request_id: String::new(),
            content: Some(Content::WorkerTerminate(super::super::proto::WorkerTerminate {
                grace_period: Some(std::time::Duration::from_secs(5).into()),
            })),
        };
        assert_eq!(serde_json::to_string(&message).unwrap(), r#"{"workerTerminate":{"gracePeriod":"5s"}}"#);
        let empty = ParameterBinding { name: "blob".into(), data: Some(TypedData::default()) };
        assert_eq!(serde_json::to_string(&empty).unwrap(), r#"{"name":"blob","data":{}}"#);
    }
}
