//! Replays the requests of the official clients against a whole service. Each request must succeed, or
//! fail as in the list of differences.
//!
//! The recordings were made with a server that accepted everything and stored nothing. The tests
//! therefore create the needed definitions before each request. The recordings are not part of the
//! repository. Without them, the tests are skipped with a message.

use std::fs;
use std::path::{Path, PathBuf};

use bindpost_azure_search_service::{SearchService, ServiceOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::server::PATIENCE;

/// Requests that do not succeed, and why.
const DIFFERENCES: [(&str, u16, &str); 4] = [
    ("GET /indexes('missing')", 404, "the index does not exist"),
    (
        "PUT /indexes('conflict') if it is \"0x1\"",
        412,
        "the index does not exist, so its ETag does not match",
    ),
    ("PUT /indexes('idx') if it is \"0x1\"", 412, "the recording server used this ETag for all definitions"),
    ("GET /indexes('idx')/docs('a%2Fb%27c')", 404, "a key with these characters is not valid"),
];

#[tokio::test(flavor = "multi_thread")]
async fn answers_what_python_11_6_0_sends() {
    replay("python-11.6.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_what_python_11_7_0b1_sends() {
    replay("python-11.7.0b1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_what_python_11_7_0b2_sends() {
    replay("python-11.7.0b2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_what_python_12_0_0_sends() {
    replay("python-12.0.0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_what_python_12_1_0b2_sends() {
    replay("python-12.1.0b2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_what_javascript_13_0_0_sends() {
    replay("js-13.0.0").await;
}

async fn replay(client: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let recording = root.join(format!("../shared/specs/azure-search/wire/{client}.jsonl"));
    let Ok(lines) = fs::read_to_string(&recording) else {
        eprintln!("skipped: the recording of {client} is not available next to the workspace");
        return;
    };
    let service = Whole::start(client).await;
    let mut wrong = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let request: Value = serde_json::from_str(line).unwrap();
        let text = |member: &str| request[member].as_str().unwrap().to_owned();
        let (method, target) = (text("method"), text("target"));
        let path = target.split('?').next().unwrap_or_default();
        for step in needed(&method, path) {
            service.prepare(step).await;
        }
        let headers = request["headers"].as_object().unwrap();
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()));
        // The test client sets these two headers itself.
        let headers: Vec<_> = headers
            .filter(|(name, _)| !["api-key", "content-length"].contains(&name.to_lowercase().as_str()))
            .collect();
        let (status, answer) = service.send(&method, &target, &headers, request.get("body")).await;
        let condition = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("if-match"));
        let condition = condition.map(|(_, tag)| format!(" if it is {tag}")).unwrap_or_default();
        let asked = format!("{method} {path}{condition}");
        let as_expected = match DIFFERENCES.iter().find(|(request, ..)| *request == asked) {
            Some((_, expected, _)) => status == *expected,
            None => (200..300).contains(&status),
        };
        if !as_expected {
            wrong.push(format!("line {}: {method} {target}: {status} {answer}", number + 1));
        }
    }
    assert!(wrong.is_empty(), "{client}:\n{}", wrong.join("\n"));
}

/// A request that creates or deletes a definition.
type Step = (&'static str, &'static str, Value);

const INDEX: &str = "/indexes('idx')";
const ALIAS: &str = "/aliases('al')";
const SOURCE: &str = "/knowledgesources('ks')";
const BASE: &str = "/knowledgebases('kb')";
const AGENT: &str = "/agents('ag')";

/// Returns the steps that create or delete definitions before a request.
fn needed(method: &str, path: &str) -> Vec<Step> {
    let without = |path: &'static str| ("DELETE", path, Value::Null);
    let index = || ("PUT", INDEX, searchable());
    let data_source = || {
        let container = json!({"name": "c"});
        let credentials = json!({"connectionString": "UseDevelopmentStorage=true"});
        let body =
            json!({"name": "ds", "type": "azureblob", "container": container, "credentials": credentials});
        ("PUT", "/datasources('ds')", body)
    };
    let indexer = || {
        let body = json!({"name": "ixr", "dataSourceName": "ds", "targetIndexName": "idx"});
        ("PUT", "/indexers('ixr')", body)
    };
    let source = || {
        let parameters = json!({"searchIndexName": "idx"});
        ("PUT", SOURCE, json!({"name": "ks", "kind": "searchIndex", "searchIndexParameters": parameters}))
    };
    let base = |path, name| ("PUT", path, json!({"name": name, "knowledgeSources": [{"name": "ks"}]}));
    match (method, path) {
        ("POST", "/indexes") => vec![without(ALIAS), without(INDEX)],
        ("DELETE", INDEX) => vec![index(), without(ALIAS)],
        ("POST", "/synonymmaps") => vec![without("/synonymmaps('sm')")],
        ("POST", "/datasources") => vec![without("/datasources('ds')")],
        ("PUT", "/indexers('ixr')") => vec![index(), data_source()],
        (_, path) if path.starts_with("/indexers('ixr')/") => vec![index(), data_source(), indexer()],
        ("POST", "/knowledgesources") => vec![index(), without(BASE), without(AGENT), without(SOURCE)],
        ("PUT", BASE | AGENT) => vec![index(), source()],
        (_, path) if path.starts_with(AGENT) => vec![index(), source(), base(AGENT, "ag")],
        (_, path) if path.starts_with(BASE) => vec![index(), source(), base(BASE, "kb")],
        (_, path) if path.starts_with(SOURCE) => vec![index(), source()],
        (_, path) if path.starts_with(INDEX) => {
            vec![
                ("PUT", "/synonymmaps('sm')", json!({"name": "sm", "format": "solr", "synonyms": "a,b"})),
                index(),
            ]
        }
        (_, ALIAS) => vec![index()],
        _ => Vec::new(),
    }
}

/// Returns the index of the recording, with the fields that its searches need.
fn searchable() -> Value {
    json!({
        "name": "idx",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true, "filterable": true, "sortable": true},
            {"name": "t", "type": "Edm.String", "analyzer": "en.lucene", "synonymMaps": ["sm"]},
            {"name": "cat", "type": "Edm.String", "facetable": true},
            {"name": "v", "type": "Collection(Edm.Single)", "dimensions": 3, "vectorSearchProfile": "p"},
        ],
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["t"]}],
        "vectorSearch": {
            "profiles": [{"name": "p", "algorithm": "h"}],
            "algorithms": [{"name": "h", "kind": "hnsw"}],
        },
    })
}

/// A whole service on its own port.
struct Whole {
    folder: PathBuf,
    base: String,
    key: String,
    client: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

impl Whole {
    async fn start(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recorded-{name}"));
        let _ = fs::remove_dir_all(&folder);
        let options = ServiceOptions::new(&folder);
        let service = SearchService::open(options).unwrap();
        let key = service.keys().unwrap().admin_keys()[0].clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            service.serve(listener, stopped).await
        });
        let client = bindpost_net_upstream::client_builder().no_proxy().build().unwrap();
        Self { folder, base, key, client, _stop: stop }
    }

    async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> (u16, String) {
        let mut request = self.client.request(method.parse().unwrap(), format!("{}{target}", self.base));
        request = request.header("api-key", &self.key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.filter(|body| !body.is_null()).map(Value::to_string).unwrap_or_default();
        let answer = tokio::time::timeout(PATIENCE, request.body(body).send()).await.unwrap().unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn prepare(&self, (method, path, body): Step) {
        let target = format!("{path}?api-version=2026-04-01");
        if method == "DELETE" || self.send("GET", &target, &[], None).await.0 == 404 {
            let (status, answer) = self.send(method, &target, &[], Some(&body)).await;
            let fine = (200..300).contains(&status) || method == "DELETE" && status == 404;
            assert!(fine, "preparation failed: {method} {path}: {status} {answer}");
        }
        if path.starts_with("/indexers") {
            self.wait_until_idle(path).await;
        }
    }

    /// Waits until an indexer is idle. A new indexer runs at once, and cannot be run or reset during that.
    async fn wait_until_idle(&self, indexer: &str) {
        loop {
            let target = format!("{indexer}/search.status?api-version=2026-04-01");
            let (_, status) = self.send("GET", &target, &[], None).await;
            let status: Value = serde_json::from_str(&status).unwrap();
            let last = &status["lastResult"]["status"];
            if last.is_string() && last != "inProgress" {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
