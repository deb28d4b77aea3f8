//! Formats of text values.

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use super::form::{OptionValue, ValueFormat, digits, toml_text};

/// The placeholder for a secret.
const HIDDEN: &str = "…";

/// The format of a text value.
#[derive(Clone, Copy)]
pub(super) struct TextFormat {
    kind: &'static str,
    expects: &'static str,
    fits: fn(&str) -> bool,
    is_secret: bool,
}

pub(super) const TEXT: TextFormat = TextFormat::new("text", "a text", |_| true);
pub(super) const WORD: TextFormat =
    TextFormat::new("text", "a non-empty text", |text| !text.trim().is_empty());
pub(super) const ADDRESS: TextFormat =
    TextFormat::new("address", "a host and a port, like 127.0.0.1:7071", is_address);
pub(super) const PATH: TextFormat = TextFormat::new("path", "a path like /mcp", is_path);
pub(super) const ORIGIN: TextFormat =
    TextFormat::new("origin", "an origin like https://example.com, without a path", is_origin);
pub(super) const HOST: TextFormat =
    TextFormat::new("host", "a host like example.com or example.com:8443, or * for all", is_host);
pub(super) const RESOURCE: TextFormat =
    TextFormat::new("URL", "the public URL of the endpoint, like https://api.example.com/mcp", is_resource);
pub(super) const ISSUER: TextFormat = TextFormat::new(
    "URL",
    "an issuer like https://issuer.example (http is allowed for the loopback interface only)",
    is_issuer,
);
pub(super) const HEADER: TextFormat =
    TextFormat::new("header", "the name of a header, like x-api-key", is_header);
pub(super) const REALM: TextFormat =
    TextFormat::new("text", "a text of visible ASCII characters without quotes", is_realm);
pub(super) const API_KEY: TextFormat = TextFormat {
    is_secret: true,
    ..TextFormat::new("secret", "a line `name = secret` or `name = secret scope1 scope2`", is_api_key)
};

impl TextFormat {
    const fn new(kind: &'static str, expects: &'static str, fits: fn(&str) -> bool) -> TextFormat {
        TextFormat { kind, expects, fits, is_secret: false }
    }
}

impl ValueFormat<String> for TextFormat {
    fn kind(&self) -> String {
        self.kind.to_owned()
    }
    fn expects(&self) -> String {
        self.expects.to_owned()
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<String> {
        value.text().map(str::to_owned)
    }
    fn is_valid(&self, value: &String) -> bool {
        (self.fits)(value)
    }
    fn to_toml(&self, value: &String) -> String {
        toml_text(if self.is_secret { HIDDEN } else { value })
    }
    fn none(&self) -> &'static str {
        ""
    }
    fn is_secret(&self) -> bool {
        self.is_secret
    }
}

/// The format of a path in the file system.
pub(super) struct PathFormat;

impl ValueFormat<PathBuf> for PathFormat {
    fn kind(&self) -> String {
        "file".to_owned()
    }
    fn expects(&self) -> String {
        "the path of a file".to_owned()
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<PathBuf> {
        value.text().map(PathBuf::from)
    }
    fn is_valid(&self, value: &PathBuf) -> bool {
        !value.as_os_str().is_empty()
    }
    fn to_toml(&self, value: &PathBuf) -> String {
        toml_text(&value.to_string_lossy())
    }
    fn none(&self) -> &'static str {
        ""
    }
}

/// The format of a key of 32 bytes, written as hexadecimal digits.
pub(super) struct SecretKeyFormat;

impl ValueFormat<[u8; 32]> for SecretKeyFormat {
    fn kind(&self) -> String {
        "secret".to_owned()
    }
    fn expects(&self) -> String {
        "64 hexadecimal digits".to_owned()
    }
    fn read(&self, value: &OptionValue<'_>) -> Option<[u8; 32]> {
        let text = value.text()?;
        let mut nibbles = text.chars().map(|digit| digit.to_digit(16));
        let mut key = [0; 32];
        for byte in &mut key {
            let (high, low) = (nibbles.next()??, nibbles.next()??);
            *byte = u8::try_from(high * 16 + low).ok()?;
        }
        nibbles.next().is_none().then_some(key)
    }
    fn is_valid(&self, _: &[u8; 32]) -> bool {
        true
    }
    fn to_toml(&self, _: &[u8; 32]) -> String {
        toml_text(HIDDEN)
    }
    fn none(&self) -> &'static str {
        ""
    }
    fn is_secret(&self) -> bool {
        true
    }
}

fn is_address(text: &str) -> bool {
    authority(text).is_some_and(|(_, port)| port.is_some())
}

fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && !text.starts_with("//")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#%\\\"".contains(&byte))
}

/// Checks an origin. Browsers send it without a path, but a trailing slash is accepted.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    !scheme.is_empty()
        && scheme.bytes().all(is_scheme)
        && authority(host.strip_suffix('/').unwrap_or(host)).is_some()
}

fn is_host(text: &str) -> bool {
    text == "*" || authority(text).is_some()
}

fn is_resource(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\\"".contains(&byte);
    authority(host).is_some() && path.bytes().all(is_plain)
}

fn is_issuer(text: &str) -> bool {
    let is_loopback = |host: &str| {
        let name = authority(host).map_or("", |(name, _)| name);
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    let plain = text.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
    is_resource(text) && plain.is_none_or(is_loopback)
}

/// Parses a host with an optional port.
fn authority(text: &str) -> Option<(&str, Option<u16>)> {
    let end = if text.starts_with('[') { text.find(']')? + 1 } else { text.find(':').unwrap_or(text.len()) };
    let (host, rest) = text.split_at_checked(end)?;
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(six) => six.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            !host.is_empty() && host.bytes().all(is_plain)
        }
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => Some(u16::try_from(digits(port)?).ok()?),
        None if rest.is_empty() => None,
        None => return None,
    };
    is_host.then_some((host, port))
}

/// Checks a header name, which is a token (RFC 9110).
fn is_header(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_realm(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte))
}

fn is_api_key(text: &str) -> bool {
    api_key(text).is_some()
}

/// Splits `name = secret scope1 scope2` into its parts.
pub(super) fn api_key(line: &str) -> Option<(&str, &str, impl Iterator<Item = &str>)> {
    let (name, rest) = line.split_once('=')?;
    let mut words = rest.split_whitespace();
    let secret = words.next()?;
    let name = name.trim();
    (!name.is_empty()).then_some((name, secret, words))
}
