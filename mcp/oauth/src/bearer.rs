//! Reads the bearer token of a request. Only the `Authorization` header is read.

use bindpost_mcp_http::Denial;
use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Returns the bearer token of a request with these headers.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, Denial> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(Denial::missing()) };
    if values.next().is_some() {
        return Err(Denial::malformed("there is more than one Authorization header"));
    }
    let value = value.as_bytes().trim_ascii();
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (scheme, token) = value.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(Denial::missing());
    }
    let token = token.trim_ascii_start();
    if token.is_empty() {
        return Err(Denial::malformed("the Authorization header has no token"));
    }
    // RFC 6750, b64token.
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    let token = token.iter().all(legal).then(|| std::str::from_utf8(token).ok()).flatten();
    token.ok_or_else(|| Denial::malformed("the token has invalid characters"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(values: &[&[u8]]) -> Result<String, Denial> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer_token(&headers).map(str::to_owned)
    }

    #[test]
    fn the_scheme_is_case_insensitive() {
        for value in ["Bearer a.b-c_d~e+f/g=", "bearer a.b-c_d~e+f/g=", "BEARER   a.b-c_d~e+f/g= "] {
            assert_eq!(of(&[value.as_bytes()]).unwrap(), "a.b-c_d~e+f/g=");
        }
    }

    #[test]
    fn other_schemes_are_missing_credentials() {
        for values in [&[][..], &[&b"Basic YTpi"[..]], &[b""], &[b"Bearerabc"], &[b"ApiKey \xff"]] {
            assert_eq!(of(values), Err(Denial::missing()), "{values:?}");
        }
    }

    #[test]
    fn an_invalid_token_is_malformed() {
        for values in [
            &[&b"Bearer"[..]][..],
            &[b"Bearer "],
            &[b"Bearer a b"],
            &[b"Bearer a,b"],
            &[b"Bearer \"a\""],
            &[b"Bearer \xc3\xa4"],
            &[b"Bearer a\tb"],
            &[b"Bearer a", b"Bearer a"],
            &[b"Bearer a", b"Basic YTpi"],
        ] {
            let denial = of(values).unwrap_err();
            assert_eq!(denial, Denial::malformed(denial.to_string()), "{values:?}");
        }
    }
}
