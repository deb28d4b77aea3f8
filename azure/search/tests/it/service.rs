//! The search services of the tests: the embedded service on its own port, or a scripted one.

use std::path::Path;
use std::sync::Arc;

use bindpost_azure_search::{SearchClient, SearchServerState, api_key_credential, own_entries};
use bindpost_azure_search_service::{SearchService, ServiceOptions, Upkeep};
use bindpost_mcp_openapi::{Credential, CursorSigner, Document, Upstream, UpstreamLimits};
use bindpost_mcp_server::{Server, TaskLimits};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::scratch::Scratch;
use crate::upstream_service;

pub(crate) const VERSION: &str = "2025-08-01-preview";

/// A search service. Dropping it stops the service and deletes its data.
pub(crate) struct Service {
    pub(crate) url: String,
    pub(crate) admin_key: Option<String>,
    pub(crate) query_key: Option<String>,
    folder: Scratch,
    http: reqwest::Client,
    _upkeep: Upkeep,
    /// Dropping it stops the server.
    _stop: oneshot::Sender<()>,
}

impl Service {
    /// Starts a service without keys.
    pub(crate) async fn start() -> Service {
        Service::with(false).await
    }

    pub(crate) async fn with(keys: bool) -> Service {
        let folder = Scratch::new();
        let options = ServiceOptions { keys, ..ServiceOptions::new(folder.path()) };
        let service = SearchService::open(options).unwrap();
        let admin_key = service.keys().and_then(|keys| keys.admin_keys().first()).cloned();
        let query_key = service.keys().and_then(|keys| keys.query_keys().first()).cloned();
        let upkeep = service.start_upkeep().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            service.serve(listener, until).await
        });
        let http = bindpost_net_upstream::client_builder().no_proxy().build().unwrap();
        Service { url, admin_key, query_key, folder, http, _upkeep: upkeep, _stop: stop }
    }

    /// Returns the data folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the state of the tools for this service.
    pub(crate) fn shared(&self) -> SearchServerState {
        shared(&self.url, self.admin_key.as_deref(), UpstreamLimits::default())
    }

    /// Returns a server with the main entries for this service.
    pub(crate) fn server(&self) -> Server {
        server(self.shared())
    }

    /// Writes a file that indexers read with `UseDevelopmentStorage=true`, in this container.
    pub(crate) fn put_file(&self, container: &str, name: &str, text: &str) {
        let folder = self.folder.path().join("blobs").join(container);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Sends a request to the service itself.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mark = if path.contains('?') { '&' } else { '?' };
        let url = format!("{}/{path}{mark}api-version={VERSION}", self.url);
        let mut request =
            self.http.request(method.parse().unwrap(), url).header("content-type", "application/json");
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or(Value::Null))
    }

    /// Sends a request that must succeed.
    pub(crate) async fn done(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }

    /// Creates an indexer from a folder of JSON Lines to an index with `id` and `n`.
    pub(crate) async fn with_indexer(&self, more: Value) {
        let index = json!({"name": "rows", "fields": [
            {"name": "id", "type": "Edm.String", "key": true}, {"name": "n", "type": "Edm.Int32"}]});
        self.done("POST", "indexes", index).await;
        let source = json!({"name": "files", "type": "azureblob", "container": {"name": "rows"},
            "credentials": {"connectionString": "UseDevelopmentStorage=true"}});
        self.done("POST", "datasources", source).await;
        let mut indexer = json!({"name": "loader", "dataSourceName": "files", "targetIndexName": "rows",
            "disabled": true, "parameters": {"configuration": {"parsingMode": "jsonLines"}}});
        for (name, value) in more.as_object().unwrap() {
            indexer[name] = value.clone();
        }
        self.done("POST", "indexers", indexer.clone()).await;
        // The indexer is disabled, so that it does not run at its creation.
        indexer["disabled"] = false.into();
        self.done("PUT", "indexers('loader')", indexer).await;
    }
}

/// A service that answers by a script and records its requests.
pub(crate) struct Scripted(upstream_service::Service);

impl Scripted {
    /// Starts the service. The script gets the method, the path without its query, and the body.
    pub(crate) async fn start(
        script: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static,
    ) -> Scripted {
        let answers = move |seen: &upstream_service::Seen, _| {
            let path = seen.target.split('?').next().unwrap();
            let body = serde_json::from_slice(&seen.body).unwrap_or(Value::Null);
            let (status, answer) = script(seen.method.as_str(), path, body);
            let text = if answer.is_null() { String::new() } else { answer.to_string() };
            upstream_service::answer(status, &[("content-type", "application/json")], text)
        };
        Scripted(upstream_service::Service::start(answers).await)
    }

    pub(crate) fn url(&self) -> String {
        self.0.address()
    }

    /// Returns a server with the main entries for this service.
    pub(crate) fn server(&self) -> Server {
        server(shared(&self.0.address(), None, UpstreamLimits::default()))
    }

    pub(crate) fn asked(&self, what: &str) -> usize {
        let asked = |seen: &upstream_service::Seen| format!("{} {}", seen.method, seen.target);
        self.0.seen().iter().filter(|seen| asked(seen).contains(what)).count()
    }
}

/// Returns the state of the tools for a service at this URL.
pub(crate) fn shared(url: &str, key: Option<&str>, limits: UpstreamLimits) -> SearchServerState {
    let upstream =
        Arc::new(Upstream::new(url, key.map_or(Credential::None, api_key_credential), limits).unwrap());
    SearchServerState {
        client: SearchClient::new(upstream, VERSION),
        document: Arc::new(Document::default()),
        cursors: CursorSigner::new().unwrap(),
        read_only: false,
        confirms: true,
        answer_bytes: 64 * 1024,
    }
}

/// Returns a server with the main entries.
pub(crate) fn server(shared: SearchServerState) -> Server {
    let server = Server::builder("search", "1").add(own_entries(&Arc::new(shared)));
    server.tasks(TaskLimits::default()).build().unwrap()
}

/// Returns an index of hotels with a suggester and a vector field.
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

/// Returns this many hotels.
pub(crate) fn some_hotels(count: usize) -> Vec<Value> {
    let one = |at: usize| {
        let category = if at.is_multiple_of(2) { "Luxury" } else { "Budget" };
        json!({"id": format!("h{at:03}"), "title": format!("Motel number {at}"), "category": category,
            "rating": at as f64 / 10.0, "embedding": [at as f64, 1.0, 0.5]})
    };
    (0..count).map(one).collect()
}
