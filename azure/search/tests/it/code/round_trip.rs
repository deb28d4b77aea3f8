//! Folders that are pulled from one service and pushed to another.

use bindpost_azure_search::code::{PlanOptions, PullOptions, PulledFile, PushState};
use bindpost_azure_search::sample;
use serde_json::json;

use super::{Folder, client, count, names, variables};
use crate::service::Service;

/// Without documents.
const DEFINITIONS: PullOptions = PullOptions { documents: 0, prune: false };

#[tokio::test(flavor = "multi_thread")]
async fn a_service_moves_to_another_by_its_folder() {
    let (one, other) = (Service::start().await, Service::start().await);
    let (from, to) = (client(&one), client(&other));
    sample::install(&from, one.folder()).await.unwrap();
    let folder = Folder::new();
    let report = folder.pull(&from, &DEFINITIONS).await.unwrap();
    assert!(report.files.iter().all(|(_, change)| *change == PulledFile::Added), "{report:?}");
    let files = folder.files();
    for file in [
        "search.json",
        "indexes/trails.json",
        "indexes/trail-reports.json",
        "synonym-maps/trail-words.json",
        "data-sources/trail-reports-files.json",
        "indexers/trail-reports-indexer.json",
        "aliases/trails-current.json",
        "knowledge-sources/trails-knowledge.json",
        "knowledge-bases/trail-guide.json",
    ] {
        assert!(files.contains_key(file), "{file} in {:?}", files.keys());
    }
    let all: String = files.values().cloned().collect();
    assert!(!all.contains("@odata.etag") && !all.contains("UseDevelopmentStorage"), "{all}");
    // The service does not return connection strings, so each has a variable.
    assert_eq!(
        folder.json("data-sources/trail-reports-files.json")["credentials"]["connectionString"],
        "${TRAIL_REPORTS_FILES_CONNECTION_STRING}"
    );
    assert_eq!(folder.json("synonym-maps/trail-words.json")["synonyms"][0], "hut, shelter, refuge");

    let plan = folder.plan(&from, &PlanOptions::default()).await;
    assert!(plan.is_empty(), "{}", plan.to_text());
    let again = folder.pull(&from, &DEFINITIONS).await.unwrap();
    assert!(again.files.iter().all(|(_, change)| *change == PulledFile::Unchanged), "{again:?}");

    // Without the secret, nothing is changed.
    let refused = folder.push(&to, PlanOptions::default()).await.unwrap_err().to_string();
    assert!(refused.contains("fix: export TRAIL_REPORTS_FILES_CONNECTION_STRING=…"), "{refused}");
    assert!(names(&to, "synonymmaps").await.is_empty());
    let secrets = variables(&[("TRAIL_REPORTS_FILES_CONNECTION_STRING", "UseDevelopmentStorage=true")]);
    let report = folder.push_with(&to, PlanOptions::default(), &secrets).await.unwrap();
    assert_eq!(report.state, PushState::Applied, "{report:?}");
    // The alias of the folder keeps its index; the other index gets an alias.
    assert_eq!(names(&to, "indexes").await, ["trail-reports-v1", "trails"]);
    assert_eq!(names(&to, "aliases").await, ["trail-reports", "trails-current"]);
    let indexer = to.get("indexers('trail-reports-indexer')").send().await.unwrap().body;
    assert_eq!(indexer["targetIndexName"], "trail-reports-v1");
    assert_eq!(count(&to, "trail-reports").await, 0);

    let plan = folder.plan(&to, &PlanOptions::default()).await;
    assert!(plan.is_empty(), "{}", plan.to_text());
    let copy = Folder::new();
    copy.pull(&to, &DEFINITIONS).await.unwrap();
    assert_eq!(copy.files(), files);
    assert_eq!(folder.push(&to, PlanOptions::default()).await.unwrap().state, PushState::NothingToDo);
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_keeps_references_and_files_of_the_user() {
    let service = Service::start().await;
    let client = client(&service);
    let source = json!({"name": "files", "type": "azureblob", "container": {"name": "rows"},
        "credentials": {"connectionString": "UseDevelopmentStorage=true"}});
    client.put("datasources('files')", source).send().await.unwrap();
    let folder = Folder::with(&[
        (
            "data-sources/files.json",
            json!({"name": "files", "type": "azureblob", "container": {"name": "rows"},
                "credentials": {"connectionString": "${MINE}"}}),
        ),
        ("synonym-maps/old.json", json!({"name": "old", "synonyms": ["a, b"]})),
    ]);
    folder.write_text("judgements/notes.txt", "mine");
    let report = folder.pull(&client, &DEFINITIONS).await.unwrap();
    assert_eq!(folder.json("data-sources/files.json")["credentials"]["connectionString"], "${MINE}");
    let old = |change| ("synonym-maps/old.json".to_owned(), change);
    assert!(report.files.contains(&old(PulledFile::Kept)), "{report:?}");
    let report = folder.pull(&client, &PullOptions { prune: true, ..DEFINITIONS }).await.unwrap();
    assert!(report.files.contains(&old(PulledFile::Deleted)), "{report:?}");
    assert_eq!(folder.text("judgements/notes.txt"), "mine");
}
