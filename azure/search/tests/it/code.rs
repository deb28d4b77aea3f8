//! Search as code: folders that are pulled, planned, tested and pushed, against the embedded service.

mod azure_answers;
mod plans;
mod pushes;
mod relevance;
mod round_trip;
mod tools;
mod transfer;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bindpost_azure_search::code::{
    self, CodeError, PlanOptions, PullOptions, PullReport, PushOptions, PushReport, RunControl, SearchFolder,
    SearchPlan, SecretLookup,
};
use bindpost_azure_search::{SearchClient, odata_key};
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::service::Service;

/// A folder of definitions. It is deleted with the test.
struct Folder(Scratch);

impl Folder {
    fn new() -> Folder {
        Folder(Scratch::new())
    }

    /// Creates a folder with its settings and these files.
    fn with(files: &[(&str, Value)]) -> Folder {
        let folder = Folder::new();
        folder.write("search.json", &json!({"version": 1}));
        files.iter().for_each(|(file, json)| folder.write(file, json));
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, json: &Value) {
        self.write_text(file, &json.to_string());
    }

    fn write_text(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Changes the JSON of a file.
    fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let mut json = self.json(file);
        change(&mut json);
        self.write(file, &json);
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_str(&self.text(file)).unwrap()
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// Returns all files but journals, with their texts.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(self.path(), self.path(), &mut files);
        files.retain(|file, _| !file.starts_with(".bindpost"));
        files
    }

    fn read(&self) -> Result<SearchFolder, CodeError> {
        SearchFolder::read(self.path())
    }

    async fn pull(&self, client: &SearchClient, options: &PullOptions) -> Result<PullReport, CodeError> {
        code::pull(client, self.path(), options, &RunControl::default()).await
    }

    async fn plan(&self, client: &SearchClient, options: &PlanOptions) -> SearchPlan {
        code::plan(client, &self.read().unwrap(), options, &variables(&[]), &RunControl::default())
            .await
            .unwrap()
    }

    async fn push(&self, client: &SearchClient, options: PlanOptions) -> Result<PushReport, CodeError> {
        self.push_with(client, options, &variables(&[])).await
    }

    async fn push_with(
        &self,
        client: &SearchClient,
        plan: PlanOptions,
        secrets: &SecretLookup,
    ) -> Result<PushReport, CodeError> {
        let options =
            PushOptions { plan, service: client.upstream().base().to_owned(), ..PushOptions::default() };
        code::push(client, &self.read()?, &options, secrets, &RunControl::default()).await
    }

    async fn roll_back(&self, client: &SearchClient) -> Result<PushReport, CodeError> {
        let service = client.upstream().base();
        code::roll_back(client, self.path(), service, &variables(&[]), &RunControl::default()).await
    }

    /// Returns the journal of the last push.
    fn journal(&self) -> Value {
        let mut files = BTreeMap::new();
        collect(self.path(), self.path(), &mut files);
        let is_journal = |file: &str| file.starts_with(".bindpost/push-") && file.ends_with(".json");
        let (_, text) = files.iter().find(|(file, _)| is_journal(file)).expect("a journal");
        serde_json::from_str(text).unwrap()
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

/// Returns a lookup of these variables.
fn variables(known: &'static [(&'static str, &'static str)]) -> SecretLookup {
    Arc::new(|name| {
        known.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
    })
}

/// Returns a client of a service, with its admin key.
fn client(service: &Service) -> SearchClient {
    service.shared().client
}

/// Returns an index of hotels as a short definition.
fn hotels() -> Value {
    json!({
        "name": "hotels",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "title", "type": "Edm.String", "analyzer": "en.lucene"},
            {"name": "category", "type": "Edm.String", "searchable": false},
            {"name": "rating", "type": "Edm.Double"},
        ],
        "scoringProfiles": [{"name": "titles", "text": {"weights": {"title": 5}}}],
    })
}

/// Loads hotels with these numbers.
async fn upload(client: &SearchClient, index: &str, numbers: Range<usize>) {
    for chunk in numbers.collect::<Vec<_>>().chunks(500) {
        let documents: Vec<Value> = chunk
            .iter()
            .map(|number| {
                json!({"@search.action": "upload", "id": format!("h{number:06}"), "title": format!("Hotel number {number}"),
                    "category": "Budget", "rating": *number as f64 / 10.0})
            })
            .collect();
        let path = format!("indexes{}/docs/search.index", odata_key(index));
        client.post(path, json!({"value": documents})).send().await.unwrap();
    }
}

/// Returns the number of documents of an index or an alias.
async fn count(client: &SearchClient, index: &str) -> u64 {
    let answer = client.get(format!("indexes{}/docs/$count", odata_key(index))).send().await.unwrap();
    answer.body.as_u64().unwrap()
}

/// Returns the names of all definitions of a kind.
async fn names(client: &SearchClient, collection: &str) -> Vec<String> {
    let body = client.get(collection).send().await.unwrap().body;
    let listed = body["value"].as_array().unwrap().iter();
    listed.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}
