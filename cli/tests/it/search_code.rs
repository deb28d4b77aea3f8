//! `bindpost search pull`, `plan`, `test`, `push`, `export` and `import` as processes, killed in the middle.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bindpost;
use crate::search_crashes::client::{Client, Process};

/// A folder that is deleted with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("code-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("writes");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn replace(&self, name: &str, old: &str, new: &str) {
        let text = self.read(name);
        assert!(text.contains(old), "{old} in {text}");
        self.write(name, &text.replace(old, new));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A search service on a port that it keeps when it is restarted.
struct Service {
    process: Process,
    data: PathBuf,
}

impl Service {
    fn start(folder: &Folder, name: &str) -> Service {
        let data = folder.0.join(name);
        Service { process: Process::start(&data), data }
    }

    fn restart(&mut self) {
        self.process.kill();
        let port = self.process.address.rsplit(':').next().expect("a port").to_owned();
        let mut command = bindpost(&["search-service", "--port", &port, "--json", "--data"]);
        let child = command.arg(&self.data).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        self.process = Process::started(child.expect("bindpost runs"), &self.data);
    }

    fn client(&self) -> Client {
        self.process.client()
    }

    /// Returns a command for this service, with its key in the environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = search(arguments);
        command.args(["--endpoint", &format!("http://{}", self.process.address)]);
        command.env("AZURE_SEARCH_API_KEY", &self.process.key);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("bindpost runs")
    }

    /// Runs a command that must succeed. Returns its output.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{arguments:?}: {out}\n{err}");
        out
    }

    fn count(&self, index: &str) -> Value {
        self.client().ask("GET", &format!("/indexes('{index}')/docs/$count"), None).expect("a count").1
    }

    fn target(&self, alias: &str) -> Value {
        self.client().ask("GET", &format!("/aliases('{alias}')"), None).expect("an alias").1["indexes"][0]
            .clone()
    }
}

/// Returns a subcommand of `bindpost search`, without keys in its environment.
fn search(arguments: &[&str]) -> Command {
    let mut command = bindpost(&["search"]);
    command
        .args(arguments)
        .env_remove("AZURE_SEARCH_API_KEY")
        .env_remove("AZURE_SEARCH_KEY")
        .stdin(Stdio::null());
    command
}

fn texts(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

const INDEX: &str = r#"{
  "name": "hotels",
  "fields": [
    {"name": "id", "type": "Edm.String", "key": true},
    {"name": "title", "type": "Edm.String", "analyzer": "en.lucene"},
    {"name": "rating", "type": "Edm.Int32"}
  ]
}
"#;
const STANDARD: &str = "standard.lucene";

/// Returns this many hotels as JSON Lines.
fn hotels(count: usize) -> String {
    (0..count)
        .map(|number| {
            let document = json!({"id": format!("h{number:06}"), "title": format!("Hotels by the beach, number {number}"), "rating": number % 5});
            format!("{document}\n")
        })
        .collect()
}

/// Creates a folder of definitions with one index.
fn definitions(folder: &Folder) {
    folder.write("code/search.json", "{\"version\": 1}");
    folder.write("code/indexes/hotels.json", INDEX);
    folder.write("code/synonym-maps/words.json", "{\"name\": \"words\", \"synonyms\": [\"a, b\"]}");
}

/// Waits until a file exists, or the process has ended.
fn wait_for_file(path: &str, child: &mut Child) {
    while !Path::new(path).exists() && child.try_wait().expect("a status").is_none() {
        thread::sleep(Duration::from_millis(2));
    }
}

fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn a_service_moves_to_another_with_its_documents() {
    let folder = Folder::new("moves");
    let (first, second) = (Service::start(&folder, "first"), Service::start(&folder, "second"));
    definitions(&folder);
    let code = folder.path("code");
    first.done(&["push", &code, "--yes"]);
    folder.write("hotels.jsonl", &hotels(2_000));
    let out = first.done(&["import", "hotels", &folder.path("hotels.jsonl")]);
    assert_eq!(out, "2000 documents imported into hotels\n");

    let pulled = folder.path("pulled");
    let out = first.done(&["pull", &pulled, "--documents", "5"]);
    assert!(out.contains("+ indexes/hotels.json") && out.contains("+ documents/hotels.jsonl"), "{out}");
    let index = folder.read("pulled/indexes/hotels.json");
    assert!(index.starts_with("{\n  \"name\": \"hotels\",\n  \"fields\": [\n    {\"name\": \"id\", \"type\": \"Edm.String\", \"key\": true,"), "{index}");
    assert_eq!(first.run(&["plan", &pulled, "--check"]).status.code(), Some(0));

    let differs = second.run(&["plan", &pulled, "--check", "--format", "json"]);
    assert_eq!(differs.status.code(), Some(2));
    let plan: Value = serde_json::from_slice(&differs.stdout).expect("JSON");
    assert_eq!(plan["summary"]["create"], 2, "{plan}");
    let fingerprint = plan["fingerprint"].as_str().expect("a fingerprint");
    let out = second.done(&["push", &pulled, "--yes", "--fingerprint", fingerprint]);
    assert!(out.contains("✓ create the alias hotels of hotels-v1"), "{out}");
    assert!(out.ends_with("Applied: the service is as the folder says.\n"), "{out}");
    first.done(&["export", "hotels", &folder.path("out.jsonl.gz")]);
    second.done(&["import", "hotels", &folder.path("out.jsonl.gz")]);
    assert_eq!(second.count("hotels"), 2_000);
    second.done(&["export", "hotels", &folder.path("again.jsonl")]);
    let lines = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    assert_eq!(lines(&folder.read("again.jsonl")), lines(&folder.read("hotels.jsonl")));

    // The embedded service works by its folder, while no other program uses it.
    let third = folder.path("third");
    fs::create_dir(&third).expect("a folder");
    let output = search(&["push", &pulled, "--yes", "--data", &third, "--format", "md"])
        .output()
        .expect("bindpost runs");
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.starts_with("## ✅ Search push"), "{out}\n{err}");
    let output = search(&["plan", &pulled, "--check", "--data", &third]).output().expect("bindpost runs");
    assert_eq!(output.status.code(), Some(0), "{:?}", texts(&output));
}

#[test]
fn a_push_that_is_killed_continues_and_loses_nothing() {
    const DOCUMENTS: usize = 12_000;
    let folder = Folder::new("killed-push");
    let mut service = Service::start(&folder, "service");
    definitions(&folder);
    let code = folder.path("code");
    service.done(&["push", &code, "--yes"]);
    folder.write("hotels.jsonl", &hotels(DOCUMENTS));
    service.done(&["import", "hotels", &folder.path("hotels.jsonl")]);
    folder.replace("code/indexes/hotels.json", "en.lucene", STANDARD);
    folder.replace("code/synonym-maps/words.json", "a, b", "c, d");

    let mut kills = 0;
    for round in 0..4_u64 {
        let mut child = service
            .command(&["push", &code, "--yes"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("runs");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        // The first rounds are killed in the copy, which begins with its first page.
        let is_copying = lines.any(|line| line.contains("copy hotels-v1 to hotels-v2:"));
        thread::sleep(Duration::from_millis(40 * round));
        if is_copying && child.try_wait().expect("a status").is_none() {
            kills += 1;
        }
        kill(&mut child);
        // Searches use the old index, which is complete.
        assert_eq!(service.count("hotels"), DOCUMENTS);
    }
    assert!(kills > 0, "no push was killed in its copy");
    let waiting = service.done(&["plan", &code]);
    assert!(
        waiting.contains("a push was interrupted") && waiting.contains("push --rollback undoes it"),
        "{waiting}"
    );
    // The service is killed too, and loses nothing that it has acknowledged.
    service.restart();
    let out = service.done(&["push", &code, "--yes"]);
    assert!(out.contains("continued a push that was interrupted"), "{out}");
    assert_eq!((service.count("hotels"), service.target("hotels")), (json!(DOCUMENTS), json!("hotels-v2")));
    assert_eq!(service.count("hotels-v2"), DOCUMENTS);
    assert_eq!(service.run(&["plan", &code, "--check"]).status.code(), Some(0));

    let out = service.done(&["push", &code, "--yes", "--rollback"]);
    assert!(out.ends_with("Rolled back: the service is as before the push.\n"), "{out}");
    assert_eq!((service.count("hotels"), service.target("hotels")), (json!(DOCUMENTS), json!("hotels-v1")));
}

#[test]
fn a_push_whose_service_is_killed_rolls_back_when_it_is_there_again() {
    const DOCUMENTS: usize = 6_000;
    let folder = Folder::new("killed-service");
    let mut service = Service::start(&folder, "service");
    definitions(&folder);
    let code = folder.path("code");
    service.done(&["push", &code, "--yes"]);
    folder.write("hotels.jsonl", &hotels(DOCUMENTS));
    service.done(&["import", "hotels", &folder.path("hotels.jsonl")]);
    let before = folder.read("code/indexes/hotels.json");
    folder.replace("code/indexes/hotels.json", "en.lucene", STANDARD);
    folder.replace("code/synonym-maps/words.json", "a, b", "c, d");

    let mut child = service
        .command(&["push", &code, "--yes"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("runs");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("copy hotels-v1 to hotels-v2:")));
    service.process.kill();
    let rest: Vec<String> = lines.collect();
    let ended = child.wait().expect("ends");
    assert_eq!(ended.code(), Some(1));
    let said = rest.join("\n");
    assert!(
        said.contains("the rollback could not be completed") && said.contains("fix: push again"),
        "{said}"
    );

    service.restart();
    folder.write("code/indexes/hotels.json", &before);
    folder.replace("code/synonym-maps/words.json", "c, d", "a, b");
    let out = service.done(&["push", &code, "--yes"]);
    assert!(out.contains("rolled back a push that was interrupted"), "{out}");
    assert_eq!((service.count("hotels"), service.target("hotels")), (json!(DOCUMENTS), json!("hotels-v1")));
    let indexes = service.client().ask("GET", "/indexes", None).expect("indexes").1;
    assert_eq!(indexes["value"].as_array().map(Vec::len), Some(1), "{indexes}");
}

#[test]
fn an_import_and_an_export_that_are_killed_continue() {
    const DOCUMENTS: usize = 12_000;
    let folder = Folder::new("killed-import");
    let service = Service::start(&folder, "service");
    definitions(&folder);
    service.done(&["push", &folder.path("code"), "--yes"]);
    folder.write("hotels.jsonl", &hotels(DOCUMENTS));
    let file = folder.path("hotels.jsonl");
    let mut continued = 0;
    for round in 0..3_u64 {
        let mut child = service
            .command(&["import", "hotels", &file])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("runs");
        wait_for_file(&format!("{file}.import.json"), &mut child);
        thread::sleep(Duration::from_millis(30 * round));
        kill(&mut child);
        continued += usize::from(Path::new(&format!("{file}.import.json")).exists());
    }
    assert!(continued > 0, "no import was killed in the middle");
    let out = service.done(&["import", "hotels", &file]);
    assert!(out.starts_with("12000 documents imported into hotels (continued after line "), "{out}");
    assert_eq!(service.count("hotels"), DOCUMENTS);
    assert!(!Path::new(&format!("{file}.import.json")).exists());

    for name in ["out.jsonl", "out.jsonl.gz"] {
        let out = folder.path(name);
        for round in 0..3_u64 {
            let mut child = service
                .command(&["export", "hotels", &out])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("runs");
            wait_for_file(&format!("{out}.part.json"), &mut child);
            thread::sleep(Duration::from_millis(20 * round));
            kill(&mut child);
            if Path::new(&out).exists() {
                fs::remove_file(&out).expect("removes");
            }
        }
        let told = service.done(&["export", "hotels", &out]);
        assert!(told.starts_with("12000 documents exported to "), "{told}");
        assert!(!Path::new(&format!("{out}.part")).exists());
    }
    assert_eq!(folder.read("out.jsonl").lines().count(), DOCUMENTS);
    // Read back, so that every page of the compressed file counts.
    service.done(&["import", "hotels", &folder.path("out.jsonl.gz"), "--action", "delete"]);
    assert_eq!(service.count("hotels"), 0);
}

#[test]
fn a_relevance_regression_is_red_in_ci() {
    let folder = Folder::new("relevance");
    definitions(&folder);
    folder.write(
        "code/search.json",
        r#"{"version": 1, "tests": {"hotels": {"k": 5, "minimum": {"ndcg": 0.9, "recall": 0.9}}}}"#,
    );
    folder.write("code/documents/hotels.jsonl", &hotels(3));
    folder.write(
        "code/judgements/hotels.jsonl",
        "{\"id\": \"stem\", \"search\": \"hotel\", \"judgements\": {\"h000000\": 1, \"h000001\": 1, \"h000002\": 1}, \"expect\": [\"h000001\"]}\n",
    );
    let code = folder.path("code");
    let run = |format: &str| {
        let output = search(&["test", &code, "--format", format]).output().expect("bindpost runs");
        (output.status.code(), texts(&output))
    };
    let (status, (out, err)) = run("text");
    assert_eq!(status, Some(0), "{out}\n{err}");
    assert!(
        out.contains("✓ ndcg@5  1.000, at least 0.9") && out.ends_with("6 of 6 checks passed\n"),
        "{out}"
    );

    folder.replace("code/indexes/hotels.json", "en.lucene", "keyword");
    let (status, (junit, _)) = run("junit");
    assert_eq!(status, Some(1));
    assert!(junit.starts_with("<?xml") && junit.contains("tests=\"6\" failures=\"3\""), "{junit}");
    assert!(junit.contains("<testcase classname=\"hotels\" name=\"ndcg@5\">\n      <failure message=\"ndcg@5 is 0.000, but search.json requires 0.9\">"), "{junit}");
    let (status, (md, _)) = run("md");
    assert_eq!(status, Some(1));
    assert!(md.starts_with("## ❌ Search test") && md.contains("| ❌ | stem |"), "{md}");
    let (status, (json, _)) = run("json");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((status, &report["passed"], &report["failed"]), (Some(1), &json!(false), &json!(3)));
}

#[test]
fn mistakes_are_explained() {
    let folder = Folder::new("mistakes");
    definitions(&folder);
    let (code, nothing, data) = (folder.path("code"), folder.path("nothing"), folder.path("data"));
    fs::create_dir(&data).expect("a folder");
    for (arguments, says) in [
        (vec!["plan", &nothing], "fix: create it with bindpost search pull DIR"),
        (vec!["plan", &code, "--data", &nothing], "fix: name a service with --endpoint URL"),
        (vec!["plan", &code, "--endpoint", "http://127.0.0.1:1"], "fix: export AZURE_SEARCH_API_KEY=KEY"),
        (vec!["test", &code, "--only", "x"], "judgements/x.jsonl: no such file"),
        (vec!["export", "hotels", &code, "--data", &data], "fix: choose another name"),
        (vec!["import", "hotels", &nothing, "--data", &data], "nothing: "),
    ] {
        let output = search(&arguments).output().expect("bindpost runs");
        let (_, err) = texts(&output);
        assert!(!output.status.success() && err.contains(says), "{arguments:?}: {err}");
    }
    let service = Service::start(&folder, "service");
    let output = service.run(&["push", &code]);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("fix: add --yes") && err.contains("+ indexes/hotels.json  create"), "{err}");
    folder.replace(
        "code/synonym-maps/words.json",
        "\"name\"",
        "\"encryptionKey\": {\"accessCredentials\": {\"applicationSecret\": \"tell\"}}, \"name\"",
    );
    let (_, err) = texts(&service.run(&["push", &code, "--yes"]));
    assert!(
        err.contains(
            "synonym-maps/words.json: encryptionKey/accessCredentials/applicationSecret has a secret in it"
        ),
        "{err}"
    );
    assert!(!err.contains("tell"), "{err}");
}
