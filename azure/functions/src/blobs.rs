//! Blob storage, as blob bindings need it: read a whole blob, write a whole blob.
//!
//! A [`StorageConnection`] says which store a binding's `connection` setting leads to; [`BlobStore::open`] turns
//! it into a [`BlobStore`]: a storage account, Azurite, or the embedded store in the app's folder. All
//! three behave alike: blob names are flat and case-sensitive, a write makes its container and replaces
//! the blob, and nobody ever sees half a blob.
//!
//! Nothing in here reads the environment; settings come through a lookup function.

mod azure;
mod connection;
mod connection_string;
mod endpoint;
mod error;
mod file_name;
mod identity_settings;
mod local;
mod path;
mod retry;
mod shared_key;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;

pub use azure::{AzureStore, RESOURCE};
pub use bindpost_azure_hosting::identity::{AzureIdentity, IdentityError, Secret, TokenSource};
pub use connection::{ConnectionSettingError, StorageAccount, StorageConnection, StorageCredential};
pub use endpoint::BlobEndpoint;
pub use error::BlobError;
pub use local::LocalStore;
pub use path::{BlobPath, BlobPathError};
pub use shared_key::SharedKey;

/// How long Azurite may take to accept a connection. It runs on this machine, or it does not run.
const PROBE: Duration = Duration::from_millis(300);

/// A place where blobs are kept. Cheap to clone.
#[derive(Debug, Clone)]
pub enum BlobStore {
    /// The embedded store: a folder.
    Local(LocalStore),
    /// A storage account, or Azurite.
    Azure(AzureStore),
}

/// What the operator may set about stores.
#[derive(Debug, Clone)]
pub struct BlobSettings {
    /// How long a service may take for one read or write, tries and pauses included.
    pub time_limit: Duration,
    /// The largest blob that is read, in bytes.
    pub size_limit: usize,
    /// Where Azurite listens for `UseDevelopmentStorage=true`.
    pub azurite_port: u16,
}

impl Default for BlobSettings {
    fn default() -> Self {
        BlobSettings { time_limit: Duration::from_secs(30), size_limit: 256 << 20, azurite_port: 10_000 }
    }
}

/// A store that was opened, and why it is that one.
#[derive(Debug, Clone)]
pub struct OpenedStore {
    /// The store itself.
    pub store: BlobStore,
    /// Which kind it is.
    pub place: StoreKind,
    /// One sentence for the operator. Names the folder or the service, no secret.
    pub notice: String,
}

/// The kinds of place a connection can lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The embedded store.
    Embedded,
    /// The emulator.
    Azurite,
    /// A storage account.
    Account,
}

impl BlobStore {
    /// Opens the store a connection leads to; `folder` is where the embedded one lives.
    ///
    /// A storage account is not asked anything yet: a wrong key shows at the first read or write.
    pub async fn open(
        connection: StorageConnection,
        folder: &Path,
        settings: &BlobSettings,
    ) -> Result<OpenedStore, BlobError> {
        match connection {
            StorageConnection::Account(account) => {
                let notice = format!("Blobs are kept in {}.", account.endpoint());
                let store = BlobStore::Azure(AzureStore::new(account, settings)?);
                Ok(OpenedStore { store, place: StoreKind::Account, notice })
            }
            StorageConnection::Development { setting, host } => {
                let endpoint = BlobEndpoint::azurite(host.as_ref(), settings.azurite_port);
                // A host that somebody wrote down is meant; without one, Azurite is a guess.
                if host.is_none() && !accepts_connections(settings.azurite_port).await {
                    let reason = format!(
                        "{setting} says UseDevelopmentStorage=true and nothing answers on port {}",
                        settings.azurite_port
                    );
                    return Self::embedded(folder, settings, &reason).await;
                }
                let notice =
                    format!("{setting} says UseDevelopmentStorage=true: using Azurite at {endpoint}.");
                let account = StorageAccount::azurite(endpoint);
                let store = BlobStore::Azure(AzureStore::new(account, settings)?);
                Ok(OpenedStore { store, place: StoreKind::Azurite, notice })
            }
            StorageConnection::Embedded { setting } => {
                Self::embedded(folder, settings, &format!("{setting} is not set")).await
            }
        }
    }

    async fn embedded(
        folder: &Path,
        settings: &BlobSettings,
        reason: &str,
    ) -> Result<OpenedStore, BlobError> {
        let store = LocalStore::open(folder, settings).await?;
        let notice = format!("{reason}: blobs are kept in {}.", store.folder().display());
        Ok(OpenedStore { store: BlobStore::Local(store), place: StoreKind::Embedded, notice })
    }

    /// Reads a whole blob. `None`: there is no such blob, or no such container.
    pub async fn read(&self, path: &BlobPath) -> Result<Option<Bytes>, BlobError> {
        match self {
            BlobStore::Local(store) => store.read(path).await,
            BlobStore::Azure(store) => store.read(path).await,
        }
    }

    /// Writes a whole blob, over the one that is there. Makes the container if it is missing.
    ///
    /// Readers see the old blob or the new one, never a part. After an error it is one of the two as well;
    /// which one is not known when the time limit or a broken connection ended the write.
    pub async fn write(&self, path: &BlobPath, data: Bytes) -> Result<(), BlobError> {
        match self {
            BlobStore::Local(store) => store.write(path, data).await,
            BlobStore::Azure(store) => store.write(path, data).await,
        }
    }
}

async fn accepts_connections(port: u16) -> bool {
    matches!(tokio::time::timeout(PROBE, TcpStream::connect(("127.0.0.1", port))).await, Ok(Ok(_)))
}
