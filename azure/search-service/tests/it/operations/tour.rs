//! Runs the operations one after the other against a service on its own port, and records the results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bindpost_azure_search_service::{SearchService, ServiceOptions, Upkeep};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::swagger::Swagger;
use super::table::{OPERATIONS, Operation};
use crate::server::{Answer, PATIENCE};

pub(crate) const VERSION: &str = "2025-08-01-preview";

/// The two ways to write a name in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// `/indexes('hotels')/search.stats`
    Quoted,
    /// `/indexes/hotels/stats`
    Plain,
}

impl Form {
    pub(crate) const BOTH: [Self; 2] = [Self::Quoted, Self::Plain];

    /// Returns the path of an operation with its names filled in.
    fn path(self, operation: &Operation, names: &[&str]) -> String {
        let mut path = operation.path.to_owned();
        for name in names {
            let (before, rest) = path.split_once("('{").expect("a place for every name");
            let (_, after) = rest.split_once("}')").unwrap();
            path = match self {
                Self::Quoted => format!("{before}('{name}'){after}"),
                Self::Plain => format!("{before}/{name}{after}"),
            };
        }
        assert!(!path.contains('{'), "{path}: a name is missing");
        match self {
            Self::Quoted => path,
            Self::Plain => path.replace("search.post.", "").replace("search.", ""),
        }
    }
}

/// The options, headers and body of a request.
#[derive(Debug, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) options: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<Value>,
}

impl Ask<'_> {
    pub(crate) fn with(body: Value) -> Self {
        Self { body: Some(body), ..Self::default() }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum State {
    Done,
    Partial(String),
    Refused(String),
}

#[derive(Debug, Default)]
struct Noted {
    forms: BTreeSet<Form>,
    /// Successful statuses.
    statuses: BTreeSet<u16>,
    partial: Option<String>,
    refused: Option<String>,
}

pub(crate) struct Tour {
    folder: PathBuf,
    base: String,
    key: String,
    client: reqwest::Client,
    swagger: Option<Swagger>,
    noted: BTreeMap<&'static str, Noted>,
    upkeep: Upkeep,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Tour {
    pub(crate) async fn start() -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tour-{:016x}", getrandom::u64().unwrap()));
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
        let swagger = Swagger::open();
        Self { folder, base, key, client, swagger, noted: BTreeMap::new(), upkeep, stop, serving }
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

    /// Writes a file for data sources.
    pub(crate) fn put_file(&self, container: &str, name: &str, text: &str) {
        let folder = self.folder.join("blobs").join(container);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    /// Sends a request and expects the given status. Checks the common parts of every response.
    pub(crate) async fn ask(
        &mut self,
        id: &str,
        form: Form,
        names: &[&str],
        ask: Ask<'_>,
        status: u16,
    ) -> Answer {
        let operation = OPERATIONS.iter().find(|operation| operation.id == id).expect(id);
        let target = format!("{}?api-version={VERSION}{}", form.path(operation, names), ask.options);
        let request = self.client.request(operation.verb.parse().unwrap(), format!("{}{target}", self.base));
        let mut request = request.header("api-key", &self.key);
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = &ask.body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        let (got, headers) = (response.status().as_u16(), response.headers().clone());
        let answer = Answer { status: got, headers, text: response.text().await.unwrap() };

        let what = format!("{id}: {} {target}", operation.verb);
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert_eq!(answer.header("odata-version"), "4.0", "{what}");
        assert!(!answer.header("request-id").is_empty(), "{what}");
        let is_json = answer.header("content-type").starts_with("application/json");
        let body = is_json.then(|| answer.json());
        if got < 300 {
            assert_eq!(answer.text.is_empty(), matches!(got, 202 | 204), "{what}: {answer:?}");
            let missing = match &self.swagger {
                // A count is a plain number.
                _ if id == "Documents_Count" || ask.options.contains("$select") => Vec::new(),
                Some(swagger) => swagger.missing(id, got, body.as_ref()),
                None => Vec::new(),
            };
            assert_eq!(missing, [] as [String; 0], "{what} has no {missing:?}: {answer:?}");
        } else {
            assert!(!answer.message().is_empty(), "{what}: {answer:?}");
        }
        let noted = self.noted.entry(operation.id).or_default();
        noted.forms.insert(form);
        if got < 300 {
            noted.statuses.insert(got);
        } else if answer.code() == "NotSupportedByEmbeddedService" {
            noted.refused = Some(answer.message());
        }
        answer
    }

    /// Records that a part of the operation is not supported.
    pub(crate) fn is_partial(&mut self, id: &str, what: &str) {
        let (_, noted) = self.noted.iter_mut().find(|(known, _)| **known == id).expect(id);
        noted.partial = Some(what.to_owned());
    }

    /// Returns the result of an operation. Fails if the operation was not tested in both path forms.
    pub(crate) fn state(&self, operation: &Operation) -> (&BTreeSet<u16>, State) {
        let noted = self.noted.get(operation.id).unwrap_or_else(|| panic!("{} was not tested", operation.id));
        let forms = if operation.path.contains('{') { 2 } else { 1 };
        assert!(noted.forms.len() >= forms, "{} was tested only as {:?}", operation.id, noted.forms);
        let state = match (&noted.refused, &noted.partial) {
            (Some(why), _) => State::Refused(why.clone()),
            (None, Some(what)) => State::Partial(what.clone()),
            (None, None) => State::Done,
        };
        let is_refused = matches!(state, State::Refused(_));
        assert_eq!(noted.statuses.is_empty(), is_refused, "{}: {noted:?}", operation.id);
        (&noted.statuses, state)
    }
}
