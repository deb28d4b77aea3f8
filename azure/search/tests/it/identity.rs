//! Access tokens for the service: their source, their scope, and the handling of rejected tokens.

use std::sync::Arc;

use bindpost_azure_hosting::identity::EntraCredential;
use bindpost_azure_search::TOKEN_RESOURCE;
use bindpost_mcp_openapi::{Credential, UpstreamError};

use crate::upstream_service::{Answer, Service, answer, get};

/// Returns the n-th token, as Entra ID and the identity services respond.
fn token(before: usize) -> Answer {
    answer(200, &[], format!(r#"{{"access_token":"token-{before}","expires_in":"86400"}}"#))
}

fn credential(variables: &[(&str, String)]) -> Credential {
    let lookup =
        |wanted: &str| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
    Credential::Source(Arc::new(EntraCredential::for_resource(TOKEN_RESOURCE, &lookup).unwrap()))
}

#[tokio::test]
async fn an_app_registration_requests_the_scope_of_search() {
    let tokens = Service::start(|_, before| token(before)).await;
    let search = Service::start(|_, _| answer(200, &[], "in")).await;
    let upstream = search.upstream_as(credential(&[
        ("AZURE_TENANT_ID", "tenant".to_owned()),
        ("AZURE_CLIENT_ID", "who".to_owned()),
        ("AZURE_CLIENT_SECRET", "h&sh".to_owned()),
        ("AZURE_AUTHORITY_HOST", tokens.address()),
    ]));
    for _ in 0..3 {
        assert_eq!(upstream.send(get("/indexes")).await.unwrap().body, "in");
    }
    assert!(search.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer token-0")));
    let asked = tokens.seen();
    assert_eq!(asked.len(), 1, "the token is cached");
    assert_eq!(asked[0].target, "/tenant/oauth2/v2.0/token");
    let form = String::from_utf8(asked[0].body.to_vec()).unwrap();
    assert!(form.contains("scope=https%3A%2F%2Fsearch.azure.com%2F.default"), "{form}");
    assert!(form.contains("client_secret=h%26sh") && form.contains("client_id=who"), "{form}");
    assert!(!format!("{upstream:?}").contains("h&sh"), "{upstream:?}");
}

#[tokio::test]
async fn a_managed_identity_is_used_and_a_rejected_token_is_replaced() {
    let tokens = Service::start(|_, before| token(before)).await;
    let search = Service::start(|seen, _| match seen.header("authorization") {
        Some("Bearer token-1") => answer(200, &[], "in"),
        _ => answer(401, &[], "out"),
    })
    .await;
    let upstream = search.upstream_as(credential(&[
        ("IDENTITY_ENDPOINT", format!("{}/msi/token", tokens.address())),
        ("IDENTITY_HEADER", "hush".to_owned()),
    ]));
    assert_eq!(upstream.send(get("/")).await.unwrap().body, "in");
    assert_eq!(upstream.send(get("/")).await.unwrap().body, "in");
    assert_eq!((tokens.count(), search.count()), (2, 3));
    let asked = &tokens.seen()[0];
    assert_eq!(asked.header("x-identity-header"), Some("hush"));
    assert_eq!(asked.target, "/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fsearch.azure.com");
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_and_the_reason_is_hidden() {
    let tokens = Service::start(|_, _| answer(400, &[], r#"{"error_description":"unknown tenant"}"#)).await;
    let search = Service::start(|_, _| answer(200, &[], "")).await;
    let upstream = search.upstream_as(credential(&[
        ("AZURE_TENANT_ID", "tenant".to_owned()),
        ("AZURE_CLIENT_ID", "who".to_owned()),
        ("AZURE_CLIENT_SECRET", "hush".to_owned()),
        ("AZURE_AUTHORITY_HOST", tokens.address()),
    ]));
    let error = upstream.send(get("/")).await.unwrap_err();
    assert!(matches!(&error, UpstreamError::NoCredential(reason) if reason.contains("unknown tenant")));
    assert_eq!(error.to_string(), "there is no credential for the service");
    assert_eq!(search.count(), 0);
}
