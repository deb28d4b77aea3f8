//! `bindpost openapi`: serves a document and an upstream service as an MCP server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::bindpost;

/// A document in a temporary file, which is deleted with it.
struct Spec(PathBuf);

impl Spec {
    fn write(name: &str, server: Option<&str>) -> Spec {
        let mut document = json!({
            "openapi": "3.0.3",
            "info": {"title": "Pet shop", "version": "1.2"},
            "paths": {
                "/pets": {"get": {
                    "operationId": "listPets", "summary": "Lists pets", "tags": ["pets"],
                    "parameters": [{"name": "api-version", "in": "query", "schema": {"type": "string"}}],
                    "responses": {"200": {"description": "ok", "content": {"application/json": {"schema":
                        {"type": "array", "items": {"type": "object"}}}}}}}},
                "/pets/{petId}": {"delete": {
                    "operationId": "deletePet", "summary": "Deletes a pet",
                    "parameters": [{"name": "petId", "in": "path", "required": true, "schema": {"type": "string"}}],
                    "responses": {"204": {"description": "gone"}}}}
            }
        });
        if let Some(server) = server {
            document["servers"] = json!([{"url": server}]);
        }
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()));
        std::fs::write(&path, document.to_string()).expect("writes");
        Spec(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for Spec {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Starts a service that answers one request with two pets. Its thread returns the request.
fn shop() -> (String, std::thread::JoinHandle<String>) {
    answering(r#"[{"id":1},{"id":2}]"#)
}

/// Starts a service that answers one request with this body. Its thread returns the request.
fn answering(body: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let base = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a request");
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && socket.read(&mut byte).expect("reads") > 0 {
            head.push(byte[0]);
        }
        let length = body.len();
        write!(
            socket,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("writes");
        String::from_utf8_lossy(&head).to_lowercase()
    });
    (base, serving)
}

/// A server and the line that it printed.
struct Serving(Child, Value);

impl Serving {
    fn start(arguments: &[&str]) -> Serving {
        Serving::start_with(arguments, &[("BINDPOST_UPSTREAM_SECRET", "s3cret")])
    }

    fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Serving {
        let mut child = bindpost(arguments)
            .args(["--port", "0", "--json"])
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bindpost runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("one line");
        let said = serde_json::from_str(&line).expect("one line of JSON");
        Serving(child, said)
    }

    fn call(&self, tool: &str, arguments: Value) -> String {
        let url = self.1["url"].as_str().expect("an address");
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments,
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}}}})
        .to_string();
        let mut socket = TcpStream::connect(address).expect("connects");
        write!(
            socket,
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("writes");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("reads");
        answer
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn serves_a_document_with_a_key_and_a_fixed_parameter() {
    let spec = Spec::write("openapi-serves", None);
    let (base, shop) = shop();
    let serving = Serving::start(&[
        "openapi",
        spec.path(),
        "--base-url",
        &base,
        "--set",
        "api-version=7",
        "--key-header",
        "X-Api-Key",
    ]);
    let said = &serving.1;
    assert_eq!((&said["operations"], &said["tools"], &said["form"]), (&json!(2), &json!(2), &json!("whole")));
    assert!(said["listBytes"].as_u64().is_some_and(|bytes| bytes > 100), "{said}");
    let answer = serving.call("listPets", json!({}));
    assert!(answer.contains(r#""items":[{"id":1},{"id":2}]"#), "{answer}");
    let asked = shop.join().expect("asked");
    assert!(
        asked.starts_with("get /v1/pets?api-version=7 ") && asked.contains("x-api-key: s3cret"),
        "{asked}"
    );
}

#[test]
fn the_server_of_the_document_and_the_selection_are_applied() {
    let (base, shop) = shop();
    let spec = Spec::write("openapi-server", Some(&base));
    let serving = Serving::start(&["openapi", spec.path(), "--read-only", "--list-budget", "10", "--bearer"]);
    let said = &serving.1;
    assert_eq!(
        (&said["operations"], &said["tools"], &said["form"]),
        (&json!(1), &json!(3), &json!("three tools"))
    );
    let answer =
        serving.call("callOperation", json!({"operation": "deletePet", "arguments": {"petId": "1"}}));
    assert!(answer.contains("is read-only"), "{answer}");
    let answer = serving.call("callOperation", json!({"operation": "listPets"}));
    assert!(answer.contains(r#""items":[{"id":1},{"id":2}]"#), "{answer}");
    let asked = shop.join().expect("asked");
    assert!(asked.starts_with("get /v1/pets ") && asked.contains("authorization: bearer s3cret"), "{asked}");
}

#[test]
fn an_entra_identity_replaces_the_secret() {
    let (base, shop) = shop();
    let (identity, tokens) = answering(r#"{"access_token":"t0ken","expires_in":"86400"}"#);
    let spec = Spec::write("openapi-entra", Some(&base));
    let arguments = ["openapi", spec.path(), "--entra", "https://pets.example"];
    let serving =
        Serving::start_with(&arguments, &[("IDENTITY_ENDPOINT", &identity), ("IDENTITY_HEADER", "hush")]);
    let answer = serving.call("listPets", json!({}));
    assert!(answer.contains(r#""items":[{"id":1},{"id":2}]"#), "{answer}");
    assert!(shop.join().expect("asked").contains("authorization: bearer t0ken"));
    let asked = tokens.join().expect("asked");
    assert!(asked.contains("resource=https%3a%2f%2fpets.example") && asked.contains("hush"), "{asked}");
}

#[test]
fn with_stdio_the_start_screen_is_printed_on_stderr() {
    let spec = Spec::write("openapi-stdio", Some("https://pets.example/v1"));
    let mut child = bindpost(&["openapi", spec.path(), "--exclude", "nothing*", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bindpost runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n").expect("writes");
    drop(stdin);
    let output = child.wait_with_output().expect("ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(stdout.starts_with("{\"jsonrpc\"") && stdout.contains("deletePet"), "{stdout}");
    for says in [
        "Pet shop",
        "https://pets.example/v1",
        "2, whole: 2 tools",
        "bytes of tools/list",
        "\"nothing*\" denies no operation",
    ] {
        assert!(stderr.contains(says), "must print {says:?}, printed:\n{stderr}");
    }
}

#[test]
fn errors_contain_a_fix() {
    let spec = Spec::write("openapi-mistakes", Some("/relative"));
    let base = ["--base-url", "http://shop.example"];
    for (arguments, secret, says) in [
        (vec![], "", vec!["no absolute server URL", "fix: set it with --base-url"]),
        (vec!["--base-url", "shop.example"], "", vec!["not a URL", "https://api.example.com"]),
        (
            vec!["--base-url", "https://shop.example", "--bearer"],
            "",
            vec!["fix: set BINDPOST_UPSTREAM_SECRET"],
        ),
        ([&base[..], &["--bearer"]].concat(), "s", vec!["plain HTTP", "--allow-plain"]),
        (vec!["--base-url", "https://shop.example"], "s", vec!["no flag says how to send it", "--bearer"]),
        (vec!["--base-url", "https://shop.example", "--bearer"], "s\nx", vec!["invalid in a header", "fix:"]),
        ([&base[..], &["--set", "x"]].concat(), "", vec!["--set x", "NAME=VALUE"]),
        ([&base[..], &["--tag", "pet"]].concat(), "", vec!["none is selected", "fix:"]),
        (
            [&base[..], &["--bearer", "--pass-header", "authorization"]].concat(),
            "s",
            vec!["conflicts with --bearer", "fix:"],
        ),
        (
            [&base[..], &["--pass-header", "host", "--allow-plain"]].concat(),
            "",
            vec!["cannot be forwarded", "fix:"],
        ),
        ([&base[..], &["--host", "0.0.0.0"]].concat(), "", vec!["0.0.0.0", "fix: remove --host"]),
        ([&base[..], &["--bearer", "--key-query", "k"]].concat(), "s", vec!["--key-query", "--bearer"]),
    ] {
        let output = bindpost(&["openapi", spec.path()])
            .args(&arguments)
            .env("BINDPOST_UPSTREAM_SECRET", secret)
            .output()
            .expect("bindpost runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        for part in says {
            assert!(stderr.contains(part), "{arguments:?} must print {part:?}, printed:\n{stderr}");
        }
    }
    let output = bindpost(&["openapi", "https://shop.example/openapi.json"]).output().expect("bindpost runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("fix: download the document"), "{stderr}");
    let output = bindpost(&["openapi", "there-is-no-such.json"]).output().expect("bindpost runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("there-is-no-such.json"), "{stderr}");
}

#[test]
fn a_document_cannot_use_metadata_services_as_its_server() {
    for (at, server) in
        ["http://169.254.169.254", "http://0xA9FEA9FE/latest", "http://metadata.google.internal"]
            .into_iter()
            .enumerate()
    {
        let spec = Spec::write(&format!("reserved-{at}"), Some(server));
        let refused = bindpost(&["openapi", spec.path(), "--port", "0"]).output().expect("bindpost runs");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("metadata service"), "{said}");
        assert!(said.contains("fix: give --base-url"), "{said}");
        let allowed = Serving::start_with(&["openapi", spec.path(), "--base-url", server], &[]);
        assert_eq!(allowed.1["operations"], 2);
    }
}
