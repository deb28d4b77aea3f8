//! Tests of web pages of other origins: what `corsOptions` of an index allow them.

use serde_json::json;

use crate::server::{Server, Setup, VERSION, index};

const PAGE: (&str, &str) = ("origin", "https://app.example.com");

/// A server with the index `hotels` that allows these origins.
async fn with_origins(keys: bool, origins: &[&str]) -> Server {
    let server = Server::with(Setup { keys, ..Setup::default() }).await;
    let mut hotels = index("hotels");
    hotels["corsOptions"] = json!({"allowedOrigins": origins, "maxAgeInSeconds": 60});
    let made = server.send("POST", "/indexes", Some(hotels)).await;
    assert_eq!(made.status, 201, "{made:?}");
    server
}

fn preflight<'a>(origin: (&'a str, &'a str)) -> [(&'a str, &'a str); 3] {
    [
        origin,
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "api-key,content-type"),
    ]
}

#[tokio::test]
async fn an_allowed_page_can_query_and_read_the_response() {
    let server = with_origins(true, &["https://other.example.com", "https://App.example.com:443"]).await;
    let target = format!("/indexes('hotels')/docs/search?{VERSION}");
    let asked = server.raw("OPTIONS", &target, &preflight(PAGE), "").await;
    assert_eq!((asked.status, asked.text.as_str()), (204, ""), "{asked:?}");
    assert_eq!(asked.header("access-control-allow-origin"), PAGE.1);
    assert_eq!(asked.header("access-control-allow-methods"), "GET, POST");
    assert_eq!(asked.header("access-control-allow-headers"), "api-key,content-type");
    assert_eq!(asked.header("access-control-max-age"), "60");
    assert_eq!(asked.header("vary"), "Origin");

    let found = server.send_with("POST", "/indexes('hotels')/docs/search", &[PAGE], Some(json!({}))).await;
    assert_eq!((found.status, found.header("access-control-allow-origin")), (200, PAGE.1), "{found:?}");
    assert!(found.header("access-control-expose-headers").contains("request-id"));
    // An error can be read too.
    let missing = server.raw("GET", &target, &[PAGE], "").await;
    assert_eq!((missing.status, missing.header("access-control-allow-origin")), (401, PAGE.1));
}

#[tokio::test]
async fn a_star_allows_every_page_but_only_queries() {
    let server = with_origins(true, &["*"]).await;
    for (target, status) in [
        ("/indexes('hotels')/docs?search=x&", 204),
        ("/indexes/hotels/docs/1?", 204),
        ("/indexes/hotels/docs/$count?", 204),
        ("/indexes/hotels/docs/index?", 403),
        ("/indexes/hotels?", 403),
        ("/indexes?", 403),
        ("/indexes/other/docs/search?", 403),
        ("/nothing?", 403),
    ] {
        let answer = server.raw("OPTIONS", &format!("{target}{VERSION}"), &preflight(PAGE), "").await;
        assert_eq!(answer.status, status, "{target}: {answer:?}");
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, if status == 204 { "*" } else { "" }, "{target}");
    }
    let batch =
        server.send_with("POST", "/indexes/hotels/docs/index", &[PAGE], Some(json!({"value": []}))).await;
    assert_eq!(batch.header("access-control-allow-origin"), "", "{batch:?}");
    let no_page = server.send("GET", "/indexes/hotels/docs/$count", None).await;
    assert_eq!((no_page.status, no_page.header("access-control-allow-origin")), (200, ""));
}

#[tokio::test]
async fn a_page_that_the_index_does_not_name_gets_no_permission() {
    let server = with_origins(true, &["https://other.example.com"]).await;
    let target = format!("/indexes('hotels')/docs/search?{VERSION}");
    let asked = server.raw("OPTIONS", &target, &preflight(PAGE), "").await;
    assert_eq!((asked.status, asked.code().as_str()), (403, "CorsNotAllowed"));
    assert_eq!(asked.header("access-control-allow-origin"), "");
    let found = server.send_with("POST", "/indexes('hotels')/docs/search", &[PAGE], Some(json!({}))).await;
    assert_eq!((found.status, found.header("access-control-allow-origin")), (200, ""));
    // Without the header of a browser, OPTIONS is a method as any other.
    let options = server.send("OPTIONS", "/indexes('hotels')/docs/search", None).await;
    assert_eq!(options.status, 405);
}

#[tokio::test]
async fn an_alias_has_the_origins_of_its_index() {
    let server = with_origins(true, &[PAGE.1]).await;
    server.send("POST", "/aliases", Some(json!({"name": "live", "indexes": ["hotels"]}))).await;
    let asked = server.raw("OPTIONS", &format!("/indexes/live/docs?{VERSION}"), &preflight(PAGE), "").await;
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, PAGE.1));
}

#[tokio::test]
async fn without_keys_only_named_pages_can_query() {
    let target = "/indexes/hotels/docs/$count";
    let named = with_origins(false, &[PAGE.1]).await;
    let count = named.send_with("GET", target, &[PAGE], None).await;
    assert_eq!((count.status, count.header("access-control-allow-origin")), (200, PAGE.1));
    let rebound = named.send_with("GET", target, &[PAGE, ("host", "rebound.example.com")], None).await;
    assert_eq!((rebound.status, rebound.code().as_str()), (403, "ForeignOrigin"));
    let write = named.send_with("DELETE", "/indexes/hotels", &[PAGE], None).await;
    assert_eq!((write.status, write.code().as_str()), (403, "ForeignOrigin"));
    let open = with_origins(false, &["*"]).await;
    let count = open.send_with("GET", target, &[PAGE], None).await;
    assert_eq!((count.status, count.code().as_str()), (403, "ForeignOrigin"));
    let local = open.send_with("GET", target, &[("origin", "http://localhost:3000")], None).await;
    assert_eq!((local.status, local.header("access-control-allow-origin")), (200, "*"));
}
