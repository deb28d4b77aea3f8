//! The error responses of authentication and authorization: status, challenges and JSON-RPC error.
//!
//! Values from outside become parameters of a header. Characters that a quoted string cannot hold
//! are replaced.

use bindpost_mcp_protocol::RequestId;
use bindpost_mcp_protocol::jsonrpc::{INTERNAL_ERROR, INVALID_REQUEST};
use bindpost_mcp_server::HttpRequest;
use bindpost_mcp_server::transport::LackingAccess;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use crate::auth::gate::AuthGate;
use crate::auth::{Denial, DenialKind, UNAUTHORIZED};
use crate::endpoint::reply::{Reply, refuse};

impl AuthGate {
    /// Rejects an unauthenticated request: with 401, or with the status of the authorizer's denial.
    pub(crate) fn refuse_unauthenticated(
        &self,
        request: &HttpRequest,
        denial: Option<&Denial>,
        id: Option<&RequestId>,
        scopes: &[&str],
    ) -> Reply {
        let missing = Denial::missing();
        let denial = denial.unwrap_or(&missing);
        let text = denial.text.as_str();
        let (status, code, error) = match denial.kind {
            DenialKind::Missing => (StatusCode::UNAUTHORIZED, UNAUTHORIZED, None),
            DenialKind::Invalid => (StatusCode::UNAUTHORIZED, UNAUTHORIZED, Some("invalid_token")),
            DenialKind::Malformed => (StatusCode::BAD_REQUEST, INVALID_REQUEST, Some("invalid_request")),
            DenialKind::Unavailable => {
                let mut reply = refuse_logged(StatusCode::SERVICE_UNAVAILABLE, id, 503, text);
                reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
                return reply;
            }
            DenialKind::Failed => {
                return refuse_logged(StatusCode::INTERNAL_SERVER_ERROR, id, INTERNAL_ERROR, text);
            }
        };
        let mut reply = refuse_logged(status, id, code, text);
        let verbatim = denial.challenge.as_deref().and_then(|value| HeaderValue::try_from(value).ok());
        match verbatim {
            Some(challenge) => drop(reply.headers_mut().insert(WWW_AUTHENTICATE, challenge)),
            None => self.add_challenges(&mut reply, request, error.map(|error| (error, text)), scopes),
        }
        reply
    }

    /// Rejects an authenticated caller that lacks rights: 403 with all required scopes in the
    /// challenge. A client can request scopes. Roles are only named in the error text.
    pub(crate) fn refuse_forbidden(
        &self,
        request: &HttpRequest,
        id: Option<&RequestId>,
        lacking: &LackingAccess<'_>,
    ) -> Reply {
        let text = lacking.to_string();
        let mut reply = refuse_logged(StatusCode::FORBIDDEN, id, UNAUTHORIZED, &text);
        self.add_challenges(&mut reply, request, Some(("insufficient_scope", &text)), &lacking.scopes);
        reply
    }

    /// Adds a `WWW-Authenticate` header for each challenge. The first one carries the error, the scopes
    /// and the URL of the metadata.
    fn add_challenges(
        &self,
        reply: &mut Reply,
        request: &HttpRequest,
        error: Option<(&str, &str)>,
        scopes: &[&str],
    ) {
        for (number, challenge) in self.challenges.iter().enumerate() {
            let challenge = challenge.as_deref().unwrap_or("Bearer");
            let (scheme, parameters) = challenge.split_once(' ').unwrap_or((challenge, ""));
            let mut value = format!("{scheme} ");
            if !parameters.contains("realm=") {
                push_parameter(&mut value, "realm", &self.auth.realm);
            }
            if !parameters.is_empty() {
                separate(&mut value);
                value.push_str(parameters);
            }
            if number == 0 {
                if let Some((error, _)) = error {
                    push_parameter(&mut value, "error", error);
                }
                if !scopes.is_empty() {
                    push_parameter(&mut value, "scope", &scopes.join(" "));
                }
                if let Some(url) = self.metadata_url(request) {
                    push_parameter(&mut value, "resource_metadata", &url);
                }
                if let Some((_, description)) = error {
                    push_parameter(&mut value, "error_description", description);
                }
            }
            if let Ok(value) = HeaderValue::try_from(value) {
                reply.headers_mut().append(WWW_AUTHENTICATE, value);
            }
        }
    }
}

fn refuse_logged(status: StatusCode, id: Option<&RequestId>, code: i64, text: &str) -> Reply {
    tracing::debug!(status = status.as_u16(), "request rejected by authentication or authorization");
    refuse(status, id, code, text)
}

/// Adds a parameter of a challenge.
fn push_parameter(challenge: &mut String, name: &str, value: &str) {
    separate(challenge);
    challenge.push_str(name);
    challenge.push_str("=\"");
    // RFC 6750 allows these characters in a description. Quotes could be escaped, but clients search
    // for the next quote.
    challenge.extend(value.chars().map(|letter| match letter {
        '"' => '\'',
        '\\' => '/',
        ' '..='~' => letter,
        _ => ' ',
    }));
    challenge.push('"');
}

fn separate(challenge: &mut String) {
    if !challenge.ends_with(' ') {
        challenge.push_str(", ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_end_its_quoted_string() {
        let mut challenge = "Bearer ".to_owned();
        push_parameter(&mut challenge, "realm", "a\" b=\"c\\");
        push_parameter(&mut challenge, "error_description", "one\r\ntwo: ünï\u{0}");
        assert_eq!(challenge, "Bearer realm=\"a' b='c/\", error_description=\"one  two:  n  \"");
        assert!(HeaderValue::try_from(challenge).is_ok());
    }
}
