//! What a transport brings along with a request, and where messages go.

pub(crate) mod pipe;
pub mod stdio;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::auth::Caller;
use crate::peer::Peer;
use crate::peer::stream::MessageStream;

/// What comes with one request: who asks, what we know of the client, where messages go.
#[derive(Debug)]
pub struct RequestOrigin {
    /// What we know of the client.
    pub peer: Peer,
    /// Who asks.
    pub caller: Caller,
    /// Where messages that belong to this request go.
    pub delivery: DeliveryTarget,
    /// What lists show.
    pub listing: ListVisibility,
    /// Whether somebody is at the door: an unknown caller is a stranger then.
    pub guarded: bool,
    /// The HTTP request it came in, if it did.
    pub http: Option<Arc<HttpRequest>>,
}

impl RequestOrigin {
    /// The caller, if lists show only what it may use.
    pub(crate) fn visible_to(&self) -> Option<&Caller> {
        (self.listing == ListVisibility::Permitted).then_some(&self.caller)
    }

    /// The caller, if what is listed when asked is for those only who may: such a list is made of data.
    pub(crate) fn authorized_as(&self) -> Option<&Caller> {
        self.guarded.then_some(&self.caller)
    }
}

/// What lists show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListVisibility {
    /// Everything.
    #[default]
    All,
    /// What the caller may use.
    Permitted,
}

/// The HTTP request a message came in: everything but its body.
pub struct HttpRequest {
    /// Method, address and headers.
    pub parts: http::request::Parts,
    /// Who is at the other end of the connection: a client, or a proxy.
    pub peer: Option<SocketAddr>,
}

/// Headers and queries hold credentials; they are not for logs.
impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (method, path) = (&self.parts.method, self.parts.uri.path());
        f.debug_struct("HttpRequest").field("method", method).field("path", &path).finish_non_exhaustive()
    }
}

impl HttpRequest {
    /// The method.
    pub fn method(&self) -> &str {
        self.parts.method.as_str()
    }

    /// The address: path and query, or all of it.
    pub fn uri(&self) -> &http::Uri {
        &self.parts.uri
    }

    /// All headers.
    pub fn headers(&self) -> &http::HeaderMap {
        &self.parts.headers
    }

    /// The value of a header, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All cookies, names and values as they were sent.
    pub fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.parts.headers.get_all(http::header::COOKIE).iter();
        let pairs = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        pairs.filter_map(|pair| pair.trim().split_once('=')).map(|(name, value)| {
            let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            (name, quoted.unwrap_or(value))
        })
    }

    /// One parameter of the query, as it was sent.
    pub fn query(&self, name: &str) -> Option<&str> {
        let pairs = self.parts.uri.query()?.split('&');
        pairs
            .filter_map(|pair| pair.split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

/// Where messages that belong to one request go: progress, log messages, questions.
#[derive(Debug, Clone)]
pub enum DeliveryTarget {
    /// Nowhere: they are dropped, and questions are refused.
    None,
    /// To a stream of the request's own, made when the first one is sent.
    OnDemand {
        /// Whether it keeps what it delivered.
        keeps: bool,
    },
    /// To a stream that others use as well: a pipe.
    Shared(Arc<MessageStream>),
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
    fn has_headers(&self) -> bool {
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
    fn has_headers(&self) -> bool {
        false
    }
}
