//! The identity that App Service authentication has established: when it is accepted and when not.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindpost_azure_hosting::ClientPrincipal;
use bindpost_mcp_http::{Auth, Authorizer as _, Denial, Settings};
use bindpost_mcp_server::{Caller, HttpRequest};
use serde_json::{Value, json};

use crate::server::TestServer;

fn alice() -> String {
    let role = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role";
    encode(json!({
        "auth_typ": "aad",
        "name_typ": "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
        "role_typ": role,
        "claims": [
            {"typ": "http://schemas.microsoft.com/identity/claims/tenantid", "val": "tenant"},
            {"typ": "http://schemas.microsoft.com/identity/claims/objectidentifier", "val": "alice"},
            {"typ": "http://schemas.microsoft.com/identity/claims/scope", "val": "Orders.Read User.Read"},
            {"typ": role, "val": "Orders.All"},
        ],
    }))
}

fn encode(principal: Value) -> String {
    STANDARD.encode(principal.to_string())
}

async fn serving(trust_platform_identity: bool) -> TestServer {
    let auth = Some(Auth::new(ClientPrincipal::new()));
    TestServer::start(Settings { auth, trust_platform_identity, ..Settings::default() }).await
}

#[tokio::test]
async fn the_identity_of_a_trusted_platform_is_accepted() {
    let server = serving(true).await;
    let principal = alice();
    for header in ["x-ms-client-principal", "X-MS-CLIENT-PRINCIPAL"] {
        for tool in ["whoami", "read"] {
            assert_eq!(server.call(tool, &[(header, &principal)]).await, (200, "tenant|alice".to_owned()));
        }
    }
    assert_eq!(server.call("whoami", &[]).await.0, 401);
    // The other headers of the platform do not authenticate.
    let others = [("x-ms-client-principal-id", "alice"), ("x-ms-client-principal-name", "alice")];
    assert_eq!(server.call("whoami", &others).await.0, 401);
}

#[tokio::test]
async fn roles_apply_to_applications_only() {
    let server = serving(true).await;
    let status = async |tool: &str, more: Value| {
        let mut claims = json!([
            {"typ": "tid", "val": "tenant"}, {"typ": "oid", "val": "object"}, {"typ": "roles", "val": "Orders.All"},
        ]);
        claims.as_array_mut().unwrap().extend(more.as_array().unwrap().clone());
        let principal = encode(json!({"auth_typ": "aad", "role_typ": "roles", "claims": claims}));
        server.call(tool, &[("x-ms-client-principal", &principal)]).await.0
    };
    let [name_id, scope] = [
        "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/nameidentifier",
        "http://schemas.microsoft.com/identity/claims/scope",
    ];
    // Users: with scopes, or logged in at the platform, which sends no scopes.
    for user in [
        json!([{"typ": scope, "val": "User.Read"}]),
        json!([{"typ": "scp", "val": "User.Read"}, {"typ": name_id, "val": "object"}]),
        json!([{"typ": name_id, "val": "pairwise"}]),
        json!([{"typ": "idtyp", "val": "user"}]),
        json!([]),
    ] {
        assert_eq!(status("all", user.clone()).await, 403, "{user}");
        assert_eq!(status("whoami", user).await, 200);
    }
    for application in [json!([{"typ": "idtyp", "val": "app"}]), json!([{"typ": name_id, "val": "object"}])] {
        assert_eq!(status("all", application.clone()).await, 200, "{application}");
        assert_eq!(status("read", application).await, 403);
    }
}

#[tokio::test]
async fn without_the_setting_the_header_is_ignored() {
    let server = serving(false).await;
    assert_eq!(server.call("whoami", &[("x-ms-client-principal", &alice())]).await.0, 401);
}

#[tokio::test]
async fn a_broken_header_is_malformed() {
    let server = serving(true).await;
    let good = alice();
    for header in [
        String::new(),
        "not base64!".to_owned(),
        good[..good.len() / 2].to_owned(),
        STANDARD.encode("not json"),
        STANDARD.encode([0xff, 0xfe]),
        encode(json!({})),
        encode(json!([])),
        encode(json!({"auth_typ": "aad", "claims": []})),
        encode(json!({"auth_typ": "aad", "claims": [{"typ": "sub"}]})),
        encode(json!({"auth_typ": 7, "claims": [{"typ": "sub", "val": "s"}]})),
        encode(json!({"auth_typ": "aad", "claims": {"sub": "s"}})),
    ] {
        let status = server.call("whoami", &[("x-ms-client-principal", &header)]).await.0;
        assert_eq!(status, 400, "{header}");
    }
    let twice = [("x-ms-client-principal", good.as_str()), ("x-ms-client-principal", good.as_str())];
    assert_eq!(server.call("whoami", &twice).await.0, 400);
}

#[tokio::test]
async fn only_trusted_peers_are_accepted() {
    let by = async |principal: &ClientPrincipal, peer: Option<&str>| -> Result<Caller, Denial> {
        let request = http::Request::post("/mcp").header("x-ms-client-principal", alice());
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let peer = peer.map(|peer| peer.parse::<SocketAddr>().unwrap());
        principal.authorize(&HttpRequest { parts, peer }).await
    };
    let default = ClientPrincipal::new();
    for (peer, believed) in [
        (Some("127.0.0.1:1"), true),
        (Some("127.9.9.9:1"), true),
        (Some("[::1]:1"), true),
        (Some("[::ffff:127.0.0.1]:1"), true),
        (Some("10.0.0.1:1"), false),
        (Some("[::ffff:10.0.0.1]:1"), false),
        (Some("169.254.129.1:1"), false),
        (None, false),
    ] {
        let answer = by(&default, peer).await;
        assert_eq!(answer.is_ok(), believed, "{peer:?}");
        assert!(believed || answer == Err(Denial::missing()), "{answer:?}");
    }
    let more = default.trusting("169.254.128.0/17".parse().unwrap());
    assert!(by(&more, Some("169.254.129.1:1")).await.is_ok());
    assert!(by(&more, Some("127.0.0.1:1")).await.is_ok());
    assert!(by(&more, Some("10.0.0.1:1")).await.is_err());
}
