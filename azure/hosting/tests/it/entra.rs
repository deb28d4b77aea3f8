//! Tokens in the format of Entra ID, from a test issuer.

use bindpost_azure_hosting::Entra;
use bindpost_mcp_http::{Auth, Settings};
use bindpost_mcp_oauth::TokenAuthorizer;
use serde_json::{Value, json};

use crate::issuer::TestIssuer;
use crate::server::TestServer;

const A: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
const B: &str = "bbbbaaaa-0000-cccc-1111-dddd2222eeee";
const CLIENT: &str = "00001111-aaaa-2222-bbbb-3333cccc4444";
const OBJECT: &str = "99998888-aaaa-2222-bbbb-3333cccc4444";
const APP_URI: &str = "api://orders";

/// Starts an issuer with the metadata of Entra ID below this path. The key `one` signs tokens of version 1.0,
/// `two` those of version 2.0. `others` belongs to another tenant.
async fn entra_id(path: &str, name: &str) -> TestIssuer {
    let issuer = TestIssuer::start().await;
    let of_b = format!("https://login.microsoftonline.com/{B}/v2.0");
    let template = "https://login.microsoftonline.com/{tenantid}/v2.0";
    issuer
        .control(json!({"add": [
            {"kid": "one"},
            {"kid": "two", "jwk": {"issuer": template}},
            {"kid": "others", "jwk": {"issuer": of_b}},
        ]}))
        .await;
    let all = issuer.public_keys().await;
    let of = |kids: &[&str]| -> Vec<&Value> {
        all.iter().filter(|key| kids.iter().any(|kid| key["kid"] == *kid)).collect()
    };
    let url = &issuer.url;
    issuer
        .control(json!({"documents": {
            format!("/{path}/.well-known/openid-configuration"): {"json": {
                "issuer": format!("https://sts.windows.net/{name}/"),
                "jwks_uri": format!("{url}/{path}/discovery/keys")}},
            format!("/{path}/discovery/keys"): {"json": {"keys": of(&["one"])}},
            format!("/{path}/v2.0/.well-known/openid-configuration"): {"json": {
                "issuer": format!("https://login.microsoftonline.com/{name}/v2.0"),
                "jwks_uri": format!("{url}/{path}/discovery/v2.0/keys")}},
            format!("/{path}/discovery/v2.0/keys"): {"json": {"keys": of(&["two", "others"])}},
        }}))
        .await;
    issuer
}

/// Returns the order for a token of version 1.0 of this tenant, with more claims.
fn first(tenant: &str, more: Value) -> Value {
    order("one", format!("https://sts.windows.net/{tenant}/"), tenant, APP_URI, "1.0", more)
}

/// Returns the order for a token of version 2.0.
fn second(tenant: &str, more: Value) -> Value {
    order("two", format!("https://login.microsoftonline.com/{tenant}/v2.0"), tenant, CLIENT, "2.0", more)
}

fn order(key: &str, iss: String, tenant: &str, aud: &str, ver: &str, more: Value) -> Value {
    let mut claims = json!({"iss": iss, "tid": tenant, "oid": OBJECT, "aud": aud, "ver": ver,
        "sub": format!("pairwise {ver}"), "name": "Alice", "preferred_username": "alice@example.com"});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"key": key, "header": {"typ": "JWT"}, "claims": claims})
}

async fn serving(tokens: TokenAuthorizer) -> TestServer {
    let auth = Auth::new(tokens).resource("https://orders.azurewebsites.net/mcp");
    TestServer::start(Settings { auth: Some(auth), ..Settings::default() }).await
}

async fn call(server: &TestServer, issuer: &TestIssuer, tool: &str, order: Value) -> (u16, String) {
    let token = issuer.mint(order).await;
    server.call(tool, &[("authorization", &format!("Bearer {token}"))]).await
}

fn entra(entra: Entra, issuer: &TestIssuer) -> TokenAuthorizer {
    entra.audience(CLIENT).audience(APP_URI).metadata_base(&issuer.url).build().unwrap()
}

#[tokio::test]
async fn both_versions_of_a_tenant_are_the_same_caller() {
    let issuer = entra_id(A, A).await;
    let server = serving(entra(Entra::tenant(A), &issuer)).await;
    let alice = (200, format!("{A}|{OBJECT}"));
    assert_eq!(call(&server, &issuer, "whoami", first(A, json!({}))).await, alice);
    assert_eq!(call(&server, &issuer, "whoami", second(A, json!({}))).await, alice);
    let by_id = first(A, json!({"aud": CLIENT}));
    assert_eq!(call(&server, &issuer, "whoami", by_id).await, alice);
}

#[tokio::test]
async fn invalid_tokens_are_rejected() {
    let issuer = entra_id(A, A).await;
    let server = serving(entra(Entra::tenant(A), &issuer)).await;
    let v2 = format!("https://login.microsoftonline.com/{A}/v2.0");
    for order in [
        first(B, json!({})),
        second(B, json!({})),
        // The tenant of the issuer differs from `tid`.
        second(A, json!({"tid": B})),
        first(A, json!({"tid": B})),
        second(A, json!({"tid": null})),
        second(A, json!({"oid": null})),
        second(A, json!({"aud": "api://orders/"})),
        second(A, json!({"aud": "api://orders/sub"})),
        second(A, json!({"aud": "00000003-0000-0000-c000-000000000000"})),
        first(A, json!({"iss": format!("https://sts.windows.net/{A}")})),
        second(A, json!({"iss": format!("{v2}/")})),
        second(A, json!({"iss": format!("https://login.microsoftonline.com/{A}")})),
        second(A, json!({"iss": format!("{}/{A}/v2.0", issuer.url)})),
        // The keys of the other version, and of another tenant.
        json!({"key": "two", "claims": first(A, json!({}))["claims"]}),
        json!({"key": "one", "claims": second(A, json!({}))["claims"]}),
        json!({"key": "others", "claims": second(A, json!({}))["claims"]}),
        // Entra ID signs with RS256.
        json!({"key": "two", "header": {"alg": "PS256"}, "claims": second(A, json!({}))["claims"]}),
    ] {
        assert_eq!(call(&server, &issuer, "whoami", order.clone()).await.0, 401, "{order}");
    }
}

#[tokio::test]
async fn rights_are_scopes_of_users_and_roles_of_applications() {
    let issuer = entra_id(A, A).await;
    let server = serving(entra(Entra::tenant(A), &issuer)).await;
    for version in [first, second] {
        let user = || version(A, json!({"scp": "Orders.Read User.Read"}));
        let app = || version(A, json!({"roles": ["Orders.All", "Orders.Read"], "idtyp": "app"}));
        assert_eq!(call(&server, &issuer, "read", user()).await.0, 200);
        assert_eq!(call(&server, &issuer, "all", user()).await.0, 403);
        // A role is not a scope, even if it has the same name.
        assert_eq!(call(&server, &issuer, "read", app()).await.0, 403);
        assert_eq!(call(&server, &issuer, "all", app()).await.0, 200);
    }
}

/// The roles in a delegated token belong to the user. They do not grant the permissions of an application.
#[tokio::test]
async fn roles_of_a_user_are_not_application_permissions() {
    let issuer = entra_id(A, A).await;
    let server = serving(entra(Entra::tenant(A), &issuer)).await;
    for version in [first, second] {
        for user in [
            json!({"scp": "User.Read", "roles": ["Orders.All"]}),
            json!({"scp": "User.Read", "roles": ["Orders.All"], "idtyp": "user"}),
            // A token of a login, without scopes.
            json!({"roles": ["Orders.All"], "nonce": "x"}),
        ] {
            assert_eq!(call(&server, &issuer, "all", version(A, user.clone())).await.0, 403, "{user}");
        }
        // Without the optional `idtyp`, an application is recognised by its subject, which is its object id.
        let app = json!({"roles": ["Orders.All"], "sub": OBJECT});
        assert_eq!(call(&server, &issuer, "all", version(A, app)).await.0, 200);
    }
}

#[tokio::test]
async fn only_listed_tenants_are_accepted() {
    let issuer = entra_id("common", "{tenantid}").await;
    let listed = serving(entra(Entra::tenants([A]), &issuer)).await;
    let any = serving(entra(Entra::any_tenant(), &issuer)).await;
    for version in [first, second] {
        for (order, by_listed, by_any) in [
            (version(A, json!({})), 200, 200),
            (version(B, json!({})), 401, 200),
            (version(A, json!({"tid": B})), 401, 401),
            (version(B, json!({"tid": A})), 401, 401),
            (version("{tenantid}", json!({})), 401, 401),
            (version("common", json!({})), 401, 401),
            (version("", json!({})), 401, 401),
            (version(A, json!({"tid": null})), 401, 401),
        ] {
            let statuses = [&listed, &any].map(|server| call(server, &issuer, "whoami", order.clone()));
            let [listed, any] = statuses;
            assert_eq!((listed.await.0, any.await.0), (by_listed, by_any), "{order}");
        }
    }
    // A key of one tenant does not verify tokens of another.
    let forged = |tenant| json!({"key": "others", "claims": second(tenant, json!({}))["claims"]});
    assert_eq!(call(&any, &issuer, "whoami", forged(B)).await.0, 200);
    assert_eq!(call(&any, &issuer, "whoami", forged(A)).await.0, 401);
}
