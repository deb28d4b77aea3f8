//! [`McpHeaders`]: the request headers that MCP defines, as typed values.

use std::borrow::Cow;

use bindpost_mcp_protocol::jsonrpc::INVALID_REQUEST;
use bindpost_mcp_protocol::{Request, Revision, header, meta};
use bindpost_mcp_server::ProtocolError;
use bindpost_mcp_server::transport::HeaderValues;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::endpoint::reply::{BoxedReply, refuse};

pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// The headers of one request that MCP and the endpoint use. They are found in one pass.
#[derive(Clone, Copy, Debug)]
pub struct McpHeaders<'a> {
    all: &'a HeaderMap,
    pub(crate) host: Option<&'a HeaderValue>,
    pub(crate) origin: Option<&'a HeaderValue>,
    content_type: Option<&'a HeaderValue>,
    content_encoding: Option<&'a HeaderValue>,
    accept: Option<&'a HeaderValue>,
    session_id: Option<&'a HeaderValue>,
    last_event_id: Option<&'a HeaderValue>,
    protocol_version: Option<&'a HeaderValue>,
    method: Option<&'a HeaderValue>,
    name: Option<&'a HeaderValue>,
    /// The name of a header that may occur once but occurs twice. A proxy in front of the server may have
    /// checked the other value.
    pub(crate) repeated: Option<&'static str>,
    /// The same for the headers that repeat parts of a modern request's body.
    repeated_beside_body: Option<&'static str>,
}

/// The value of the `MCP-Protocol-Version` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionHeader<'a> {
    Absent,
    Known(Revision),
    Unknown(&'a str),
}

/// The response formats that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptedFormats {
    JsonOnly,
    /// JSON for a single response, a stream if other messages precede it.
    Both,
    /// The client names `text/event-stream` first. It gets a stream even for a single response.
    StreamsFirst,
}

impl HeaderValues for McpHeaders<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.to_str().ok()
    }
    fn is_unusable(&self, name: &str) -> bool {
        let mut values = self.all.get_all(name).iter();
        values.next().is_some_and(|value| value.to_str().is_err()) || values.next().is_some()
    }
}

impl<'a> McpHeaders<'a> {
    /// Finds the headers of a request.
    pub fn new(all: &'a HeaderMap) -> McpHeaders<'a> {
        let mut found = McpHeaders {
            all,
            host: None,
            origin: None,
            content_type: None,
            content_encoding: None,
            accept: None,
            session_id: None,
            last_event_id: None,
            protocol_version: None,
            method: None,
            name: None,
            repeated: None,
            repeated_beside_body: None,
        };
        for (name, value) in all {
            let (slot, name) = match name.as_str() {
                "host" => (&mut found.host, "Host"),
                "origin" => (&mut found.origin, "Origin"),
                "content-type" => (&mut found.content_type, "Content-Type"),
                "content-encoding" => (&mut found.content_encoding, "Content-Encoding"),
                "accept" => (&mut found.accept, ""),
                SESSION_ID => (&mut found.session_id, "Mcp-Session-Id"),
                "last-event-id" => (&mut found.last_event_id, "Last-Event-ID"),
                "mcp-protocol-version" => (&mut found.protocol_version, "MCP-Protocol-Version"),
                "mcp-method" => (&mut found.method, "Mcp-Method"),
                "mcp-name" => (&mut found.name, "Mcp-Name"),
                _ => continue,
            };
            if slot.is_none() {
                *slot = Some(value);
            } else if matches!(name, "MCP-Protocol-Version" | "Mcp-Method" | "Mcp-Name") {
                found.repeated_beside_body = Some(name);
            } else if !name.is_empty() {
                found.repeated = Some(name);
            }
        }
        found
    }

    pub(crate) fn version(&self) -> VersionHeader<'a> {
        match self.protocol_version {
            None => VersionHeader::Absent,
            Some(value) => {
                let text = value.to_str().unwrap_or_default();
                Revision::parse(text).map_or(VersionHeader::Unknown(text), VersionHeader::Known)
            }
        }
    }

    pub(crate) fn session_id(&self) -> Option<&'a str> {
        self.session_id?.to_str().ok()
    }

    /// Ignores the session id from now on.
    pub(crate) fn forget_session_id(&mut self) {
        self.session_id = None;
    }

    pub(crate) fn last_event_id(&self) -> Option<&'a str> {
        self.last_event_id?.to_str().ok()
    }

    /// Rejects a body that is not JSON or is compressed.
    pub(crate) fn check_content(&self) -> Result<(), BoxedReply> {
        let reason = if !self.has_json() {
            "the Content-Type must be application/json"
        } else if self.is_encoded() {
            "a compressed body is not supported; send the JSON without a Content-Encoding"
        } else {
            return Ok(());
        };
        Err(Box::new(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, INVALID_REQUEST, reason)))
    }

    /// Returns whether the `Content-Type` is that of JSON, in any valid spelling.
    fn has_json(&self) -> bool {
        let Some(value) = self.content_type else { return false };
        let bytes = value.as_bytes();
        bytes == b"application/json" || is_json(bytes)
    }

    /// Returns whether the body is compressed. Compressed bodies are not supported.
    fn is_encoded(&self) -> bool {
        self.content_encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
    }

    /// Returns the formats that the client accepts. A missing or general `Accept` header means all formats:
    /// many clients send a wrong one and treat a 406 as an authorization problem.
    pub(crate) fn accepts(&self) -> AcceptedFormats {
        // Most clients send exactly this value.
        if self.accept.is_none_or(|value| value.as_bytes() == b"application/json, text/event-stream") {
            return AcceptedFormats::Both;
        }
        let mut first = None;
        for value in self.all.get_all(http::header::ACCEPT) {
            let Ok(value) = value.to_str() else { continue };
            for media_type in value.split(',').map(|one| one.split(';').next().unwrap_or_default().trim()) {
                let stream = media_type.eq_ignore_ascii_case("text/event-stream");
                if *first.get_or_insert(stream) && stream {
                    return AcceptedFormats::StreamsFirst;
                }
                if stream || media_type == "*/*" || media_type.eq_ignore_ascii_case("text/*") {
                    return AcceptedFormats::Both;
                }
            }
        }
        if first.is_some() { AcceptedFormats::JsonOnly } else { AcceptedFormats::Both }
    }

    /// Compares the version header of a modern request with its body. This check comes first, because all
    /// others depend on the revision.
    pub(crate) fn check_version(&self, request: &Request) -> Result<(), ProtocolError> {
        if let Some(name) = self.repeated_beside_body {
            return Err(ProtocolError::HeaderMismatch(format!("header {name} occurs more than once")));
        }
        let Some(header) = self.protocol_version else {
            return Err(ProtocolError::HeaderMismatch("header MCP-Protocol-Version is missing".to_owned()));
        };
        match request.params().meta(meta::PROTOCOL_VERSION).and_then(|raw| raw.as_text()) {
            // An invalid envelope is reported later.
            None => Ok(()),
            Some(body) if header.as_bytes() == body.as_bytes() => Ok(()),
            Some(body) => Err(ProtocolError::HeaderMismatch(format!(
                "MCP-Protocol-Version is {header:?} in the header and {body:?} in the body"
            ))),
        }
    }

    /// Compares `Mcp-Method` and `Mcp-Name` with the body.
    pub(crate) fn check_method(&self, request: &Request) -> Result<(), ProtocolError> {
        let method = request.method();
        match self.method {
            Some(header) if header.as_bytes() == method.as_bytes() => {}
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
        let Some(header) = self.name else {
            return Err(ProtocolError::HeaderMismatch(format!(
                "header Mcp-Name is missing; {method} needs it"
            )));
        };
        let decoded = header.to_str().ok().and_then(header::decode_value);
        let Some(decoded) = decoded else {
            let reason = format!("Mcp-Name {header:?} is neither ASCII nor the base64 form");
            return Err(ProtocolError::HeaderMismatch(reason));
        };
        match request.params().text(member) {
            // A missing member is reported later.
            None => Ok(()),
            Some(body) if *body == *decoded => Ok(()),
            Some(body) => {
                let reason = format!("Mcp-Name is {decoded:?} in the header and {body:?} in the body");
                Err(ProtocolError::HeaderMismatch(reason))
            }
        }
    }
}

/// Returns whether a media type is `application/json` in any case and with any parameters, or ends
/// in `+json`.
fn is_json(value: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let media_type: Cow<'_, str> =
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().into();
    media_type == "application/json"
        || media_type.starts_with("application/") && media_type.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn every_valid_spelling_of_the_json_media_type_is_accepted() {
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
    fn a_missing_or_general_accept_header_means_all_formats() {
        for (value, accepts) in [
            ("*/*", AcceptedFormats::Both),
            ("application/json, text/event-stream", AcceptedFormats::Both),
            ("application/json,Text/Event-Stream;q=0.5", AcceptedFormats::Both),
            ("text/event-stream, application/json", AcceptedFormats::StreamsFirst),
            ("application/json", AcceptedFormats::JsonOnly),
        ] {
            assert_eq!(McpHeaders::new(&headers(&[("accept", value)])).accepts(), accepts, "{value}");
        }
        assert_eq!(McpHeaders::new(&HeaderMap::new()).accepts(), AcceptedFormats::Both);
    }
}
