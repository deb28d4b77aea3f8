//! [`EncodedResponse`]: the encoded response to one request.

use bindpost_mcp_protocol::jsonrpc::{self, RESULT_END};
use bindpost_mcp_protocol::{RequestId, Revision};
use bytes::Bytes;

use crate::error::ProtocolError;

/// The encoded response to one request.
///
/// Most responses are one buffer. A list is encoded once and shared: its response is a head with the id, the
/// shared result and a closing brace, without a copy of the result.
#[derive(Debug, Clone)]
pub struct EncodedResponse {
    head: Vec<u8>,
    shared: Option<Bytes>,
    refusal: Option<RejectionKind>,
}

/// Why a request was rejected, for transports with their own status codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionKind {
    /// The error is an ordinary JSON-RPC response.
    InBand,
    /// The envelope, headers, revision or capabilities of the request are invalid.
    BadRequest,
    /// The method does not exist in this revision or is not offered.
    UnknownMethod,
    /// Too many calls, tasks or listeners are active.
    Busy {
        /// The number of seconds after which the client should retry.
        retry_after_seconds: u32,
    },
    /// The byte budget for clients is exhausted.
    Overloaded {
        /// The number of seconds after which the client should retry.
        retry_after_seconds: u32,
    },
}

impl EncodedResponse {
    /// Returns a response from a whole encoded message.
    pub(crate) fn from_message(message: Vec<u8>) -> EncodedResponse {
        EncodedResponse { head: message, shared: None, refusal: None }
    }

    /// Returns a response with a result that several responses share.
    pub(crate) fn from_shared_result(id: &RequestId, result: Bytes) -> EncodedResponse {
        let mut head = Vec::with_capacity(64);
        jsonrpc::write_result_start(&mut head, id);
        EncodedResponse { head, shared: Some(result), refusal: None }
    }

    /// Returns an error response.
    pub fn from_error(id: &RequestId, error: &ProtocolError, revision: Revision) -> EncodedResponse {
        let message = jsonrpc::encode_error(Some(id), &error.to_object(revision));
        EncodedResponse { head: message, shared: None, refusal: Some(error.rejection_kind()) }
    }

    /// Returns why the request was rejected, or `None` for a result.
    pub fn rejection_kind(&self) -> Option<RejectionKind> {
        self.refusal
    }

    /// Returns the buffers to write one after another: the head, and for a shared result also the result
    /// and the end.
    pub fn into_pieces(self) -> (Vec<u8>, Option<(Bytes, Bytes)>) {
        (self.head, self.shared.map(|result| (result, Bytes::from_static(&[RESULT_END]))))
    }

    /// Returns the whole message in one buffer.
    pub fn into_bytes(self) -> Bytes {
        match self.shared {
            None => self.head.into(),
            Some(result) => {
                let mut message = self.head;
                message.reserve_exact(result.len() + 1);
                message.extend_from_slice(&result);
                message.push(RESULT_END);
                message.into()
            }
        }
    }
}
