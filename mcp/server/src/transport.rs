//! What a transport brings along with a request, and where messages go.

use std::sync::Arc;

use crate::auth::Caller;
use crate::peer::Peer;
use crate::stream::Stream;

/// What comes with one request: who asks, what we know of the client, where messages go.
#[derive(Debug)]
pub struct Exchange {
    /// What we know of the client.
    pub peer: Peer,
    /// Who asks.
    pub caller: Caller,
    /// Where messages that belong to this request go.
    pub delivery: Delivery,
}

/// Where messages that belong to one request go: progress, log messages, questions.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// Nowhere: they are dropped, and questions are refused.
    None,
    /// To a stream of the request's own, made when the first one is sent.
    OnDemand {
        /// Whether it keeps what it delivered.
        keeps: bool,
    },
    /// To a stream that others use as well: a pipe.
    Shared(Arc<Stream>),
}

/// The headers a request came with, if its transport has headers.
pub trait HeaderValues {
    /// The value of a header, by its lower-case name.
    fn header(&self, name: &str) -> Option<&str>;
    /// Whether a header is there more than once, or is not text.
    fn is_unusable(&self, _name: &str) -> bool {
        false
    }
    /// Whether the transport has headers at all; a pipe has none, and nothing is compared then.
    fn are_there(&self) -> bool {
        true
    }
}

/// A transport without headers.
#[derive(Debug, Clone, Copy)]
pub struct NoHeaders;

impl HeaderValues for NoHeaders {
    fn header(&self, _name: &str) -> Option<&str> {
        None
    }
    fn are_there(&self) -> bool {
        false
    }
}
