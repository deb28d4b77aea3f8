//! Decodes a response body, based on its media type, the document and its content.

use http::HeaderMap;
use serde_json::Value;

use crate::bridge::text::{plain_text, sentences};

/// The documented body format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedBody {
    Json,
    Html,
    /// Nothing is documented. Plain text may be a JSON object.
    PerhapsObject,
    Anything,
}

/// The decoded body of a successful response.
#[derive(Debug, PartialEq)]
pub(crate) enum DecodedBody {
    Empty,
    Json(Value),
    Text { text: String, media: String },
    Binary { bytes: Vec<u8>, media: String },
}

impl DecodedBody {
    /// Decodes a body. Returns an error if the content does not match its media type or the document.
    pub(crate) fn read(
        headers: &HeaderMap,
        body: &[u8],
        expected: ExpectedBody,
    ) -> Result<DecodedBody, String> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(DecodedBody::Empty);
        }
        let media = media_type(headers);
        let declares_json = is_json(&media);
        if (declares_json || expected == ExpectedBody::Json)
            && (media.contains("html") || looks_like_html(body))
        {
            let page = page_text(&decode(headers, body));
            return Err(format!(
                "The service returned an HTML page instead of JSON: {page:?}. The base address or \
                 the credential may be wrong."
            ));
        }
        let is_vague = media.is_empty() || media == "application/octet-stream" || media == "text/plain";
        let may_be_json = match expected {
            ExpectedBody::Json => is_vague,
            ExpectedBody::PerhapsObject => is_vague && body.trim_ascii_start().starts_with(b"{"),
            ExpectedBody::Html | ExpectedBody::Anything => false,
        };
        if declares_json || may_be_json {
            match serde_json::from_slice(body) {
                Ok(value) => return Ok(DecodedBody::Json(value)),
                Err(error) if declares_json => {
                    let shown = excerpt(body);
                    return Err(format!(
                        "The service declared its response as JSON, but it is not valid JSON ({error}). It begins: {shown}"
                    ));
                }
                Err(_) => {}
            }
        }
        let is_text = is_text(&media) || is_vague && std::str::from_utf8(body).is_ok();
        if !is_text {
            let media = if media.is_empty() { "application/octet-stream".to_owned() } else { media };
            return Ok(DecodedBody::Binary { bytes: body.to_vec(), media });
        }
        let media = if media.is_empty() { "text/plain".to_owned() } else { media };
        Ok(DecodedBody::Text { text: decode(headers, body), media })
    }
}

/// Returns the media type without its parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn is_json(media: &str) -> bool {
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

pub(crate) fn is_text(media: &str) -> bool {
    media.starts_with("text/")
        || media.ends_with("+xml")
        || media.ends_with("+yaml")
        || is_json(media)
        || [
            "application/xml",
            "application/yaml",
            "application/x-yaml",
            "application/x-ndjson",
            "application/jsonl",
            "application/javascript",
            "application/graphql",
            "application/x-www-form-urlencoded",
        ]
        .contains(&media)
}

/// Decodes text: UTF-8, unless the media type declares a single-byte charset.
pub(crate) fn decode(headers: &HeaderMap, body: &[u8]) -> String {
    let value = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let says = value.unwrap_or_default().to_ascii_lowercase();
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match says.contains("iso-8859-1") || says.contains("windows-1252") {
        true => body.iter().map(|byte| char::from(*byte)).collect(),
        false => String::from_utf8_lossy(body).into_owned(),
    }
}

/// Returns whether a body begins like an HTML page, whatever its media type.
fn looks_like_html(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    let begins =
        |with: &str| body.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()));
    ["<!doctype html", "<html", "<head", "<title", "<body"].into_iter().any(begins)
}

/// Returns the title of a web page, or its text if it has none.
pub(crate) fn page_text(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower.get(at..)?.find('>')? + 1;
        let end = begin + lower.get(begin..)?.find("</title")?;
        page.get(begin..end)
    });
    let title = title.map(plain_text).filter(|title| !title.is_empty());
    sentences(&title.unwrap_or_else(|| plain_text(page)), 300)
}

/// Returns the beginning of an invalid body.
fn excerpt(body: &[u8]) -> String {
    let head = body.get(..body.len().min(1200)).unwrap_or_default();
    sentences(&plain_text(&String::from_utf8_lossy(head)), 200)
}
