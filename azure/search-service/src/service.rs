//! The whole service: indexes, definitions, indexers and knowledge bases behind one HTTP endpoint.

mod backend;
mod indexes;
mod indexing;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;

use self::backend::Engine;
use self::indexes::Indexes;
use self::indexing::Indexing;
use crate::ApiError;
use crate::http::certificate::{self, CertificateError};
use crate::http::{Limits, Service, serve};
use crate::keys::{Keys, KeysError};
use crate::resources::{Resources, StoreError};
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
}

/// Why a service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("the folder {folder} cannot be used: {source}")]
    Folder { folder: PathBuf, source: io::Error },
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Definitions(#[from] StoreError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("{0}")]
    Index(ApiError),
}

/// A search service, ready to serve.
pub struct SearchService {
    service: Arc<Service>,
    keys: Option<Arc<Keys>>,
    engine: Arc<Engine>,
    data: PathBuf,
    stopped: Arc<AtomicBool>,
}

/// How often pending documents are committed and vectors put in order.
const UPKEEP: Duration = Duration::from_secs(1);

impl SearchService {
    /// Opens a service, with everything that its folder holds.
    pub fn open(options: ServiceOptions) -> Result<Self, ServiceError> {
        let data = options.data;
        let folder = |source| ServiceError::Folder { folder: data.clone(), source };
        std::fs::create_dir_all(&data).map_err(folder)?;
        let resources = Arc::new(Resources::open(&data)?);
        let keys = if options.keys { Some(Arc::new(Keys::open(&data)?)) } else { None };
        let synonyms = Arc::new(SynonymMaps::default());
        let indexes = Indexes::open(&data.join("indexes"), &resources, Arc::clone(&synonyms));
        let indexes = Arc::new(indexes.map_err(ServiceError::Index)?);
        resources.set_index_hook(Arc::clone(&indexes) as _);
        let indexing = Indexing::open(&data, &options.folders, Arc::clone(&resources), Arc::clone(&indexes));
        let indexing = indexing.map_err(ServiceError::Index)?;
        let engine = Arc::new(Engine::new(Arc::clone(&resources), indexes, indexing, synonyms));
        engine.watch();
        let service = Arc::new(Service::new(resources, Arc::clone(&engine) as _, keys.clone()));
        Ok(Self { service, keys, engine, data, stopped: Arc::default() })
    }

    /// The keys that clients send, when they need one.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.as_deref()
    }

    /// Serves plain HTTP until `stop` is done.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        serve(listener, None, Arc::clone(&self.service), Limits::default(), stop).await
    }

    /// Serves TLS with a certificate of our own making until `stop` is done. `certificates`: from
    /// [`SearchService::certificates`].
    pub async fn serve_tls(
        &self,
        listener: TcpListener,
        certificates: certificate::Certificates,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        serve(listener, Some(certificates.acceptor), Arc::clone(&self.service), Limits::default(), stop).await
    }

    /// A certificate for this machine's names, and the file of the authority that clients have to trust.
    pub fn certificates(&self, names: &[String]) -> Result<certificate::Certificates, ServiceError> {
        Ok(certificate::open(&self.data, names)?)
    }

    /// Commits, tidies up and runs scheduled indexers, until [`SearchService::stop`]. Belongs on a thread of its own.
    pub fn maintain(&self) {
        let stop = || self.stopped.load(Ordering::Relaxed);
        while !stop() {
            std::thread::sleep(UPKEEP);
            self.engine.maintain(&stop);
        }
    }

    /// Ends upkeep and running indexers.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.engine.stop();
    }

    /// The folder that everything is in.
    pub fn data(&self) -> &Path {
        &self.data
    }
}
