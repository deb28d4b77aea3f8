//! The store that a connection opens, and the notice for the operator.

use std::path::Path;

use bindpost_azure_functions::blobs::{BlobSettings, BlobStore, OpenedStore, StorageConnection, StoreKind};
use tokio::net::TcpListener;

use super::azurite::Azurite;
use super::fake::{Fake, Reply};
use super::{KEY, from_connection_string, path};
use crate::scratch::Scratch;

async fn open(connection: StorageConnection, folder: &Path, port: u16) -> OpenedStore {
    let settings = BlobSettings { azurite_port: port, ..BlobSettings::default() };
    let chosen = BlobStore::open(connection, folder, &settings).await.unwrap();
    assert!(!format!("{chosen:?}").contains(KEY) && !chosen.notice.contains(KEY));
    chosen
}

#[tokio::test(flavor = "multi_thread")]
async fn development_storage_is_azurite_where_it_runs() {
    let folder = Scratch::new();
    let connection = from_connection_string("UseDevelopmentStorage=true");
    let port = Azurite::shared().port();
    let chosen = open(connection.clone(), folder.path(), port).await;
    assert_eq!(chosen.place, StoreKind::Azurite);
    assert!(
        chosen.notice.contains("Azurite") && chosen.notice.contains(&port.to_string()),
        "{}",
        chosen.notice
    );
    chosen.store.write(&path("opened/a"), "x".into()).await.unwrap();
    assert_eq!(Azurite::shared().store().read(&path("opened/a")).await.unwrap().unwrap(), "x");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is stored twice");

    // A free port: bound and released.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let blobs = folder.path().join("deep/blobs");
    let chosen = open(connection, &blobs, free).await;
    assert_eq!(chosen.place, StoreKind::Embedded);
    assert!(chosen.notice.contains("AzureWebJobsStorage"), "{}", chosen.notice);
    assert!(chosen.notice.contains(blobs.to_str().unwrap()), "{}", chosen.notice);
    chosen.store.write(&path("opened/a"), "y".into()).await.unwrap();
    assert_eq!(std::fs::read(blobs.join("opened/a")).unwrap(), b"y");

    // A configured host is used, even if Azurite does not run there.
    let text = "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://127.0.0.1";
    assert_eq!(open(from_connection_string(text), folder.path(), free).await.place, StoreKind::Azurite);
}

#[tokio::test]
async fn nothing_set_opens_the_embedded_store() {
    let folder = Scratch::new();
    let connection = StorageConnection::resolve("Mine", &|_| None).unwrap();
    let chosen = open(connection, folder.path(), 1).await;
    assert_eq!(chosen.place, StoreKind::Embedded);
    assert!(chosen.notice.starts_with("Mine is not set"), "{}", chosen.notice);
}

#[tokio::test]
async fn opening_an_account_sends_no_request() {
    let fake = Fake::start(|_, _| Reply::status(500)).await;
    let text = format!("AccountName=acc;AccountKey={KEY};BlobEndpoint={}", fake.address());
    let chosen = open(from_connection_string(&text), Path::new("/nonexistent"), 1).await;
    assert_eq!(chosen.place, StoreKind::Account);
    assert!(chosen.notice.contains(&fake.address()), "{}", chosen.notice);
    assert_eq!(fake.count(), 0);
}

#[tokio::test]
async fn a_folder_that_cannot_be_created_is_an_error() {
    let folder = Scratch::new();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let connection = StorageConnection::resolve("", &|_| None).unwrap();
    let error = BlobStore::open(connection, &file.join("blobs"), &BlobSettings::default()).await.unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    assert!(!error.client_message().contains(file.to_str().unwrap()), "{}", error.client_message());
}
