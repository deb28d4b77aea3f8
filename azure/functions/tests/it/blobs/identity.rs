//! Access tokens: their sources, their renewal, and failures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bindpost_azure_functions::blobs::{
    AzureIdentity, AzureStore, BlobSettings, BlobStore, RESOURCE, Secret, StorageConnection, TokenSource,
};
use tokio::task::JoinSet;

use super::fake::{Fake, Reply, Seen};
use super::path;
use crate::scratch::Scratch;

/// Returns the response of Entra ID and the identity services with the n-th token, valid for this many
/// seconds.
fn token(before: usize, lasts: u32) -> Reply {
    Reply::body(format!(
        r#"{{"access_token":"token-{before}","expires_in":"{lasts}","token_type":"Bearer"}}"#
    ))
}

fn connection(settings: &[(&str, String)]) -> StorageConnection {
    let lookup =
        |wanted: &str| settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
    StorageConnection::resolve("Data", &lookup).unwrap()
}

fn store(connection: StorageConnection) -> BlobStore {
    let StorageConnection::Account(account) = connection else { panic!("an account") };
    BlobStore::Azure(AzureStore::new(account, &BlobSettings::default()).unwrap())
}

/// Starts a blob service that accepts only some tokens, and the store that uses it with these settings.
async fn service(
    settings: &[(&str, String)],
    taken: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> (Fake, BlobStore) {
    let blobs = Fake::start(move |seen, _| match seen.header("authorization").strip_prefix("Bearer ") {
        Some(token) if taken(token) => Reply::body("whole"),
        _ => Reply::code(401, "InvalidAuthenticationInfo"),
    })
    .await;
    let mut settings = settings.to_vec();
    settings.push(("Data__blobServiceUri", blobs.address()));
    let store = store(connection(&settings));
    (blobs, store)
}

fn form(seen: &Seen) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://h/?{}", seen.body)).unwrap();
    url.query_pairs().into_owned().collect()
}

fn has(form: &[(String, String)], name: &str, value: &str) -> bool {
    form.iter().any(|(found, text)| found == name && text == value)
}

#[tokio::test]
async fn an_app_asks_its_platform() {
    let tokens = Fake::start(|_, before| token(before, 86400)).await;
    let settings = [
        ("Data__credential", "managedidentity".to_owned()),
        ("Data__clientId", "who".to_owned()),
        ("IDENTITY_ENDPOINT", format!("{}/msi/token", tokens.address())),
        ("IDENTITY_HEADER", "hush".to_owned()),
    ];
    let (blobs, store) = service(&settings, |token| token == "token-0").await;
    for _ in 0..3 {
        assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "whole");
    }
    assert_eq!((tokens.count(), blobs.count()), (1, 3), "a token is kept");
    let asked = &tokens.seen()[0];
    assert_eq!(asked.header("x-identity-header"), "hush");
    assert_eq!(
        asked.target,
        "/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=who"
    );
    assert!(!format!("{store:?}").contains("hush") && !format!("{store:?}").contains("token-0"), "{store:?}");
}

#[tokio::test]
async fn a_virtual_machine_asks_its_host() {
    let tokens = Fake::start(|_, before| {
        let at = chrono::Utc::now().timestamp() + 86400;
        Reply::body(format!(r#"{{"access_token":"token-{before}","expires_on":"{at}"}}"#))
    })
    .await;
    let address = tokens.address().parse().unwrap();
    let identity =
        AzureIdentity::new(RESOURCE, vec![TokenSource::VirtualMachine { address, client_id: None }]).unwrap();
    for _ in 0..2 {
        assert_eq!(identity.token().await.unwrap().reveal(), "token-0");
    }
    let asked = tokens.seen();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("metadata"), "true");
    assert!(asked[0].target.starts_with("/metadata/identity/oauth2/token?api-version=2018-02-01&resource="));
}

#[tokio::test]
async fn a_client_secret_is_exchanged() {
    let tokens = Fake::start(|_, before| token(before, 3600)).await;
    let settings = [
        ("Data__tenantId", "a/tenant".to_owned()),
        ("Data__clientId", "who".to_owned()),
        ("Data__clientSecret", "h&sh+".to_owned()),
        ("AZURE_AUTHORITY_HOST", tokens.address()),
    ];
    let (_blobs, store) = service(&settings, |_| true).await;
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "whole");
    let asked = &tokens.seen()[0];
    assert_eq!(asked.target, "/a%2Ftenant/oauth2/v2.0/token", "a tenant is one segment");
    let form = form(asked);
    assert!(has(&form, "client_secret", "h&sh+") && has(&form, "client_id", "who"), "{form:?}");
    assert!(has(&form, "grant_type", "client_credentials"), "{form:?}");
    assert!(has(&form, "scope", "https://storage.azure.com/.default"), "{form:?}");
}

#[tokio::test]
async fn a_workload_shows_the_token_in_its_file() {
    let folder = Scratch::new();
    let file = folder.path().join("token");
    std::fs::write(&file, "first\n").unwrap();
    let tokens = Fake::start(|_, before| token(before, 10)).await;
    let settings = [
        ("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap().to_owned()),
        ("AZURE_TENANT_ID", "tenant".to_owned()),
        ("AZURE_CLIENT_ID", "who".to_owned()),
        ("AZURE_AUTHORITY_HOST", format!("{}/", tokens.address())),
    ];
    let (_blobs, store) = service(&settings, |_| true).await;
    for content in ["first", "second"] {
        std::fs::write(&file, content).unwrap();
        store.read(&path("abc/a")).await.unwrap().unwrap();
        let asked = tokens.seen().pop().unwrap();
        assert_eq!(asked.target, "/tenant/oauth2/v2.0/token");
        assert!(has(&form(&asked), "client_assertion", content), "{asked:?}");
    }
    std::fs::remove_file(&file).unwrap();
    let (_blobs, store) = service(&settings, |_| true).await;
    let error = store.read(&path("abc/a")).await.unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    assert!(
        error.client_message().contains("could not sign in") && !error.client_message().contains("token"),
        "{}",
        error.client_message()
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_laptop_asks_the_azure_cli() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Scratch::new();
    let program = folder.path().join("az");
    let script = |text: &str| {
        std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    };
    // The identity service of a virtual machine does not exist here, so the next source is used.
    let unreachable = reqwest::Url::parse("http://127.0.0.1:1/").unwrap();
    let identity = || {
        AzureIdentity::new(
            RESOURCE,
            vec![
                TokenSource::VirtualMachine { address: unreachable.clone(), client_id: None },
                TokenSource::AzureCli { program: program.clone() },
            ],
        )
        .unwrap()
    };
    script(r#"echo "{\"accessToken\":\"$1-$2-$6\",\"expires_on\":99999999999}""#);
    assert_eq!(
        identity().token().await.unwrap().reveal(),
        "account-get-access-token-https://storage.azure.com/"
    );
    script("echo 'ERROR: Please run az login' >&2; exit 1");
    let error = identity().token().await.unwrap_err().to_string();
    assert!(
        error.contains("the machine's managed identity") && error.contains("Please run az login"),
        "{error}"
    );
}

#[tokio::test]
async fn concurrent_callers_cause_one_request() {
    for (status, requests) in [(200, 1), (400, 1)] {
        let tokens = Fake::start(move |_, before| {
            // Long enough for all callers to wait.
            std::thread::sleep(Duration::from_millis(200));
            if status == 200 { token(before, 3600) } else { Reply::status(status) }
        })
        .await;
        let endpoint = tokens.address().parse().unwrap();
        let source = TokenSource::AppService { endpoint, header: Secret::new("hush"), client_id: None };
        let identity = Arc::new(AzureIdentity::new(RESOURCE, vec![source]).unwrap());
        let mut waiting = JoinSet::new();
        for _ in 0..20 {
            let identity = identity.clone();
            waiting.spawn(async move { identity.token().await.is_ok() });
        }
        assert!(waiting.join_all().await.iter().all(|&got| got == (status == 200)));
        assert_eq!(tokens.count(), requests, "{status}");
        // Later callers do not get an old failure.
        assert_eq!(identity.token().await.is_ok(), status == 200);
        assert_eq!(tokens.count(), if status == 200 { 1 } else { 2 });
    }
}

#[tokio::test]
async fn a_token_is_replaced_five_minutes_before_its_end() {
    for (lasts, requests) in [(299, 2), (303, 1)] {
        let tokens = Fake::start(move |_, before| token(before, lasts)).await;
        let address = tokens.address().parse().unwrap();
        let identity =
            AzureIdentity::new(RESOURCE, vec![TokenSource::VirtualMachine { address, client_id: None }])
                .unwrap();
        identity.token().await.unwrap();
        identity.token().await.unwrap();
        assert_eq!(tokens.count(), requests, "{lasts}");
    }
    // An old token that is still valid is used.
    let tokens = Fake::start(|_, before| if before == 0 { token(0, 200) } else { Reply::status(500) }).await;
    let address = tokens.address().parse().unwrap();
    let identity =
        AzureIdentity::new(RESOURCE, vec![TokenSource::VirtualMachine { address, client_id: None }]).unwrap();
    identity.token().await.unwrap();
    assert_eq!(identity.token().await.unwrap().reveal(), "token-0");
    assert_eq!(tokens.count(), 2);
}

/// Platforms give the expiry of a token by their own clock. If this machine's clock is ahead, every token
/// seems expired, and would be requested again with each call.
#[tokio::test]
async fn a_wrong_clock_does_not_request_a_token_each_time() {
    let past = (chrono::Utc::now().timestamp() - 86_400).to_string();
    for end in [past.as_str(), "0", "-9223372036854775808", "9223372036854775807"] {
        let end = end.to_owned();
        let tokens = Fake::start(move |_, before| {
            Reply::body(format!(r#"{{"access_token": "token-{before}", "expires_on": "{end}"}}"#))
        })
        .await;
        let address = tokens.address().parse().unwrap();
        let identity =
            AzureIdentity::new(RESOURCE, vec![TokenSource::VirtualMachine { address, client_id: None }])
                .unwrap();
        for _ in 0..3 {
            assert_eq!(identity.token().await.unwrap().reveal(), "token-0");
        }
        assert_eq!(tokens.count(), 1);
    }
}

#[tokio::test]
async fn a_rejected_token_is_replaced_once() {
    let tokens = Fake::start(|_, before| token(before, 3600)).await;
    let settings = [("IDENTITY_ENDPOINT", tokens.address()), ("IDENTITY_HEADER", "hush".to_owned())];
    let (blobs, store) = service(&settings, |token| token == "token-1").await;
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "whole");
    assert_eq!((tokens.count(), blobs.count()), (2, 2));

    let (blobs, store) = service(&settings, |_| false).await;
    let error = store.read(&path("abc/a")).await.unwrap_err();
    assert_eq!(blobs.count(), 2);
    assert!(
        error.to_string().contains("401") && error.client_message().contains("refused access"),
        "{error}"
    );
}

#[tokio::test]
async fn a_rejection_has_a_reason_without_the_secret() {
    let tokens = Fake::start(|_, _| {
        let text = r#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret.\r\nTrace"}"#;
        Reply::With(401, Vec::new(), text.into())
    })
    .await;
    let settings = [
        ("Data__tenantId", "tenant".to_owned()),
        ("Data__clientId", "who".to_owned()),
        ("Data__clientSecret", "hush".to_owned()),
        ("AZURE_AUTHORITY_HOST", tokens.address()),
    ];
    let (blobs, store) = service(&settings, |_| true).await;
    let error = store.read(&path("abc/a")).await.unwrap_err();
    assert_eq!((tokens.count(), blobs.count()), (1, 0), "a rejection is not retried");
    assert!(error.to_string().contains("AADSTS7000215: Invalid client secret."), "{error}");
    for text in [error.to_string(), format!("{error:?}"), error.client_message()] {
        assert!(!text.contains("hush"), "{text}");
    }
    assert!(!error.client_message().contains("AADSTS"), "{}", error.client_message());
}

#[tokio::test]
async fn an_identity_service_that_fails_is_asked_three_times() {
    let tokens = Fake::start(|_, _| Reply::status(503)).await;
    let settings = [("IDENTITY_ENDPOINT", tokens.address()), ("IDENTITY_HEADER", "hush".to_owned())];
    let (_blobs, store) = service(&settings, |_| true).await;
    let started = Instant::now();
    let error = store.read(&path("abc/a")).await.unwrap_err();
    assert_eq!(tokens.count(), 3);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(error.to_string().contains("the app's managed identity was rejected with 503"), "{error}");
}

#[test]
fn an_incomplete_group_of_settings_names_the_missing_one() {
    for (settings, word) in [
        (&[("Data__credential", "magic")][..], "Data__credential"),
        (&[("Data__credential", "workloadidentity")], "AZURE_FEDERATED_TOKEN_FILE"),
        (&[("Data__clientSecret", "hush")], "Data__tenantId"),
        (&[("Data__clientSecret", "hush"), ("Data__tenantId", "t")], "Data__clientId"),
        (
            &[("Data__credential", "clientsecret"), ("Data__tenantId", "t"), ("Data__clientId", "c")],
            "Data__clientSecret",
        ),
        (&[("IDENTITY_ENDPOINT", "nonsense"), ("IDENTITY_HEADER", "hush")], "IDENTITY_ENDPOINT"),
        (
            &[
                ("Data__clientSecret", "hush"),
                ("Data__tenantId", "t"),
                ("Data__clientId", "c"),
                ("AZURE_AUTHORITY_HOST", "http://login.example"),
            ],
            "AZURE_AUTHORITY_HOST",
        ),
    ] {
        let lookup = |wanted: &str| match wanted {
            "Data__accountName" => Some("acc".to_owned()),
            _ => settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_string()),
        };
        let error = StorageConnection::resolve("Data", &lookup).unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains("hush"), "{error}");
    }
}
