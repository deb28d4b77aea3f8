//! Tests of the program through its command line.
#![allow(clippy::expect_used, reason = "a test that cannot go on says why")]

mod openapi;
#[cfg(unix)]
mod run;
mod search_code;
mod search_crashes;
mod search_server;
mod search_service;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};

fn bindpost(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bindpost"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    bindpost(arguments).output().expect("bindpost runs")
}

/// A demo server and its address.
struct Demo(Child, String);

impl Demo {
    fn start() -> Demo {
        let mut child =
            bindpost(&["demo", "--port", "0"]).stderr(Stdio::piped()).spawn().expect("bindpost runs");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let address = stderr
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("http://")?.1.split('/').next()?.to_owned()))
            .expect("it prints its address");
        Demo(child, address)
    }

    fn post(&self, headers: &str, body: &str) -> String {
        let mut socket = TcpStream::connect(&self.1).expect("connects");
        let length = body.len();
        write!(
            socket,
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}",
            self.1
        )
        .expect("writes");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("reads");
        answer
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn lists_its_commands() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("demo"));
    let version = run(&["--version"]);
    assert_eq!(String::from_utf8_lossy(&version.stdout), format!("bindpost {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_call_in_the_readme_works() {
    let readme = include_str!("../../../README.md");
    let (_, call) = readme.split_once("$ curl").expect("the README calls the demo");
    let (call, _) = call.split_once("```").expect("the call ends");
    let quoted: Vec<&str> = call.split('\'').skip(1).step_by(2).collect();
    let (body, headers) = quoted.split_last().expect("a body");
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let answer = Demo::start().post(&headers, body);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains(r#""structuredContent":{"total":3.0}"#), "{answer}");
}

#[test]
fn serves_stdio_and_ends_with_its_input() {
    let mut child = bindpost(&["demo", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bindpost runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").expect("writes");
    drop(stdin);
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

#[test]
fn errors_name_the_problem_and_the_fix() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = taken.local_addr().expect("bound").port().to_string();
    for (arguments, says) in [
        (vec!["demo", "--port", &port], vec![port.as_str(), "fix: choose another port"]),
        (vec!["demo", "--host", "0.0.0.0", "--port", "0"], vec!["0.0.0.0", "fix: remove --host"]),
        (vec!["demo", "--allow-host", "http://x"], vec!["http://x", "fix: write the name without scheme"]),
        (
            vec!["demo", "--port", "0", "--allow-host", "example.com"],
            vec![
                "--allow-host example.com",
                "without authentication",
                "fix: remove --allow-host",
                "--without-auth",
            ],
        ),
        (vec!["demo", "--port", "0", "--allow-host", "*"], vec!["--allow-host *", "--without-auth"]),
        (vec!["search", "--port", "0", "--allow-host", "*"], vec!["--allow-host *", "--without-auth"]),
        (
            vec!["openapi", "no-such-file.json", "--port", "0", "--allow-host", "example.com"],
            vec!["--allow-host example.com", "--without-auth"],
        ),
        (vec!["demo", "--allow-origin", "x y"], vec!["x y", "https://example.com"]),
        (vec!["demo", "--port", "x"], vec!["--port", "x"]),
        (vec!["dmo"], vec!["dmo", "demo"]),
        (vec!["demo", "--stdio", "--port", "1"], vec!["--stdio", "--port"]),
    ] {
        let output = run(&arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        for part in says {
            assert!(stderr.contains(part), "{arguments:?} must print {part:?}, printed:\n{stderr}");
        }
    }
}
