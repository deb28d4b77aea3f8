//! The whole service: indexes, definitions, indexers and knowledge bases with one HTTP endpoint.

mod backend;
mod indexes;
mod indexing;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bindpost_azure_search_model::ApiError;
use tokio::net::TcpListener;
use tokio::runtime::Handle;

use self::backend::SearchBackend;
use self::indexes::IndexRegistry;
use self::indexing::IndexerService;
use crate::budget::RequestLimits;
use crate::http::certificate::{self, CertificateError};
use crate::http::{HttpService, connection_limits, serve};
use crate::keys::{ApiKeys, KeysError};
use crate::resources::{ResourceRegistry, ResourceStoreError};
use crate::search::scope::SynonymMaps;

/// The configuration of a service.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The data folder. It is created if it does not exist. Only one service may use it at a time.
    pub data: PathBuf,
    /// Folders that data sources may use in addition to `DATA/blobs`.
    pub folders: Vec<PathBuf>,
    /// Whether requests need an API key. Without keys, unauthenticated clients may use all operations.
    pub keys: bool,
    /// The limits of requests.
    pub limits: RequestLimits,
}

impl ServiceOptions {
    /// Creates options with this data folder. The service reads only `DATA/blobs` and requires API keys.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), folders: Vec::new(), keys: true, limits: RequestLimits::default() }
    }
}

/// An error that prevents the start of a service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(
        "the folder {folder} cannot be used: {source}\n  fix: choose another one, or make this one writable"
    )]
    Folder { folder: PathBuf, source: io::Error },
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Definitions(#[from] ResourceStoreError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(
        "{}: {reason}\n  fix: restore the file from a backup, or rename it to let indexers index all blobs again",
        file.display()
    )]
    Indexers { file: PathBuf, reason: String },
    #[error("{0}")]
    Index(ApiError),
}

/// A search service, ready to serve.
pub struct SearchService {
    service: Arc<HttpService>,
    keys: Option<Arc<ApiKeys>>,
    engine: Arc<SearchBackend>,
    data: PathBuf,
}

/// The background maintenance of a service, on its own thread. Dropping this value stops the maintenance
/// and the running indexers. Documents that they have indexed stay.
#[must_use = "maintenance stops when this value is dropped"]
pub struct Upkeep {
    engine: Arc<SearchBackend>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The interval of maintenance, which commits pending documents and organizes vectors.
const UPKEEP: Duration = Duration::from_secs(1);

impl SearchService {
    /// Opens a service with the content of its data folder.
    pub fn open(options: ServiceOptions) -> Result<Self, ServiceError> {
        let data = options.data;
        let folder = |source| ServiceError::Folder { folder: data.clone(), source };
        std::fs::create_dir_all(&data).map_err(folder)?;
        let resources = Arc::new(ResourceRegistry::open(&data)?);
        let keys = if options.keys { Some(Arc::new(ApiKeys::open(&data)?)) } else { None };
        let synonyms = Arc::new(SynonymMaps::default());
        let indexes = IndexRegistry::open(&data.join("indexes"), &resources, Arc::clone(&synonyms));
        let indexes = Arc::new(indexes.map_err(ServiceError::Index)?);
        resources.set_index_hook(Arc::clone(&indexes) as _);
        let indexing =
            IndexerService::open(&data, &options.folders, Arc::clone(&resources), Arc::clone(&indexes))?;
        let engine = Arc::new(SearchBackend::new(Arc::clone(&resources), indexes, indexing, synonyms));
        engine.follow_definitions();
        let service = HttpService::new(resources, Arc::clone(&engine) as _, keys.clone());
        let service = Arc::new(service.with_limits(options.limits));
        Ok(Self { service, keys, engine, data })
    }

    /// Returns the API keys, if the service requires them.
    pub fn keys(&self) -> Option<&ApiKeys> {
        self.keys.as_deref()
    }

    /// Serves plain HTTP until `stop` completes.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        serve(listener, None, Arc::clone(&self.service), connection_limits(), stop).await
    }

    /// Serves TLS with a locally created certificate until `stop` completes.
    /// [`SearchService::certificates`] returns the `certificates`.
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        certificates: certificate::TlsCertificates,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        serve(listener, Some(certificates.acceptor), Arc::clone(&self.service), connection_limits(), stop)
            .await
    }

    /// Returns a certificate for the names of this machine, and the authority file that clients must trust.
    pub fn certificates(&self, names: &[String]) -> Result<certificate::TlsCertificates, ServiceError> {
        Ok(certificate::open(&self.data, names)?)
    }

    /// Starts a thread that commits documents, maintains indexes and runs scheduled indexers, until the
    /// returned value is dropped. Without it documents are still found, because a search commits
    /// pending documents.
    ///
    /// It must be called within a tokio runtime. Indexers use its threads for blocking work.
    pub fn start_upkeep(&self) -> io::Result<Upkeep> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let (engine, stopped) = (Arc::clone(&self.engine), Arc::new(AtomicBool::new(false)));
        let mut upkeep = Upkeep { engine: Arc::clone(&engine), stopped: Arc::clone(&stopped), thread: None };
        upkeep.thread = Some(thread::Builder::new().name("upkeep".to_owned()).spawn(move || {
            let _entered = runtime.enter();
            let stop = || stopped.load(Ordering::Relaxed);
            loop {
                thread::park_timeout(UPKEEP);
                if stop() {
                    return;
                }
                // The panic hook has already reported the panic, and the next round retries.
                let _ = catch_unwind(AssertUnwindSafe(|| engine.maintain(&stop)));
            }
        })?);
        Ok(upkeep)
    }

    /// Returns the data folder.
    pub fn data_folder(&self) -> &Path {
        &self.data
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
        // The indexers are stopped last, because the thread may have started one.
        self.engine.stop();
    }
}
