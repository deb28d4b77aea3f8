//! A service on its own port, and a client for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_service::ApiKeys;
use bindpost_azure_search_service::internals::statistics::{self, IndexSize};
use bindpost_azure_search_service::internals::{
    Answering, Backend, HttpReply, HttpService, RequestContext, ResourceKind, ResourceRegistry, SearchCall,
    certificate, connection_limits, serve,
};
use bindpost_net_listener::ConnectionLimits;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// A timeout that is long enough on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const VERSION: &str = "api-version=2025-09-01";

/// The configuration of a test server.
pub(crate) struct Setup {
    pub(crate) tls: bool,
    pub(crate) keys: bool,
    pub(crate) limits: ConnectionLimits,
    pub(crate) most_body_bytes: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self { tls: false, keys: false, limits: connection_limits(), most_body_bytes: 1024 * 1024 }
    }
}

pub(crate) struct Server {
    folder: PathBuf,
    pub(crate) base: String,
    pub(crate) port: u16,
    pub(crate) resources: Arc<ResourceRegistry>,
    pub(crate) keys: Option<Arc<ApiKeys>>,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) client: reqwest::Client,
    /// Notified when a slow search starts.
    pub(crate) searching: Arc<Notify>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let folder = std::env::temp_dir().join(format!("bindpost-search-{:016x}", getrandom::u64().unwrap()));
        std::fs::create_dir(&folder).unwrap();
        let resources = Arc::new(ResourceRegistry::open(&folder).unwrap());
        let keys = setup.keys.then(|| Arc::new(ApiKeys::open(&folder).unwrap()));
        let certificates = setup.tls.then(|| certificate::open(&folder, &[]).unwrap());
        let searching = Arc::new(Notify::new());
        let backend = Arc::new(Echo { resources: resources.clone(), searching: searching.clone() });
        let service = HttpService::new(resources.clone(), backend, keys.clone());
        let service = Arc::new(service.with_max_body_bytes(setup.most_body_bytes));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let authority = certificates.as_ref().map(|certificates| certificates.authority.clone());
        let acceptor = certificates.map(|certificates| certificates.acceptor);
        let serving = tokio::spawn(serve(listener, acceptor, service, setup.limits, async {
            let _ = stopped.await;
        }));
        let trusted = authority.as_deref().map(trust).into_iter();
        let client =
            bindpost_net_upstream::client_builder().no_proxy().tls_certs_only(trusted).build().unwrap();
        let scheme = if setup.tls { "https" } else { "http" };
        let base = format!("{scheme}://localhost:{port}");
        Self { folder, base, port, resources, keys, authority, client, searching, stop: Some(stop), serving }
    }

    /// Sends a request with an api-version, and with the first admin key if there are keys.
    pub(crate) async fn send(&self, method: &str, target: &str, body: Option<Value>) -> Answer {
        self.send_with(method, target, &[], body).await
    }

    pub(crate) async fn send_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let separator = if target.contains('?') { '&' } else { '?' };
        let target = format!("{target}{separator}{VERSION}");
        let key = self.keys.as_ref().map(|keys| keys.admin_keys()[0].clone());
        let mut headers = headers.to_vec();
        if let Some(key) = &key {
            headers.push(("api-key", key));
        }
        self.raw(method, &target, &headers, body.map(|body| body.to_string()).unwrap_or_default()).await
    }

    /// Sends a request unchanged.
    pub(crate) async fn raw(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let method = method.parse().unwrap();
        let mut request = self.client.request(method, format!("{}{target}", self.base)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    /// Creates the index `hotels`.
    pub(crate) async fn with_index(self) -> Self {
        let made = self.send("POST", "/indexes", Some(index("hotels"))).await;
        assert_eq!(made.status, 201, "{made:?}");
        self
    }

    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn trust(authority: &Path) -> reqwest::Certificate {
    reqwest::Certificate::from_pem(&std::fs::read(authority).unwrap()).unwrap()
}

pub(crate) fn index(name: &str) -> Value {
    json!({"name": name, "fields": [{"name": "id", "type": "Edm.String", "key": true}]})
}

/// An engine that echoes its calls.
struct Echo {
    resources: Arc<ResourceRegistry>,
    searching: Arc<Notify>,
}

fn ready<'a, T: Send + 'a>(value: T) -> Answering<'a, T> {
    Box::pin(async move { Ok(value) })
}

fn echo<'a>(value: Value) -> Answering<'a, HttpReply> {
    Box::pin(async move { HttpReply::json(StatusCode::OK, &value) })
}

fn searched(what: &str, context: &RequestContext, call: &SearchCall) -> Value {
    json!({
        "@odata.context": context.documents_context(&call.index),
        "@odata.nextLink": context.next_link(&call.index, call.via, &call.parameters),
        "asked": what, "index": call.index, "parameters": call.parameters,
        "token": context.query_source_authorization,
    })
}

impl Backend for Echo {
    fn index_documents<'a>(
        &'a self,
        _: &'a RequestContext,
        index: &'a str,
        batch: Bytes,
    ) -> Answering<'a, HttpReply> {
        Box::pin(async move {
            let bytes = batch.len();
            HttpReply::json(StatusCode::MULTI_STATUS, &json!({"index": index, "bytes": bytes}))
        })
    }

    fn search<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply> {
        Box::pin(async move {
            match call.parameters.get("search").and_then(Value::as_str) {
                Some("panic") => panic!("the engine broke"),
                Some("slow") => {
                    self.searching.notify_one();
                    tokio::time::sleep(Duration::from_millis(700)).await;
                }
                Some("forever") => {
                    self.searching.notify_one();
                    std::future::pending().await
                }
                _ => {}
            }
            HttpReply::json(StatusCode::OK, &searched("search", context, &call))
        })
    }

    fn suggest<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply> {
        echo(searched("suggest", context, &call))
    }

    fn autocomplete<'a>(&'a self, context: &'a RequestContext, call: SearchCall) -> Answering<'a, HttpReply> {
        echo(searched("autocomplete", context, &call))
    }

    fn lookup<'a>(
        &'a self,
        _: &'a RequestContext,
        index: &'a str,
        key: &'a str,
        select: Option<&'a str>,
    ) -> Answering<'a, HttpReply> {
        if key == "missing" {
            return Box::pin(async { Err(ApiError::not_found("no such document")) });
        }
        echo(json!({"index": index, "key": key, "select": select}))
    }

    fn count<'a>(&'a self, _: &'a RequestContext, _: &'a str) -> Answering<'a, u64> {
        ready(42)
    }

    fn analyze<'a>(
        &'a self,
        _: &'a RequestContext,
        index: &'a str,
        request: Value,
    ) -> Answering<'a, HttpReply> {
        echo(json!({"index": index, "request": request}))
    }

    fn index_statistics<'a>(&'a self, _: &'a RequestContext, _: &'a str) -> Answering<'a, Value> {
        ready(statistics::index_statistics(IndexSize { documents: 3, storage_bytes: 4, vector_bytes: 5 }))
    }

    fn all_index_statistics<'a>(&'a self, _: &'a RequestContext) -> Answering<'a, Value> {
        let indexes = self.resources.list(ResourceKind::Index);
        ready(statistics::all_index_statistics(
            indexes.iter().map(|index| (index.name.as_str(), IndexSize::default())),
        ))
    }

    fn service_statistics<'a>(&'a self, _: &'a RequestContext) -> Answering<'a, Value> {
        ready(statistics::service_statistics(&self.resources, IndexSize::default()))
    }

    fn run_indexer<'a>(&'a self, _: &'a RequestContext, _: &'a str) -> Answering<'a, ()> {
        ready(())
    }

    fn reset_indexer<'a>(&'a self, _: &'a RequestContext, _: &'a str) -> Answering<'a, ()> {
        ready(())
    }

    fn reset_documents<'a>(
        &'a self,
        _: &'a RequestContext,
        _: &'a str,
        request: Value,
        overwrite: bool,
    ) -> Answering<'a, ()> {
        Box::pin(async move { Err(ApiError::invalid(format!("{request} {overwrite}"))) })
    }

    fn resync_indexer<'a>(&'a self, _: &'a str, _: Value) -> Answering<'a, ()> {
        ready(())
    }

    fn indexer_status<'a>(&'a self, _: &'a RequestContext, name: &'a str) -> Answering<'a, Value> {
        ready(json!({"name": name, "status": "running"}))
    }

    fn reset_skills<'a>(&'a self, _: &'a RequestContext, _: &'a str, _: Value) -> Answering<'a, ()> {
        ready(())
    }

    fn retrieve<'a>(
        &'a self,
        _: &'a RequestContext,
        base: &'a str,
        request: Value,
    ) -> Answering<'a, HttpReply> {
        echo(json!({"base": base, "request": request}))
    }

    fn knowledge_source_status<'a>(&'a self, name: &'a str) -> Answering<'a, Value> {
        ready(json!({"kind": "searchIndex", "name": name}))
    }
}
