//! `bindpost search-service`, used as docs/search-service.md describes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::bindpost;

const DOCUMENT: &str = include_str!("../../../docs/search-service.md");
/// The address in the commands of the document.
const DOCUMENTED: &str = "127.0.0.1:8181";

/// A service with its own folder. Dropping it stops the service and deletes the folder.
struct Service {
    child: Child,
    folder: PathBuf,
    address: String,
    key: String,
}

impl Service {
    /// Starts the service with the first command of the document, on a free port and in another folder.
    fn start() -> Service {
        let command = DOCUMENT
            .lines()
            .find_map(|line| line.strip_prefix("cargo run -- "))
            .expect("the document starts the service");
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("search-service-{}", std::process::id()));
        let place = folder.to_string_lossy();
        let mut arguments: Vec<&str> =
            command.split(' ').map(|word| if word == "search-data" { &*place } else { word }).collect();
        arguments.extend(["--port", "0", "--json"]);
        let mut child = bindpost(&arguments).stdout(Stdio::piped()).spawn().expect("bindpost runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it prints its address");
        let said: Value = serde_json::from_str(&line).expect("one line of JSON");
        let text = |pointer: &str| said.pointer(pointer).and_then(Value::as_str).expect(pointer).to_owned();
        let address = text("/url").trim_start_matches("http://").to_owned();
        Service { child, folder, address, key: text("/newKeys/admin/0") }
    }

    /// Runs a curl command of the document. Returns status and body of the response.
    fn curl(&self, command: &str) -> (u16, Value) {
        let mut words = words(command, &self.key).into_iter();
        let (mut url, mut headers, mut body) = (String::new(), String::new(), String::new());
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("an option has its value");
            match word.as_str() {
                "curl" | "-s" => {}
                "-H" => headers += &format!("{}\r\n", value()),
                "-d" => body = value(),
                _ => url = word,
            }
        }
        let path = url.strip_prefix("http://").and_then(|url| url.strip_prefix(DOCUMENTED)).expect(&url);
        let mut socket = TcpStream::connect(&self.address).expect("connects");
        write!(
            socket,
            "POST {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("writes");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("reads");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).expect("JSON"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Splits a command into words as a shell does. Quotes are removed, and `$KEY` in double quotes is
/// replaced by the key.
fn words(command: &str, key: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|letter| matches!(letter, '\'' | '"'));
        let (word, after) = match quote {
            Some(quote) => rest.get(1..).and_then(|rest| rest.split_once(quote)).expect("the quote ends"),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        match quote {
            Some('"') => words.push(word.replace("$KEY", key)),
            // The command continues on the next line.
            None if word == "\\" => {}
            _ => words.push(word.to_owned()),
        }
        rest = after.trim_start();
    }
    words
}

#[test]
fn the_first_search_of_the_documentation_works() {
    let (_, console) = DOCUMENT.split_once("```console\n").expect("the document has commands");
    let (console, rest) = console.split_once("```").expect("the block ends");
    let (_, shown) = rest.split_once("```json\n").expect("the answer is shown");
    let (shown, _) = shown.split_once("```").expect("it ends");
    let service = Service::start();
    let commands = console.split("$ ").filter(|command| command.starts_with("curl"));
    let answers: Vec<(u16, Value)> = commands.map(|command| service.curl(command)).collect();
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [201, 200, 200], "{answers:?}");
    let shown: Value = serde_json::from_str(shown).expect("JSON");
    assert_eq!(answers.last().map(|(_, found)| found), Some(&shown));
}
