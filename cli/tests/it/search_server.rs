//! `bindpost search` with the embedded service and its sample, and with the service of `--endpoint`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::bindpost;

/// A folder that is deleted with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the command in this folder, without keys in its environment.
fn search(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = bindpost(&["search"]);
    command
        .args(arguments)
        .current_dir(folder)
        .env_remove("AZURE_SEARCH_API_KEY")
        .env_remove("AZURE_SEARCH_KEY");
    command
}

/// A running server and the line that it printed.
struct Server(Child, Value);

impl Server {
    fn start(mut command: Command) -> Server {
        let mut child =
            command.args(["--port", "0", "--json"]).stdout(Stdio::piped()).spawn().expect("bindpost runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let said = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Server(child, said)
    }

    fn text(&self, pointer: &str) -> &str {
        self.1.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer}: {}", self.1))
    }

    fn indexes(&self) -> Vec<(&str, Option<u64>)> {
        let indexes = self.1["indexes"].as_array().expect("indexes");
        indexes
            .iter()
            .map(|index| (index["name"].as_str().expect("a name"), index["documents"].as_u64()))
            .collect()
    }

    /// Sends an MCP request and returns its response.
    fn ask(&self, request: &Value) -> Value {
        let (host, _) = self.text("/mcp").trim_start_matches("http://").split_once('/').expect("a path");
        let mut socket = TcpStream::connect(host).expect("connects");
        let body = request.to_string();
        write!(
            socket,
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("writes");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("reads");
        let begin = answer.find("{\"").unwrap_or_else(|| panic!("no JSON in {answer}"));
        let mut values = serde_json::Deserializer::from_str(&answer[begin..]).into_iter();
        values.next().expect("a message").expect("JSON")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asserts that the sample was created without warnings.
fn assert_fresh(server: &Server) {
    assert_eq!(server.1["warnings"], json!([]), "{}", server.1);
    let made = server.1["sample"].as_array().expect("what was made");
    assert!(
        made.contains(&json!("indexes/trails")) && made.contains(&json!("agents/trail-guide")),
        "{made:?}"
    );
}

#[test]
fn serves_the_sample_and_finds_it_again() {
    let folder = Folder::new("search-sample");
    let first = Server::start(search(&folder.0, &[]));
    assert_fresh(&first);
    assert_eq!(first.indexes(), [("trail-reports", Some(11)), ("trails", Some(40))]);
    assert!(folder.0.join(".bindpost/search/keys.json").is_file());
    let greeting = first.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    assert_eq!(greeting["result"]["serverInfo"]["name"], "bindpost-search", "{greeting}");
    assert!(greeting["result"]["instructions"].as_str().is_some_and(|text| text.contains("listIndexes")));

    // A second program cannot open the folder and reports this.
    let second = search(&folder.0, &["--port", "0"]).output().expect("bindpost runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && said.contains("another process") && said.contains("fix:"), "{said}");
    drop(first);

    let again = Server::start(search(&folder.0, &["--read-only"]));
    assert_eq!(again.indexes(), [("trail-reports", Some(11)), ("trails", Some(40))]);
    assert_eq!((&again.1["sample"], &again.1["readOnly"]), (&json!([]), &json!(true)));
}

#[test]
fn no_sample_creates_no_sample() {
    let folder = Folder::new("search-empty");
    let server = Server::start(search(&folder.0, &["--no-sample", "--data", "elsewhere"]));
    assert_eq!(server.indexes(), []);
    assert!(folder.0.join("elsewhere/service.redb").is_file());
}

#[test]
fn serves_the_service_of_endpoint_with_a_key_from_the_environment() {
    let folder = Folder::new("search-endpoint");
    let service = Server::start(search(&folder.0, &["--data", "data"]));
    let keys = std::fs::read(folder.0.join("data/keys.json")).expect("keys");
    let keys: Value = serde_json::from_slice(&keys).expect("JSON");
    let admin = keys["adminKeys"][0].as_str().expect("a key");
    let url = service.text("/service/url");

    for name in ["AZURE_SEARCH_API_KEY", "AZURE_SEARCH_KEY"] {
        let mut command = search(&folder.0, &["--endpoint", url]);
        command.env(name, admin);
        let server = Server::start(command);
        assert_eq!(server.indexes(), [("trail-reports", Some(11)), ("trails", Some(40))]);
        assert_eq!((server.text("/service/url"), &server.1["service"]["embedded"]), (url, &json!(false)));
        assert_eq!(server.1["warnings"], json!([]));
    }

    // With a wrong key the server starts with a warning and a fix. The key itself is not printed.
    let mut command = search(&folder.0, &["--endpoint", url]);
    command.env("AZURE_SEARCH_API_KEY", "not-the-key");
    let server = Server::start(command);
    let warning = &server.1["warnings"][0];
    assert!(warning["message"].as_str().is_some_and(|text| text.contains("(403)")), "{warning}");
    assert!(warning["fix"].as_str().is_some_and(|text| text.contains("AZURE_SEARCH_API_KEY")), "{warning}");
    assert!(!server.1.to_string().contains("not-the-key"));

    let none = search(&folder.0, &["--endpoint", url, "--port", "0"]).output().expect("bindpost runs");
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(!none.status.success() && said.contains("fix: export AZURE_SEARCH_API_KEY="), "{said}");
}

#[test]
fn the_start_screen_shows_service_sample_and_indexes() {
    let folder = Folder::new("search-screen");
    let mut child =
        search(&folder.0, &["--port", "0"]).stderr(Stdio::piped()).spawn().expect("bindpost runs");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut screen = String::new();
    while !screen.contains("trails  ") && stderr.read_line(&mut screen).is_ok_and(|read| read > 0) {}
    let _ = child.kill();
    let _ = child.wait();
    for part in
        ["/mcp", "Service    http://127.0.0.1:", "keys.json", "Sample ", "indexes/trails", "INDEXES (2)"]
    {
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }
}

#[test]
fn invalid_options_are_rejected_with_a_fix() {
    let folder = Folder::new("search-options");
    for (arguments, says) in [
        (vec!["--endpoint", "http://a.search.windows.net"], vec!["unencrypted", "fix: write https://"]),
        (vec!["--endpoint", "hotels"], vec!["hotels", "https://NAME.search.windows.net"]),
        (vec!["--endpoint", "https://a", "--no-sample"], vec!["--endpoint", "--no-sample"]),
        (vec!["--host", "0.0.0.0"], vec!["0.0.0.0", "fix: remove --host"]),
        (vec!["--stdio", "--json"], vec!["--stdio", "--json"]),
    ] {
        let output =
            search(&folder.0, &arguments).env("AZURE_SEARCH_KEY", "k").output().expect("bindpost runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        for part in says {
            assert!(stderr.contains(part), "{arguments:?} must print {part:?}, printed:\n{stderr}");
        }
    }
    assert!(!folder.0.join(".bindpost").exists(), "a folder was created");
}
