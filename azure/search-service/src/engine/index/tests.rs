//! Tests of an index during concurrent writes, after errors, and after it is reopened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use bindpost_azure_search_model::definition::IndexDefinition;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::resources::scratch::TestFolder;
use crate::search::request::SearchRequest;
use crate::search::run;

fn definition() -> Value {
    json!({
        "name": "xyz",
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "n", "type": "Edm.Int32", "filterable": true},
            {"name": "text", "type": "Edm.String", "searchable": true},
            {"name": "v", "type": "Collection(Edm.Single)", "searchable": true, "dimensions": 2,
                "vectorSearchProfile": "p"},
        ],
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["text"]}],
        "vectorSearch": {
            "algorithms": [{"name": "a", "kind": "exhaustiveKnn"}],
            "profiles": [{"name": "p", "algorithm": "a"}],
        },
    })
}

/// The definition with one more field.
fn larger_definition() -> Value {
    let mut larger = definition();
    let more = json!({"name": "more", "type": "Edm.String", "filterable": true});
    larger["fields"].as_array_mut().unwrap().push(more);
    larger
}

fn plan(definition: &Value) -> Arc<IndexPlan> {
    Arc::new(IndexPlan::new(IndexDefinition::parse(definition).unwrap()).unwrap())
}

fn open(folder: &TestFolder) -> SearchIndex {
    SearchIndex::open(folder.path(), plan(&definition())).unwrap()
}

fn apply(index: &SearchIndex, actions: Vec<Value>) {
    let outcomes = index.apply_batch(json!({"value": actions}).to_string().as_bytes()).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.error.is_none()));
}

fn upload(index: &SearchIndex, keys: &[&str]) {
    let document = |key: &&str| json!({"id": key, "n": 1, "text": format!("word {key}"), "v": [1, 2]});
    apply(index, keys.iter().map(document).collect());
}

/// Returns the keys of the matching documents.
fn found(snapshot: &IndexSnapshot, search: &str, filter: Option<&str>) -> BTreeSet<String> {
    let request = json!({"search": search, "filter": filter, "top": 1000, "count": true});
    let request = SearchRequest::parse(request).unwrap();
    let found = run::run(
        &request,
        snapshot,
        &crate::search::scope::SynonymMaps::default(),
        &crate::budget::Budget::unlimited(),
    )
    .unwrap();
    let key = |number| {
        let document = snapshot.documents.read(number, |json| serde_json::from_slice::<Value>(json).unwrap());
        document.unwrap().unwrap()["id"].as_str().unwrap().to_owned()
    };
    let keys: BTreeSet<String> = found.documents.iter().map(|document| key(document.number)).collect();
    assert_eq!(found.documents.len(), keys.len(), "no document must be found twice");
    assert_eq!(found.count, Some(keys.len() as u64));
    keys
}

fn keys(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

fn everything(index: &SearchIndex) -> BTreeSet<String> {
    found(&index.snapshot().unwrap(), "*", None)
}

#[test]
fn a_writer_finds_its_batch_at_once_during_concurrent_writes() {
    let folder = TestFolder::new();
    let index = open(&folder);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let index = &index;
            scope.spawn(move || {
                for at in 0..6 {
                    let key = format!("{writer}-{at}");
                    apply(index, vec![json!({"id": key, "n": writer, "text": format!("t{writer}x{at}")})]);
                    let snapshot = index.snapshot().unwrap();
                    assert!(snapshot.documents.number(&key).unwrap().is_some());
                    assert_eq!(found(&snapshot, &format!("t{writer}x{at}"), None), keys(&[&key]));
                    assert_eq!(found(&snapshot, "*", Some(&format!("n eq {writer}"))).len(), at + 1);
                }
            });
        }
    });
    assert_eq!(everything(&index).len(), 24);
}

#[test]
fn no_snapshot_has_a_part_of_a_batch() {
    let folder = TestFolder::new();
    let index = open(&folder);
    let ended = AtomicBool::new(false);
    // Every batch gives the same five documents another number, and adds or deletes five others.
    let batch = |round: u64| {
        let same =
            (0..5).map(|at| json!({"id": format!("s{at}"), "n": round, "text": "same", "v": [round, 1]}));
        let others = (0..5).map(|at| match round % 2 {
            0 => json!({"id": format!("o{at}"), "n": round, "text": "other", "v": [1, 1]}),
            _ => json!({"@search.action": "delete", "id": format!("o{at}")}),
        });
        same.chain(others).collect::<Vec<_>>()
    };
    apply(&index, batch(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let snapshot = index.snapshot().unwrap();
                    let number = snapshot.documents.number("s0").unwrap().unwrap();
                    let first = snapshot.documents.read(number, |json| {
                        serde_json::from_slice::<Value>(json).unwrap()["n"].as_u64().unwrap()
                    });
                    let round = first.unwrap().unwrap();
                    let all = if round.is_multiple_of(2) { 10 } else { 5 };
                    assert_eq!(snapshot.documents.count().unwrap(), all);
                    assert_eq!(found(&snapshot, "*", None).len() as u64, all);
                    assert_eq!(found(&snapshot, "*", Some(&format!("n eq {round}"))).len() as u64, all);
                    assert_eq!(found(&snapshot, "same", None).len(), 5);
                    assert_eq!(found(&snapshot, "other", None).len() as u64, all - 5);
                    assert_eq!(snapshot.vectors["v"].len() as u64, all);
                }
            });
        }
        for round in 1..40 {
            apply(&index, batch(round));
        }
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn fields_are_added_during_concurrent_writes_and_searches() {
    let folder = TestFolder::new();
    let index = open(&folder);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for at in 0..30 {
                upload(&index, &[&format!("a{at}"), &format!("b{at}")]);
            }
            ended.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                assert!(everything(&index).len().is_multiple_of(2));
            }
        });
        for definition in [larger_definition(), definition(), larger_definition()] {
            index.replan(plan(&definition)).unwrap();
        }
        writer.join().unwrap();
    });
    apply(&index, vec![json!({"@search.action": "merge", "id": "a0", "more": "news"})]);
    assert_eq!(everything(&index).len(), 60);
    assert_eq!(found(&index.snapshot().unwrap(), "*", Some("more eq 'news'")), keys(&["a0"]));
    drop(index);
    let index = SearchIndex::open(folder.path(), plan(&larger_definition())).unwrap();
    assert_eq!(everything(&index).len(), 60);
    assert_eq!(found(&index.snapshot().unwrap(), "*", Some("more eq 'news'")), keys(&["a0"]));
}

#[test]
fn a_failed_change_of_the_definition_keeps_the_old_one() {
    let folder = TestFolder::new();
    let place = folder.path().join("index");
    let away = folder.path().join("away");
    let index = SearchIndex::open(&place, plan(&definition())).unwrap();
    upload(&index, &["1", "2"]);
    assert_eq!(everything(&index).len(), 2);
    std::fs::rename(&place, &away).unwrap();
    index.replan(plan(&larger_definition())).unwrap_err();
    assert_eq!(everything(&index).len(), 2);
    std::fs::rename(&away, &place).unwrap();
    apply(&index, vec![json!({"@search.action": "merge", "id": "1", "n": 7})]);
    upload(&index, &["3"]);
    assert_eq!(everything(&index), keys(&["1", "2", "3"]));
    assert_eq!(found(&index.snapshot().unwrap(), "*", Some("n eq 7")), keys(&["1"]));
    drop(index);
    let index = SearchIndex::open(&place, plan(&definition())).unwrap();
    assert_eq!(everything(&index), keys(&["1", "2", "3"]));
}

#[test]
fn documents_of_a_lost_definition_are_read_with_the_previous_one() {
    let folder = TestFolder::new();
    drop({
        let index = SearchIndex::open(folder.path(), plan(&larger_definition())).unwrap();
        apply(&index, vec![json!({"id": "1", "n": 1, "text": "word", "more": "lost"})]);
        index
    });
    let index = open(&folder);
    assert_eq!(found(&index.snapshot().unwrap(), "word", Some("n eq 1")), keys(&["1"]));
}

#[test]
fn a_failed_commit_loses_no_document() {
    for comes_back in [true, false] {
        let folder = TestFolder::new();
        let index = open(&folder);
        upload(&index, &["1"]);
        assert_eq!(everything(&index).len(), 1);
        let (text, away) = (folder.path().join("text-0"), folder.path().join("away"));
        upload(&index, &["2"]);
        std::fs::rename(&text, &away).unwrap();
        // The last commit is still served.
        assert_eq!(everything(&index), keys(&["1"]));
        if comes_back {
            std::fs::rename(&away, &text).unwrap();
        }
        // Batches are still accepted, because documents are durable without the full-text index.
        upload(&index, &["1", "3"]);
        assert_eq!(everything(&index), keys(&["1", "2", "3"]));
        assert_eq!(found(&index.snapshot().unwrap(), "word", Some("n eq 1")), keys(&["1", "2", "3"]));
    }
}

#[test]
fn derived_data_is_rebuilt_after_a_panic() {
    let folder = TestFolder::new();
    let index = open(&folder);
    upload(&index, &["1"]);
    // Simulates a panic after the store was written and before the derived data was.
    let broken = std::thread::scope(|scope| {
        let broken = scope.spawn(|| {
            let mut writing = index.lock_writer();
            let json = br#"{"id":"2","n":1,"text":"word","v":[1,2]}"#;
            let put = |batch: &mut crate::engine::store::StoreBatch<'_>| {
                let number = batch.put("2", None, json)?;
                writing.vectors.store(number, None, batch)
            };
            index.store.write(0, put).unwrap();
            writing.behind = true;
            panic!("on purpose");
        });
        broken.join()
    });
    assert!(broken.is_err());
    upload(&index, &["3"]);
    assert_eq!(everything(&index), keys(&["1", "2", "3"]));
    assert_eq!(index.snapshot().unwrap().vectors["v"].len(), 2);
}

#[test]
fn the_writer_is_released_when_idle_and_recreated() {
    let folder = TestFolder::new();
    let index = open(&folder);
    let released = || !index.lock_writer().text.has_writer();
    index.lock_writer().text.release_writer_after(Duration::ZERO);
    assert!(released(), "no writer without a change");
    upload(&index, &["1"]);
    index.lock_writer().text.release_writer_after(Duration::ZERO);
    assert!(!released(), "a writer with pending changes must stay");
    assert_eq!(everything(&index).len(), 1);
    index.lock_writer().text.release_writer_after(REST_AFTER);
    assert!(!released(), "a recently used writer must stay");
    index.lock_writer().text.release_writer_after(Duration::ZERO);
    assert!(released());
    upload(&index, &["1", "2"]);
    assert_eq!(everything(&index), keys(&["1", "2"]));
}

#[test]
fn a_damaged_full_text_index_is_rebuilt() {
    let folder = TestFolder::new();
    let damages: [fn(&Path); 4] = [
        |text| std::fs::remove_dir_all(text).unwrap(),
        |text| std::fs::write(text.join("meta.json"), "{garbage").unwrap(),
        |text| {
            for file in std::fs::read_dir(text).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|extension| extension != "json" && extension != "lock") {
                    let bytes = std::fs::read(&path).unwrap();
                    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
                }
            }
        },
        |text| {
            for file in std::fs::read_dir(text).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "term") {
                    std::fs::remove_file(path).unwrap();
                }
            }
        },
    ];
    upload(&open(&folder), &["1", "2"]);
    for damage in damages {
        let texts: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let texts: Vec<_> = texts.into_iter().filter(|path| path.is_dir()).collect();
        assert_eq!(texts.len(), 1, "the old folder must be deleted: {texts:?}");
        damage(&texts[0]);
        let index = open(&folder);
        assert_eq!(found(&index.snapshot().unwrap(), "word", Some("n eq 1")), keys(&["1", "2"]));
    }
}

#[test]
fn reopening_an_index_writes_nothing() {
    let folder = TestFolder::new();
    upload(&open(&folder), &["1"]);
    drop(open(&folder));
    let index = open(&folder);
    let rewrite =
        |_: &[u8]| -> Result<Vec<u8>, DocumentStoreError> { panic!("no document must be rewritten") };
    index.store.rewrite_documents(index.plan().shape_number(), rewrite).unwrap();
    assert!(!index.lock_writer().text.has_writer());
    assert_eq!(everything(&index), keys(&["1"]));
}

/// A document of the model: its number, its word, and whether it has a vector.
type Modelled = (Option<i64>, Option<String>, bool);
type Model = BTreeMap<String, Modelled>;

#[derive(Debug, Clone)]
enum Act {
    Upload(u8, i64, u8, bool),
    Merge(u8, i64),
    MergeOrUpload(u8, u8),
    Delete(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let key = 0u8..20;
    prop_oneof![
        4 => (key.clone(), 0i64..5, 0u8..4, any::<bool>()).prop_map(|(k, n, w, v)| Act::Upload(k, n, w, v)),
        2 => (key.clone(), 0i64..5).prop_map(|(k, n)| Act::Merge(k, n)),
        2 => (key.clone(), 0u8..4).prop_map(|(k, w)| Act::MergeOrUpload(k, w)),
        3 => key.prop_map(Act::Delete),
    ]
}

impl Act {
    fn json(&self) -> Value {
        match self {
            Self::Upload(key, n, word, vector) => json!({"@search.action": "upload", "id": format!("k{key}"),
                "n": n, "text": format!("w{word}"), "v": vector.then_some([1, 2])}),
            Self::Merge(key, n) => json!({"@search.action": "merge", "id": format!("k{key}"), "n": n}),
            Self::MergeOrUpload(key, word) => {
                json!({"@search.action": "mergeOrUpload", "id": format!("k{key}"), "text": format!("w{word}")})
            }
            Self::Delete(key) => json!({"@search.action": "delete", "id": format!("k{key}")}),
        }
    }

    fn change(&self, model: &mut Model) {
        match self {
            Self::Upload(key, n, word, vector) => {
                model.insert(format!("k{key}"), (Some(*n), Some(format!("w{word}")), *vector));
            }
            Self::Merge(key, n) => {
                model.entry(format!("k{key}")).and_modify(|document| document.0 = Some(*n));
            }
            Self::MergeOrUpload(key, word) => {
                model.entry(format!("k{key}")).or_default().1 = Some(format!("w{word}"));
            }
            Self::Delete(key) => {
                model.remove(&format!("k{key}"));
            }
        }
    }
}

fn compare(index: &SearchIndex, model: &Model) -> Result<(), TestCaseError> {
    let snapshot = index.snapshot().unwrap();
    prop_assert_eq!(snapshot.documents.count().unwrap(), model.len() as u64);
    prop_assert_eq!(found(&snapshot, "*", None), model.keys().cloned().collect());
    let those = |holds: &dyn Fn(&Modelled) -> bool| -> BTreeSet<String> {
        model.iter().filter(|(_, document)| holds(document)).map(|(key, _)| key.clone()).collect()
    };
    for n in 0..5 {
        let filter = format!("n eq {n}");
        prop_assert_eq!(found(&snapshot, "*", Some(&filter)), those(&|document| document.0 == Some(n)));
    }
    for word in ["w0", "w1", "w2", "w3"] {
        let holds = |document: &Modelled| document.1.as_deref() == Some(word);
        prop_assert_eq!(found(&snapshot, word, None), those(&holds));
    }
    let mut vectors = 0;
    for (key, (n, word, vector)) in model {
        let number = snapshot.documents.number(key).unwrap().unwrap();
        let stored = snapshot.documents.read(number, |json| serde_json::from_slice::<Value>(json).unwrap());
        let stored = stored.unwrap().unwrap();
        prop_assert_eq!((&stored["n"], &stored["text"]), (&json!(n), &json!(word)));
        prop_assert_eq!(snapshot.vectors["v"].contains(number), *vector);
        vectors += usize::from(*vector);
    }
    prop_assert_eq!(snapshot.vectors["v"].len(), vectors);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn batches_have_the_same_result_as_on_a_map(
        batches in vec((vec(act(), 1..12), any::<bool>(), 0u8..4), 1..8),
    ) {
        let folder = TestFolder::new();
        let mut index = open(&folder);
        let mut model = Model::new();
        for (acts, look, reopen) in batches {
            let body = json!({"value": acts.iter().map(Act::json).collect::<Vec<_>>()}).to_string();
            index.apply_batch(body.as_bytes()).unwrap();
            acts.iter().for_each(|act| act.change(&mut model));
            if look {
                compare(&index, &model)?;
            }
            if reopen == 0 {
                drop(index);
                index = open(&folder);
            }
        }
        compare(&index, &model)?;
    }
}
