//! The addresses of a blob service, its containers and its blobs.

use std::fmt;

use bindpost_net_upstream::is_loopback;
use reqwest::Url;

use super::path::BlobPath;

/// The account of `UseDevelopmentStorage=true`.
pub(crate) const DEVELOPMENT_ACCOUNT: &str = "devstoreaccount1";

/// The address of an account's blob service, such as `https://account.blob.core.windows.net`. Emulators have
/// the account in the path: `http://127.0.0.1:10000/devstoreaccount1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobEndpoint(Url);

impl BlobEndpoint {
    /// Parses an `http` or `https` address without a query, user or fragment.
    pub fn parse(address: &str) -> Result<BlobEndpoint, &'static str> {
        let url =
            Url::parse(address).map_err(|_| "is not a URL such as https://account.blob.core.windows.net")?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("is neither an http nor an https address");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("has a user or password in it");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("has a query or fragment; put a SAS token into SharedAccessSignature");
        }
        Ok(BlobEndpoint(url))
    }

    /// Returns the emulator's address on this machine or on the given host.
    pub(crate) fn azurite(host: Option<&Url>, port: u16) -> BlobEndpoint {
        let mut url = host.cloned().unwrap_or_else(BlobEndpoint::localhost);
        // Fails only for addresses without a host, which `parse` rejects.
        let _ = url.set_port(Some(port));
        url.set_path(DEVELOPMENT_ACCOUNT);
        BlobEndpoint(url)
    }

    #[allow(clippy::expect_used, reason = "the text is right here")]
    fn localhost() -> Url {
        Url::parse("http://127.0.0.1/").expect("a URL")
    }

    /// Returns whether requests leave this machine without encryption.
    pub(crate) fn is_exposed(&self) -> bool {
        self.0.scheme() == "http" && !self.is_loopback()
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }

    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    pub(crate) fn container(&self, container: &str) -> Url {
        self.url_below(container)
    }

    pub(crate) fn blob(&self, path: &BlobPath) -> Url {
        self.url_below(&format!("{}/{}", path.container(), percent_encoded(path.name())))
    }

    fn url_below(&self, encoded: &str) -> Url {
        let mut url = self.0.clone();
        // `set_path` keeps percent signs. Nothing else in the path needs encoding.
        url.set_path(&format!("{}/{encoded}", self.0.path().trim_end_matches('/')));
        url
    }
}

impl fmt::Display for BlobEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// Encodes a blob name as the path of a URL. Slashes are kept. Everything that is not unreserved in RFC 3986
/// is encoded, so that no library changes the path afterwards and the signature stays valid.
fn percent_encoded(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(endpoint: &str, name: &str) -> String {
        BlobEndpoint::parse(endpoint).unwrap().blob(&BlobPath::new("abc", name).unwrap()).to_string()
    }

    #[test]
    fn the_account_is_in_the_host_or_in_the_path() {
        for (endpoint, url) in [
            ("https://acc.blob.core.windows.net", "https://acc.blob.core.windows.net/abc/b"),
            ("https://acc.blob.core.windows.net/", "https://acc.blob.core.windows.net/abc/b"),
            ("http://127.0.0.1:10000/acc", "http://127.0.0.1:10000/acc/abc/b"),
            ("http://127.0.0.1:10000/acc/", "http://127.0.0.1:10000/acc/abc/b"),
        ] {
            assert_eq!(blob(endpoint, "b"), url);
        }
    }

    #[test]
    fn names_are_percent_encoded() {
        for (name, encoded) in [
            ("a b", "a%20b"),
            ("%2e%2e", "%252e%252e"),
            ("%2e%2e/x", "%252e%252e/x"),
            ("a?b#c", "a%3Fb%23c"),
            ("/abs", "/abs"),
            ("a//b", "a//b"),
            ("é", "%C3%A9"),
            ("a+b&c=d", "a%2Bb%26c%3Dd"),
            ("{x}'\"<>|^`", "%7Bx%7D%27%22%3C%3E%7C%5E%60"),
        ] {
            assert_eq!(blob("https://h", name), format!("https://h/abc/{encoded}"));
        }
    }

    #[test]
    fn invalid_endpoints_are_rejected() {
        for address in ["", "acc", "ftp://h", "https://u:p@h", "https://h?sig=x", "https://h#x", "file:///x"]
        {
            assert!(BlobEndpoint::parse(address).is_err(), "{address}");
        }
        assert_eq!(BlobEndpoint::azurite(None, 7).to_string(), "http://127.0.0.1:7/devstoreaccount1");
        let host = Url::parse("http://azurite").unwrap();
        assert_eq!(BlobEndpoint::azurite(Some(&host), 7).to_string(), "http://azurite:7/devstoreaccount1");
    }
}
