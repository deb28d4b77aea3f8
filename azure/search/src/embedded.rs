//! The embedded search service, in this very process: what is served when no other service is named.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindpost_azure_search_service::{SearchService, ServiceError, ServiceOptions, Upkeep, bind};
use bindpost_mcp_openapi::{Credential, Secret, Upstream, UpstreamError, UpstreamLimits};
use http::HeaderName;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::api::API_VERSION;
use crate::client::SearchClient;

/// How the embedded service is set up.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Where it keeps everything; made if it is not there. One process at a time.
    pub data: PathBuf,
    /// The loopback port that its REST interface is served on; 0 takes any free one.
    pub port: u16,
}

/// A search service that runs in this process. It stops when this is dropped; [`EmbeddedService::stop`] waits for the end.
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

/// Why the embedded service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error(
        "cannot listen on 127.0.0.1:{port}: {source}\n  fix: choose another port with --service-port N, or leave it out"
    )]
    Port { port: u16, source: io::Error },
    /// Says for itself what to do.
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("the embedded search service ended: {0}")]
    Ended(io::Error),
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}

impl EmbeddedService {
    /// Opens the folder and serves it on this machine's loopback address. Must be called within a tokio runtime.
    pub async fn start(options: EmbeddedOptions) -> Result<EmbeddedService, EmbeddedError> {
        let port = options.port;
        let taken = |source| EmbeddedError::Port { port, source };
        // Bound before anything is opened: a port that is taken shows at once.
        let listener = bind("127.0.0.1", port).await.map_err(taken)?;
        let url = format!("http://{}", listener.local_addr().map_err(taken)?);
        let data = options.data;
        let service = {
            let data = data.clone();
            // Opening reads vectors, and may make full-text indexes again.
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

    /// Calls it with an admin key.
    pub fn client(&self) -> &SearchClient {
        &self.client
    }

    /// The same, speaking another version of the interface.
    pub fn client_of_version(&self, api_version: &str) -> SearchClient {
        SearchClient::new(Arc::clone(self.client.upstream()), api_version)
    }

    /// Where its REST interface is: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder that everything is in.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The file with the keys that other clients need.
    pub fn keys_file(&self) -> PathBuf {
        self.data.join("keys.json")
    }

    /// Stops it, and waits until requests are answered and everything is on disk.
    pub async fn stop(mut self) -> Result<(), EmbeddedError> {
        let Some(ServingTask { stop, serving, upkeep }) = self.running.take() else { return Ok(()) };
        let _ = stop.send(());
        let ended = serving.await.map_err(io::Error::other);
        // It waits for a thread, and for indexers that run.
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

/// The header that keys of search services are sent in.
pub fn api_key_credential(key: &str) -> Credential {
    Credential::Header(HeaderName::from_static("api-key"), Secret::new(key))
}
