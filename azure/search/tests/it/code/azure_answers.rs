//! Recorded answers of Azure AI Search, and definitions that official clients send. Without the recordings,
//! these tests are skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bindpost_azure_search::SearchClient;
use bindpost_azure_search::code::{
    self, ImportAction, ImportOptions, PlanOptions, PullOptions, PushState, RunControl,
};
use bindpost_mcp_openapi::UpstreamLimits;
use serde_json::{Value, json};

use super::{Folder, client};
use crate::service::{Scripted, Service, shared};

const DEFINITIONS: PullOptions = PullOptions { documents: 0, prune: false };

/// Returns a folder of recordings, or `None` if it is not here. `BINDPOST_AZURE_ANSWERS` names that of the answers.
fn recordings(test: &str, kind: &str) -> Option<PathBuf> {
    let named = std::env::var_os("BINDPOST_AZURE_ANSWERS").map(PathBuf::from).filter(|_| kind == "answers");
    let above = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/specs/azure-search").join(kind));
    let found = named.into_iter().chain(above).find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("skipped: {test}: there are no recordings in shared/specs/azure-search/{kind}");
    }
    found
}

/// A recorded request with its answer.
struct Recorded {
    method: String,
    /// Without the host and the query.
    path: String,
    request: Value,
    status: u16,
    answer: Value,
}

impl Recorded {
    /// Returns the collection in the path: `indexes` of `/indexes('hotels')/docs`.
    fn collection(&self) -> &str {
        self.path.trim_start_matches('/').split(['/', '(']).next().unwrap_or_default()
    }
}

/// Returns all recorded answers.
fn answers(test: &str) -> Option<Vec<Recorded>> {
    let folder = recordings(test, "answers")?;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let session: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for entry in session["Entries"].as_array().into_iter().flatten() {
            let Some((_, rest)) = entry["RequestUri"].as_str().and_then(|uri| uri.split_once("://")) else {
                continue;
            };
            let path = rest.split_once('/').map_or("", |(_, path)| path).split('?').next().unwrap();
            all.push(Recorded {
                method: entry["RequestMethod"].as_str().unwrap_or_default().to_owned(),
                path: format!("/{path}"),
                request: entry["RequestBody"].clone(),
                status: entry["StatusCode"]
                    .as_u64()
                    .and_then(|status| u16::try_from(status).ok())
                    .unwrap_or(0),
                answer: entry["ResponseBody"].clone(),
            });
        }
    }
    assert!(all.len() > 100, "{}", all.len());
    Some(all)
}

/// Starts a service that has these definitions, and answers other requests by a function.
async fn azure(
    lists: BTreeMap<String, Vec<Value>>,
    answer: impl Fn(&str, &str, Value) -> (u16, Value) + Send + Sync + 'static,
) -> (Scripted, SearchClient) {
    let service = Scripted::start(move |method, path, body| {
        let collection = path.trim_start_matches('/');
        match lists.get(collection).filter(|_| method == "GET") {
            Some(list) => {
                let context = format!("https://x/$metadata#{collection}");
                (200, json!({"@odata.context": context, "value": list}))
            }
            None => answer(method, path, body),
        }
    })
    .await;
    let client = shared(&service.url(), None, UpstreamLimits::default()).client;
    (service, client)
}

/// Returns the kinds that Azure had when the answers were recorded.
fn empty_lists() -> BTreeMap<String, Vec<Value>> {
    let kinds = ["indexes", "aliases", "synonymmaps", "datasources", "indexers", "skillsets"];
    kinds.into_iter().map(|kind| (kind.to_owned(), Vec::new())).collect()
}

fn unknown(_: &str, _: &str, _: Value) -> (u16, Value) {
    (404, json!({"error": {"code": "", "message": "not found"}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_lists_of_azure_become_files_without_differences() {
    let Some(all) = answers("recorded_lists_of_azure_become_files_without_differences") else { return };
    let mut lists = empty_lists();
    for one in all.iter().filter(|one| one.method == "GET" && one.status == 200) {
        let list = lists.get_mut(one.path.trim_start_matches('/')).zip(one.answer["value"].as_array());
        let Some((known, recorded)) = list else { continue };
        // The tests used the same names again.
        let new: Vec<Value> = recorded
            .iter()
            .filter(|definition| !known.iter().any(|other| other["name"] == definition["name"]))
            .cloned()
            .collect();
        known.extend(new);
    }
    for kind in ["indexes", "synonymmaps", "datasources", "indexers", "skillsets"] {
        assert!(!lists[kind].is_empty(), "{kind}");
    }
    // Their references are those of other services.
    let (index, source) = (lists["indexes"][0].clone(), lists["datasources"][0].clone());
    for indexer in lists.get_mut("indexers").unwrap() {
        indexer["targetIndexName"] = index["name"].clone();
        indexer["dataSourceName"] = source["name"].clone();
    }
    lists.get_mut("aliases").unwrap().retain(|alias| alias["indexes"][0] == index["name"]);
    let (_service, client) = azure(lists, unknown).await;
    let folder = Folder::new();
    let report = folder.pull(&client, &DEFINITIONS).await.unwrap();
    assert!(
        report.notes.iter().any(|note| note.contains("no knowledge-bases in this API version")),
        "{:?}",
        report.notes
    );
    let text: String = folder.files().into_values().collect();
    assert!(!text.contains("@odata.etag") && !text.contains("null"), "{text}");
    let plan = folder.plan(&client, &PlanOptions::default()).await;
    assert!(plan.is_empty(), "{}", plan.to_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_azure_makes_of_a_definition_is_no_difference() {
    let Some(all) = answers("what_azure_makes_of_a_definition_is_no_difference") else { return };
    let kinds = [
        ("indexes", "indexes"),
        ("synonymmaps", "synonym-maps"),
        ("datasources", "data-sources"),
        ("skillsets", "skillsets"),
    ];
    let (mut compared, mut differing) = (0, Vec::new());
    for one in &all {
        let kind = kinds.iter().find(|(collection, _)| *collection == one.collection());
        let (Some((collection, folder)), 200 | 201) = (kind, one.status) else { continue };
        let is_write = matches!(one.method.as_str(), "POST" | "PUT") && !one.path.contains("/docs");
        let name = one.answer["name"].as_str().filter(|_| is_write && one.request.is_object());
        let Some(name) = name else { continue };
        let mut lists = empty_lists();
        lists.insert((*collection).to_owned(), vec![one.answer.clone()]);
        let mut sent = one.request.clone();
        if let Some(secret) = sent.pointer_mut("/credentials/connectionString") {
            *secret = "${SOURCE}".into();
        }
        if let Some(members) = sent.as_object_mut() {
            members.retain(|member, _| !member.starts_with("@odata."));
        }
        let folder = Folder::with(&[(&format!("{folder}/{name}.json"), sent)]);
        let (_service, client) = azure(lists, unknown).await;
        let plan = folder.plan(&client, &PlanOptions::default()).await;
        compared += 1;
        if !plan.is_empty() {
            differing.push(format!("{} {}\n{}", one.method, one.path, plan.to_text()));
        }
    }
    assert!(compared > 10, "{compared}");
    assert!(differing.is_empty(), "{} of {compared}:\n{}", differing.len(), differing.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_conflict_of_azure_stops_and_rolls_back_the_push() {
    let Some(all) = answers("a_recorded_conflict_of_azure_stops_and_rolls_back_the_push") else { return };
    let conflict = all.iter().find(|one| one.method == "PUT" && one.status == 412).expect("a conflict");
    let (status, conflict) = (conflict.status, conflict.answer.clone());
    let recorded = |name: &str| {
        let map = all.iter().find(|one| one.collection() == "synonymmaps" && one.answer["name"] == name);
        map.expect("a synonym map").answer.clone()
    };
    let (created, deleted) = (recorded("synmap-create"), recorded("synmap-del"));
    let mut lists = empty_lists();
    lists.insert("synonymmaps".to_owned(), vec![created.clone(), deleted.clone()]);
    let state = Mutex::new(BTreeMap::from([
        ("synmap-create".to_owned(), created.clone()),
        ("synmap-del".to_owned(), deleted),
    ]));
    let (service, client) = azure(lists, move |method, path, body| {
        let name = path.split('\'').nth(1).unwrap_or_default().to_owned();
        let mut state = state.lock().unwrap();
        match method {
            "GET" => state.get(&name).map_or_else(|| unknown("", "", Value::Null), |map| (200, map.clone())),
            // Another client was faster.
            "PUT" if name == "synmap-del" => (status, conflict.clone()),
            "PUT" => {
                let mut map = body;
                map["@odata.etag"] = format!("\"{}\"", map["synonyms"]).into();
                state.insert(name, map.clone());
                (200, map)
            }
            _ => unknown("", "", Value::Null),
        }
    })
    .await;
    let folder = Folder::new();
    folder.pull(&client, &DEFINITIONS).await.unwrap();
    for name in ["synmap-create", "synmap-del"] {
        folder.edit(&format!("synonym-maps/{name}.json"), |map| map["synonyms"] = json!(["a, b"]));
    }
    let report = folder.push(&client, PlanOptions::default()).await.unwrap();
    assert_eq!(report.state, PushState::RolledBack, "{report:?}");
    let error = report.error.as_ref().unwrap();
    assert!(error.contains("synonym-maps/synmap-del was changed by another client"), "{error}");
    assert_eq!(report.steps, ["restored synonym-maps/synmap-create"]);
    assert_eq!(service.asked("PUT /synonymmaps('synmap-create')"), 2);
    let restored = client.get("synonymmaps('synmap-create')").send().await.unwrap().body;
    assert_eq!(restored["synonyms"], created["synonyms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_outcomes_of_azure_are_read_document_by_document() {
    let Some(all) = answers("recorded_outcomes_of_azure_are_read_document_by_document") else { return };
    let mut with_errors = 0;
    for one in all.iter().filter(|one| one.path.ends_with("/docs/search.index")) {
        let (status, answer) = (one.status, one.answer.clone());
        if !matches!(status, 200 | 207) {
            continue;
        }
        let (_service, client) = azure(empty_lists(), move |_, _, _| (status, answer.clone())).await;
        let documents: Vec<String> =
            one.request["value"].as_array().unwrap().iter().map(Value::to_string).collect();
        let folder = Folder::new();
        folder.write_text("documents.jsonl", &documents.join("\n"));
        let options = ImportOptions {
            index: "hotels".to_owned(),
            file: folder.path().join("documents.jsonl"),
            action: ImportAction::Upload,
            max_errors: 1_000,
            restart: false,
            service: "azure".to_owned(),
        };
        let report = code::import(&client, &options, &RunControl::default()).await.unwrap();
        let outcomes = one.answer["value"].as_array().unwrap();
        let taken = outcomes.iter().filter(|outcome| outcome["status"] == true).count();
        let (all, taken) = (documents.len() as u64, taken as u64);
        assert_eq!((report.documents, report.rejected), (taken, all - taken));
        if report.rejected > 0 {
            let errors = folder.text("documents.jsonl.errors.jsonl");
            assert!(errors.contains("Document not found.") && errors.contains("\"status\":404"), "{errors}");
            with_errors += 1;
        }
    }
    assert!(with_errors > 0, "{with_errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_official_clients_send_are_pulled_without_differences() {
    let test = "definitions_that_official_clients_send_are_pulled_without_differences";
    let Some(wire) = recordings(test, "wire") else { return };
    let mut created = 0;
    for recording in ["python-11.6.0", "python-12.0.0", "js-13.0.0"] {
        let text = std::fs::read_to_string(wire.join(format!("{recording}.jsonl"))).unwrap();
        let service = Service::start().await;
        let client = client(&service);
        for line in text.lines() {
            let request: Value = serde_json::from_str(line).unwrap();
            let (method, target) = (request["method"].as_str(), request["target"].as_str());
            let path = target.unwrap_or_default().split('?').next().unwrap();
            if method != Some("POST") || path.matches('/').count() != 1 || request["body"]["name"].is_null() {
                continue;
            }
            let path = path.trim_start_matches('/');
            created += usize::from(client.post(path, request["body"].clone()).send().await.is_ok());
        }
        let folder = Folder::new();
        folder.pull(&client, &DEFINITIONS).await.unwrap();
        // Some of the definitions refer to others that were not sent.
        if folder.read().is_ok() {
            let plan = folder.plan(&client, &PlanOptions::default()).await;
            assert!(plan.is_empty(), "{recording}: {}", plan.to_text());
        }
    }
    assert!(created > 5, "{created}");
}
