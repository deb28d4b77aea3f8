//! Tests of files that were damaged while the service was stopped. A damaged file affects only its
//! own content.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bindpost_azure_search_service::{SearchService, ServiceOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::server::VERSION;

/// The folder of a service, which is deleted when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("bindpost-damage-{:016x}", getrandom::u64().unwrap());
        // The tests start the service hundreds of times and wait for the disk each time. A memory file
        // system is faster.
        let memory = PathBuf::from("/dev/shm");
        let folder = memory.join(&name);
        let folder = match fs::create_dir(&folder) {
            Ok(()) => folder,
            Err(_) => {
                let folder = std::env::temp_dir().join(name);
                fs::create_dir(&folder).unwrap();
                folder
            }
        };
        Self(folder)
    }

    fn copy(&self) -> Self {
        let copy = Self::new();
        copy_all(&self.0, &copy.0);
        copy
    }

    /// Returns whether a renamed file exists whose name starts with `name`.
    fn aside(&self, name: &str) -> bool {
        let aside = format!("{name}.damaged-");
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        names.into_iter().any(|name| name.to_str().unwrap().starts_with(&aside))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A running service that handles one request after the other.
struct Running {
    base: String,
    client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Running {
    async fn start(service: SearchService) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            service.serve(listener, until).await
        });
        let client = bindpost_net_upstream::client_builder().no_proxy().build().unwrap();
        Self { base, client, stop: Some(stop), serving }
    }

    async fn send(&self, method: &str, target: &str, body: Option<Value>) -> (u16, Value) {
        let target = format!("{}{target}?{VERSION}", self.base);
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = self.client.request(method.parse().unwrap(), target).body(body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
    }

    async fn end(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.serving.await.unwrap().unwrap();
    }
}

fn options(folder: &Folder) -> ServiceOptions {
    ServiceOptions { keys: false, ..ServiceOptions::new(&folder.0) }
}

const INDEXES: usize = 2;

/// Creates a service with definitions of several kinds, documents, and an indexer that has run.
async fn whole() -> Folder {
    let folder = Folder::new();
    let service = SearchService::open(options(&folder)).unwrap();
    let running = Running::start(service).await;
    let index = |name: String| {
        json!({"name": name, "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "content", "type": "Edm.String"},
        ]})
    };
    for number in 0..INDEXES {
        let (status, made) = running.send("POST", "/indexes", Some(index(format!("index{number}")))).await;
        assert_eq!(status, 201, "{made}");
        let map = json!({"name": format!("map{number}"), "format": "solr", "synonyms": "a, b\nc => d"});
        assert_eq!(running.send("POST", "/synonymmaps", Some(map)).await.0, 201);
    }
    let batch = json!({"value": [{"id": "1", "content": "one"}, {"id": "2", "content": "two"}]});
    assert_eq!(running.send("POST", "/indexes('index0')/docs/search.index", Some(batch)).await.0, 200);
    let blobs = folder.0.join("blobs/files");
    fs::create_dir_all(&blobs).unwrap();
    for number in 0..50 {
        fs::write(blobs.join(format!("{number}.txt")), format!("text {number}")).unwrap();
    }
    let source = json!({
        "name": "files", "type": "azureblob", "container": {"name": "files"},
        "credentials": {"connectionString": "UseDevelopmentStorage=true"},
    });
    assert_eq!(running.send("POST", "/datasources", Some(source)).await.0, 201);
    let mapping = json!([{
        "sourceFieldName": "metadata_storage_path", "targetFieldName": "id",
        "mappingFunction": {"name": "base64Encode"},
    }]);
    let indexer = json!({
        "name": "loader", "dataSourceName": "files", "targetIndexName": "index1", "fieldMappings": mapping,
    });
    assert_eq!(running.send("POST", "/indexers", Some(indexer)).await.0, 201);
    loop {
        let (_, status) = running.send("GET", "/indexers('loader')/search.status", None).await;
        match status["lastResult"]["status"].as_str() {
            Some("success") => break,
            None | Some("inProgress" | "reset") => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            Some(_) => panic!("{status}"),
        }
    }
    running.end().await;
    folder
}

/// Returns damaged versions of a file, each with a description.
fn damages(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let length = whole.len();
    for cut in [0, 1, 100, 320, 4_096, length / 4, length / 2, length * 3 / 4, length - 4_096, length - 1] {
        all.push((format!("cut to {cut}"), whole[..cut].to_vec()));
    }
    // Most of a small database is empty.
    let used: Vec<usize> = (0..length).filter(|at| whole[*at] != 0).collect();
    let header = used.iter().copied().filter(|at| *at < 320).step_by(4);
    let rest = used.iter().copied().filter(|at| *at >= 320).step_by((used.len() / 40).max(1));
    for at in header.chain(rest) {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 1 << (at % 8);
        all.push((format!("a bit of byte {at} changed"), damaged));
    }
    let mut pages: Vec<usize> = used.iter().map(|at| at / 4_096).collect();
    pages.dedup();
    for (number, page) in pages.iter().step_by((pages.len() / 15).max(1)).enumerate() {
        let mut damaged = whole.to_vec();
        let end = ((page + 1) * 4_096).min(length);
        damaged[page * 4_096..end].fill(if number % 2 == 0 { 0 } else { 0xff });
        all.push((format!("page {page} lost"), damaged));
    }
    all
}

/// Opens a service after a file was damaged. It must not panic. Returns `None` if the file looks like
/// that of another program version. The error must then explain what to do.
fn open(folder: &Folder, file: &str, damage: &str) -> Option<SearchService> {
    match catch_unwind(AssertUnwindSafe(|| SearchService::open(options(folder)))) {
        Ok(Ok(service)) => Some(service),
        Ok(Err(error)) => {
            let error = error.to_string();
            let explained = error.contains(file) && error.contains("fix:") && error.contains("version");
            assert!(explained, "{damage}: the service does not start: {error}");
            None
        }
        Err(_) => panic!("{damage}: the start panicked"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_of_definitions_is_renamed() {
    let whole = whole().await;
    let bytes = fs::read(whole.0.join("service.redb")).unwrap();
    let mut put_aside = 0;
    for (damage, damaged) in damages(&bytes) {
        let folder = whole.copy();
        fs::write(folder.0.join("service.redb"), damaged).unwrap();
        let Some(service) = open(&folder, "service.redb", &damage) else { continue };
        let running = Running::start(service).await;
        let (status, indexes) = running.send("GET", "/indexes", None).await;
        assert_eq!(status, 200, "{damage}: {indexes}");
        match folder.aside("service.redb") {
            true => {
                put_aside += 1;
                assert_eq!(indexes["value"], json!([]), "{damage}");
            }
            // At most the last change is lost, which is the indexer.
            false => {
                assert_eq!(indexes["value"].as_array().unwrap().len(), INDEXES, "{damage}");
                let found = running.send("GET", "/indexes('index0')/docs('2')", None).await;
                assert_eq!((found.0, &found.1["content"]), (200, &json!("two")), "{damage}");
            }
        }
        let documents = fs::read_dir(folder.0.join("indexes")).unwrap().count();
        assert_eq!(documents, INDEXES, "{damage}: documents stay, whatever becomes of their definitions");
        let map = json!({"name": "new", "format": "solr", "synonyms": "x, y"});
        assert_eq!(running.send("POST", "/synonymmaps", Some(map)).await.0, 201, "{damage}");
        running.end().await;
        // The next start finds no damage.
        let again = Running::start(open(&folder, "service.redb", &damage).unwrap()).await;
        assert_eq!(again.send("GET", "/synonymmaps('new')", None).await.0, 200, "{damage}");
        again.end().await;
    }
    assert!(put_aside > 10, "{put_aside}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_of_indexers_is_renamed() {
    let whole = whole().await;
    let bytes = fs::read(whole.0.join("indexers.redb")).unwrap();
    let mut put_aside = 0;
    for (damage, damaged) in damages(&bytes) {
        let folder = whole.copy();
        fs::write(folder.0.join("indexers.redb"), damaged).unwrap();
        let Some(service) = open(&folder, "indexers.redb", &damage) else { continue };
        let running = Running::start(service).await;
        let found = running.send("GET", "/indexes('index0')/docs('2')", None).await;
        assert_eq!(found.0, 200, "{damage}");
        let (status, state) = running.send("GET", "/indexers('loader')/search.status", None).await;
        assert_eq!(status, 200, "{damage}: {state}");
        if folder.aside("indexers.redb") {
            put_aside += 1;
            assert!(state["lastResult"].is_null(), "{damage}: {state}");
        }
        running.end().await;
    }
    assert!(put_aside > 10, "{put_aside}");
}
