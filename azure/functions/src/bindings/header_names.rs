//! The spelling of header names that functions see.
//!
//! Functions look headers up in a case-sensitive JSON object, by names that samples and documents spell
//! `Authorization` or `X-MS-CLIENT-PRINCIPAL`. ASP.NET Core, in which the platform runs, has names as they were sent, but
//! standard names in their usual spelling, because many clients send them in lower case.

use std::sync::LazyLock;

use bindpost_azure_hosting::IDENTITY_HEADERS;
use bindpost_mcp_http::listener::SentHeaderNames;
use http::HeaderName;

/// The request headers that ASP.NET Core knows, in its spelling.
const STANDARD_NAMES: [&str; 46] = [
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Access-Control-Request-Headers",
    "Access-Control-Request-Method",
    "Authorization",
    "baggage",
    "Cache-Control",
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "Cookie",
    "Correlation-Context",
    "Date",
    "Expect",
    "From",
    "Grpc-Accept-Encoding",
    "Grpc-Encoding",
    "Grpc-Timeout",
    "Host",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Keep-Alive",
    "Max-Forwards",
    "Origin",
    "Pragma",
    "Proxy-Authorization",
    "Proxy-Connection",
    "Range",
    "Referer",
    "Request-Id",
    "TE",
    "traceparent",
    "tracestate",
    "Trailer",
    "Transfer-Encoding",
    "Translate",
    "Upgrade",
    "Upgrade-Insecure-Requests",
    "User-Agent",
    "Via",
];

/// The standard names of each length, in lower case and as they are spelled: few names are compared, for each header of
/// each call.
static STANDARD_BY_LENGTH: LazyLock<Vec<Vec<(String, &str)>>> = LazyLock::new(|| {
    let longest = STANDARD_NAMES.iter().map(|name| name.len()).max().unwrap_or_default();
    let of_length = |length| STANDARD_NAMES.into_iter().filter(move |name| name.len() == length);
    (0..=longest)
        .map(|length| of_length(length).map(|name| (name.to_ascii_lowercase(), name)).collect())
        .collect()
});

/// Writes a header name as functions see it: a standard name in its usual spelling, any other one as the client sent it.
/// If that is not known, as with HTTP/2, it is written like a standard name. `position` is 0 for the first name of a
/// request.
pub(crate) fn spell_header_name(
    out: &mut String,
    name: &HeaderName,
    sent: Option<&SentHeaderNames>,
    position: &mut usize,
) {
    let name = name.as_str();
    let sent = sent.and_then(|sent| sent.spelling_in_order(position, name));
    let standard = STANDARD_BY_LENGTH.get(name.len()).into_iter().flatten();
    if let Some((_, standard)) = standard.into_iter().find(|(known, _)| known == name) {
        return out.push_str(standard);
    }
    match sent {
        Some(sent) => out.push_str(sent),
        None => push_usual_spelling(out, name),
    }
}

/// Writes a lower-case name with capitals, as documents spell it.
fn push_usual_spelling(out: &mut String, name: &str) {
    if name == "mcp-protocol-version" {
        return out.push_str("MCP-Protocol-Version");
    }
    // App Service adds these headers about the user.
    let shouts = name == "dnt" || IDENTITY_HEADERS.iter().any(|beginning| name.starts_with(beginning));
    let mut starts_word = true;
    for letter in name.chars() {
        out.push(if starts_word || shouts { letter.to_ascii_uppercase() } else { letter });
        starts_word = letter == '-';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(name: &str, sent: Option<&SentHeaderNames>) -> String {
        let mut written = String::new();
        spell_header_name(&mut written, &HeaderName::try_from(name).unwrap(), sent, &mut 0);
        written
    }

    #[test]
    fn names_have_their_usual_spelling_where_the_sent_one_is_unknown() {
        for name in [
            "Authorization",
            "Content-Type",
            "Mcp-Session-Id",
            "MCP-Protocol-Version",
            "X-MS-CLIENT-PRINCIPAL",
            "X-MS-CLIENT-PRINCIPAL-NAME",
            "X-MS-TOKEN-AAD-ACCESS-TOKEN",
            "X-Functions-Key",
            "traceparent",
            "TE",
            "Via",
            "Accept",
        ] {
            assert_eq!(spelled(name, None), name);
        }
    }

    #[test]
    fn other_names_are_spelled_as_they_were_sent() {
        let sent =
            SentHeaderNames::from_iter(["X-oNe", "mcp-session-id", "AUTHORIZATION", "x-ms-client-principal"]);
        for (name, expected) in [
            ("x-one", "X-oNe"),
            ("mcp-session-id", "mcp-session-id"),
            ("x-ms-client-principal", "x-ms-client-principal"),
            ("authorization", "Authorization"),
            ("x-two", "X-Two"),
        ] {
            assert_eq!(spelled(name, Some(&sent)), expected);
        }
    }
}
