//! Tests of API keys, versions, methods and bodies: which requests are rejected, and with which errors.

use serde_json::json;

use crate::server::{Server, Setup, VERSION, index};

async fn with_keys() -> Server {
    Server::with(Setup { keys: true, ..Setup::default() }).await.with_index().await
}

#[tokio::test]
async fn keys_are_required() {
    let server = with_keys().await;
    let target = format!("/indexes?{VERSION}");
    let missing = server.raw("GET", &target, &[], "").await;
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, "ApiKey"), "{missing:?}");
    let wrong = server.raw("GET", &target, &[("api-key", "nope")], "").await;
    assert_eq!(wrong.status, 403);
    let token = server.raw("GET", &target, &[("authorization", "Bearer x")], "").await;
    assert!(token.status == 403 && token.message().contains("api-key"), "{token:?}");
    for key in server.keys.as_ref().unwrap().admin_keys() {
        assert_eq!(server.raw("GET", &target, &[("api-key", key)], "").await.status, 200);
        assert_eq!(server.raw("GET", &format!("{target}&api-key={key}"), &[], "").await.status, 200);
    }
}

#[tokio::test]
async fn a_query_key_only_reads_documents() {
    let server = with_keys().await;
    let key = server.keys.as_ref().unwrap().query_keys()[0].clone();
    let ask = async |method: &str, target: &str| {
        let target = format!("{target}?{VERSION}");
        server.raw(method, &target, &[("api-key", &key)], json!({}).to_string()).await.status
    };
    for (method, target) in [
        ("GET", "/indexes('hotels')/docs"),
        ("POST", "/indexes('hotels')/docs/search.post.search"),
        ("GET", "/indexes('hotels')/docs/search.suggest"),
        ("POST", "/indexes('hotels')/docs/search.post.suggest"),
        ("GET", "/indexes('hotels')/docs/search.autocomplete"),
        ("POST", "/indexes('hotels')/docs/search.post.autocomplete"),
        ("GET", "/indexes('hotels')/docs('1')"),
        ("GET", "/indexes('hotels')/docs/$count"),
    ] {
        assert_eq!(ask(method, target).await, 200, "{method} {target}");
    }
    for (method, target) in [
        ("GET", "/indexes"),
        ("GET", "/indexes('hotels')"),
        ("DELETE", "/indexes('hotels')"),
        ("POST", "/indexes('hotels')/docs/search.index"),
        ("POST", "/indexes('hotels')/search.analyze"),
        ("GET", "/indexes('hotels')/search.stats"),
        ("GET", "/servicestats"),
        ("GET", "/datasources"),
    ] {
        assert_eq!(ask(method, target).await, 403, "{method} {target}");
    }
}

#[tokio::test]
async fn foreign_pages_are_rejected_without_keys() {
    let server = Server::start().await;
    let target = format!("/indexes?{VERSION}");
    let foreign = server.raw("POST", &target, &[("origin", "https://example.com")], "{}").await;
    assert_eq!((foreign.status, foreign.code().as_str()), (403, "ForeignOrigin"));
    let rebound = server.raw("GET", &target, &[("host", "rebound.example.com")], "").await;
    assert_eq!(rebound.status, 403);
    assert_eq!(server.raw("GET", &target, &[("origin", "http://localhost:3000")], "").await.status, 200);
}

#[tokio::test]
async fn an_api_version_is_required() {
    let server = Server::start().await;
    let missing = server.raw("GET", "/indexes", &[], "").await;
    assert_eq!((missing.status, missing.code().as_str()), (400, "MissingApiVersionParameter"));
    for (version, status) in [
        ("2024-07-01", 200),
        ("2025-08-01-Preview", 200),
        ("2026-04-01", 200),
        ("2023-11-01", 200),
        ("2024-05-01-preview", 200),
        ("2020-06-30", 200),
        ("2025-02-30", 400),
        ("1", 400),
    ] {
        let answer = server.raw("GET", &format!("/indexes?api-version={version}"), &[], "").await;
        assert_eq!(answer.status, status, "{version}: {answer:?}");
    }
}

#[tokio::test]
async fn errors_name_wrong_methods_and_paths() {
    let server = Server::start().await.with_index().await;
    for (method, target, allow) in [
        ("DELETE", "/indexes", "GET, POST"),
        ("POST", "/indexes('hotels')", "GET, PUT, DELETE"),
        ("GET", "/indexers('x')/search.run", "POST"),
        ("POST", "/indexes('hotels')/docs/$count", "GET"),
        ("GET", "/indexes('hotels')/docs/search.post.search", "POST"),
        ("PATCH", "/servicestats", "GET"),
    ] {
        let answer = server.send(method, target, None).await;
        assert_eq!((answer.status, answer.header("allow")), (405, allow), "{method} {target}");
        assert_eq!(answer.code(), "MethodNotAllowed");
    }
    let unknown = server.send("GET", "/nothing/here", None).await;
    assert!(unknown.status == 404 && unknown.message().contains("/nothing/here"), "{unknown:?}");
}

#[tokio::test]
async fn json_errors_name_their_position() {
    let server = Server::start().await;
    let post = async |body: &'static str| server.raw("POST", &format!("/indexes?{VERSION}"), &[], body).await;
    let broken = post("{\n  \"name\": \"a1\",\n  \"fields\": [}\n").await;
    assert!(broken.status == 400 && broken.message().contains("line 3 column 14"), "{broken:?}");
    let twice = post(r#"{"name": "a1", "name": "a2"}"#).await;
    assert!(twice.status == 400 && twice.message().contains("'name' is repeated"), "{twice:?}");
    assert!(post("").await.message().contains("no body"));
    assert_eq!(post("[]").await.status, 400);
    assert_eq!(post("\u{feff}{\"name\": \"a1\"}").await.status, 201);
}

#[tokio::test]
async fn large_and_compressed_bodies_are_rejected() {
    let server = Server::start().await.with_index().await;
    let target = format!("/indexes('hotels')/docs/search.index?{VERSION}");
    let fits = server.raw("POST", &target, &[], vec![b' '; 1024 * 1024]).await;
    assert_eq!(fits.json()["bytes"], 1024 * 1024);
    let large = server.raw("POST", &target, &[], vec![b' '; 8 * 1024 * 1024]).await;
    assert_eq!((large.status, large.code().as_str()), (413, "RequestEntityTooLarge"));
    let packed = server.raw("POST", &target, &[("content-encoding", "gzip")], "x").await;
    assert_eq!(packed.status, 415);
}

#[tokio::test]
async fn responses_have_the_common_headers() {
    let server = Server::start().await.with_index().await;
    let id = "1d5d3d4e-0000-4000-8000-000000000001";
    let answer = server.send_with("GET", "/indexes('hotels')", &[("x-ms-client-request-id", id)], None).await;
    for name in ["request-id", "client-request-id", "x-ms-client-request-id"] {
        assert_eq!(answer.header(name), id);
    }
    assert_eq!(answer.header("odata-version"), "4.0");
    assert_eq!(answer.header("preference-applied"), "odata.include-annotations=\"*\"");
    assert_eq!(answer.header("content-type"), "application/json; odata.metadata=minimal; charset=utf-8");
    assert!(answer.header("elapsed-time").parse::<u64>().is_ok());
    let other = server.send("POST", "/indexes", Some(index("hotels"))).await;
    assert_eq!((other.status, other.header("request-id").len()), (409, 36));
    assert_eq!(other.json()["error"]["details"][0]["code"], "CannotCreateExistingIndex");
}
