//! MCP's headers as typed values.

use std::borrow::Cow;

use bindpost_mcp_protocol::{Request, Revision, header, meta};
use bindpost_mcp_server::{HeaderValues, ProtocolError};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};

pub(crate) const SESSION_ID: &str = "mcp-session-id";
pub(crate) const PROTOCOL_VERSION: &str = "mcp-protocol-version";
pub(crate) const LAST_EVENT_ID: &str = "last-event-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The headers of one request.
#[derive(Clone, Copy, Debug)]
pub struct McpHeaders<'a>(&'a HeaderMap);

/// What a client says of the revision in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version<'a> {
    Absent,
    Known(Revision),
    Unknown(&'a str),
}

/// What a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    JsonOnly,
    /// JSON where one answer is all there is, streams where there is more.
    Both,
    /// It names streams first: it gets one even for a single answer.
    StreamsFirst,
}

impl HeaderValues for McpHeaders<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }
}

impl<'a> McpHeaders<'a> {
    /// The headers of a request.
    pub fn new(headers: &'a HeaderMap) -> McpHeaders<'a> {
        McpHeaders(headers)
    }

    fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.to_str().ok()
    }

    /// A header that may be there once. Two of them would let a proxy and us read different ones.
    fn single(self, name: &str) -> Result<Option<&'a str>, ProtocolError> {
        let mut values = self.0.get_all(name).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(ProtocolError::HeaderMismatch(format!("header {name:?} is there twice")));
        }
        let unreadable = || ProtocolError::HeaderMismatch(format!("header {name:?} is not ASCII"));
        value.to_str().map(Some).map_err(|_| unreadable())
    }

    pub(crate) fn version(self) -> Version<'a> {
        match self.text(PROTOCOL_VERSION) {
            None => Version::Absent,
            Some(text) => Revision::parse(text).map_or(Version::Unknown(text), Version::Known),
        }
    }

    pub(crate) fn session_id(self) -> Option<&'a str> {
        self.text(SESSION_ID)
    }

    pub(crate) fn last_event_id(self) -> Option<&'a str> {
        self.text(LAST_EVENT_ID)
    }

    /// Whether the body says it is JSON, in any legal spelling.
    pub(crate) fn has_json(self) -> bool {
        let Some(value) = self.0.get(CONTENT_TYPE) else { return false };
        let bytes = value.as_bytes();
        bytes == b"application/json" || is_json(bytes)
    }

    /// Whether the body is compressed, which we do not read.
    pub(crate) fn is_encoded(self) -> bool {
        self.0.get(CONTENT_ENCODING).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
    }

    /// What the client reads. A missing or general `Accept` means everything: clients get it wrong, and
    /// they take a 406 for an authorization problem.
    pub(crate) fn accepts(self) -> Accepts {
        let mut first = None;
        for value in self.0.get_all(ACCEPT) {
            // What clients usually send.
            if value.as_bytes() == b"application/json, text/event-stream" {
                return Accepts::Both;
            }
            let Ok(value) = value.to_str() else { continue };
            for media_type in value.split(',').map(|one| one.split(';').next().unwrap_or_default().trim()) {
                let stream = media_type.eq_ignore_ascii_case("text/event-stream");
                if *first.get_or_insert(stream) && stream {
                    return Accepts::StreamsFirst;
                }
                if stream || media_type == "*/*" || media_type.eq_ignore_ascii_case("text/*") {
                    return Accepts::Both;
                }
            }
        }
        if first.is_some() { Accepts::JsonOnly } else { Accepts::Both }
    }

    /// Compares the headers of a request that stands alone with its body: version first, because
    /// everything else depends on it.
    pub(crate) fn check_version(self, request: &Request) -> Result<(), ProtocolError> {
        let in_body = request.params().meta(meta::PROTOCOL_VERSION).and_then(|raw| raw.as_text());
        match (self.single(PROTOCOL_VERSION)?, in_body) {
            // A broken envelope is reported as such later.
            (Some(_), None) => Ok(()),
            (Some(header), Some(body)) if header == body => Ok(()),
            (Some(header), Some(body)) => Err(ProtocolError::HeaderMismatch(format!(
                "MCP-Protocol-Version is {header:?} in the header and {body:?} in the body"
            ))),
            (None, _) => {
                Err(ProtocolError::HeaderMismatch("header MCP-Protocol-Version is missing".to_owned()))
            }
        }
    }

    /// Compares `Mcp-Method` and `Mcp-Name` with the body.
    pub(crate) fn check_method(self, request: &Request) -> Result<(), ProtocolError> {
        let method = request.method();
        match self.single(METHOD)? {
            Some(header) if header == method => {}
            Some(header) => {
                let reason = format!("Mcp-Method is {header:?} in the header and {method:?} in the body");
                return Err(ProtocolError::HeaderMismatch(reason));
            }
            None => {
                return Err(ProtocolError::HeaderMismatch("header Mcp-Method is missing".to_owned()));
            }
        }
        let member = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return Ok(()),
        };
        let Some(header) = self.single(NAME)? else {
            return Err(ProtocolError::HeaderMismatch(format!("header Mcp-Name is missing; {method} needs it")));
        };
        let Some(header) = header::decode_value(header) else {
            let reason = format!("Mcp-Name {header:?} is broken base64");
            return Err(ProtocolError::HeaderMismatch(reason));
        };
        match request.params().text(member) {
            // A missing member is reported as such later.
            None => Ok(()),
            Some(body) if *body == *header => Ok(()),
            Some(body) => {
                let reason = format!("Mcp-Name is {header:?} in the header and {body:?} in the body");
                Err(ProtocolError::HeaderMismatch(reason))
            }
        }
    }
}

/// `application/json` whatever its case and parameters, or anything that ends in `+json`.
fn is_json(value: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let media_type: Cow<'_, str> = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().into();
    media_type == "application/json" || media_type.starts_with("application/") && media_type.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn any_legal_spelling_of_json_is_json() {
        for (value, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json;charset=UTF-8", true),
            ("application/mcp+json", true),
            ("text/plain", false),
            ("application/jsonx", false),
            ("application/x-www-form-urlencoded", false),
        ] {
            assert_eq!(McpHeaders::new(&headers(&[("content-type", value)])).has_json(), json, "{value}");
        }
        assert!(!McpHeaders::new(&HeaderMap::new()).has_json());
    }

    #[test]
    fn accept_is_read_generously() {
        for (value, accepts) in [
            ("*/*", Accepts::Both),
            ("application/json, text/event-stream", Accepts::Both),
            ("application/json,Text/Event-Stream;q=0.5", Accepts::Both),
            ("text/event-stream, application/json", Accepts::StreamsFirst),
            ("application/json", Accepts::JsonOnly),
        ] {
            assert_eq!(McpHeaders::new(&headers(&[("accept", value)])).accepts(), accepts, "{value}");
        }
        assert_eq!(McpHeaders::new(&HeaderMap::new()).accepts(), Accepts::Both);
    }
}
