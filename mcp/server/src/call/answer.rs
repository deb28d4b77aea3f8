//! [`EncodedResponse`]: one encoded answer to one request.

use bindpost_mcp_protocol::jsonrpc::{self, RESULT_END};
use bindpost_mcp_protocol::{RequestId, Revision};
use bytes::Bytes;

use crate::error::ProtocolError;

/// The encoded answer to one request.
///
/// Most answers are one piece of bytes. A list that was encoded before is shared: the answer is then
/// a head with the id, the shared result and a closing brace, and nothing is copied.
#[derive(Debug, Clone)]
pub struct EncodedResponse {
    head: Vec<u8>,
    shared: Option<Bytes>,
    refusal: Option<RejectionKind>,
}

/// Why a request was refused, for transports with status codes of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionKind {
    /// The error is part of the conversation.
    InBand,
    /// The request itself is broken: its envelope, its headers, its version, its capabilities.
    BadRequest,
    /// No such method.
    UnknownMethod,
    /// Too much to do.
    Busy {
        /// When to try again.
        retry_after_seconds: u32,
    },
    /// Too much is kept for clients.
    Overloaded {
        /// When to try again.
        retry_after_seconds: u32,
    },
}

impl EncodedResponse {
    /// An answer that was encoded as a whole.
    pub(crate) fn from_message(message: Vec<u8>) -> EncodedResponse {
        EncodedResponse { head: message, shared: None, refusal: None }
    }

    /// A result that is shared between answers.
    pub(crate) fn from_shared_result(id: &RequestId, result: Bytes) -> EncodedResponse {
        let mut head = Vec::with_capacity(64);
        jsonrpc::write_result_start(&mut head, id);
        EncodedResponse { head, shared: Some(result), refusal: None }
    }

    /// A refusal.
    pub fn from_error(id: &RequestId, error: &ProtocolError, revision: Revision) -> EncodedResponse {
        let message = jsonrpc::encode_error(Some(id), &error.to_object(revision));
        EncodedResponse { head: message, shared: None, refusal: Some(error.rejection_kind()) }
    }

    /// What was refused, if it was.
    pub fn rejection_kind(&self) -> Option<RejectionKind> {
        self.refusal
    }

    /// The pieces to be written one after another: the head, and for a shared result also the
    /// result and the end.
    pub fn into_pieces(self) -> (Vec<u8>, Option<(Bytes, Bytes)>) {
        (self.head, self.shared.map(|result| (result, Bytes::from_static(&[RESULT_END]))))
    }

    /// The whole message in one piece.
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
