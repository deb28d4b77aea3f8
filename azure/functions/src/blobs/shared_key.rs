//! Signs requests with an account key: Azure's "Shared Key" scheme.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{self, HeaderMap, HeaderName};
use reqwest::{Method, Url};
use sha2::Sha256;

/// The name and key of an account.
#[derive(Clone)]
pub struct SharedKey {
    account: String,
    key: Vec<u8>,
}

/// The headers that come before the `x-ms-` ones, in order. `Content-Length` is handled separately.
const BEFORE_LENGTH: [HeaderName; 2] = [header::CONTENT_ENCODING, header::CONTENT_LANGUAGE];
const AFTER_LENGTH: [HeaderName; 8] = [
    HeaderName::from_static("content-md5"),
    header::CONTENT_TYPE,
    header::DATE,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
];

impl SharedKey {
    /// Decodes the key as the portal shows it, in Base64.
    pub fn new(account: &str, key: &str) -> Result<SharedKey, &'static str> {
        let key =
            STANDARD.decode(key).map_err(|_| "is not Base64; copy the whole key, with the = at its end")?;
        if key.is_empty() {
            return Err("is empty");
        }
        Ok(SharedKey { account: account.to_owned(), key })
    }

    /// Returns the `Authorization` header of a request with a body of this length.
    pub(crate) fn authorization(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        length: usize,
    ) -> String {
        let text = self.string_to_sign(method, url, headers, length);
        // An HMAC accepts keys of any length, so this cannot fail.
        let signature = Hmac::<Sha256>::new_from_slice(&self.key)
            .map(|mac| mac.chain_update(text.as_bytes()).finalize().into_bytes())
            .unwrap_or_default();
        format!("SharedKey {}:{}", self.account, STANDARD.encode(signature))
    }

    fn string_to_sign(&self, method: &Method, url: &Url, headers: &HeaderMap, length: usize) -> String {
        let value = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let mut text = format!("{method}\n");
        for name in &BEFORE_LENGTH {
            text.push_str(value(name));
            text.push('\n');
        }
        // Since version 2015-02-21, a length of zero is an empty line.
        if length > 0 {
            text.push_str(&length.to_string());
        }
        text.push('\n');
        for name in &AFTER_LENGTH {
            text.push_str(value(name));
            text.push('\n');
        }
        let mut extra: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with("x-ms-")).collect();
        extra.sort_by_key(|name| name.as_str());
        for name in extra {
            text.push_str(&format!("{name}:{}\n", value(name).trim()));
        }
        // The path as it is sent. With an account in the path, as in emulators, the account occurs twice.
        text.push_str(&format!("/{}{}", self.account, url.path()));
        let mut query: Vec<_> = url.query_pairs().collect();
        query.sort();
        for (name, value) in query {
            text.push_str(&format!("\n{}:{value}", name.to_lowercase()));
        }
        text
    }
}

impl std::fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedKey").field("account", &self.account).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn the_text_to_sign_is_as_documented() {
        let key = SharedKey::new("myaccount", "c2VjcmV0").unwrap();
        let url = Url::parse("https://myaccount.blob.core.windows.net/abc?restype=container&comp=metadata")
            .unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-version", HeaderValue::from_static("2015-02-21"));
        headers.insert("x-ms-date", HeaderValue::from_static("Fri, 26 Jun 2015 23:39:12 GMT"));
        assert_eq!(
            key.string_to_sign(&Method::GET, &url, &headers, 0),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
             /myaccount/abc\ncomp:metadata\nrestype:container"
        );
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        let url = Url::parse("http://127.0.0.1:10000/myaccount/abc/a%20b").unwrap();
        assert_eq!(
            key.string_to_sign(&Method::PUT, &url, &headers, 7),
            "PUT\n\n\n7\n\ntext/plain\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
             x-ms-version:2015-02-21\n/myaccount/myaccount/abc/a%20b"
        );
    }

    #[test]
    fn a_signature_depends_on_the_key_which_debug_does_not_show() {
        let url = Url::parse("https://h/abc").unwrap();
        let sign = |key: &str| {
            let key = SharedKey::new("acc", key).unwrap();
            assert!(!format!("{key:?}").contains("115"), "{key:?}");
            key.authorization(&Method::GET, &url, &HeaderMap::new(), 0)
        };
        assert!(sign("c2VjcmV0").starts_with("SharedKey acc:"));
        assert_ne!(sign("c2VjcmV0"), sign("c2VjcmV1"));
        assert!(SharedKey::new("acc", "not base64!").is_err());
        assert!(SharedKey::new("acc", "").is_err());
    }
}
