//! Blob storage for blob bindings. It reads and writes whole blobs.
//!
//! A [`StorageConnection`] names the store of a binding's `connection` setting. [`BlobStore::open`] opens it:
//! a storage account, Azurite, or the embedded store in the app's folder. All three behave the same way. Blob
//! names are flat and case-sensitive. A write creates the container and replaces the blob. Readers never see
//! a part of a blob.
//!
//! Nothing in here reads the environment. Settings come from a lookup function.

mod azure;
mod connection;
mod connection_string;
mod endpoint;
mod error;
pub(crate) mod file_name;
mod identity_settings;
mod local;
mod path;
mod shared_key;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;

pub use azure::{AzureStore, RESOURCE};
pub use bindpost_azure_hosting::identity::{AzureIdentity, IdentityError, TokenSource};
pub use bindpost_net_upstream::Secret;
pub use connection::{ConnectionSettingError, StorageAccount, StorageConnection, StorageCredential};
pub use endpoint::BlobEndpoint;
pub use error::BlobError;
pub use local::LocalStore;
pub use path::{BlobPath, BlobPathError};
pub use shared_key::SharedKey;

/// How long Azurite may take to accept a connection. It runs on this machine.
const PROBE: Duration = Duration::from_millis(300);

/// A store of blobs. Cheap to clone.
#[derive(Debug, Clone)]
pub enum BlobStore {
    /// The embedded store in a folder.
    Local(LocalStore),
    /// A storage account, or Azurite.
    Azure(AzureStore),
}

/// The settings of a store.
#[derive(Debug, Clone)]
pub struct BlobSettings {
    /// The time limit for one read or write, including retries and pauses.
    pub time_limit: Duration,
    /// The largest blob that is read, in bytes.
    pub size_limit: usize,
    /// The port of Azurite for `UseDevelopmentStorage=true`.
    pub azurite_port: u16,
}

impl Default for BlobSettings {
    fn default() -> Self {
        BlobSettings { time_limit: Duration::from_secs(30), size_limit: 256 << 20, azurite_port: 10_000 }
    }
}

/// An opened store, and the reason why this one was chosen.
#[derive(Debug, Clone)]
pub struct OpenedStore {
    /// The opened store.
    pub store: BlobStore,
    /// The kind of the store.
    pub place: StoreKind,
    /// One sentence for the operator. It names the folder or the service, but no secret.
    pub notice: String,
}

/// The kinds of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The embedded store in a folder.
    Embedded,
    /// The emulator Azurite.
    Azurite,
    /// An Azure storage account.
    Account,
}

impl BlobStore {
    /// Opens the store of a connection. `folder` is the folder of the embedded stores.
    ///
    /// No request is sent to a storage account yet: a wrong key fails at the first read or write.
    pub async fn open(
        connection: StorageConnection,
        folder: &Path,
        settings: &BlobSettings,
    ) -> Result<OpenedStore, BlobError> {
        let folder = &connection.embedded_folder(folder);
        match connection {
            StorageConnection::Account(account) => {
                let notice = format!("Blobs are stored in {}.", account.endpoint());
                let store = BlobStore::Azure(AzureStore::new(account, settings)?);
                Ok(OpenedStore { store, place: StoreKind::Account, notice })
            }
            StorageConnection::Development { setting, host } => {
                let endpoint = BlobEndpoint::azurite(host.as_ref(), settings.azurite_port);
                // A configured host is always used. Without one, Azurite may not be running.
                if host.is_none() && !accepts_connections(settings.azurite_port).await {
                    let reason = format!(
                        "{setting} is UseDevelopmentStorage=true, but Azurite does not run on port {}",
                        settings.azurite_port
                    );
                    return Self::embedded(folder, settings, &reason).await;
                }
                let notice = format!("{setting} is UseDevelopmentStorage=true: using Azurite at {endpoint}.");
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
        let notice = format!("{reason}: blobs are stored in {}.", store.folder().display());
        Ok(OpenedStore { store: BlobStore::Local(store), place: StoreKind::Embedded, notice })
    }

    /// Reads a whole blob. Returns `None` if the blob or its container does not exist.
    pub async fn read(&self, path: &BlobPath) -> Result<Option<Bytes>, BlobError> {
        match self {
            BlobStore::Local(store) => store.read(path).await,
            BlobStore::Azure(store) => store.read(path).await,
        }
    }

    /// Writes a whole blob and replaces an existing one. Creates the container if it does not exist.
    ///
    /// Readers see the old blob or the new one, never a part. This also holds after an error. If the write
    /// failed by timeout or by a broken connection, it is not known which of the two is stored.
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
