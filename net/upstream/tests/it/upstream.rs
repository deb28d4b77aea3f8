//! Requests to a service: addresses, credentials and retries.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bindpost_net_upstream::{Credential, CredentialSource, Secret, Upstream, UpstreamError, UpstreamLimits};
use http::{HeaderName, HeaderValue, Method};

use crate::upstream_service::{Service, answer, get, post, quick};

#[tokio::test]
async fn paths_go_below_the_path_of_the_base_address() {
    let service = Service::start(|_, _| answer(200, &[("x-kind", "a")], "hello")).await;
    for base in ["/v1/api", "/v1/api/"] {
        let base = format!("{}{base}", service.address());
        let upstream = Upstream::new(&base, Credential::None, quick()).unwrap();
        let incoming = upstream.send(get("/things/a%2Fb?c=d%26e")).await.unwrap();
        assert_eq!((incoming.status.as_u16(), &incoming.body[..]), (200, &b"hello"[..]));
        assert_eq!(incoming.headers["x-kind"], "a");
        assert_eq!(incoming.retry_after, None);
        for path in ["/../x", "/%2e%2e/x", "x", "/a b", "/a#b"] {
            let error = upstream.send(get(path)).await.unwrap_err();
            assert!(matches!(error, UpstreamError::Address(_)), "{path}: {error}");
        }
    }
    let targets: Vec<_> = service.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/v1/api/things/a%2Fb?c=d%26e"; 2]);
}

#[tokio::test]
async fn a_connection_is_reused() {
    let service = Service::start(|_, _| answer(200, &[], "x".repeat(100_000))).await;
    let upstream = service.upstream();
    for _ in 0..10 {
        upstream.send(get("/")).await.unwrap();
    }
    // A second connection may be opened before the first is returned to the pool.
    assert!(service.count() == 10 && service.connections() < 10, "{}", service.connections());
}

#[tokio::test]
async fn each_kind_of_credential_is_sent() {
    let service = Service::start(|_, _| answer(200, &[], "")).await;
    let secret = || Secret::new("hush+1");
    let kinds = [
        Credential::Header(HeaderName::from_static("api-key"), secret()),
        Credential::Query("key".into(), secret()),
        Credential::Bearer(secret()),
        Credential::Basic("me".into(), secret()),
    ];
    for credential in kinds {
        let upstream = service.upstream_as(credential);
        let mut request = get("/a?b=c");
        request.headers.insert("host", HeaderValue::from_static("evil.example"));
        request.headers.insert("api-key", HeaderValue::from_static("theirs"));
        request.headers.insert("authorization", HeaderValue::from_static("theirs"));
        upstream.send(request).await.unwrap();
        assert!(!format!("{upstream:?}").contains("hush"), "{upstream:?}");
    }
    let seen = service.seen();
    assert_eq!(seen[0].header("api-key"), Some("hush+1"));
    assert_eq!(seen[1].target, "/a?b=c&key=hush%2B1");
    assert_eq!(seen[2].header("authorization"), Some("Bearer hush+1"));
    assert_eq!(seen[3].header("authorization"), Some("Basic bWU6aHVzaCsx"));
    let host = format!("127.0.0.1:{}", service.port());
    assert!(seen.iter().all(|seen| seen.header("host") == Some(host.as_str())), "{seen:?}");
}

/// Returns one token after the other, the next one when a token is rejected. Fails when none is left.
#[derive(Debug)]
struct Tokens(Mutex<Vec<&'static str>>);

impl CredentialSource for Tokens {
    fn authorization(&self) -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send + '_>> {
        let first = self.0.lock().unwrap().first().copied();
        Box::pin(async move { first.map(Secret::new).ok_or_else(|| "the secret sign-in failed".to_owned()) })
    }

    fn refused(&self, authorization: &Secret) {
        self.0.lock().unwrap().retain(|token| *token != authorization.reveal());
    }
}

fn tokens(tokens: &[&'static str]) -> Credential {
    Credential::Source(Arc::new(Tokens(Mutex::new(tokens.to_vec()))))
}

#[tokio::test]
async fn a_rejected_token_is_replaced_once() {
    let service = Service::start(|seen, _| match seen.header("authorization") {
        Some("Bearer good") => answer(200, &[], "in"),
        _ => answer(401, &[], "out"),
    })
    .await;
    let upstream = service.upstream_as(tokens(&["Bearer old", "Bearer good"]));
    assert_eq!(
        upstream.send(post("/", "1")).await.unwrap().body,
        "in",
        "a request with a 401 was not processed"
    );
    assert_eq!(upstream.send(post("/", "2")).await.unwrap().body, "in");
    assert_eq!(service.count(), 3, "the accepted token is kept");

    let upstream = service.upstream_as(tokens(&["Bearer a", "Bearer b", "Bearer c"]));
    assert_eq!(upstream.send(get("/")).await.unwrap().status, 401);
    assert_eq!(service.count(), 5, "once only");

    let upstream = service.upstream_as(tokens(&["Bearer a"]));
    assert_eq!(
        upstream.send(get("/")).await.unwrap().status,
        401,
        "the response of the service has priority"
    );
    let error = upstream.send(get("/")).await.unwrap_err();
    assert!(matches!(&error, UpstreamError::NoCredential(reason) if reason.contains("sign-in")));
    assert!(!error.to_string().contains("sign-in"), "the reason is only logged");
    assert_eq!(service.count(), 6, "nothing is sent without a credential");
}

#[tokio::test]
async fn secrets_are_not_sent_over_plain_http_to_other_machines() {
    let bearer = || Credential::Bearer(Secret::new("hush"));
    let error = Upstream::new("http://api.example.com", bearer(), quick()).unwrap_err();
    assert!(error.to_string().contains("https") && !error.to_string().contains("example"), "{error}");
    Upstream::new("https://api.example.com", bearer(), quick()).unwrap();
    Upstream::new("http://localhost:1", bearer(), quick()).unwrap();
    let open = Upstream::new("http://api.example.com", Credential::None, quick()).unwrap();
    let mut request = get("/");
    request.headers.insert("authorization", HeaderValue::from_static("Bearer passed-on"));
    assert!(matches!(open.send(request).await, Err(UpstreamError::Address(_))));
    Upstream::builder("http://api.example.com").credential(bearer()).allow_plain().build().unwrap();
}

#[tokio::test]
async fn a_document_cannot_address_metadata_services() {
    for address in [
        "http://169.254.169.254/latest/meta-data",
        "http://2852039166/",
        "http://0xa9.0xfe.0xa9.0xfe",
        "http://[::ffff:169.254.169.254]",
        "http://[fe80::1]:8080",
        "http://[fd00:ec2::254]",
        "http://METADATA.google.internal.",
        "http://100.100.100.200",
        "https://168.63.129.16",
    ] {
        let error = Upstream::builder(address).named_by_document().build().unwrap_err().to_string();
        assert!(error.contains("link-local") && error.contains("base address"), "{address}: {error}");
        Upstream::builder(address).build().unwrap();
    }
    for address in ["http://10.1.2.3", "http://127.0.0.1:1", "http://0.0.0.0:8000", "https://api.example.com"]
    {
        Upstream::builder(address).named_by_document().build().unwrap();
    }
    // Names are still resolved, for each connection.
    let service = Service::start(|_, _| answer(200, &[], "here")).await;
    let address = format!("http://localhost:{}", service.port());
    let upstream = Upstream::builder(address).named_by_document().limits(quick()).build().unwrap();
    assert_eq!(upstream.send(get("/")).await.unwrap().body, "here");
}

#[tokio::test]
async fn a_request_to_a_briefly_busy_service_is_retried() {
    for status in [429, 502, 503, 504] {
        let service =
            Service::start(move |_, before| answer(if before < 2 { status } else { 200 }, &[], "")).await;
        assert_eq!(service.upstream().send(get("/")).await.unwrap().status, 200);
        assert_eq!(service.count(), 3, "{status}");
    }
    for status in [400, 404, 500, 501] {
        let service = Service::start(move |_, _| answer(status, &[], "")).await;
        assert_eq!(service.upstream().send(get("/")).await.unwrap().status, status);
        assert_eq!(service.count(), 1, "{status}");
    }
}

#[tokio::test]
async fn requests_that_may_have_been_processed_are_not_retried() {
    let service = Service::start(|_, _| answer(503, &[], "")).await;
    assert_eq!(service.upstream().send(post("/", "{}")).await.unwrap().status, 503);
    assert_eq!(service.count(), 1);

    let service = Service::start(|_, before| answer(if before < 1 { 429 } else { 201 }, &[], "")).await;
    assert_eq!(service.upstream().send(post("/", "{}")).await.unwrap().status, 201);
    assert_eq!(service.count(), 2, "a request with a 429 was not processed");
    assert!(service.seen().iter().all(|seen| seen.body == "{}"));
}

#[tokio::test]
async fn the_last_response_is_returned_unchanged() {
    let service = Service::start(|_, _| answer(429, &[], "slow down")).await;
    let incoming = service.upstream().send(get("/")).await.unwrap();
    assert_eq!((incoming.status.as_u16(), incoming.retry_after), (429, None));
    assert_eq!(incoming.body, "slow down");
    assert_eq!(service.count(), 3);
}

#[tokio::test]
async fn a_requested_retry_delay_is_honoured() {
    let dates = [("date", "Sat, 31 Jan 2026 08:00:00 GMT"), ("retry-after", "Sat, 31 Jan 2026 08:00:01 GMT")];
    for headers in [&[("retry-after", "1")][..], &dates] {
        let headers = headers.to_vec();
        let service =
            Service::start(move |_, before| answer(if before < 1 { 503 } else { 200 }, &headers, "")).await;
        let started = Instant::now();
        assert_eq!(service.upstream().send(get("/")).await.unwrap().status, 200);
        assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
        assert_eq!(service.count(), 2);
    }
}

#[tokio::test]
async fn a_retry_delay_above_the_limit_is_returned_at_once() {
    let hour = [("date", "Sat, 31 Jan 2026 08:00:00 GMT"), ("retry-after", "Sat, 31 Jan 2026 09:00:00 GMT")];
    let cases: [(&[(&str, &str)], u64); 3] =
        [(&[("retry-after", "31")], 31), (&[("retry-after", "25")], 25), (&hour, 3600)];
    for (headers, seconds) in cases {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let service = Service::start(move |_, _| {
            let headers: Vec<_> = headers.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            answer(429, &headers, "")
        })
        .await;
        // 25 seconds are within the limit, but more than the remaining time.
        let upstream = service.upstream_within(UpstreamLimits { total: Duration::from_secs(20), ..quick() });
        let started = Instant::now();
        let incoming = upstream.send(get("/")).await.unwrap();
        assert_eq!(incoming.status, 429);
        assert_eq!(incoming.retry_after, Some(Duration::from_secs(seconds)));
        assert_eq!(service.count(), 1);
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed() {
    let service = Service::start(|seen, _| match seen.target.as_str() {
        "/new" => answer(200, &[], seen.method.to_string()),
        "/301" => answer(301, &[("location", "/new")], ""),
        "/302" => answer(302, &[("location", "new#part")], ""),
        "/303" => answer(303, &[("location", "/new")], ""),
        "/307" => answer(307, &[("location", "/new")], ""),
        "/308" => answer(308, &[("location", "/new")], ""),
        _ => answer(302, &[], "nowhere"),
    })
    .await;
    let upstream = service.upstream_as(Credential::Bearer(Secret::new("hush")));
    for path in ["/301", "/302", "/303", "/307", "/308"] {
        assert_eq!(upstream.send(get(path)).await.unwrap().body, "GET", "{path}");
    }
    assert!(service.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer hush")));
    assert_eq!(upstream.send(get("/nowhere")).await.unwrap().body, "nowhere");

    // A request that changes data is not sent twice. The created object may be read.
    for (path, status) in [("/301", 301), ("/302", 302), ("/307", 307), ("/308", 308), ("/303", 200)] {
        let before = service.count();
        assert_eq!(upstream.send(post(path, "x")).await.unwrap().status, status, "{path}");
        assert!(
            service.seen()[before + 1..]
                .iter()
                .all(|seen| seen.method == Method::GET && seen.body.is_empty())
        );
    }
    let mut put = post("/308", "x");
    (put.method, put.repeatable) = (Method::PUT, true);
    assert_eq!(upstream.send(put).await.unwrap().body, "PUT");
    assert_eq!(service.seen().last().unwrap().body, "x");
}

#[tokio::test]
async fn nothing_is_sent_to_another_origin() {
    let other = Service::start(|_, _| answer(200, &[], "caught")).await;
    let target = format!("{}/catch", other.address());
    let service = Service::start(move |seen, _| {
        let status: u16 = seen.target[1..4].parse().unwrap();
        answer(status, &[("location", &target)], "")
    })
    .await;
    let credentials = [
        Credential::Header(HeaderName::from_static("api-key"), Secret::new("hush")),
        Credential::Query("key".into(), Secret::new("hush")),
        Credential::Bearer(Secret::new("hush")),
        Credential::Basic("me".into(), Secret::new("hush")),
        tokens(&["Bearer hush"]),
    ];
    for credential in credentials {
        let upstream = service.upstream_as(credential);
        for status in [301, 302, 303, 307, 308] {
            for request in [get(&format!("/{status}")), post(&format!("/{status}"), "x")] {
                let error = upstream.send(request).await.unwrap_err();
                assert!(matches!(error, UpstreamError::Redirected), "{error}");
                assert!(!error.to_string().contains(&other.port().to_string()), "{error}");
            }
        }
    }
    assert_eq!((other.count(), other.connections()), (0, 0));
    assert_eq!(service.count(), 5 * 5 * 2, "none is repeated");
}

#[tokio::test]
async fn invalid_redirects_are_not_followed() {
    let service = Service::start(|seen, _| {
        let to = match seen.target.as_str() {
            "/user" => format!("http://me:pass@{}/", seen.header("host").unwrap()),
            "/scheme" => format!("https://{}/", seen.header("host").unwrap()),
            "/file" => "file:///etc/passwd".to_owned(),
            "/network" => "//evil.example/".to_owned(),
            _ => "/loop".to_owned(),
        };
        answer(302, &[("location", &to)], "")
    })
    .await;
    let upstream = service.upstream();
    for path in ["/user", "/scheme", "/file", "/network"] {
        assert!(matches!(upstream.send(get(path)).await, Err(UpstreamError::Redirected)), "{path}");
    }
    assert_eq!(service.count(), 4);
    assert!(matches!(upstream.send(get("/loop")).await, Err(UpstreamError::RedirectLoop)));
    assert_eq!(service.count(), 4 + 6, "five redirects are followed, without a retry");
}

#[test]
fn links_are_followed_below_the_base_address_only() {
    let key = Credential::Query("key".into(), Secret::new("hush"));
    let upstream = Upstream::new("https://api.example.com/v1/", key, quick()).unwrap();
    let follow = |link: &str| upstream.link_path("/things?page=1", link).ok();
    for (link, path) in [
        ("https://api.example.com/v1/things?page=2", "/things?page=2"),
        ("https://api.example.com:443/v1/things?page=2&key=hush", "/things?page=2"),
        ("?page=2", "/things?page=2"),
        ("/v1/others", "/others"),
        ("others", "/others"),
    ] {
        assert_eq!(follow(link).as_deref(), Some(path), "{link}");
    }
    for link in [
        "https://evil.example/v1/things",
        "http://api.example.com/v1/things",
        "//evil.example/v1/things",
        "/v2/things",
        "../things",
        "file:///v1/things",
        "https://me@api.example.com/v1/things",
    ] {
        assert_eq!(follow(link), None, "{link}");
    }
}

#[tokio::test]
async fn a_credential_that_a_service_repeats_is_masked() {
    let service = Service::start(|seen, _| {
        let sent = |name: &str| seen.header(name).unwrap_or_default().to_owned();
        let body = format!("{} {} {} hush&more 12345", seen.target, sent("api-key"), sent("authorization"));
        answer(if seen.target.contains("bad") { 500 } else { 200 }, &[("x-request-id", &body)], body.clone())
    })
    .await;
    let secret = || Secret::new("hush&more");
    let kinds = [
        Credential::Header(HeaderName::from_static("api-key"), secret()),
        Credential::Query("key".into(), secret()),
        Credential::Bearer(secret()),
        Credential::Basic("me".into(), secret()),
        Credential::Source(Arc::new(Given)),
    ];
    for credential in kinds {
        let upstream = service.upstream_as(credential);
        for path in ["/a", "/bad"] {
            let answer = upstream.send(get(path)).await.unwrap();
            let id = answer.headers["x-request-id"].to_str().unwrap().to_owned();
            let said = format!("{} {id}", String::from_utf8_lossy(&answer.body));
            assert!(said.contains("(secret)") && said.contains("12345"), "{said}");
            assert!(!said.contains("hush") && !said.contains("bWU6aHVzaCZtb3Jl"), "{said}");
        }
    }
    // A short secret is not masked, because it may be an ordinary word.
    let answer = service.upstream_as(Credential::Bearer(Secret::new("12345"))).send(get("/a")).await.unwrap();
    assert!(answer.body.ends_with(b"hush&more 12345"));
}

#[derive(Debug)]
struct Given;

impl CredentialSource for Given {
    fn authorization(&self) -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send + '_>> {
        Box::pin(async { Ok(Secret::new("Bearer hush&more")) })
    }

    fn refused(&self, _: &Secret) {}
}
