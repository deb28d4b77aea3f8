//! A whole service on its own port, in a folder of its own.

use std::path::{Path, PathBuf};

use bindpost_azure_search_service::{SearchService, ServiceOptions, Upkeep};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::server::{Answer, PATIENCE};

pub(crate) struct WholeService {
    folder: PathBuf,
    base: String,
    key: String,
    client: reqwest::Client,
    upkeep: Upkeep,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl WholeService {
    pub(crate) async fn start() -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("whole-{:016x}", getrandom::u64().unwrap()));
        let service = SearchService::open(ServiceOptions::new(&folder)).unwrap();
        let key = service.keys().unwrap().admin_keys()[0].clone();
        let upkeep = service.start_upkeep().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            service.serve(listener, until).await
        });
        let client = bindpost_net_upstream::client_builder().no_proxy().build().unwrap();
        Self { folder, base, key, client, upkeep, stop, serving }
    }

    /// Sends a request with an admin key. The target has its api-version.
    pub(crate) async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let request = self.client.request(method.parse().unwrap(), format!("{}{target}", self.base));
        let mut request = request.header("api-key", &self.key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    /// Sends a request and expects the given status. `version` is the api-version.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        version: &str,
        body: Option<Value>,
        status: u16,
    ) -> Answer {
        let answer = self.send(method, &format!("{path}?api-version={version}"), &[], body.as_ref()).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        answer
    }

    /// Writes a file for data sources.
    pub(crate) fn put_file(&self, container: &str, name: &str, text: &str) {
        let folder = self.folder.join("blobs").join(container);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Stops the service, checks that its folder can be opened again, and deletes it.
    pub(crate) async fn end(self) {
        drop(self.client);
        let _ = self.stop.send(());
        self.serving.await.unwrap().unwrap();
        // Dropping it waits for its thread.
        let upkeep = self.upkeep;
        tokio::task::spawn_blocking(move || drop(upkeep)).await.unwrap();
        drop(SearchService::open(ServiceOptions::new(&self.folder)).unwrap());
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}
