//! A storage service that is down, slow, hostile or disconnected.

use std::time::{Duration, Instant};

use bindpost_azure_functions::blobs::{BlobError, BlobSettings, BlobStore};
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::azurite::Azurite;
use super::fake::{self, Fake, Reply};
use super::proxy::Proxy;
use super::{ACCOUNT, KEY, keyed, path, quick};

/// Checks that no text for clients names the account, an address, the blob or a secret, and no text has the
/// key.
fn assert_discreet(error: &BlobError, address: &str) {
    let shown = error.client_message();
    let port = address.rsplit(':').next().unwrap();
    for secret in [ACCOUNT, "http", "127.0.0.1", "abc/", port, KEY] {
        assert!(!shown.contains(secret), "{shown}");
    }
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains(KEY), "{text}");
    }
}

async fn read_error(store: &BlobStore, address: &str) -> BlobError {
    let error = store.read(&path("abc/a")).await.unwrap_err();
    assert_discreet(&error, address);
    error
}

#[tokio::test]
async fn a_service_that_refuses_connections_is_tried_three_times() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let store = keyed(&address, &BlobSettings::default());
    let started = Instant::now();
    let error = read_error(&store, &address).await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    assert!(error.to_string().contains("after 3 tries"), "{error}");
    assert!(error.to_string().contains("abc/a"), "{error}");
    assert!(error.client_message().contains("cannot be reached"), "{}", error.client_message());
    let error = store.write(&path("abc/a"), Bytes::new()).await.unwrap_err();
    assert_discreet(&error, &address);
    assert!(error.client_message().contains("could not be written"), "{}", error.client_message());
}

#[tokio::test]
async fn a_service_that_fails_is_tried_three_times() {
    for status in [500, 503, 429] {
        let fake = Fake::start(move |_, _| Reply::code(status, "ServerBusy")).await;
        let store = keyed(&fake.address(), &BlobSettings::default());
        let started = Instant::now();
        let error = read_error(&store, &fake.address()).await;
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        assert_eq!(fake.count(), 3);
        assert!(error.to_string().contains(&format!("{status} (ServerBusy)")), "{error}");
        assert!(error.client_message().contains("not available"), "{}", error.client_message());
    }
}

#[tokio::test]
async fn a_service_that_recovers_causes_no_error() {
    let fake = Fake::start(|seen, before| match (before, seen.method.as_str()) {
        (0, _) => Reply::status(500),
        (_, "PUT") => Reply::status(201),
        _ => Reply::body("whole"),
    })
    .await;
    let store = keyed(&fake.address(), &BlobSettings::default());
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "whole");
    assert_eq!(fake.count(), 2);
    store.write(&path("abc/a"), "x".into()).await.unwrap();
    let seen = fake.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[2].header("x-ms-blob-type"), "BlockBlob");
    assert_eq!(seen[2].header("content-length"), "1");
    assert!(seen[2].header("authorization").starts_with("SharedKey devstoreaccount1:"));
}

#[tokio::test]
async fn a_service_that_hangs_costs_no_more_than_the_time_limit() {
    let fake = Fake::start(|_, _| Reply::Never).await;
    let store = keyed(&fake.address(), &quick());
    let started = Instant::now();
    let error = read_error(&store, &fake.address()).await;
    let took = started.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(3)).contains(&took), "{took:?}");
    assert!(error.is_timeout() && error.to_string().contains("longer than 1 s"), "{error}");
    assert!(error.client_message().contains("too long"), "{}", error.client_message());
}

#[tokio::test]
async fn one_byte_a_second_costs_no_more_than_the_time_limit() {
    let address = fake::raw(|mut stream| async move {
        fake::send(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n").await;
        while fake::send(&mut stream, "x").await {
            sleep(Duration::from_secs(1)).await;
        }
    })
    .await;
    let store = keyed(&address, &BlobSettings { time_limit: Duration::from_secs(2), ..quick() });
    let started = Instant::now();
    let error = read_error(&store, &address).await;
    assert!(error.is_timeout(), "{error}");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_body_that_ends_early_is_read_again() {
    let address = fake::raw({
        let count = std::sync::atomic::AtomicUsize::new(0);
        move |mut stream| {
            let is_first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            async move {
                let body = if is_first { "wh" } else { "whole" };
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n";
                fake::send(&mut stream, &format!("{head}{body}")).await;
            }
        }
    })
    .await;
    let store = keyed(&address, &BlobSettings::default());
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "whole");
}

#[tokio::test]
async fn a_compressed_blob_is_read_as_it_was_stored() {
    let encoding = || vec![("content-encoding", "gzip".to_owned())];
    let fake = Fake::start(move |_, _| Reply::With(200, encoding(), "stored".to_owned())).await;
    let store = keyed(&fake.address(), &BlobSettings::default());
    assert_eq!(store.read(&path("abc/a")).await.unwrap().unwrap(), "stored");
}

#[tokio::test]
async fn retry_after_is_respected_up_to_the_limit() {
    let asking = |seconds: &'static str| {
        move |_: &fake::Seen, before: usize| match before {
            0 => Reply::With(503, vec![("retry-after", seconds.to_owned())], String::new()),
            _ => Reply::body("whole"),
        }
    };
    let fake = Fake::start(asking("2")).await;
    let started = Instant::now();
    let found = keyed(&fake.address(), &BlobSettings::default()).read(&path("abc/a")).await;
    assert_eq!(found.unwrap().unwrap(), "whole");
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());

    let fake = Fake::start(asking("60")).await;
    let started = Instant::now();
    read_error(&keyed(&fake.address(), &BlobSettings::default()), &fake.address()).await;
    assert_eq!(fake.count(), 1);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test]
async fn rejections_are_not_retried() {
    for (status, code, told, shown) in [
        (403, "AuthenticationFailed", "the account key or the SAS token", "refused access"),
        (403, "AuthorizationPermissionMismatch", "Storage Blob Data Contributor", "refused access"),
        (404, "", "check the endpoint", "refused the request"),
        (409, "BlobArchived", "409 (BlobArchived)", "refused the request"),
        (412, "LeaseIdMissing", "LeaseIdMissing", "refused the request"),
        (302, "", "redirects are not followed", "refused the request"),
        // A code is one word. Anything else is not repeated.
        (400, "in valid <b>", "answered 400", "refused the request"),
    ] {
        let fake = Fake::start(move |_, _| match status {
            302 => Reply::With(302, vec![("location", "/elsewhere".into())], String::new()),
            _ => Reply::code(status, code),
        })
        .await;
        let store = keyed(&fake.address(), &BlobSettings::default());
        let error = read_error(&store, &fake.address()).await;
        assert_eq!(fake.count(), 1, "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert!(error.client_message().contains(shown), "{}", error.client_message());
        assert!(!error.to_string().contains("<b>"), "{error}");
    }
}

#[tokio::test]
async fn a_sas_token_is_sent_and_never_shown() {
    let fake = Fake::start(|_, _| Reply::status(400)).await;
    let refusing = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for address in [fake.address(), format!("http://{refusing}")] {
        let text = format!("BlobEndpoint={address};SharedAccessSignature=?sv=1&sig=h%2Bush");
        let (nowhere, settings) = (std::path::Path::new("/nonexistent"), BlobSettings::default());
        let chosen = BlobStore::open(super::from_connection_string(&text), nowhere, &settings).await.unwrap();
        let error = chosen.store.write(&path("abc/a"), "x".into()).await.unwrap_err();
        assert_discreet(&error, &address);
        assert!(!error.is_timeout(), "{error}");
        for text in [error.to_string(), format!("{error:?}"), format!("{chosen:?}"), error.client_message()] {
            assert!(!text.contains("ush") && !text.contains("sig="), "{text}");
        }
    }
    let seen = fake.seen();
    assert_eq!(seen[0].target, "/abc/a?sv=1&sig=h%2Bush");
    assert_eq!(seen[0].header("authorization"), "");
}

/// The service may reject the request before it has read the upload, and close the connection.
#[tokio::test]
async fn an_early_response_to_a_large_upload_is_read() {
    let address = fake::raw(|mut stream| async move {
        let head = "HTTP/1.1 403 Forbidden\r\nx-ms-error-code: Early\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        fake::send(&mut stream, head).await;
    })
    .await;
    let store = keyed(&address, &BlobSettings::default());
    let error = store.write(&path("abc/a"), vec![0; 32 << 20].into()).await.unwrap_err();
    assert!(error.to_string().contains("403 (Early)"), "{error}");
}

#[tokio::test]
async fn a_missing_container_is_created_even_if_others_create_it_too() {
    // Put, create, put: another process created it, deleted it, and creates it again.
    let fake = Fake::start(|seen, before| match (before, seen.target.contains("restype=container")) {
        (0 | 2, false) => Reply::code(404, "ContainerNotFound"),
        (1, true) => Reply::code(409, "ContainerAlreadyExists"),
        (3, true) => Reply::code(409, "ContainerBeingDeleted"),
        (4, false) => Reply::code(404, "ContainerNotFound"),
        (5, true) => Reply::status(201),
        (6, false) => Reply::status(201),
        _ => Reply::status(400),
    })
    .await;
    let store = keyed(&fake.address(), &BlobSettings::default());
    store.write(&path("abc/a"), "x".into()).await.unwrap();
    assert_eq!(fake.count(), 7);

    let fake = Fake::start(|seen, _| match seen.target.contains("restype=container") {
        true => Reply::code(403, "AuthorizationFailure"),
        false => Reply::code(404, "ContainerNotFound"),
    })
    .await;
    let error = keyed(&fake.address(), &quick()).write(&path("abc/a"), "x".into()).await.unwrap_err();
    assert_discreet(&error, &fake.address());
    assert!(error.to_string().contains("creating it failed"), "{error}");
    assert_eq!(fake.count(), 2);
}

#[tokio::test]
async fn a_blob_above_the_limit_is_rejected_before_it_is_in_memory() {
    let settings = BlobSettings { size_limit: 1000, ..quick() };
    let fake = Fake::start(|seen, _| {
        Reply::body("x".repeat(if seen.target.contains("fits") { 1000 } else { 1001 }))
    })
    .await;
    let store = keyed(&fake.address(), &settings);
    assert_eq!(store.read(&path("abc/fits")).await.unwrap().unwrap().len(), 1000);
    assert!(read_error(&store, &fake.address()).await.to_string().contains("limit of 1000"));
    // By its length alone: the body is never sent.
    let address = fake::raw(|mut stream| async move {
        fake::send(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n").await;
        std::future::pending().await
    })
    .await;
    let error = read_error(&keyed(&address, &settings), &address).await;
    assert!(error.to_string().contains("limit of 1000"), "{error}");
    // Without a length, and without an end.
    let address = fake::raw(|mut stream| async move {
        fake::send(&mut stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while fake::send(&mut stream, "a\r\n0123456789\r\n").await {}
    })
    .await;
    let error = read_error(&keyed(&address, &settings), &address).await;
    assert!(error.to_string().contains("limit of 1000"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upload_is_sent_again_whole() {
    let azurite = Azurite::shared();
    let proxy = Proxy::start(azurite.port(), 4 << 20, 1).await;
    let address = format!("http://127.0.0.1:{}/{ACCOUNT}", proxy.port());
    let (direct, cut) = (azurite.store(), keyed(&address, &BlobSettings::default()));
    let path = path("cut-once/a");
    direct.write(&path, "old".into()).await.unwrap();
    let new = Bytes::from(vec![b'n'; 8 << 20]);
    cut.write(&path, new.clone()).await.unwrap();
    assert_eq!(proxy.cuts(), 1);
    assert!(direct.read(&path).await.unwrap().unwrap() == new);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_always_interrupted_changes_nothing() {
    let azurite = Azurite::shared();
    let proxy = Proxy::start(azurite.port(), 4 << 20, usize::MAX).await;
    let address = format!("http://127.0.0.1:{}/{ACCOUNT}", proxy.port());
    let (direct, cut) = (azurite.store(), keyed(&address, &BlobSettings::default()));
    let (old, new) = (path("cut-always/old"), path("cut-always/new"));
    direct.write(&old, "old".into()).await.unwrap();
    for path in [&old, &new] {
        let error = cut.write(path, vec![b'n'; 8 << 20].into()).await.unwrap_err();
        assert_discreet(&error, &address);
        assert!(error.to_string().contains("broke"), "{error}");
    }
    assert_eq!(proxy.cuts(), 6, "three tries each");
    assert_eq!(direct.read(&old).await.unwrap().unwrap(), "old");
    assert_eq!(direct.read(&new).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn azurite_rejects_a_wrong_key() {
    let wrong =
        format!("AccountName={ACCOUNT};AccountKey=c2VjcmV0;BlobEndpoint={}", Azurite::shared().address());
    let (nowhere, settings) = (std::path::Path::new("/nonexistent"), BlobSettings::default());
    let chosen = BlobStore::open(super::from_connection_string(&wrong), nowhere, &settings).await.unwrap();
    let error = chosen.store.write(&path("abc/a"), "x".into()).await.unwrap_err();
    assert!(error.to_string().contains("403"), "{error}");
    assert!(!format!("{error:?}").contains("c2VjcmV0"), "{error:?}");
}
