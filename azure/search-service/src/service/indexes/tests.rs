use serde_json::json;

use super::*;
use crate::resources::MatchConditions;
use crate::resources::scratch::TestFolder;

struct Service {
    resources: Arc<ResourceRegistry>,
    indexes: Arc<IndexRegistry>,
}

fn open(folder: &Path) -> Service {
    let resources = Arc::new(ResourceRegistry::open(folder).unwrap());
    let indexes = IndexRegistry::open(&folder.join("indexes"), &resources, Arc::default()).unwrap();
    let indexes = Arc::new(indexes);
    resources.set_index_hook(Arc::clone(&indexes) as _);
    Service { resources, indexes }
}

impl Service {
    fn create(&self, name: &str) {
        let fields = json!([{"name": "id", "type": "Edm.String", "key": true}]);
        self.resources.create(ResourceKind::Index, json!({"name": name, "fields": fields})).unwrap();
    }

    fn delete(&self, name: &str) {
        self.resources.delete(ResourceKind::Index, name, &MatchConditions::default()).unwrap();
    }

    fn upload(&self, name: &str, key: &str) {
        let batch = json!({"value": [{"id": key}]}).to_string();
        self.indexes.get(name).unwrap().apply_batch(batch.as_bytes()).unwrap();
    }

    fn has(&self, name: &str, key: &str) -> bool {
        self.indexes.get(name).unwrap().snapshot().unwrap().documents.number(key).unwrap().is_some()
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.indexes.read()[name].folder.clone()
    }
}

#[test]
fn a_damaged_index_is_unavailable_and_the_others_are_served() {
    let folder = TestFolder::new();
    let damaged = {
        let service = open(folder.path());
        service.create("good");
        service.create("bad");
        service.upload("good", "1");
        service.folder("bad")
    };
    let store = damaged.join("documents.redb");
    std::fs::write(&store, b"no database").unwrap();
    let service = open(folder.path());
    assert!(service.has("good", "1"));
    let refused = service.indexes.get("bad").err().unwrap();
    assert_eq!((refused.status.as_u16(), refused.code), (503, "IndexUnavailable"));
    assert!(refused.message.contains("'bad'") && refused.message.contains("delete the index"), "{refused}");
    let update = json!({"name": "bad", "description": "new", "fields": []});
    let refused =
        service.resources.put(ResourceKind::Index, "bad", update, &MatchConditions::default(), false);
    assert_eq!(refused.unwrap_err().status, 503);
    assert!(store.exists(), "the damaged file must be kept");
    service.delete("bad");
    service.create("bad");
    service.upload("bad", "2");
    assert!(service.has("bad", "2") && !damaged.exists());
}

#[test]
fn an_index_with_an_unreadable_definition_is_unavailable() {
    let folder = TestFolder::new();
    {
        // Without a hook, definitions are stored without checks.
        let resources = ResourceRegistry::open(folder.path()).unwrap();
        resources.create(ResourceKind::Index, json!({"name": "odd", "fields": [{"name": "x"}]})).unwrap();
    }
    let service = open(folder.path());
    assert_eq!(service.indexes.get("odd").err().unwrap().status, 503);
    service.create("good");
    service.upload("good", "1");
    service.delete("odd");
    assert_eq!(service.indexes.get("odd").err().unwrap().status, 404);
}

#[test]
fn remains_of_a_deleted_index_are_not_used_by_its_successor() {
    let folder = TestFolder::new();
    let new = {
        let service = open(folder.path());
        service.create("twice");
        service.upload("twice", "old");
        let old = service.folder("twice");
        // Simulates a crash during the deletion of the folder.
        let mut left = OsString::from(&old);
        left.push(DELETED);
        service.delete("twice");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(Path::new(&left).join("documents.redb"), b"a part").unwrap();
        service.create("twice");
        service.upload("twice", "new");
        service.folder("twice")
    };
    let service = open(folder.path());
    assert!(service.has("twice", "new") && !service.has("twice", "old"));
    assert_eq!(service.folder("twice"), new);
    assert_eq!(std::fs::read_dir(folder.path().join("indexes")).unwrap().count(), 1);
}

#[test]
fn a_new_folder_sorts_after_those_of_the_same_name() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path().join("x.7fffffffffffff00")).unwrap();
    let name = |name| new_folder(folder.path(), name).file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(name("x"), "x.7fffffffffffff01");
    assert!(name("y").as_str() < "y.7f");
}

#[test]
fn documents_outlive_the_loss_of_their_definition() {
    let folder = TestFolder::new();
    let documents = {
        let service = open(folder.path());
        service.create("kept");
        service.upload("kept", "1");
        service.folder("kept").join("documents.redb")
    };
    std::fs::remove_file(folder.path().join("service.redb")).unwrap();
    assert_eq!(open(folder.path()).indexes.get("kept").err().unwrap().status, 404);
    assert!(documents.exists());
}

#[test]
fn an_index_can_be_deleted_during_writes_and_reads() {
    let folder = TestFolder::new();
    let service = open(folder.path());
    for _ in 0..5 {
        service.create("busy");
        let index = service.indexes.get("busy").unwrap();
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let index = &index;
                scope.spawn(move || {
                    for at in 0..50 {
                        let batch = json!({"value": [{"id": format!("{writer}-{at}")}]}).to_string();
                        // This may fail after the folder was deleted, but it must return.
                        let _ = index.apply_batch(batch.as_bytes());
                        let _ = index.snapshot();
                    }
                });
            }
            service.delete("busy");
        });
    }
    service.create("busy");
    service.upload("busy", "1");
    assert!(service.has("busy", "1"));
}
