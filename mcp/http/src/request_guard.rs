//! [`RequestGuard`]: the checks of an endpoint, for a server that answers all requests itself.

use std::fmt;

use http::HeaderMap;
use http::header::ORIGIN;
use http::request::Parts;

use crate::auth::identity::IdentityHeaders;
use crate::guard::Guard;
use crate::headers::McpHeaders;
use crate::settings::Settings;

/// Checks requests of a server without an [`Endpoint`](crate::Endpoint), such as a reverse proxy, as an endpoint with
/// these settings checks its own.
///
/// ```
/// use bindpost_mcp_http::{RequestGuard, Settings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let guard = RequestGuard::new(&Settings::default());
/// let (local, _) = http::Request::get("/").header("host", "localhost").body(())?.into_parts();
/// assert_eq!(guard.problem(&local), None);
/// let (foreign, _) = http::Request::get("/").header("host", "example.com").body(())?.into_parts();
/// assert!(guard.problem(&foreign).is_some());
/// # Ok(())
/// # }
/// ```
pub struct RequestGuard {
    guard: Guard,
    identity: IdentityHeaders,
}

impl fmt::Debug for RequestGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestGuard").finish_non_exhaustive()
    }
}

impl RequestGuard {
    /// Uses the hosts, origins and identity headers of these settings.
    pub fn new(settings: &Settings) -> RequestGuard {
        RequestGuard { guard: Guard::new(settings), identity: IdentityHeaders::removed_by(settings) }
    }

    /// Returns why a request must be rejected because of its `Host` header: a web page may have made the browser send it
    /// under a name of its own (DNS rebinding).
    pub fn host_problem(&self, parts: &Parts) -> Option<&'static str> {
        self.guard.host_problem(parts)
    }

    /// Returns why a request must be rejected because of its `Host` or `Origin` header. A page of the server itself may
    /// send requests, if its host is listed or of the loopback interface.
    pub fn problem(&self, parts: &Parts) -> Option<&'static str> {
        self.host_problem(parts).or_else(|| {
            let problem = self.guard.refusal_reason(&parts.uri, &McpHeaders::new(&parts.headers))?;
            (!self.is_same_origin(parts)).then_some(problem)
        })
    }

    /// Removes the identity headers of a platform that a client has forged.
    pub fn remove_identity_headers(&self, headers: &mut HeaderMap) {
        self.identity.remove_from(headers);
    }

    fn is_same_origin(&self, parts: &Parts) -> bool {
        let mut origins = parts.headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return false };
        let origin = origin.to_str().unwrap_or_default();
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let named = self.guard.named_host(parts);
        host.zip(named).is_some_and(|(host, named)| host.eq_ignore_ascii_case(named.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_server_itself_may_send_requests_if_its_host_is_listed() {
        let problem = |hosts: &[&str], host: &str, origin: &str| {
            let allowed_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            let guard = RequestGuard::new(&Settings { allowed_hosts, ..Settings::default() });
            let request = http::Request::get("/").header("host", host).header("origin", origin);
            guard.problem(&request.body(()).unwrap().into_parts().0).is_some()
        };
        let named: &[&str] = &["app.example"];
        assert!(!problem(named, "app.example", "https://app.example"));
        assert!(problem(named, "app.example", "https://other.example"));
        assert!(problem(named, "other.example", "https://other.example"));
        // Any host name may be the name that an attacker has chosen.
        assert!(problem(&["*"], "app.example", "https://app.example"));
        assert!(!problem(&[], "localhost:7071", "http://localhost:3000"));
    }
}
