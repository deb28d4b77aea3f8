//! The embedded service or a scripted one behind, an MCP server with some entries in the middle, a client in front.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_azure_search::{Client as Rest, Shared};
use bindpost_azure_search_service::{SearchService, ServiceOptions, Upkeep};
use bindpost_mcp_openapi::{Credential, Cursors, Document, Upstream, UpstreamLimits};
use bindpost_mcp_server::testing::Client;
use bindpost_mcp_server::{Server, TaskLimits};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The embedded service on a port of its own.
pub(crate) struct Embedded {
    pub(crate) base: String,
    folder: PathBuf,
    http: reqwest::Client,
    serving: JoinHandle<()>,
    _upkeep: Upkeep,
}

impl Embedded {
    pub(crate) async fn start() -> Embedded {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bindpost-idx-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let options = ServiceOptions { keys: false, ..ServiceOptions::new(&folder) };
        let service = SearchService::open(options).unwrap();
        let upkeep = service.start_upkeep().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving =
            tokio::spawn(async move { service.serve(listener, std::future::pending()).await.unwrap() });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Embedded { base, folder, http, serving, _upkeep: upkeep }
    }

    /// Writes a file that indexers read.
    pub(crate) fn blob(&self, container: &str, name: &str, text: &str) {
        let folder: &Path = &self.folder.join("blobs").join(container);
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Asks the service itself.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mark = if path.contains('?') { '&' } else { '?' };
        let url = format!("{}/{path}{mark}api-version=2025-08-01-preview", self.base);
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

    /// The same, and it must go well.
    pub(crate) async fn done(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }

    /// An indexer from a folder of JSON Lines to an index with `id` and `n`.
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
        // It is created disabled so that it does not run by itself.
        indexer["disabled"] = false.into();
        self.done("PUT", "indexers('loader')", indexer).await;
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.serving.abort();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

type Script = dyn Fn(&str, &str, Value) -> (u16, Value) + Send + Sync;

/// A service that answers as a script says; remembers what it was asked.
pub(crate) struct Scripted {
    pub(crate) base: String,
    asked: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Scripted {
    /// The script gets the method, the path without its query, and the body.
    pub(crate) async fn start(
        script: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static,
    ) -> Scripted {
        let script: Arc<Script> = Arc::new(script);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let log = asked.clone();
        let serving = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (script, log) = (script.clone(), log.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (script, log) = (script.clone(), log.clone());
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await?.to_bytes();
                        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                        let (method, path) = (head.method.as_str(), head.uri.path());
                        log.lock().unwrap().push(format!("{method} {path}"));
                        let (status, answer) = script(method, path, body);
                        let text = if answer.is_null() { String::new() } else { answer.to_string() };
                        let response =
                            Response::builder().status(status).header("content-type", "application/json");
                        Ok::<_, hyper::Error>(response.body(Full::new(Bytes::from(text))).unwrap())
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service),
                );
            }
        });
        Scripted { base, asked, serving }
    }

    pub(crate) fn asked(&self, what: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.contains(what)).count()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// With a session, 2025-11-25.
    Session,
    /// Without one, 2026-07-28.
    Alone,
}

pub(crate) const BOTH: [Era; 2] = [Era::Session, Era::Alone];

/// An MCP server over a service, with all entries of our own.
pub(crate) fn server(base: &str, read_only: bool) -> Server {
    let upstream = Upstream::new(base, Credential::None, UpstreamLimits::default()).unwrap();
    let shared = Arc::new(Shared {
        client: Rest::new(Arc::new(upstream), "2025-08-01-preview"),
        document: Arc::new(Document::default()),
        cursors: Cursors::new().unwrap(),
        read_only,
        confirms: true,
        answer_bytes: 64 << 10,
    });
    let entries = bindpost_azure_search::own_entries(&shared);
    Server::builder("search", "1").add(entries).tasks(TaskLimits::default()).build().unwrap()
}

/// A client of such a server.
pub(crate) struct Mcp {
    pub(crate) client: Client,
    era: Era,
    capabilities: Value,
    /// What the user says when asked.
    agrees: bool,
    last: u64,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) result: Value,
    pub(crate) progress: Vec<Value>,
    pub(crate) questions: Vec<String>,
}

impl Called {
    pub(crate) fn json(&self) -> Value {
        assert_ne!(self.result["isError"], true, "{self:?}");
        let text: Value = serde_json::from_str(self.text()).unwrap();
        assert_eq!(text, self.result["structuredContent"], "the text says the same");
        text
    }

    /// What a failure tells.
    pub(crate) fn failure(&self) -> Value {
        assert_eq!(self.result["isError"], true, "{self:?}");
        assert!(self.result.get("structuredContent").is_none());
        serde_json::from_str(self.text()).unwrap_or_else(|_| json!({"text": self.text()}))
    }

    pub(crate) fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap_or_default()
    }

    pub(crate) fn steps(&self) -> Vec<f64> {
        self.progress.iter().map(|step| step["progress"].as_f64().unwrap()).collect()
    }
}

impl Mcp {
    pub(crate) async fn connect(base: &str, era: Era) -> Mcp {
        Mcp::to(&server(base, false), era, json!({"elicitation": {}})).await
    }

    pub(crate) async fn to(server: &Server, era: Era, capabilities: Value) -> Mcp {
        let mut client = Client::connect(server);
        if era == Era::Session {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"}});
            client.request("initialize", hello).await.unwrap();
            client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        }
        Mcp { client, era, capabilities, agrees: true, last: 0 }
    }

    pub(crate) fn refuses(mut self) -> Mcp {
        self.agrees = false;
        self
    }

    fn params(&self, mut params: Value) -> Value {
        let mut meta = json!({"progressToken": "p"});
        if self.era == Era::Alone {
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        params["_meta"] = meta;
        params
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let params = self.params(params);
        self.client.request(method, params).await.unwrap()
    }

    /// Sends a call without waiting; its id comes back.
    pub(crate) async fn begin(&mut self, tool: &str, arguments: &Value, more: Value) -> u64 {
        self.last += 1;
        let mut params = json!({"name": tool, "arguments": arguments});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let params = self.params(params);
        let message = json!({"jsonrpc": "2.0", "id": self.last, "method": "tools/call", "params": params});
        self.client.send(message.to_string()).await;
        self.last
    }

    pub(crate) async fn next(&mut self) -> Value {
        let message = tokio::time::timeout(PATIENCE, self.client.next()).await.unwrap().unwrap();
        serde_json::from_slice(&message).unwrap()
    }

    /// Calls a tool and does what every client does meanwhile: notes progress, answers questions.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Called {
        let mut id = self.begin(tool, &arguments, json!({})).await;
        let mut called = Called { result: Value::Null, progress: Vec::new(), questions: Vec::new() };
        let answer = json!({"action": "accept", "content": {"confirm": self.agrees}});
        loop {
            let message = self.next().await;
            if message["method"] == "notifications/progress" {
                called.progress.push(message["params"].clone());
            } else if message["method"] == "elicitation/create" {
                called.questions.push(message["params"]["message"].as_str().unwrap().to_owned());
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
                self.client.send(reply.to_string()).await;
            } else if message["id"] == id && message["result"]["resultType"] == "input_required" {
                let mut answers = json!({});
                for (key, question) in message["result"]["inputRequests"].as_object().unwrap() {
                    called.questions.push(question["params"]["message"].as_str().unwrap().to_owned());
                    answers[key] = answer.clone();
                }
                let state = &message["result"]["requestState"];
                id = self
                    .begin(tool, &arguments, json!({"requestState": state, "inputResponses": answers}))
                    .await;
            } else if message["id"] == id {
                assert!(message.get("error").is_none(), "{message}");
                called.result = message["result"].clone();
                return called;
            }
        }
    }
}
