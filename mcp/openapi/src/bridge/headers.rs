//! Headers of the caller's request that the operator configured to be forwarded.

use http::{HeaderMap, HeaderName};

use crate::request::is_reserved_header;

/// Returns whether a header belongs to one connection or one body.
fn is_never_forwarded(name: &str) -> bool {
    let named = ["authorization", "cookie"].contains(&name);
    !named && is_reserved_header(name)
        || ["content-encoding", "content-type", "proxy-authenticate"].contains(&name)
}

/// Parts of header names that indicate credentials. Patterns do not match such headers.
const CREDENTIALS: [&str; 7] = ["auth", "cookie", "key", "token", "secret", "password", "session"];

/// The headers to forward.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedHeaders {
    names: Vec<HeaderName>,
    /// The parts before the star.
    beginnings: Vec<String>,
}

impl PassedHeaders {
    /// Parses the configured names. Returns the first name that cannot be forwarded as an error.
    pub(crate) fn new(named: &[String]) -> Result<PassedHeaders, String> {
        let mut passed = PassedHeaders::default();
        for name in named {
            let lower = name.trim().to_ascii_lowercase();
            match lower.strip_suffix('*') {
                Some(beginning) if beginning.len() >= 2 => passed.beginnings.push(beginning.to_owned()),
                Some(_) => return Err(name.clone()),
                None => match HeaderName::from_bytes(lower.as_bytes()) {
                    Ok(known) if !is_never_forwarded(known.as_str()) => passed.names.push(known),
                    _ => return Err(name.clone()),
                },
            }
        }
        Ok(passed)
    }

    fn matches(&self, name: &HeaderName) -> bool {
        let text = name.as_str();
        let fits = |beginning: &String| text.starts_with(beginning.as_str());
        let is_credential = CREDENTIALS.iter().any(|part| text.contains(part));
        let is_plain = !is_never_forwarded(text) && !is_credential && !text.starts_with("mcp-");
        self.names.contains(name) || is_plain && self.beginnings.iter().any(fits)
    }

    /// Forwards the headers. They override arguments of the model and are overridden by values that the
    /// operator fixed.
    pub(crate) fn forward(&self, from: &HeaderMap, to: &mut HeaderMap, is_fixed: impl Fn(&str) -> bool) {
        for name in from.keys().filter(|name| self.matches(name) && !is_fixed(name.as_str())) {
            to.remove(name);
            for value in from.get_all(name) {
                to.append(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn credentials_are_forwarded_only_if_they_are_named() {
        let mut from = HeaderMap::new();
        for name in ["authorization", "cookie", "x-tenant", "x-tenant-id", "host", "x-api-key"] {
            from.insert(HeaderName::from_static(name), HeaderValue::from_static("v"));
        }
        let passed = |named: &[&str]| {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            let mut to = HeaderMap::new();
            PassedHeaders::new(&named).unwrap().forward(&from, &mut to, |name| name == "x-tenant-id");
            let mut names: Vec<String> = to.keys().map(ToString::to_string).collect();
            names.sort();
            names
        };
        assert_eq!(passed(&["x-*", "au*", "co*", "ho*"]), ["x-tenant"]);
        assert_eq!(passed(&["Authorization"]), ["authorization"]);
        assert_eq!(passed(&["x-tenant", "x-api-key"]), ["x-api-key", "x-tenant"]);
        for refused in ["host", "Content-Length", "X-HTTP-Method-Override", "*", "a b", ""] {
            assert!(PassedHeaders::new(&[refused.to_owned()]).is_err(), "{refused}");
        }
    }
}
