//! Pushes: without downtime, interrupted at every step, rolled back, and beside other clients.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindpost_azure_search::SearchClient;
use bindpost_azure_search::code::{
    self, CodeError, PlanOptions, ProgressUpdate, PushOptions, PushReport, PushState, RunControl, SearchPlan,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Folder, client, count, hotels, names, upload, variables};
use crate::service::Service;

const DOCUMENTS: usize = 1_234;
const SECRETS: &[(&str, &str)] = &[("ROWS", "UseDevelopmentStorage=true")];

/// A service with an index behind its alias, an indexer that writes to it, and the folder of all that.
struct PushStage {
    _service: Service,
    client: SearchClient,
    folder: Folder,
}

impl PushStage {
    async fn start() -> PushStage {
        let service = Service::start().await;
        let client = client(&service);
        service.put_file("rows", "rows.jsonl", "{\"id\": \"row1\", \"title\": \"From a file\"}\n");
        let folder = Folder::with(&[
            ("indexes/hotels.json", hotels()),
            ("synonym-maps/words.json", json!({"name": "words", "synonyms": ["a, b"]})),
            (
                "data-sources/rows.json",
                json!({"name": "rows", "type": "azureblob", "container": {"name": "rows"},
                "credentials": {"connectionString": "${ROWS}"}}),
            ),
            (
                "indexers/rows.json",
                json!({"name": "rows", "dataSourceName": "rows", "targetIndexName": "hotels",
                "parameters": {"configuration": {"parsingMode": "jsonLines"}}}),
            ),
            (
                "knowledge-sources/know.json",
                json!({"name": "know", "kind": "searchIndex",
                "searchIndexParameters": {"searchIndexName": "hotels"}}),
            ),
        ]);
        let report = folder.push_with(&client, PlanOptions::default(), &variables(SECRETS)).await.unwrap();
        assert_eq!(report.state, PushState::Applied, "{report:?}");
        upload(&client, "hotels", 0..DOCUMENTS).await;
        let stage = PushStage { _service: service, client, folder };
        stage.wait_for_rows("hotels").await;
        stage
    }

    /// Waits until the indexer has written its document.
    async fn wait_for_rows(&self, index: &str) {
        while count(&self.client, index).await != DOCUMENTS as u64 + 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Changes the folder: an index is rebuilt, another is new, two definitions change in place.
    fn change(&self) {
        self.folder.edit("indexes/hotels.json", |index| {
            index["fields"][1]["analyzer"] = "standard.lucene".into();
            index["fields"][1]["synonymMaps"] = json!(["words"]);
        });
        self.folder.edit("synonym-maps/words.json", |map| map["synonyms"] = json!(["a, b", "c, d"]));
        self.folder.edit("indexers/rows.json", |indexer| indexer["description"] = "Reads rows.".into());
        let mut cities = hotels();
        cities["name"] = "cities".into();
        self.folder.write("indexes/cities.json", &cities);
    }

    async fn push(&self, options: PlanOptions) -> Result<PushReport, CodeError> {
        self.folder.push_with(&self.client, options, &variables(SECRETS)).await
    }

    async fn push_under(&self, options: PlanOptions, control: &RunControl) -> Result<PushReport, CodeError> {
        let service = self.client.upstream().base().to_owned();
        let options = PushOptions { plan: options, service, ..PushOptions::default() };
        code::push(&self.client, &self.folder.read()?, &options, &variables(SECRETS), control).await
    }

    async fn plan(&self) -> SearchPlan {
        let (folder, options) = (self.folder.read().unwrap(), PlanOptions::default());
        code::plan(&self.client, &folder, &options, &variables(SECRETS), &RunControl::default())
            .await
            .unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        self.client.get(path).send().await.unwrap().body
    }

    async fn target(&self, alias: &str) -> String {
        self.get(&format!("aliases('{alias}')")).await["indexes"][0].as_str().unwrap().to_owned()
    }

    /// Asserts that everything is as before `change`.
    async fn assert_unchanged(&self, context: &str) {
        assert_eq!(names(&self.client, "indexes").await, ["hotels-v1"], "{context}");
        assert_eq!(names(&self.client, "aliases").await, ["hotels"], "{context}");
        assert_eq!(self.target("hotels").await, "hotels-v1", "{context}");
        assert_eq!(self.get("synonymmaps('words')").await["synonyms"], "a, b", "{context}");
        let indexer = self.get("indexers('rows')").await;
        assert_eq!(
            (&indexer["targetIndexName"], &indexer["description"]),
            (&json!("hotels-v1"), &Value::Null),
            "{context}"
        );
        assert_ne!(indexer["disabled"], true, "{context}");
        let source = self.get("knowledgesources('know')").await;
        assert_eq!(source["searchIndexParameters"]["searchIndexName"], "hotels-v1", "{context}");
        assert_eq!(count(&self.client, "hotels").await, DOCUMENTS as u64 + 1, "{context}");
    }

    /// Asserts that `change` was applied.
    async fn assert_changed(&self, context: &str) {
        assert_eq!(
            names(&self.client, "indexes").await,
            ["cities-v1", "hotels-v1", "hotels-v2"],
            "{context}"
        );
        assert_eq!(self.target("hotels").await, "hotels-v2", "{context}");
        assert_eq!(self.get("synonymmaps('words')").await["synonyms"], "a, b\nc, d", "{context}");
        let indexer = self.get("indexers('rows')").await;
        assert_eq!(
            (&indexer["targetIndexName"], &indexer["description"]),
            (&json!("hotels-v2"), &json!("Reads rows.")),
            "{context}"
        );
        assert_ne!(indexer["disabled"], true, "{context}");
        let source = self.get("knowledgesources('know')").await;
        assert_eq!(source["searchIndexParameters"]["searchIndexName"], "hotels-v2", "{context}");
        assert_eq!(count(&self.client, "hotels").await, DOCUMENTS as u64 + 1, "{context}");
        let plan = self.plan().await;
        assert!(plan.is_empty(), "{context}: {}", plan.to_text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_is_never_visible_to_searches_and_can_be_taken_back() {
    let stage = PushStage::start().await;
    stage.change();
    let (searching, searches) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (until, seen, client) = (searching.clone(), searches.clone(), stage.client.clone());
    let searcher = tokio::spawn(async move {
        while until.load(Ordering::SeqCst) {
            let request = json!({"search": "hotel", "count": true, "top": 0});
            let found =
                client.post("indexes('hotels')/docs/search.post.search", request).send().await.unwrap().body;
            assert_eq!(found["@odata.count"], DOCUMENTS);
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    let report = stage.push(PlanOptions::default()).await.unwrap();
    searching.store(false, Ordering::SeqCst);
    searcher.await.unwrap();
    assert!(searches.load(Ordering::SeqCst) > 3);
    assert_eq!(report.state, PushState::Applied, "{report:?}");
    assert!(report.steps.contains(&"pause indexers/rows".to_owned()), "{report:?}");
    assert!(
        report.notes.iter().any(|note| note.contains("hotels pointed to hotels-v1, which is kept")),
        "{report:?}"
    );
    stage.assert_changed("applied").await;
    assert!(!stage.folder.journal().to_string().contains("UseDevelopmentStorage"));

    let report = stage.folder.roll_back(&stage.client).await.unwrap();
    assert_eq!(report.state, PushState::RolledBack, "{report:?}");
    stage.assert_unchanged("taken back").await;
    let nothing = stage.folder.roll_back(&stage.client).await.unwrap_err().to_string();
    assert!(nothing.contains("fix: check out the earlier state"), "{nothing}");

    stage.push(PlanOptions { delete_old: true, ..PlanOptions::default() }).await.unwrap();
    assert_eq!(names(&stage.client, "indexes").await, ["cities-v1", "hotels-v2"]);
}

/// Runs a push and drops it, as a crash does, at its report of this number. Returns `None` if it ended
/// before.
async fn crash(stage: &PushStage, options: PlanOptions, at: usize) -> Option<String> {
    let (said, mut heard) = mpsc::unbounded_channel::<ProgressUpdate>();
    let reports = AtomicUsize::new(0);
    let control = RunControl::new(move |update| {
        if reports.fetch_add(1, Ordering::SeqCst) + 1 == at {
            let _ = said.send(update);
        }
    });
    tokio::select! {
        biased;
        update = heard.recv() => Some(update.map(|update| update.what).unwrap_or_default()),
        report = stage.push_under(options, &control) => {
            report.unwrap();
            None
        }
    }
}

/// Runs a check for a crash at each step until one ends without a crash, which is `false`. Returns the number of
/// crashes. Several run at once, because each waits for requests of the crashed push.
async fn at_each_step<Fut>(check: fn(usize) -> Fut) -> usize
where
    Fut: Future<Output = bool> + Send + 'static,
{
    const AT_ONCE: usize = 6;
    let (mut running, mut next, mut ended, mut crashes) = (JoinSet::new(), 1, false, 0);
    loop {
        while !ended && running.len() < AT_ONCE {
            running.spawn(check(next));
            next += 1;
        }
        match running.join_next().await {
            Some(crashed) => match crashed.unwrap() {
                true => crashes += 1,
                false => ended = true,
            },
            None => return crashes,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_crashed_at_any_step_is_continued() {
    let crashes = at_each_step(|at| async move {
        let stage = PushStage::start().await;
        stage.change();
        let Some(step) = crash(&stage, PlanOptions::default(), at).await else { return false };
        let context = format!("crashed at {step:?}");
        let report = stage.push(PlanOptions::default()).await.unwrap();
        assert!(report.is_applied(), "{context}: {report:?}");
        stage.assert_changed(&context).await;
        true
    })
    .await;
    assert!(crashes > 12, "{crashes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_crashed_at_any_step_is_undone_if_the_folder_changed_again() {
    let crashes = at_each_step(|at| async move {
        let stage = PushStage::start().await;
        let before: Vec<(String, String)> = stage.folder.files().into_iter().collect();
        stage.change();
        let Some(step) = crash(&stage, PlanOptions::default(), at).await else { return false };
        let context = format!("crashed at {step:?}");
        std::fs::remove_file(stage.folder.path().join("indexes/cities.json")).unwrap();
        before.iter().for_each(|(file, text)| stage.folder.write_text(file, text));
        let report = stage.push(PlanOptions::default()).await.unwrap();
        assert_eq!(report.state, PushState::NothingToDo, "{context}: {report:?}");
        assert!(
            report.notes[0].starts_with("rolled back a push that was interrupted"),
            "{context}: {report:?}"
        );
        stage.assert_unchanged(&context).await;
        true
    })
    .await;
    assert!(crashes > 12, "{crashes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_crashed_at_any_step_is_continued() {
    let crashes = at_each_step(|at| async move {
        let stage = PushStage::start().await;
        stage.change();
        stage.push(PlanOptions::default()).await.unwrap();
        let (said, mut heard) = mpsc::unbounded_channel::<()>();
        let reports = AtomicUsize::new(0);
        let control = RunControl::new(move |_| {
            if reports.fetch_add(1, Ordering::SeqCst) + 1 == at {
                let _ = said.send(());
            }
        });
        let service = stage.client.upstream().base().to_owned();
        let secrets = variables(SECRETS);
        let ended = tokio::select! {
            biased;
            _ = heard.recv() => false,
            report = code::roll_back(&stage.client, stage.folder.path(), &service, &secrets, &control) => report.is_ok(),
        };
        if ended {
            return false;
        }
        stage.folder.roll_back(&stage.client).await.unwrap();
        stage.assert_unchanged(&format!("crashed at {at}")).await;
        true
    })
    .await;
    assert!(crashes >= 8, "{crashes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_continued_push_waits_for_the_last_request_of_the_crashed_one() {
    let stage = PushStage::start().await;
    stage.change();
    let (said, mut heard) = mpsc::unbounded_channel::<()>();
    let control = RunControl::new(move |update| {
        if update.unit == "documents" {
            let _ = said.send(());
        }
    });
    tokio::select! {
        biased;
        _ = heard.recv() => {}
        report = stage.push_under(PlanOptions::default(), &control) => panic!("not crashed: {report:?}"),
    }
    // The service executes a page of the copy late.
    let late = stage.client.clone();
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        upload(&late, "hotels-v2", 1..2).await;
    });
    stage.push(PlanOptions::default()).await.unwrap();
    let change = json!({"@search.action": "merge", "id": "h000001", "title": "Changed after the push"});
    let path = "indexes('hotels')/docs/search.index";
    stage.client.post(path, json!({"value": [change]})).send().await.unwrap();
    late.await.unwrap();
    assert_eq!(stage.get("indexes('hotels')/docs('h000001')").await["title"], "Changed after the push");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_push_is_rolled_back() {
    let stage = PushStage::start().await;
    stage.change();
    let holder = Arc::new(Mutex::new(None::<RunControl>));
    let held = holder.clone();
    let control = RunControl::new(move |update| {
        if update.unit == "documents" && update.done > 100 {
            held.lock().unwrap().as_ref().unwrap().stop();
        }
    });
    *holder.lock().unwrap() = Some(control.clone());
    let report = stage.push_under(PlanOptions::default(), &control).await.unwrap();
    assert_eq!(report.state, PushState::RolledBack, "{report:?}");
    assert!(report.error.as_ref().unwrap().ends_with("stopped"), "{report:?}");
    stage.assert_unchanged("stopped").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_the_service_refuses_rolls_back_what_was_done() {
    let stage = PushStage::start().await;
    stage.change();
    stage.folder.edit("indexes/cities.json", |index| index["fields"][1]["analyzer"] = "none.such".into());
    let report = stage.push(PlanOptions::default()).await.unwrap();
    assert_eq!(report.state, PushState::RolledBack, "{report:?}");
    let error = report.error.as_ref().unwrap();
    assert!(error.contains("create indexes/cities-v1") && error.contains("none.such"), "{error}");
    for undone in ["deleted indexes/hotels-v2", "restored synonym-maps/words", "restored indexers/rows"] {
        assert!(report.steps.contains(&undone.to_owned()), "{undone} in {report:?}");
    }
    stage.assert_unchanged("refused").await;
}

/// Returns a control that runs an action once, when a push begins a step whose description begins with this.
fn at_step<Fut: Future<Output = ()>>(
    begin: &'static str,
    action: impl Fn() -> Fut + Send + Sync + 'static,
) -> RunControl {
    let is_done = AtomicBool::new(false);
    RunControl::new(move |update| {
        if update.what.starts_with(begin) && !is_done.swap(true, Ordering::SeqCst) {
            tokio::task::block_in_place(|| Handle::current().block_on(action()));
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_other_clients_are_never_overwritten() {
    let stage = PushStage::start().await;
    stage.change();
    let other = stage.client.clone();
    let control = at_step("update indexers/rows", move || {
        let other = other.clone();
        async move {
            let mut indexer = other.get("indexers('rows')").send().await.unwrap().body;
            indexer["description"] = "by another client".into();
            other.put("indexers('rows')", indexer).send().await.unwrap();
        }
    });
    let report = stage.push_under(PlanOptions::default(), &control).await.unwrap();
    assert_eq!(report.state, PushState::RolledBackPartly, "{report:?}");
    assert!(report.error.as_ref().unwrap().contains("was changed by another client"), "{report:?}");
    assert!(
        report.notes.iter().any(|note| note.starts_with("indexers/rows was changed by another client")),
        "{report:?}"
    );
    assert_eq!(stage.get("indexers('rows')").await["description"], "by another client");
    assert_eq!(stage.target("hotels").await, "hotels-v1");
    assert_eq!(names(&stage.client, "indexes").await, ["hotels-v1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_written_during_the_copy_stop_the_switch() {
    let stage = PushStage::start().await;
    stage.change();
    let other = stage.client.clone();
    let control = at_step("check that hotels-v2", move || {
        let other = other.clone();
        async move {
            let batch = json!({"value": [{"@search.action": "delete", "id": "h000001"}]});
            other.post("indexes('hotels')/docs/search.index", batch).send().await.unwrap();
        }
    });
    let report = stage.push_under(PlanOptions::default(), &control).await.unwrap();
    assert_eq!(report.state, PushState::RolledBack, "{report:?}");
    assert!(report.error.as_ref().unwrap().contains("documents were written during the copy"), "{report:?}");
    assert_eq!(names(&stage.client, "indexes").await, ["hotels-v1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pushes_of_a_folder_exclude_each_other_and_plans_have_a_fingerprint() {
    let stage = PushStage::start().await;
    stage.change();
    let stage = Arc::new(stage);
    let (other, said) = (stage.clone(), Arc::new(Mutex::new(String::new())));
    let heard = said.clone();
    let control = at_step("copy", move || {
        let (other, heard) = (other.clone(), heard.clone());
        async move {
            let refused = other.push(PlanOptions::default()).await.unwrap_err().to_string();
            *heard.lock().unwrap() = refused;
        }
    });
    stage.push_under(PlanOptions::default(), &control).await.unwrap();
    assert!(said.lock().unwrap().contains("another push of this folder to this service is under way"));

    stage.folder.edit("synonym-maps/words.json", |map| map["synonyms"] = json!(["e, f"]));
    let plan = stage.plan().await;
    let push = async |fingerprint: &str| {
        let options = PushOptions {
            fingerprint: Some(fingerprint.to_owned()),
            service: stage.client.upstream().base().to_owned(),
            ..PushOptions::default()
        };
        code::push(
            &stage.client,
            &stage.folder.read()?,
            &options,
            &variables(SECRETS),
            &RunControl::default(),
        )
        .await
    };
    let refused = push("0000").await.unwrap_err().to_string();
    assert!(refused.contains("not the reviewed 0000"), "{refused}");
    assert_eq!(push(&plan.fingerprint).await.unwrap().state, PushState::Applied);
}

/// A service with an index that has no alias, and a folder that needs another one.
async fn plain() -> PushStage {
    let service = Service::start().await;
    let client = client(&service);
    let folder = Folder::with(&[("indexes/hotels.json", hotels())]);
    folder.write("search.json", &json!({"version": 1, "behindAliases": false}));
    folder.push(&client, PlanOptions::default()).await.unwrap();
    upload(&client, "hotels", 0..DOCUMENTS).await;
    assert_eq!(names(&client, "indexes").await, ["hotels"]);
    folder.edit("indexes/hotels.json", |index| index["fields"][1]["analyzer"] = "standard.lucene".into());
    PushStage { _service: service, client, folder }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_without_an_alias_gives_its_name_to_one_if_downtime_is_allowed() {
    let options = PlanOptions { allow_downtime: true, ..PlanOptions::default() };
    for at in 1.. {
        let stage = plain().await;
        let refused = stage.folder.push(&stage.client, PlanOptions::default()).await.unwrap_err().to_string();
        assert!(refused.contains("a rebuild needs an alias"), "{refused}");
        // Crashed at every step, and continued.
        let step = crash(&stage, options, at).await;
        let report = stage.folder.push(&stage.client, options).await.unwrap();
        assert!(report.is_applied(), "{step:?}: {report:?}");
        assert_eq!(names(&stage.client, "indexes").await, ["hotels-v2"], "{step:?}");
        assert_eq!(stage.target("hotels").await, "hotels-v2", "{step:?}");
        assert_eq!(count(&stage.client, "hotels").await, DOCUMENTS as u64, "{step:?}");
        assert!(stage.folder.plan(&stage.client, &PlanOptions::default()).await.is_empty());
        if step.is_none() {
            assert!(at > 5, "{at}");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_keeps_added_fields_when_a_push_is_taken_back() {
    let stage = PushStage::start().await;
    stage.folder.edit("indexes/hotels.json", |index| {
        index["fields"].as_array_mut().unwrap().push(json!({"name": "city", "type": "Edm.String"}));
        index["scoringProfiles"] = json!([]);
    });
    stage.push(PlanOptions::default()).await.unwrap();
    assert_eq!(names(&stage.client, "indexes").await, ["hotels-v1"]);
    let report = stage.folder.roll_back(&stage.client).await.unwrap();
    assert_eq!(report.state, PushState::RolledBackPartly, "{report:?}");
    assert!(report.notes[0].contains("it keeps the new fields city"), "{report:?}");
    assert_eq!(stage.get("indexes('hotels-v1')").await["scoringProfiles"][0]["name"], "titles");
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_deletes_what_the_folder_does_not_have() {
    let stage = PushStage::start().await;
    for file in [
        "indexers/rows.json",
        "data-sources/rows.json",
        "knowledge-sources/know.json",
        "synonym-maps/words.json",
    ] {
        std::fs::remove_file(stage.folder.path().join(file)).unwrap();
    }
    assert_eq!(stage.push(PlanOptions::default()).await.unwrap().state, PushState::NothingToDo);
    let prune = PlanOptions { prune: true, ..PlanOptions::default() };
    let report = stage.push(prune).await.unwrap();
    assert_eq!(
        report.steps,
        [
            "delete knowledge-sources/know",
            "delete indexers/rows",
            "delete data-sources/rows",
            "delete synonym-maps/words"
        ]
    );
    for collection in ["indexers", "datasources", "knowledgesources", "synonymmaps"] {
        assert!(names(&stage.client, collection).await.is_empty(), "{collection}");
    }
    assert_eq!(names(&stage.client, "indexes").await, ["hotels-v1"]);
    // The secret of the data source is not known any more, and what refers to it stays deleted too.
    let report = stage.folder.roll_back(&stage.client).await.unwrap();
    assert_eq!(report.state, PushState::RolledBackPartly, "{report:?}");
    assert_eq!(names(&stage.client, "synonymmaps").await, ["words"]);

    std::fs::remove_file(stage.folder.path().join("indexes/hotels.json")).unwrap();
    stage.push(prune).await.unwrap();
    assert!(
        names(&stage.client, "indexes").await.is_empty() && names(&stage.client, "aliases").await.is_empty()
    );
}
