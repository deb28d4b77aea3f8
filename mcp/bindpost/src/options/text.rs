//! Formats of text values.

use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use super::form::{OptionValue, ValueFormat, digits, toml_text};

/// A kind of text: its name, the expected value and the check.
type TextKind = (&'static str, &'static str, fn(&str) -> bool);

pub(super) const TEXT: TextKind = ("text", "a text", |_| true);
pub(super) const WORD: TextKind = ("text", "a non-empty text", |text| !text.trim().is_empty());
pub(super) const ADDRESS: TextKind =
    ("address", "a host and a port, like 127.0.0.1:7071, or unix: and a path, or systemd", is_address);
pub(super) const PATH: TextKind = ("path", "a path like /mcp", is_path);
pub(super) const ORIGIN: TextKind =
    ("origin", "an origin like https://example.com, without a path", is_origin);
pub(super) const HOST: TextKind =
    ("host", "a host like example.com or example.com:8443, or * for all", is_host);
pub(super) const RESOURCE: TextKind =
    ("URL", "the public URL of the endpoint, like https://api.example.com/mcp", is_resource);
pub(super) const ISSUER: TextKind = (
    "URL",
    "an issuer like https://issuer.example (http is allowed for the loopback interface only)",
    is_issuer,
);
pub(super) const HEADER: TextKind = ("header", "the name of a header, like x-api-key", is_header);
pub(super) const REALM: TextKind = ("text", "a text of visible ASCII characters without quotes", is_realm);
pub(super) const API_KEY: TextKind =
    ("secret", "a line `name = secret` or `name = secret scope1 scope2`", is_api_key);

pub(super) fn text((kind, expects, fits): TextKind) -> ValueFormat<String> {
    let parse = |value: &OptionValue<'_>| value.text().map(str::to_owned);
    let format = ValueFormat::new(kind, expects, parse, |text| toml_text(text));
    ValueFormat { none: "", ..format.valid_if(move |text| fits(text)) }
}

/// The format of a text that is never displayed.
pub(super) fn secret(kind: TextKind) -> ValueFormat<String> {
    ValueFormat { is_secret: true, ..text(kind) }
}

/// The format of a path in the file system.
pub(super) fn file() -> ValueFormat<PathBuf> {
    let parse = |value: &OptionValue<'_>| value.text().map(PathBuf::from);
    let display = |path: &PathBuf| toml_text(&path.to_string_lossy());
    let format = ValueFormat::new("file", "the path of a file", parse, display);
    ValueFormat { none: "", ..format.valid_if(|path| !path.as_os_str().is_empty()) }
}

/// The format of a key of 32 bytes, written as hexadecimal digits.
pub(super) fn secret_key() -> ValueFormat<[u8; 32]> {
    let parse = |value: &OptionValue<'_>| {
        let text = value.text()?;
        let mut nibbles = text.chars().map(|digit| digit.to_digit(16));
        let mut key = [0; 32];
        for byte in &mut key {
            let (high, low) = (nibbles.next()??, nibbles.next()??);
            *byte = u8::try_from(high * 16 + low).ok()?;
        }
        nibbles.next().is_none().then_some(key)
    };
    let format = ValueFormat::new("secret", "64 hexadecimal digits", parse, |_| String::new());
    ValueFormat { none: "", is_secret: true, ..format }
}

/// The format of the permissions of a file, written as octal digits.
pub(super) fn mode() -> ValueFormat<u32> {
    let parse = |value: &OptionValue<'_>| {
        let text = value.text()?;
        let is_octal = text.len() == 3 && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        is_octal.then(|| u32::from_str_radix(text, 8).ok()).flatten()
    };
    let format =
        ValueFormat::new("mode", "three octal digits, like 660", parse, |mode| format!("\"{mode:03o}\""));
    format.valid_if(|mode| *mode <= 0o777)
}

fn is_address(text: &str) -> bool {
    text.strip_prefix("unix:").is_some_and(|path| !path.is_empty() && !path.contains('\0'))
        || text == "systemd"
        || text.strip_prefix("systemd:").is_some_and(|name| !name.is_empty())
        || authority(text).is_some_and(|(_, port)| port.is_some())
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

/// Checks that a line is a key, not the reference to one. [`ApiKeys`](bindpost_mcp_http::ApiKeys) parses it.
fn is_api_key(line: &str) -> bool {
    // A platform that cannot resolve a reference to a secret store leaves its text: `@Store(Uri=https://…)`.
    line.split_once('=').is_some_and(|(name, secret)| {
        let name = name.trim();
        !name.is_empty() && !name.starts_with('@') && !secret.trim().is_empty()
    })
}
