//! Tests the blob stores: one contract for all of them, and the faults of each.

mod azurite;
mod contract;
mod fake;
mod faults;
mod hostile;
mod identity;
mod local;
mod opening;
mod proxy;

use std::time::Duration;

use bindpost_azure_functions::blobs::{
    AzureStore, BlobEndpoint, BlobPath, BlobSettings, BlobStore, SharedKey, StorageAccount,
    StorageConnection, StorageCredential,
};

/// The key of every emulator, and a name that no error may show.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

fn path(text: &str) -> BlobPath {
    BlobPath::parse(text).unwrap()
}

/// Opens an account at this address, with the emulator's key.
fn keyed(address: &str, settings: &BlobSettings) -> BlobStore {
    let key = SharedKey::new(ACCOUNT, KEY).unwrap();
    let account =
        StorageAccount::new(BlobEndpoint::parse(address).unwrap(), StorageCredential::SharedKey(key))
            .unwrap();
    BlobStore::Azure(AzureStore::new(account, settings).unwrap())
}

/// Resolves a connection string, without any other setting.
fn from_connection_string(text: &str) -> StorageConnection {
    let lookup = |name: &str| (name == "AzureWebJobsStorage").then(|| text.to_owned());
    StorageConnection::resolve("", &lookup).unwrap()
}

fn quick() -> BlobSettings {
    BlobSettings { time_limit: Duration::from_secs(1), ..BlobSettings::default() }
}
