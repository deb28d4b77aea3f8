//! `bindpost search-service` keeps every acknowledged document when it is killed, when its files are
//! damaged and when the disk is full.

pub(crate) mod client;
mod model;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use self::client::{Client, Process};
use self::model::{Random, Writer};

const ROUNDS: u64 = 200;
const INDEX: &str = "/indexes('crash')";

/// A folder that is deleted with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("search-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn definition(name: &str) -> Value {
    json!({
        "name": name,
        "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "writer", "type": "Edm.Int32", "filterable": true},
            {"name": "n", "type": "Edm.Int64", "filterable": true},
            {"name": "text", "type": "Edm.String", "searchable": true},
            {"name": "v", "type": "Collection(Edm.Single)", "searchable": true, "retrievable": true,
                "dimensions": 3, "vectorSearchProfile": "p"},
        ],
        "suggesters": [{"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["text"]}],
        "vectorSearch": {
            "algorithms": [{"name": "a", "kind": "hnsw"}],
            "profiles": [{"name": "p", "algorithm": "a"}],
        },
    })
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = Folder::new("crash");
    let mut random = Random::new(0x5eed);
    let mut process = Process::start(&folder.0);
    let keys = fs::read(folder.0.join("keys.json")).expect("keys");
    assert_eq!(process.client().send("PUT", INDEX, Some(&definition("crash"))), Ok(201));
    let mut writers: Vec<Writer> = (0..3).map(Writer::new).collect();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let some = if round % 3 == 0 { 3 } else { 1 };
        let address = process.address.clone();
        let key = process.key.clone();
        thread::scope(|scope| {
            let (said, heard) = mpsc::channel();
            for writer in &mut writers[..some] {
                let mut own = Random::new(random.next());
                let (said, address, key) = (said.clone(), &address, &key);
                scope.spawn(move || {
                    // Writes until the process has ended.
                    while writer.write(&mut Client::new(address, key), &mut own) {
                        let _ = said.send(());
                    }
                });
            }
            if round % 25 == 10 {
                // Adds a field while documents are written.
                let mut client = Client::new(&address, &key);
                scope.spawn(move || add_field(&mut client, round));
            }
            if round % 5 == 0 {
                Client::new(&address, &key).send_half(&format!("{INDEX}/docs/search.index"));
            }
            let wanted = random.below(4);
            acknowledged += heard.iter().take(usize::try_from(wanted).expect("small")).count();
            thread::sleep(Duration::from_micros(random.below(20_000)));
            process.kill();
        });
        if round % 20 == 19 {
            damage_full_text(&folder.0, round / 20);
        }
        if round % 10 == 4 {
            // Kills a process while it starts.
            let mut starting = Process::spawn(&folder.0);
            thread::sleep(Duration::from_micros(random.below(150_000)));
            starting.kill().expect("ends");
            starting.wait().expect("ends");
        }
        process = Process::start(&folder.0);
        model::compare(&mut process.client(), &mut writers, round);
    }
    assert!(acknowledged > 100, "too few acknowledged batches: {acknowledged}");
    assert_eq!(fs::read(folder.0.join("keys.json")).expect("keys"), keys);
}

fn add_field(client: &mut Client, round: u64) {
    let Ok((200, mut index)) = client.ask("GET", INDEX, None) else { return };
    let field = json!({"name": format!("more{round}"), "type": "Edm.String", "filterable": true});
    index["fields"].as_array_mut().expect("fields").push(field);
    let _ = client.send("PUT", INDEX, Some(&index));
}

/// Damages one of the files that are derived from the documents.
fn damage_full_text(data: &Path, kind: u64) {
    let index =
        fs::read_dir(data.join("indexes")).expect("indexes").next().expect("one").expect("one").path();
    let folders = fs::read_dir(index).expect("an index").map(|entry| entry.expect("an entry").path());
    for text in folders.filter(|path| path.is_dir()) {
        match kind % 3 {
            0 => fs::remove_dir_all(text).expect("removes"),
            1 => fs::write(text.join("meta.json"), "{\"garbage\"").expect("writes"),
            _ => {
                let files =
                    fs::read_dir(text).expect("a folder").map(|entry| entry.expect("an entry").path());
                for file in
                    files.filter(|file| file.extension().is_some_and(|end| end == "store" || end == "term"))
                {
                    let bytes = fs::read(&file).expect("reads");
                    fs::write(&file, &bytes[..bytes.len() / 2]).expect("writes");
                }
            }
        }
    }
}

fn cut(file: &Path) {
    let bytes = fs::read(file).expect("reads");
    fs::write(file, &bytes[..bytes.len() / 3]).expect("writes");
}

/// Runs a start that fails. Returns its exit code and stderr.
fn failed_start(data: &Path) -> (Option<i32>, String) {
    let output = Process::command(data).output().expect("bindpost runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_damaged_file_is_reported_with_a_fix() {
    let folder = Folder::new("damage");
    let mut process = Process::start(&folder.0);
    let mut client = process.client();
    for name in ["good", "bad"] {
        assert_eq!(client.send("PUT", &format!("/indexes('{name}')"), Some(&definition(name))), Ok(201));
        let batch = json!({"value": [{"id": "1", "text": "word"}]});
        assert_eq!(
            client.send("POST", &format!("/indexes('{name}')/docs/search.index"), Some(&batch)),
            Ok(200)
        );
    }
    let (code, said) = failed_start(&folder.0);
    assert!(code == Some(1) && said.contains("another process") && said.contains("fix:"), "{code:?} {said}");
    process.kill();

    // The damaged index is rejected. The other index is served.
    let folders =
        fs::read_dir(folder.0.join("indexes")).expect("indexes").map(|entry| entry.expect("one").path());
    let bad = folders.into_iter().find(|path| path.to_string_lossy().contains("bad.")).expect("an index");
    cut(&bad.join("documents.redb"));
    let mut process = Process::start(&folder.0);
    let mut client = process.client();
    let (status, answer) = client.ask("GET", "/indexes('bad')/docs/$count", None).expect("answers");
    assert!(status == 503 && answer["error"]["code"] == "IndexUnavailable", "{status} {answer}");
    assert_eq!(client.send("GET", "/indexes('good')/docs('1')", None), Ok(200));
    let said = process.end();
    assert!(said.contains("bad") && said.contains("fix:") && !said.contains("panicked"), "{said}");

    // The file of definitions is damaged. The service starts without definitions and keeps the file.
    cut(&folder.0.join("service.redb"));
    let mut process = Process::start(&folder.0);
    let mut client = process.client();
    let (status, answer) = client.ask("GET", "/indexes", None).expect("answers");
    assert!(status == 200 && answer["value"] == json!([]), "{status} {answer}");
    let said = process.end();
    assert!(said.contains("service.redb.damaged-") && said.contains("fix:"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_rejects_batches_and_keeps_all_documents() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let folder = Folder::new("full");
    // A limit on the file size simulates a full disk: 4 MB, or 8 MB in some shells.
    let program = Process::command(&folder.0);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -S -f 8192; exec \"$0\" \"$@\""]);
    limited.arg(program.get_program()).args(program.get_args());
    limited.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process::started(limited.spawn().expect("a shell"), &folder.0);
    let mut client = process.client();
    assert_eq!(client.send("PUT", INDEX, Some(&definition("crash"))), Ok(201));
    let batch = |at: usize| {
        let document =
            |n: usize| json!({"id": format!("{at}-{n}"), "writer": at, "text": "long ".repeat(4000)});
        json!({"value": (0..20).map(document).collect::<Vec<_>>()})
    };
    let write = |client: &mut Client, at: usize| {
        client.send("POST", &format!("{INDEX}/docs/search.index"), Some(&batch(at)))
    };
    let count = |client: &mut Client| {
        let counted = client.ask("GET", &format!("{INDEX}/docs/$count"), None);
        counted.expect("answers").1.as_u64().expect("a number")
    };
    let taken = (0..100).find(|at| write(&mut client, *at) != Ok(200)).expect("the disk fills up");
    assert!(taken > 0);
    assert_eq!(write(&mut client, taken), Ok(507));
    let before = 20 * u64::try_from(taken).expect("small");
    assert_eq!(count(&mut client), before, "existing documents can be read");
    let search = json!({"search": "long", "filter": "writer eq 0", "select": "id"});
    let (_, found) =
        client.ask("POST", &format!("{INDEX}/docs/search.post.search"), Some(&search)).expect("answers");
    assert_eq!(found["value"].as_array().map(Vec::len), Some(20), "{found}");

    let pid = Pid::from_child(&process.child);
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: None, maximum: None }).expect("more room");
    assert_eq!(write(&mut client, taken), Ok(200));
    assert_eq!(count(&mut client), before + 20);
    process.kill();
    let process = Process::start(&folder.0);
    assert_eq!(count(&mut process.client()), before + 20);
}
