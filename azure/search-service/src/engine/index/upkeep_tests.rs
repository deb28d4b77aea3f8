use bindpost_azure_search_model::definition::IndexDefinition;
use serde_json::json;

use super::*;
use crate::resources::scratch::TestFolder;

/// Opens an index in the folder, with only a key field.
fn open(scratch: &TestFolder) -> SearchIndex {
    let definition = json!({"name": "things", "fields": [{"name": "id", "type": "Edm.String", "key": true}]});
    let plan = IndexPlan::new(IndexDefinition::parse(&definition).unwrap()).unwrap();
    SearchIndex::open(scratch.path(), Arc::new(plan)).unwrap()
}

fn upload(index: &SearchIndex, id: &str) {
    let batch = json!({"value": [{"id": id}]}).to_string();
    index.apply_batch(batch.as_bytes()).unwrap();
}

#[test]
fn maintenance_commits_when_no_more_batches_arrive() {
    let scratch = TestFolder::new();
    let index = open(&scratch);
    let committed = || {
        index.maintain(&|| false).unwrap();
        index.current().batch
    };
    upload(&index, "1");
    assert_eq!(committed(), 0);
    upload(&index, "2");
    assert_eq!(committed(), 0);
    assert_eq!(committed(), 2);
}

#[test]
fn a_snapshot_has_all_acknowledged_batches() {
    let scratch = TestFolder::new();
    let index = open(&scratch);
    for (id, count) in [("1", 1), ("2", 2)] {
        upload(&index, id);
        let snapshot = index.snapshot().unwrap();
        assert_eq!((snapshot.searcher.num_docs(), snapshot.documents.count().unwrap()), (count, count));
    }
}
