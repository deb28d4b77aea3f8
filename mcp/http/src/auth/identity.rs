//! [`IdentityHeaders`]: the headers in which a platform in front of the server names the user.

use http::HeaderMap;

use crate::auth::Authorizer as _;
use crate::settings::Settings;

/// The identity headers that are removed from requests. Empty if a platform sets them.
#[derive(Debug)]
pub(crate) struct IdentityHeaders {
    /// The beginnings of their names, in lower case.
    beginnings: Vec<String>,
}

impl IdentityHeaders {
    pub(crate) fn removed_by(settings: &Settings) -> IdentityHeaders {
        let mut beginnings = Vec::new();
        if !settings.trust_platform_identity {
            let read = settings.auth.iter().flat_map(|auth| auth.authorizer.identity_headers());
            beginnings.extend(settings.identity_headers.iter().cloned().chain(read));
            beginnings.iter_mut().for_each(|name| name.make_ascii_lowercase());
            // An empty text would remove every header.
            beginnings.retain(|name| !name.is_empty());
            beginnings.sort();
            beginnings.dedup();
        }
        IdentityHeaders { beginnings }
    }

    /// Removes the identity headers, which a client has forged.
    pub(crate) fn remove_from(&self, headers: &mut HeaderMap) {
        if self.beginnings.is_empty() {
            return;
        }
        let is_forged =
            |name: &str| self.beginnings.iter().any(|beginning| name.starts_with(beginning.as_str()));
        let forged: Vec<_> = headers.keys().filter(|name| is_forged(name.as_str())).cloned().collect();
        for name in forged {
            headers.remove(name);
        }
    }
}
