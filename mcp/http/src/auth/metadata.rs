//! The protected resource metadata of RFC 9728: the resource's URL, and the authorization servers whose
//! tokens it accepts.

use std::borrow::Cow;

use bindpost_mcp_server::{HttpRequest, Server};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
};
use http::{HeaderValue, Method, StatusCode, Uri};
use serde_json::{Map, Value, json};

use crate::auth::gate::AuthGate;
use crate::endpoint::body::ReplyBody;
use crate::endpoint::reply::{Reply, empty, json_reply};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The public address of an MCP endpoint: an absolute URL without a trailing slash.
#[derive(Clone, Debug)]
pub(crate) struct ResourceUrl {
    url: String,
    /// The offset of the path in the URL.
    path: usize,
}

impl ResourceUrl {
    /// Parses a configured address. The error says what to change.
    pub(crate) fn parse(text: &str) -> Result<ResourceUrl, String> {
        let wrong = |what: &str| {
            Err(format!(
                "the resource {text:?} {what}\n  fix: write the address at which clients reach the MCP \
                 endpoint, like https://api.example.com/mcp"
            ))
        };
        let Ok(uri) = text.parse::<Uri>() else { return wrong("is not a valid URL") };
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return wrong("does not begin with https:// or http://");
        };
        if uri.query().is_some() || text.contains('#') || authority.as_str().contains('@') {
            return wrong("has more parts than a host and a path");
        }
        let url = text.strip_suffix('/').unwrap_or(text).to_owned();
        let path = url.len() - uri.path().strip_suffix('/').unwrap_or(uri.path()).len();
        Ok(ResourceUrl { url, path })
    }

    fn path(&self) -> &str {
        self.url.get(self.path..).unwrap_or_default()
    }

    /// Returns the URL of its metadata.
    fn metadata_url(&self) -> String {
        format!("{}{WELL_KNOWN}{}", self.url.get(..self.path).unwrap_or_default(), self.path())
    }
}

impl AuthGate {
    /// Returns whether metadata is served at this path. Clients look for it with and without the path
    /// of the endpoint, so both are served.
    pub(crate) fn has_metadata_at(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix(WELL_KNOWN) else { return false };
        let configured = || self.resource.as_ref().is_some_and(|resource| resource.path() == rest);
        !self.authorization_servers.is_empty() && (rest.is_empty() || rest == self.path || configured())
    }

    /// Returns the path of the metadata, if there is any.
    pub(crate) fn metadata_path(&self) -> Option<String> {
        let path = self.resource.as_ref().map_or(self.path.as_str(), ResourceUrl::path);
        (!self.authorization_servers.is_empty())
            .then(|| format!("{WELL_KNOWN}{}", path.trim_end_matches('/')))
    }

    /// Returns the metadata, or 404 if the URL of the resource is not known.
    pub(crate) fn metadata(&self, server: &Server, request: &HttpRequest) -> Reply {
        let mut reply = match (&request.parts.method, self.resource_url(request)) {
            (&Method::OPTIONS, _) => empty(StatusCode::NO_CONTENT),
            (_, None) => empty(StatusCode::NOT_FOUND),
            (_, Some(resource)) => {
                let mut metadata = Map::from_iter([
                    ("resource".to_owned(), Value::from(resource.url.as_str())),
                    ("authorization_servers".to_owned(), json!(self.authorization_servers)),
                    ("bearer_methods_supported".to_owned(), json!(["header"])),
                ]);
                let mut scopes = self.auth.scopes_supported.clone().unwrap_or_else(|| server.scopes());
                // Clients request this scope themselves. It is not a scope of the resource.
                scopes.retain(|scope| scope != "offline_access");
                if !scopes.is_empty() {
                    metadata.insert("scopes_supported".to_owned(), json!(scopes));
                }
                json_reply(StatusCode::OK, ReplyBody::once(Value::Object(metadata).to_string().into_bytes()))
            }
        };
        let headers = reply.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        if request.parts.method == Method::OPTIONS {
            let methods = HeaderValue::from_static("GET, OPTIONS");
            headers.insert(ALLOW, methods.clone());
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
        }
        reply
    }

    /// Returns the URL of the metadata, for a challenge.
    pub(crate) fn metadata_url(&self, request: &HttpRequest) -> Option<String> {
        if self.authorization_servers.is_empty() {
            return None;
        }
        self.resource_url(request).map(|resource| resource.metadata_url())
    }

    /// Returns the URL of the resource: the configured one, or one built from the host of the request.
    /// Only a listed host is used. Otherwise a forged `Host` header could make clients request tokens
    /// for another name.
    fn resource_url(&self, request: &HttpRequest) -> Option<Cow<'_, ResourceUrl>> {
        if let Some(resource) = &self.resource {
            return Some(Cow::Borrowed(resource));
        }
        let host = self.guard.named_host(&request.parts)?;
        let (scheme, default_port) = if host.uses_https { ("https", ":443") } else { ("http", ":80") };
        let name = host.text.strip_suffix(default_port).unwrap_or(host.text).to_ascii_lowercase();
        let url = format!("{scheme}://{}", name.strip_suffix(':').unwrap_or(&name));
        let path = url.len();
        Some(Cow::Owned(ResourceUrl { url: url + self.path.trim_end_matches('/'), path }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_an_absolute_url_without_query_or_fragment() {
        for (text, url, metadata) in [
            (
                "https://a.example/mcp",
                "https://a.example/mcp",
                "https://a.example/.well-known/oauth-protected-resource/mcp",
            ),
            (
                "https://a.example:8443/v1/mcp/",
                "https://a.example:8443/v1/mcp",
                "https://a.example:8443/.well-known/oauth-protected-resource/v1/mcp",
            ),
            (
                "http://localhost:7071",
                "http://localhost:7071",
                "http://localhost:7071/.well-known/oauth-protected-resource",
            ),
            ("http://[::1]/", "http://[::1]", "http://[::1]/.well-known/oauth-protected-resource"),
        ] {
            let resource = ResourceUrl::parse(text).unwrap();
            assert_eq!((resource.url.as_str(), resource.metadata_url().as_str()), (url, metadata));
        }
        for text in [
            "",
            "/mcp",
            "a.example/mcp",
            "ftp://a.example",
            "https://a.example/mcp?x=1",
            "https://a.example/#x",
            "https://user@a.example/mcp",
            "https://a.example/m cp",
            "https://",
        ] {
            assert!(ResourceUrl::parse(text).unwrap_err().contains("fix:"), "{text}");
        }
    }
}
