//! Tests of a full disk: reads continue, writes fail with a clear error, and both work again when space
//! is free.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::child::{Child, ChildLimits, new_folder};

fn document(at: usize) -> Value {
    // The texts do not repeat, so they need space in every file.
    let words: Vec<String> =
        (0..20).map(|word| format!("w{}", (at * 20 + word) * 7919 % 1_000_003)).collect();
    json!({"id": at.to_string(), "text": format!("common {}", words.join(" ")), "number": at})
}

async fn send(child: &Child, method: &str, target: &str, body: Option<Value>) -> crate::server::Answer {
    child.send(method, &format!("/indexes('things')/{target}"), body).await
}

async fn with_documents(folder: &Path) -> Child {
    let child = Child::start_in(folder, ChildLimits::default());
    let fields = json!([
        {"name": "id", "type": "Edm.String", "key": true},
        {"name": "text", "type": "Edm.String"},
        {"name": "number", "type": "Edm.Int32"},
        {"name": "place", "type": "Collection(Edm.Single)", "searchable": true, "dimensions": 2,
         "vectorSearchProfile": "plain"},
    ]);
    let vector_search = json!({
        "algorithms": [{"name": "all", "kind": "exhaustiveKnn"}],
        "profiles": [{"name": "plain", "algorithm": "all"}],
    });
    let index = json!({"name": "things", "fields": fields, "vectorSearch": vector_search});
    let made = child.send("POST", "/indexes", Some(index)).await;
    assert_eq!(made.status, 201, "{made:?}");
    child.upload("things", &(0..2_000).map(document).collect::<Vec<_>>()).await;
    assert_eq!(found(&child).await, 2_000);
    child
}

/// Returns how many documents a search finds. The search, the count and the look-up must succeed.
async fn found(child: &Child) -> u64 {
    let search = json!({"search": "common", "filter": "number ge 0", "count": true, "top": 1});
    let search = send(child, "POST", "docs/search.post.search", Some(search)).await;
    assert_eq!(search.status, 200, "a search: {}", search.text);
    let looked_up = send(child, "GET", "docs('7')?$select=number", None).await;
    assert_eq!((looked_up.status, &looked_up.json()["number"]), (200, &json!(7)), "a look-up");
    let counted = send(child, "GET", "docs/$count", None).await;
    assert_eq!(counted.status, 200, "a count: {}", counted.text);
    let statistics = send(child, "GET", "search.stats", None).await;
    assert_eq!(statistics.status, 200, "statistics: {}", statistics.text);
    search.json()["@odata.count"].as_u64().unwrap()
}

/// Tests a service whose disk is full until `free` makes space. `written` is the number of
/// accepted documents.
async fn reads_continue(mut child: Child, mut written: usize, free: impl FnOnce(&mut Child)) {
    let mut refused = 0;
    // Small batches may find free space within the files. Large ones do not.
    for (round, size) in [1, 1, 1, 400, 1, 400, 1, 400].into_iter().enumerate() {
        assert!(found(&child).await >= 2_000, "round {round}");
        let batch: Vec<Value> = (written..written + size).map(document).collect();
        let answer = send(&child, "POST", "docs/search.index", Some(json!({ "value": batch }))).await;
        match answer.status {
            200 => written += size,
            507 => {
                refused += 1;
                assert_eq!(answer.code(), "InsufficientStorage");
                assert!(answer.message().contains("disk of the service is full"), "{answer:?}");
            }
            other => panic!("{other}: {answer:?}"),
        }
        assert!(found(&child).await >= 2_000);
    }
    assert!(refused > 0, "the disk was not full");
    // Definitions are rejected in the same way.
    let made = json!({"name": "other", "fields": [{"name": "id", "type": "Edm.String", "key": true}]});
    let answer = child.send("POST", "/indexes", Some(made.clone())).await;
    assert!(matches!(answer.status, 201 | 507), "{answer:?}");
    assert!(found(&child).await >= 2_000);

    free(&mut child);
    let batch: Vec<Value> = (written..written + 400).map(document).collect();
    let answer = send(&child, "POST", "docs/search.index", Some(json!({ "value": batch }))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    written += 400;
    // A failed commit is not retried immediately.
    for _ in 0..50 {
        if found(&child).await == written as u64 {
            let again = child.send("POST", "/indexes", Some(made)).await;
            assert!(matches!(again.status, 201 | 409), "{again:?}");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    panic!("{} of {written} documents are found", found(&child).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_continue_when_files_cannot_grow() {
    let folder = new_folder();
    let mut child = with_documents(&folder).await;
    // These documents are accepted, but not yet committed to the full-text index. The next search
    // commits them.
    child.upload("things", &(2_000..2_400).map(document).collect::<Vec<_>>()).await;
    // Files can be changed up to this size, but they cannot grow, as on a full disk.
    child.limit_files(Some(8192));
    reads_continue(child, 2_400, |child| child.limit_files(None)).await;
    let _ = std::fs::remove_dir_all(folder);
}

/// A small in-memory file system.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts the file system. Returns `None` if that is not permitted.
    fn mount(size: &str) -> Option<Self> {
        let folder = new_folder();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&folder);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            let _ = std::fs::remove_dir(&folder);
            return None;
        }
        Some(Self(folder))
    }

    /// Uses up all free space.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).unwrap();
        for size in [1 << 20, 1 << 16, 4096, 512] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_continue_while_the_disk_is_full() {
    let Some(disk) = SmallDisk::mount("64m") else {
        eprintln!("skipped: reads_continue_while_the_disk_is_full, because mounting is not permitted");
        return;
    };
    let child = with_documents(&disk.0.join("data")).await;
    child.upload("things", &(2_000..2_400).map(document).collect::<Vec<_>>()).await;
    let filler = disk.fill();
    reads_continue(child, 2_400, |_| std::fs::remove_file(filler).unwrap()).await;
}
