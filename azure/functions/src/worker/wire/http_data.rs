//! Converts between our HTTP requests and responses and the protocol's `RpcHttp`.

use super::proto::rpc_http_cookie::SameSite;
use super::proto::{NullableString, RpcHttp, RpcHttpCookie};
use super::typed_data;
use crate::datum::{Datum, HttpRequestData, HttpResponseData, ResponseCookie};

/// Encodes a request. A worker that asked for nullable maps gets only those.
pub(super) fn encode_request(request: HttpRequestData) -> RpcHttp {
    let HttpRequestData { method, url, headers, query, params, body, uses_nullable_maps } = request;
    let body = Some(body)
        .filter(|body| *body != Datum::Nothing)
        .map(|body| Box::new(typed_data::encode_input(body)));
    let http = RpcHttp { method, url, body, ..RpcHttp::default() };
    if !uses_nullable_maps {
        let map = |pairs: Vec<(String, String)>| pairs.into_iter().collect();
        return RpcHttp { headers: map(headers), query: map(query), params: map(params), ..http };
    }
    let map = |pairs: Vec<(String, String)>| {
        pairs.into_iter().map(|(name, value)| (name, NullableString { value: Some(value) })).collect()
    };
    RpcHttp {
        nullable_headers: map(headers),
        nullable_query: map(query),
        nullable_params: map(params),
        ..http
    }
}

/// Decodes a response.
pub(super) fn decode_response(http: RpcHttp) -> HttpResponseData {
    let nullable = http.nullable_headers.into_iter().filter_map(|(name, value)| Some((name, value.value?)));
    HttpResponseData {
        status: http.status_code,
        headers: http.headers.into_iter().chain(nullable).collect(),
        cookies: http.cookies.into_iter().map(decode_cookie).collect(),
        body: typed_data::decode_output(http.body.map(|body| *body).unwrap_or_default()),
    }
}

fn decode_cookie(cookie: RpcHttpCookie) -> ResponseCookie {
    ResponseCookie {
        same_site: match cookie.same_site() {
            SameSite::None => None,
            SameSite::Lax => Some("Lax"),
            SameSite::Strict => Some("Strict"),
            SameSite::ExplicitNone => Some("None"),
        },
        name: cookie.name,
        value: cookie.value,
        domain: cookie.domain.and_then(|domain| domain.value),
        path: cookie.path.and_then(|path| path.value),
        expires: cookie.expires.and_then(|expires| Some(expires.value?.seconds)),
        max_age: cookie.max_age.and_then(|seconds| seconds.value),
        secure: cookie.secure.and_then(|secure| secure.value).unwrap_or(false),
        http_only: cookie.http_only.and_then(|http_only| http_only.value).unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uses_nullable_maps: bool) -> HttpRequestData {
        let pairs = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        HttpRequestData {
            method: "POST".to_owned(),
            url: "http://localhost/api/a/1?q=".to_owned(),
            headers: pairs("accept", "*/*"),
            query: pairs("q", ""),
            params: pairs("id", "1"),
            body: Datum::from("x"),
            uses_nullable_maps,
        }
    }

    #[test]
    fn a_request_has_plain_maps_or_nullable_ones() {
        let json = |request| serde_json::to_string(&encode_request(request)).unwrap();
        assert_eq!(
            json(request(false)),
            r#"{"method":"POST","url":"http://localhost/api/a/1?q=","headers":{"accept":"*/*"},"body":{"string":"x"},"params":{"id":"1"},"query":{"q":""}}"#
        );
        assert_eq!(
            json(HttpRequestData { body: Datum::Nothing, ..request(true) }),
            r#"{"method":"POST","url":"http://localhost/api/a/1?q=","nullableHeaders":{"accept":{"value":"*/*"}},"nullableParams":{"id":{"value":"1"}},"nullableQuery":{"q":{"value":""}}}"#
        );
    }

    #[test]
    fn a_response_of_our_workers_is_decoded() {
        let json = r#"{"statusCode":"201","headers":{"x-a":"1"},"body":{"bytes":"AAE="},
            "cookies":[{"name":"a","value":"b","path":{"value":"/"},"expires":{"value":{"seconds":7}},"maxAge":{"value":0.5},
                        "secure":{"value":true},"httpOnly":{"value":true},"sameSite":3,"domain":{}}]}"#;
        let response = decode_response(serde_json::from_str(json).unwrap());
        assert_eq!(
            response,
            HttpResponseData {
                status: "201".to_owned(),
                headers: vec![("x-a".to_owned(), "1".to_owned())],
                cookies: vec![ResponseCookie {
                    name: "a".to_owned(),
                    value: "b".to_owned(),
                    domain: None,
                    path: Some("/".to_owned()),
                    expires: Some(7),
                    max_age: Some(0.5),
                    secure: true,
                    http_only: true,
                    same_site: Some("None"),
                }],
                body: Datum::Bytes(bytes::Bytes::from_static(b"\0\x01")),
            }
        );
    }
}
