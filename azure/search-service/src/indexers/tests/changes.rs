//! Tests of later runs.

use super::*;

const NATIVE: &str = "#Microsoft.Azure.Search.NativeBlobSoftDeleteDeletionDetectionPolicy";

#[test]
fn only_new_and_changed_blobs_are_processed_again() {
    let bench = Bench::new(json!({"parsingMode": "json"}));
    bench.folder.write("a.json", r#"{"id": "1", "title": "a"}"#);
    bench.folder.write("b.json", r#"{"id": "2", "title": "b"}"#);
    assert_eq!(bench.succeed(), 2);
    assert_eq!(bench.succeed(), 0);
    bench.folder.write("b.json", r#"{"id": "2", "title": "longer"}"#);
    bench.folder.write("c.json", r#"{"id": "3"}"#);
    assert_eq!(bench.succeed(), 2);
    assert_eq!(bench.index.all()[1]["title"], "longer");
    bench.indexers.reset("ix").unwrap();
    assert_eq!(bench.status()["lastResult"]["status"], "reset");
    assert_eq!(bench.succeed(), 3);
}

#[test]
fn documents_of_missing_blobs_are_deleted_with_the_policy() {
    let mut bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.folder.write("a.jsonl", "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    bench.folder.write("b.jsonl", "{\"id\":\"3\"}\n{\"id\":\"4\"}\n");
    bench.succeed();
    bench.folder.remove("a.jsonl");
    bench.succeed();
    assert_eq!(bench.index.keys(), ["1", "2", "3", "4"]);
    bench.source["dataDeletionDetectionPolicy"] = json!({"@odata.type": NATIVE});
    // The document 2 has moved to another blob, and 4 was deleted from its blob.
    bench.folder.write("b.jsonl", "{\"id\":\"3\"}\n{\"id\":\"2\"}\n{\"id\":\"5\"}\n");
    bench.succeed();
    assert_eq!(bench.index.keys(), ["2", "3", "5"]);
    assert_eq!(bench.succeed(), 0);
}

#[test]
fn marked_items_are_deleted() {
    let mut bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.source["dataDeletionDetectionPolicy"] = json!({
        "@odata.type": "#Microsoft.Azure.Search.SoftDeleteColumnDeletionDetectionPolicy",
        "softDeleteColumnName": "deleted", "softDeleteMarkerValue": "true"});
    bench.folder.write("a.jsonl", "{\"id\":\"1\"}\n{\"id\":\"2\",\"deleted\":false}\n");
    bench.succeed();
    bench.folder.write(
        "a.jsonl",
        "{\"id\":\"1\",\"deleted\":\"true\"}\n{\"id\":\"2\",\"deleted\":true}\n{\"id\":\"3\"}\n",
    );
    bench.succeed();
    assert_eq!(bench.index.keys(), ["3"]);
}

#[test]
fn only_reset_documents_are_processed_again() {
    let bench = Bench::new(json!({"parsingMode": "jsonLines"}));
    bench.folder.write("a.jsonl", "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    bench.folder.write("b.jsonl", "{\"id\":\"3\"}\n{\"id\":\"4\"}\n");
    bench.folder.write("c.jsonl", "{\"id\":\"5\"}\n");
    bench.succeed();
    bench.index.documents.lock().unwrap().clear();
    let add = |body: Value, overwrite| bench.indexers.reset_docs("ix", &body, overwrite).unwrap();
    add(json!({"documentKeys": ["5"]}), false);
    add(json!({"documentKeys": ["2"], "datasourceDocumentIds": ["http://local/docs/b.jsonl"]}), true);
    let status = bench.status();
    assert_eq!(status["currentState"]["mode"], "indexingResetDocs");
    assert_eq!(status["currentState"]["resetDocumentKeys"], json!(["2"]));
    assert_eq!(status["lastResult"]["statusDetail"], "resetDocs");
    let result = bench.run();
    assert_eq!((result.mode.as_str(), result.items_processed), ("indexingResetDocs", 3));
    assert_eq!(bench.index.keys(), ["2", "3", "4"]);
    assert_eq!(bench.succeed(), 0);
    assert!(bench.indexers.reset_docs("ix", &json!({"documentKeys": "2"}), false).is_err());
}

#[test]
fn state_in_a_file_survives() {
    let folder = Folder::new();
    let kept = state::BlobState { modified: 5, size: 6, keys: vec!["k".into()], all_keys: true };
    {
        let store = RedbState::open(&folder.0.join("state.redb")).unwrap();
        store.save("Ix-1", vec![("a".into(), Some(kept.clone())), ("b".into(), Some(kept.clone()))]).unwrap();
        store.save("Ix-1", vec![("b".into(), None)]).unwrap();
        store.save("deleted", vec![("b".into(), None)]).unwrap();
        let record = state::IndexerRecord { tracking: Some("t".into()), ..state::IndexerRecord::default() };
        store.save_record("Ix-1", &record).unwrap();
        store.remove("deleted").unwrap();
    }
    let store = RedbState::open(&folder.0.join("state.redb")).unwrap();
    assert_eq!(store.blob("Ix-1", "a").unwrap(), Some(kept));
    assert_eq!(store.blob_names("Ix-1").unwrap(), ["a"]);
    assert_eq!(store.record("Ix-1").unwrap().tracking.as_deref(), Some("t"));
    store.clear("Ix-1").unwrap();
    assert!(store.blob_names("Ix-1").unwrap().is_empty());
    assert_eq!(store.record("Ix-1").unwrap().tracking.as_deref(), Some("t"));
}
