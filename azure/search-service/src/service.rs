//! The whole service: indexes, definitions, indexers and knowledge bases behind one HTTP endpoint.

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

use tokio::net::TcpListener;
use tokio::runtime::Handle;

use self::backend::SearchBackend;
use self::indexes::IndexRegistry;
use self::indexing::IndexerService;
use crate::ApiError;
use crate::budget::RequestLimits;
use crate::http::certificate::{self, CertificateError};
use crate::http::{HttpService, connection_limits, serve};
use crate::keys::{ApiKeys, KeysError};
use crate::resources::{ResourceRegistry, ResourceStoreError};
use crate::search::scope::SynonymMaps;

/// How a service is set up.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// Where everything is kept. Made if it is not there; one service at a time.
    pub data: PathBuf,
    /// Folders that data sources may name besides `DATA/blobs`.
    pub folders: Vec<PathBuf>,
    /// Whether requests need a key. Without one, whoever reaches the address may do everything.
    pub keys: bool,
    /// What requests may take.
    pub limits: RequestLimits,
}

impl ServiceOptions {
    /// A service that keeps everything in this folder, reads `DATA/blobs` only, and asks for keys.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), folders: Vec::new(), keys: true, limits: RequestLimits::default() }
    }
}

/// Why a service cannot start.
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
        "{}: {reason}\n  fix: put a copy of the file back, or give it another name: indexers then read everything again",
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

/// The upkeep of a service, on a thread of its own. It ends when this is dropped, and running indexers end with it; what
/// they have indexed stays.
#[must_use = "upkeep ends when this is dropped"]
pub struct Upkeep {
    engine: Arc<SearchBackend>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How often pending documents are committed and vectors put in order.
const UPKEEP: Duration = Duration::from_secs(1);

impl SearchService {
    /// Opens a service, with everything that its folder holds.
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

    /// The keys that clients send, when they need one.
    pub fn keys(&self) -> Option<&ApiKeys> {
        self.keys.as_deref()
    }

    /// Serves plain HTTP until `stop` is done.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        serve(listener, None, Arc::clone(&self.service), connection_limits(), stop).await
    }

    /// Serves TLS with a certificate of our own making until `stop` is done. `certificates`: from
    /// [`SearchService::certificates`].
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        certificates: certificate::TlsCertificates,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        serve(listener, Some(certificates.acceptor), Arc::clone(&self.service), connection_limits(), stop)
            .await
    }

    /// A certificate for this machine's names, and the file of the authority that clients have to trust.
    pub fn certificates(&self, names: &[String]) -> Result<certificate::TlsCertificates, ServiceError> {
        Ok(certificate::open(&self.data, names)?)
    }

    /// Commits, tidies up and runs scheduled indexers, until what this returns is dropped. Without it documents are
    /// found all the same: whoever looks commits what is pending.
    ///
    /// Must be called within a tokio runtime, whose threads for blocking work the indexers use.
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
                // A panic concerns what it was about, and was told when it happened.
                let _ = catch_unwind(AssertUnwindSafe(|| engine.maintain(&stop)));
            }
        })?);
        Ok(upkeep)
    }

    /// The folder that everything is in.
    pub fn data_folder(&self) -> &Path {
        &self.data
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was told when it happened.
            let _ = thread.join();
        }
        // Only now, since until its end the thread may have started one.
        self.engine.stop();
    }
}
