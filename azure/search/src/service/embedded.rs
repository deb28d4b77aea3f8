//! The embedded search service, which runs in this process and is the default service.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindpost_azure_search_service::{SearchService, ServiceError, ServiceOptions, Upkeep, bind};
use bindpost_net_upstream::{Credential, Secret, Upstream, UpstreamError, UpstreamLimits};
use http::HeaderName;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::service::api::API_VERSION;
use crate::service::client::SearchClient;

/// Settings of the embedded service.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The data folder. It is created if necessary, and only one process can use it at a time.
    pub data: PathBuf,
    /// The loopback port of the REST API; 0 chooses a free port.
    pub port: u16,
}

/// A search service that runs in this process. Dropping it stops the service. [`EmbeddedService::stop`]
/// also waits for the end.
#[derive(Debug)]
pub struct EmbeddedService {
    client: SearchClient,
    url: String,
    data: PathBuf,
    running: Option<ServingTask>,
}

struct ServingTask {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<()>>,
    upkeep: Upkeep,
}

impl std::fmt::Debug for ServingTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Running")
    }
}

/// An error of the embedded service.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error("{source}\n  fix: choose another port with --service-port N, or remove the flag")]
    Port { source: io::Error },
    /// The message contains the fix.
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("the embedded search service ended: {0}")]
    Ended(io::Error),
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

impl EmbeddedService {
    /// Opens the folder and serves it on the loopback address. Must be called within a tokio runtime.
    pub async fn start(options: EmbeddedOptions) -> Result<EmbeddedService, EmbeddedError> {
        let taken = |source| EmbeddedError::Port { source };
        // The port is bound first, so that a port in use fails at once.
        let listener = bind(("127.0.0.1", options.port)).await.map_err(taken)?;
        let url = format!("http://{}", listener.local_addr().map_err(taken)?);
        let data = options.data;
        let service = {
            let data = data.clone();
            // Opening reads vectors and may rebuild full-text indexes.
            let opened = tokio::task::spawn_blocking(move || SearchService::open(ServiceOptions::new(data)));
            opened.await.map_err(|error| EmbeddedError::Ended(io::Error::other(error)))??
        };
        let key = service.keys().and_then(|keys| keys.admin_keys().first()).cloned().unwrap_or_default();
        let upstream = Upstream::new(&url, api_key_credential(&key), UpstreamLimits::default())?;
        let upkeep = service.start_upkeep().map_err(EmbeddedError::Ended)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            service.serve(listener, until).await
        });
        Ok(EmbeddedService {
            client: SearchClient::new(Arc::new(upstream), API_VERSION),
            url,
            data,
            running: Some(ServingTask { stop, serving, upkeep }),
        })
    }

    /// Returns a client with an admin key.
    pub fn client(&self) -> &SearchClient {
        &self.client
    }

    /// Returns a client with an admin key and another API version.
    pub fn client_of_version(&self, api_version: &str) -> SearchClient {
        SearchClient::new(Arc::clone(self.client.upstream()), api_version)
    }

    /// Returns the URL of the REST API: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the path of the file with the keys for other clients.
    pub fn keys_file(&self) -> PathBuf {
        self.data.join("keys.json")
    }

    /// Stops the service. Waits until all requests are answered and all data is on disk.
    pub async fn stop(mut self) -> Result<(), EmbeddedError> {
        let Some(ServingTask { stop, serving, upkeep }) = self.running.take() else { return Ok(()) };
        let _ = stop.send(());
        let ended = serving.await.map_err(io::Error::other);
        // It waits for a thread and for running indexers.
        let kept = tokio::task::spawn_blocking(move || drop(upkeep)).await.map_err(io::Error::other);
        ended.and_then(|ended| ended).and(kept).map_err(EmbeddedError::Ended)
    }
}

impl Drop for EmbeddedService {
    fn drop(&mut self) {
        if let Some(ServingTask { stop, serving, .. }) = self.running.take() {
            let _ = stop.send(());
            serving.abort();
        }
    }
}

/// Returns the credential that sends this key in the `api-key` header.
pub fn api_key_credential(key: &str) -> Credential {
    Credential::Header(HeaderName::from_static("api-key"), Secret::new(key))
}
