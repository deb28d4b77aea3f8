//! RFC 9728: the protected resource metadata, and that a forged host cannot change it.

use bindpost_mcp_http::listener::Drain;
use bindpost_mcp_http::{Auth, Authorizer, Denial, bind};
use bindpost_mcp_server::{Caller, HttpRequest};
use serde_json::json;

use super::*;
use crate::client::{Ask, Reply, TestServer, within};

/// Accepts one token of one issuer.
#[derive(Debug)]
struct Tokens;

impl Authorizer for Tokens {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        match request.header("authorization") {
            None => Err(Denial::missing()),
            Some("Bearer good") => Ok(Caller::new("https://issuer.example|alice")),
            Some(_) => Err(Denial::invalid("the token has expired")),
        }
    }

    fn authorization_servers(&self) -> Vec<String> {
        vec!["https://issuer.example".to_owned()]
    }
}

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

fn get(path: &str, host: &str) -> Ask {
    Ask::new("GET", path).with("host", host)
}

fn resource(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{reply:?}");
    let metadata: Value = serde_json::from_slice(&reply.body).unwrap();
    metadata["resource"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_metadata_names_the_authorization_servers() {
    let auth = Auth::new(Tokens).resource("https://api.example.com/mcp/");
    let server = TestServer::of(mixed(), with(auth)).await;
    for path in ["", "/", "/mcp", "/mcp/"] {
        let reply = server.send(&Ask::new("GET", &format!("{WELL_KNOWN}{path}"))).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        let metadata: Value = serde_json::from_slice(&reply.body).unwrap();
        let expected = json!({
            "resource": "https://api.example.com/mcp",
            "authorization_servers": ["https://issuer.example"],
            "scopes_supported": ["orders.read", "orders.write"],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!(metadata, expected);
    }
    for path in ["/mcp//", "/other", "x", "/mcp/x"] {
        server.send(&Ask::new("GET", &format!("{WELL_KNOWN}{path}"))).await.refused(404, -32600);
    }
    server.send(&Ask::new("POST", WELL_KNOWN)).await.refused(405, -32600);
}

#[tokio::test]
async fn web_pages_of_all_origins_may_read_the_metadata() {
    let auth = Auth::new(Tokens).resource("https://api.example.com/mcp");
    let settings = Settings { require_origin: true, ..with(auth) };
    let server = TestServer::of(protected(), settings).await;
    for method in ["GET", "OPTIONS"] {
        let ask = Ask::new(method, WELL_KNOWN).header("origin", "https://inspector.example");
        let reply = server.send(&ask.header("access-control-request-headers", "mcp-protocol-version")).await;
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "{method}");
        assert!(reply.status < 300);
        assert_eq!(server.send(&Ask::new(method, WELL_KNOWN)).await.status, reply.status);
    }
    // The host is checked nevertheless.
    server.send(&get(WELL_KNOWN, "evil.example.com")).await.refused(403, -32600);
}

#[tokio::test]
async fn without_authorization_servers_there_is_no_metadata() {
    let server = TestServer::of(mixed(), with_keys()).await;
    server.send(&Ask::new("GET", WELL_KNOWN)).await.refused(404, -32600);
    let refused = server.send(&Ask::modern_call("whoami", json!({}))).await;
    assert_eq!(challenge(&refused.headers).1.get("resource_metadata"), None);
    let server = TestServer::of(mixed(), Settings::default()).await;
    server.send(&Ask::new("GET", WELL_KNOWN)).await.refused(404, -32600);
}

#[tokio::test]
async fn the_metadata_lists_scopes_without_offline_access() {
    let auth = Auth::new(Tokens).scopes_supported(["one", "offline_access"]);
    let server = TestServer::of(mixed(), with(auth)).await;
    let metadata: Value =
        serde_json::from_slice(&server.send(&Ask::new("GET", WELL_KNOWN)).await.body).unwrap();
    assert_eq!(metadata["scopes_supported"], json!(["one"]));
    let auth = Auth::new(Tokens).scopes_supported(["offline_access"]);
    let server = TestServer::of(mixed(), with(auth)).await;
    let metadata: Value =
        serde_json::from_slice(&server.send(&Ask::new("GET", WELL_KNOWN)).await.body).unwrap();
    assert_eq!(metadata.get("scopes_supported"), None);
}

#[tokio::test]
async fn a_challenge_names_the_metadata() {
    let auth = Auth::new(Tokens).resource("https://api.example.com/v1/mcp").realm("my \"orders\"");
    let server = TestServer::of(mixed(), with(auth)).await;
    let url = "https://api.example.com/.well-known/oauth-protected-resource/v1/mcp";
    for way in WAYS {
        let mut talk = Talk::open(&server, way, NO_KEY).await;
        let answer = talk.call("write", NO_KEY).await;
        let expected = parameters(&[
            ("realm", "my 'orders'"),
            ("scope", "orders.read orders.write"),
            ("resource_metadata", url),
        ]);
        assert_eq!(answer.refused(401), expected, "{way:?}");
        assert_eq!(challenge(&answer.headers).0, "Bearer");

        let answer = talk.call("write", &[("authorization", "Bearer old")]).await;
        let challenge = answer.refused(401);
        assert_eq!(challenge["error"], "invalid_token", "{way:?}");
        assert_eq!(challenge["error_description"], "the token has expired");
        assert_eq!(challenge["resource_metadata"], url);

        const GOOD: Credentials = &[("authorization", "Bearer good")];
        let mut talk = Talk::open(&server, way, GOOD).await;
        let expected = parameters(&[
            ("realm", "my 'orders'"),
            ("error", "insufficient_scope"),
            ("scope", "orders.read orders.write"),
            ("resource_metadata", url),
            ("error_description", "this needs the scopes orders.read orders.write"),
        ]);
        assert_eq!(talk.call("write", GOOD).await.refused(403), expected, "{way:?}");
    }
    // The path of the configured address is served too.
    assert_eq!(
        resource(&server.send(&Ask::new("GET", &format!("{WELL_KNOWN}/v1/mcp"))).await),
        "https://api.example.com/v1/mcp"
    );
}

#[tokio::test]
async fn bearer_comes_first_of_several_challenges() {
    let server = TestServer::of(mixed(), with(Auth::new(keys().or(Tokens)))).await;
    let refused = server.send(&Ask::modern_call("read", json!({}))).await;
    let all = challenges(&refused.headers);
    assert_eq!((all[0].0.as_str(), all[1].0.as_str(), all.len()), ("Bearer", "ApiKey", 2));
    assert_eq!(all[0].1["resource_metadata"], format!("http://localhost{WELL_KNOWN}/mcp"));
    assert_eq!(all[0].1["scope"], "orders.read");
    assert_eq!(all[1].1, parameters(&[("realm", "mcp"), ("header", "x-api-key")]));
}

#[tokio::test]
async fn without_a_configured_address_only_a_listed_host_is_used() {
    let auth = || Auth::new(Tokens);
    let hosts = |hosts: &[&str]| Settings {
        allowed_hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..with(auth())
    };
    let listed = TestServer::of(mixed(), hosts(&["api.example.com"])).await;
    for (host, expected) in [
        ("localhost", "http://localhost/mcp"),
        ("127.0.0.1:7071", "http://127.0.0.1:7071/mcp"),
        ("[::1]:80", "http://[::1]/mcp"),
        ("api.example.com", "https://api.example.com/mcp"),
        ("API.example.com:443", "https://api.example.com/mcp"),
        ("api.example.com:8443", "https://api.example.com:8443/mcp"),
    ] {
        let ask = get(WELL_KNOWN, host)
            .header("x-forwarded-host", "evil.example.com")
            .header("x-forwarded-proto", "https")
            .header("forwarded", "host=evil.example.com");
        assert_eq!(resource(&listed.send(&ask).await), expected);
        let call = Ask::modern_call("whoami", json!({}))
            .with("host", host)
            .header("x-forwarded-host", "evil.example.com");
        let refused = listed.send(&call).await;
        let url = challenge(&refused.headers).1["resource_metadata"].clone();
        assert_eq!(url.replace(WELL_KNOWN, ""), expected);
    }
    let any = TestServer::of(mixed(), hosts(&["*"])).await;
    assert_eq!(any.send(&get(WELL_KNOWN, "evil.example.com")).await.status, 404);
    let refused = any.send(&Ask::modern_call("whoami", json!({})).with("host", "evil.example.com")).await;
    assert_eq!(challenge(&refused.headers).1, parameters(&[("realm", "mcp")]));
    // A configured address does not depend on the request.
    let configured = Settings { auth: Some(auth().resource("https://api.example.com/mcp")), ..hosts(&["*"]) };
    let configured = TestServer::of(mixed(), configured).await;
    assert_eq!(
        resource(&configured.send(&get(WELL_KNOWN, "evil.example.com")).await),
        "https://api.example.com/mcp"
    );
}

#[tokio::test]
async fn rejects_an_invalid_resource_address() {
    for address in
        ["api.example.com/mcp", "/mcp", "https://api.example.com/mcp#x", "https://api.example.com/mcp?x"]
    {
        let (_trigger, drain) = Drain::new();
        let settings = with(Auth::new(Tokens).resource(address));
        let bound = bind("127.0.0.1:0").await.unwrap();
        let refused = within(bound.serve_until(mixed(), settings, drain)).await.unwrap_err();
        assert!(refused.to_string().contains(address), "{refused}");
    }
}
