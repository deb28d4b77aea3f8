//! An embedded search service on a port of its own, and what tools of the server work with.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bindpost_azure_search::{Client, Shared, own_entries};
use bindpost_azure_search_service::{SearchService, ServiceOptions, Upkeep};
use bindpost_mcp_openapi::{Credential, Cursors, Document, Secret, Upstream, UpstreamLimits};
use bindpost_mcp_server::Server;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub(crate) const VERSION: &str = "2025-08-01-preview";

/// A service that ends, with everything in it, when this is dropped.
pub(crate) struct Service {
    pub(crate) url: String,
    pub(crate) folder: PathBuf,
    pub(crate) admin_key: Option<String>,
    pub(crate) query_key: Option<String>,
    stop: Option<oneshot::Sender<()>>,
    _upkeep: Upkeep,
}

impl Service {
    /// Without keys.
    pub(crate) async fn start() -> Service {
        Service::with(false).await
    }

    pub(crate) async fn with(keys: bool) -> Service {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bindpost-search-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let options = ServiceOptions { data: folder.clone(), folders: Vec::new(), keys };
        let service = SearchService::open(options).unwrap();
        let admin_key = service.keys().and_then(|keys| keys.admin_keys().first()).cloned();
        let query_key = service.keys().and_then(|keys| keys.query_keys().first()).cloned();
        let upkeep = service.start_upkeep().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            service.serve(listener, until).await
        });
        Service { url, folder, admin_key, query_key, stop: Some(stop), _upkeep: upkeep }
    }

    /// What tools work with, over this service.
    pub(crate) fn shared(&self) -> Shared {
        shared(&self.url, self.admin_key.as_deref(), UpstreamLimits::default())
    }

    /// A server with the main entries, over this service.
    pub(crate) fn server(&self) -> Server {
        server(self.shared())
    }

    /// Puts a file where indexers read: `UseDevelopmentStorage=true`, in this container.
    pub(crate) fn put_file(&self, container: &str, name: &str, text: &str) {
        let folder = self.folder.join("blobs").join(container);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What tools work with, over a service at this address.
pub(crate) fn shared(url: &str, key: Option<&str>, limits: UpstreamLimits) -> Shared {
    let header = http::HeaderName::from_static("api-key");
    let credential = key.map_or(Credential::None, |key| Credential::Header(header, Secret::new(key)));
    let upstream = Arc::new(Upstream::new(url, credential, limits).unwrap());
    Shared {
        client: Client::new(upstream, VERSION),
        document: Arc::new(Document::default()),
        cursors: Cursors::new().unwrap(),
        read_only: false,
        confirms: true,
        answer_bytes: 64 * 1024,
    }
}

/// A server with the main entries.
pub(crate) fn server(shared: Shared) -> Server {
    Server::builder("search", "1").add(own_entries(&Arc::new(shared))).build().unwrap()
}

/// An index of hotels with a suggester and a vector field.
pub(crate) fn hotels(name: &str) -> Value {
    json!({
        "name": name,
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "title", "type": "Edm.String", "analyzer": "en.lucene"},
            {"name": "category", "type": "Edm.String", "filterable": true, "facetable": true},
            {"name": "rating", "type": "Edm.Double", "filterable": true, "sortable": true},
            {"name": "embedding", "type": "Collection(Edm.Single)", "dimensions": 3, "vectorSearchProfile": "p", "retrievable": true, "searchable": true},
        ],
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["title"]}],
        "vectorSearch": {"algorithms": [{"name": "a", "kind": "hnsw"}], "profiles": [{"name": "p", "algorithm": "a"}]},
    })
}

/// So many hotels.
pub(crate) fn some_hotels(count: usize) -> Vec<Value> {
    let one = |at: usize| {
        let category = if at.is_multiple_of(2) { "Luxury" } else { "Budget" };
        json!({"id": format!("h{at:03}"), "title": format!("Motel number {at}"), "category": category,
            "rating": at as f64 / 10.0, "embedding": [at as f64, 1.0, 0.5]})
    };
    (0..count).map(one).collect()
}
