//! The data that a transport passes with a request, and the targets of its messages.

use std::net::SocketAddr;
use std::sync::Arc;

use bindpost_mcp_protocol::Revision;

use crate::auth::Caller;
use crate::peer::Peer;
use crate::peer::stream::MessageStream;

/// The origin of one request: the client, the authenticated caller, and where messages go.
#[derive(Debug)]
pub struct RequestOrigin {
    /// The client.
    pub peer: Peer,
    /// The authenticated identity of the caller.
    pub caller: Caller,
    /// Where messages that belong to this request go.
    pub delivery: DeliveryTarget,
    /// What the transport can carry besides responses.
    pub abilities: TransportAbilities,
    /// Which entries lists show.
    pub listing: ListVisibility,
    /// Whether authentication is enabled. If it is, a list of resources is shown to permitted callers only.
    pub guarded: bool,
    /// The HTTP request that carried the message, on HTTP transports.
    pub http: Option<Arc<HttpRequest>>,
}

impl RequestOrigin {
    /// Returns the caller if lists show only the entries it may use.
    pub(crate) fn listed_for(&self) -> Option<&Caller> {
        (self.listing == ListVisibility::Permitted).then_some(&self.caller)
    }

    /// Returns the caller if lists of resources require authorization. Such lists contain data.
    pub(crate) fn authorized_as(&self) -> Option<&Caller> {
        self.guarded.then_some(&self.caller)
    }
}

/// Which entries lists show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListVisibility {
    /// All entries.
    #[default]
    All,
    /// The entries that the caller may use.
    Permitted,
}

/// What a transport can carry besides responses. The server offers to a client only what reaches it:
/// without notifications, `initialize` and `server/discover` declare no `listChanged`, `subscribe` and
/// `logging`, and the methods that belong to them are unknown.
///
/// Legacy revisions need both abilities for notifications, modern ones only streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportAbilities {
    /// The handshake of a legacy revision opens a session to which later requests belong.
    pub sessions: bool,
    /// The server can send messages of its own: on a stream, or on a bidirectional connection.
    pub streams: bool,
}

impl TransportAbilities {
    /// The abilities of a bidirectional connection with one client, like stdio.
    pub const ALL: TransportAbilities = TransportAbilities { sessions: true, streams: true };
    /// The abilities of a transport that carries one response for each request.
    pub const NONE: TransportAbilities = TransportAbilities { sessions: false, streams: false };

    /// Returns whether notifications reach a client of this revision.
    pub(crate) fn notifies(self, revision: Revision) -> bool {
        self.streams && (self.sessions || !revision.has_handshake())
    }
}

/// The HTTP request that carried a message, without its body.
pub struct HttpRequest {
    /// The method, URI and headers.
    pub parts: http::request::Parts,
    /// The remote address of the connection: a client or a proxy.
    pub peer: Option<SocketAddr>,
}

/// Shows the method and the path only: headers and queries may contain credentials.
impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (method, path) = (&self.parts.method, self.parts.uri.path());
        f.debug_struct("HttpRequest").field("method", method).field("path", &path).finish_non_exhaustive()
    }
}

impl HttpRequest {
    /// Returns the HTTP method.
    pub fn method(&self) -> &str {
        self.parts.method.as_str()
    }

    /// Returns the request URI: path and query, or an absolute URI.
    pub fn uri(&self) -> &http::Uri {
        &self.parts.uri
    }

    /// Returns all headers.
    pub fn headers(&self) -> &http::HeaderMap {
        &self.parts.headers
    }

    /// Returns the value of a header, if the request has it and it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// Returns the value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the names and values of all cookies, as they were sent.
    pub fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.parts.headers.get_all(http::header::COOKIE).iter();
        let pairs = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        pairs.filter_map(|pair| pair.trim().split_once('=')).map(|(name, value)| {
            let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            (name, quoted.unwrap_or(value))
        })
    }

    /// Returns one parameter of the query, as it was sent.
    pub fn query(&self, name: &str) -> Option<&str> {
        let pairs = self.parts.uri.query()?.split('&');
        pairs
            .filter_map(|pair| pair.split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

/// The target of messages that belong to one request: progress, log messages, requests to the client.
#[derive(Debug, Clone)]
pub enum DeliveryTarget {
    /// No target. Messages are dropped, and requests to the client fail.
    None,
    /// A stream of the request's own, created with the first message.
    OnDemand {
        /// Whether the stream retains delivered messages.
        keeps: bool,
    },
    /// A stream that several requests share, as on a pipe.
    Shared(Arc<MessageStream>),
}

/// The headers of a request, if its transport has headers.
pub trait HeaderValues {
    /// Returns the value of a header, by its lower-case name.
    fn header(&self, name: &str) -> Option<&str>;
    /// Returns whether a header is repeated or is not text.
    fn is_unusable(&self, _name: &str) -> bool {
        false
    }
    /// Returns whether the transport has headers. A pipe has none, so no header is compared with an argument.
    fn has_headers(&self) -> bool {
        true
    }
}

/// The headers of a transport that has none.
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
