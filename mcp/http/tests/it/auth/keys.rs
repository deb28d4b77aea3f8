//! API keys: where they are read from, invalid keys, and key files.

use std::path::PathBuf;
use std::time::Duration;

use bindpost_mcp_http::listener::Drain;
use bindpost_mcp_http::{AnonymousAccess, AnyAuthorizer, ApiKeys, Auth, Authorizer as _, Endpoint, bind};
use serde_json::json;

use super::*;
use crate::client::{Ask, LATEST, TestServer, attentive, within};
use crate::logs::Warnings;

fn call() -> Ask {
    Ask::modern_call("whoami", json!({}))
}

#[tokio::test]
async fn every_unknown_key_gets_the_same_response() {
    let server = TestServer::of(mixed(), with_keys()).await;
    for way in WAYS {
        let talk = Talk::open(&server, way, NO_KEY).await;
        let message = request("tools/call", json!({"name": "whoami"}));
        let mut answers = Vec::new();
        for key in [
            "alice's kex",
            "alice's ke",
            "alice's key ",
            "alice's key!",
            "ALICE'S KEY",
            "x",
            "",
            "alice",
            "*",
        ] {
            if key == "alice's key " {
                // White space around a header value is not part of it.
                continue;
            }
            let reply = server.send(&talk.ask_for(&message).header("x-api-key", key)).await;
            reply.refused(401, -32001);
            answers.push((reply.headers["www-authenticate"].clone(), reply.body));
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{way:?} {answers:?}");
    }
    let long = "k".repeat(30_000);
    server.send(&call().header("x-api-key", &long)).await.refused(401, -32001);
}

#[tokio::test]
async fn a_duplicate_key_is_400_for_every_request() {
    let server = TestServer::of(mixed(), with(Auth::new(keys().bearer().in_query("code")))).await;
    let twice: Credentials = &[("x-api-key", "alice's key"), ("x-api-key", "alice's key")];
    let both: Credentials = &[("authorization", "Bearer alice's key"), ("authorization", "Bearer bob's key")];
    for way in WAYS {
        let talk = Talk::open(&server, way, NO_KEY).await;
        for credentials in [twice, both] {
            for tool in ["whoami", "time"] {
                let reply = talk.send(&request("tools/call", json!({"name": tool})), credentials).await;
                reply.refused(400, -32600);
                assert_eq!(challenge(&reply.headers).1["error"], "invalid_request", "{way:?}");
            }
        }
    }
    for ask in [
        Ask::initialize(LATEST),
        Ask::new("GET", "/mcp"),
        Ask::new("DELETE", "/mcp"),
        Ask::new("GET", "/sse"),
    ] {
        server.send(&carrying(ask, twice)).await.refused(400, -32600);
    }
    server.send(&call().at("/mcp?code=a&code=a")).await.refused(400, -32600);
}

#[tokio::test]
async fn a_key_is_read_only_from_the_enabled_places() {
    let in_header = |name: &'static str, value: &'static str| call().header(name, value);
    let query = "/mcp?x=1&code=alice%27s%20key";
    for (keys, ask, is_read) in [
        (keys(), in_header("x-api-key", "alice's key"), true),
        (keys(), in_header("X-API-Key", "alice's key"), true),
        (keys(), in_header("authorization", "Bearer alice's key"), false),
        (keys(), in_header("authorization", "alice's key"), false),
        (keys(), call().at(query), false),
        (keys(), in_header("cookie", "x-api-key=alice's key"), false),
        (keys().bearer(), in_header("authorization", "Bearer alice's key"), true),
        (keys().bearer(), in_header("authorization", "bearer   alice's key"), true),
        (keys().bearer(), in_header("authorization", "Basic alice's key"), false),
        (keys().bearer(), in_header("authorization", "Bearer"), false),
        (keys().bearer(), in_header("authorization", "Beareralice's key"), false),
        (keys().bearer(), in_header("x-api-key", "alice's key"), true),
        (keys().header("x-functions-key"), in_header("x-functions-key", "alice's key"), true),
        (keys().header("x-functions-key"), in_header("x-api-key", "alice's key"), false),
        (keys().in_query("code"), call().at(query), true),
        (keys().in_query("key"), call().at(query), false),
        (keys().in_query("code"), call().at("/mcp?code="), false),
        (keys().in_query("code"), call().at("/mcp?code=alice%27s%20ke%7"), false),
        // The header has precedence.
        (keys().in_query("code"), in_header("x-api-key", "wrong").at(query), false),
    ] {
        let server = TestServer::of(mixed(), with(Auth::new(keys))).await;
        let reply = server.send(&ask).await;
        if is_read {
            assert_eq!(reply.tool_text(), "key:alice", "{ask:?}");
        } else {
            reply.refused(401, -32001);
        }
    }
}

#[tokio::test]
async fn two_authorizers_are_tried_in_order() {
    let machines = ApiKeys::new().header("x-machine-key").key("robot", "beep");
    let auth = Auth::new(ApiKeys::new().key("alice", "alice's key").or(machines));
    let server = TestServer::of(mixed(), with(auth)).await;
    let as_robot = |ask: Ask| ask.header("x-machine-key", "beep");
    assert_eq!(server.send(&carrying(call(), ALICE)).await.tool_text(), "key:alice");
    assert_eq!(server.send(&as_robot(call())).await.tool_text(), "key:robot");
    assert_eq!(server.send(&as_robot(carrying(call(), WRONG))).await.tool_text(), "key:robot");
    assert_eq!(server.send(&as_robot(carrying(call(), ALICE))).await.tool_text(), "key:alice");

    let refused = server.send(&call()).await;
    refused.refused(401, -32001);
    let schemes = challenges(&refused.headers);
    assert_eq!(schemes[0].1, parameters(&[("realm", "mcp"), ("header", "x-api-key")]));
    assert_eq!(schemes[1].1, parameters(&[("realm", "mcp"), ("header", "x-machine-key")]));
    // The authorizer that got credentials reports the error, in the first challenge.
    for ask in [carrying(call(), WRONG), call().header("x-machine-key", "boop")] {
        let refused = server.send(&ask).await;
        assert_eq!(refused.refused(401, -32001)["error"]["message"], "the API key is not known");
        assert_eq!(challenges(&refused.headers)[0].1["error"], "invalid_token");
    }
    let twice = call().header("x-machine-key", "beep").header("x-machine-key", "beep");
    server.send(&twice).await.refused(400, -32600);
}

#[tokio::test]
async fn mistakes_in_keys_are_reported_when_the_server_starts() {
    let any = AnyAuthorizer::new;
    let combined = ApiKeys::new().key("ops", "").or(ApiKeys::new());
    for (keys, problem) in [
        (ApiKeys::new().key("", "secret"), "no name"),
        (ApiKeys::new().key("ops", ""), "no secret"),
        (ApiKeys::new().key("ops", "secret").key("ops", "other"), "twice"),
        (ApiKeys::new().key("ops", "secret").key("dev", "secret"), "same secret"),
        (ApiKeys::new().key("ops", " secret"), "a header cannot hold"),
        (ApiKeys::new().key("ops", "sec\r\nret"), "a header cannot hold"),
        (ApiKeys::new().key("o\nps", "secret"), "control characters"),
        (ApiKeys::new().header("x api key"), "x api key"),
    ]
    .map(|(keys, problem)| (any(keys), problem))
    .into_iter()
    .chain([(AnyAuthorizer::new(combined), "no secret")])
    .map(|(keys, problem)| (Auth::new(keys), problem))
    {
        let (_trigger, drain) = Drain::new();
        let bound = bind("127.0.0.1:0").await.unwrap();
        let refused = within(bound.serve_until(protected(), with(keys), drain)).await.unwrap_err();
        assert!(refused.to_string().contains(problem), "{refused}");
        assert!(!refused.to_string().contains("secret\""), "{refused}");
    }
}

#[test]
fn debug_output_shows_only_the_names_of_keys() {
    let shown = format!("{:?} {:?}", keys(), with_keys().auth);
    assert!(shown.contains("alice") && !shown.contains("alice's key"), "{shown}");
}

// Files.

/// A file that is deleted after the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let file = File(std::env::temp_dir().join(format!("bindpost-{}-{name}.keys", std::process::id())));
        file.write(text);
        file
    }

    /// Writes the file with a modification time two seconds ago, so that it is considered complete.
    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
        let then = std::time::SystemTime::now() - Duration::from_secs(2);
        std::fs::File::options().append(true).open(&self.0).unwrap().set_modified(then).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const SOON: Duration = Duration::from_millis(20);

async fn serving(file: &File) -> TestServer {
    let keys = ApiKeys::from_file(&file.0).unwrap().look_every(SOON);
    let auth = Auth::new(keys).opening(AnonymousAccess::Closed);
    TestServer::of(mixed(), Settings { auth: Some(auth), ..attentive() }).await
}

/// Waits until a call with these credentials gets this status.
async fn until(server: &TestServer, status: u16, credentials: Credentials, ask: Ask) {
    let ask = carrying(ask, credentials);
    within(async {
        while server.send(&ask).await.status != status {
            tokio::time::sleep(SOON).await;
        }
    })
    .await;
}

const OTHER: Credentials = &[("x-api-key", "other")];
const FIRST: Credentials = &[("x-api-key", "first")];

#[tokio::test]
async fn keys_can_be_read_from_a_file() {
    let file = File::new(
        "read",
        "\u{feff}# Ours\n\n ops = first \r\n  dev=other orders.read orders.write\n  #x = y\n",
    );
    let server = serving(&file).await;
    assert_eq!(server.send(&carrying(call(), FIRST)).await.tool_text(), "key:ops");
    assert_eq!(
        server.send(&carrying(Ask::modern_call("write", json!({})), OTHER)).await.tool_text(),
        "key:dev"
    );
    server.send(&carrying(Ask::modern_call("read", json!({})), FIRST)).await.refused(403, -32001);
    server.send(&call().header("x-api-key", "y")).await.refused(401, -32001);
}

#[test]
fn an_error_in_a_file_names_the_line() {
    for (text, line, problem) in [
        ("ops = a\nno key here\n", "line 2", "name = secret"),
        ("# x\n\n= a\n", "line 3", "no name"),
        ("ops =\n", "line 1", "no secret"),
        ("ops = a\nops = b\n", "line 2", "twice"),
        ("ops = a\ndev = a\n", "line 2", "same secret"),
        ("# x\nada = a desk, catalog\n", "line 2", "by spaces; remove the comma after \"desk\""),
        ("ada = a desk,catalog\n", "line 1", "replace the comma in \"desk,catalog\""),
        ("ada = a desk ,\n", "line 1", "replace the comma in \",\""),
        ("ada=hunter2,desk\n", "line 1", "the secret of the API key \"ada\" has a comma"),
        ("ada = hunter2, desk\n", "line 1", "the secret of the API key \"ada\" has a comma"),
        ("ops = a\nada = a desk # Ada\n", "line 2", "a comment needs a line of its own"),
        ("ada = a desk# Ada\n", "line 1", "a comment needs a line of its own"),
        ("ada = # hunter2\n", "line 1", "a comment needs a line of its own"),
        ("quo = \"hunter2 words\" desk\n", "line 1", "is in quotes; remove them"),
        ("quo = 'hunter2'\n", "line 1", "is in quotes; remove them"),
        ("quo = a \"desk\"\n", "line 1", "without quotes; remove them around \"desk\""),
        ("\"quo\" = a\n", "line 1", "the name of an API key is written without quotes"),
    ] {
        let file = File::new("broken", text);
        let error = ApiKeys::from_file(&file.0).unwrap_err().to_string();
        assert!(error.contains(line) && error.contains(problem), "{error}");
        assert!(error.contains("broken.keys, line"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let error = ApiKeys::from_file("/no/such/file").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains("/no/such/file"), "{error}");
    let file = File::new("broken", "");
    std::fs::write(&file.0, [b'a', b'=', 0xff]).unwrap();
    assert!(ApiKeys::from_file(&file.0).is_err());
    file.write(&"# nothing\n".repeat(200_000));
    assert!(ApiKeys::from_file(&file.0).unwrap_err().to_string().contains("1 MiB"));
    let many: String = (0..1_001).map(|number| format!("k{number} = s{number}\n")).collect();
    file.write(&many);
    assert!(ApiKeys::from_file(&file.0).unwrap_err().to_string().contains("line 1001"));
}

/// Keys that programs create have these characters.
#[tokio::test]
async fn a_secret_may_have_signs() {
    for secret in ["AzFu-_x/y+z==", "it's#1", "a=b", "ünï"] {
        let file = File::new("signs", &format!("ops={secret} orders.read\n"));
        let server = serving(&file).await;
        let reply = server.send(&call().header("x-api-key", secret)).await;
        assert_eq!(reply.tool_text(), "key:ops", "{secret}");
    }
}

#[test]
fn a_scope_that_no_entry_requires_is_reported_at_the_start() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let file = File::new("scopes", "ops = first orders.read order.write\ndev = other billing\n");
    let keys = ApiKeys::from_file(&file.0).unwrap().key_with_scopes("code", "third", ["orders.write"]);
    let _ = Endpoint::new(mixed(), with(Auth::new(ApiKeys::new().or(keys))));
    assert_eq!(
        *warnings.0.lock().unwrap(),
        [
            "the API key \"ops\" has the scope \"order.write\", which no entry requires; did you mean \"orders.write\"?",
            "the API key \"dev\" has the scope \"billing\", which no entry requires",
        ]
    );
}

#[tokio::test]
async fn a_file_is_reloaded_when_it_changes() {
    let file = File::new("changes", "ops = first\n");
    let server = serving(&file).await;
    server.send(&carrying(call(), FIRST)).await.result();
    server.send(&carrying(call(), OTHER)).await.refused(401, -32001);
    file.write("ops = first\ndev = other\n");
    until(&server, 200, OTHER, call()).await;
    server.send(&carrying(call(), FIRST)).await.result();
    // A file with a mistake or a deleted file changes nothing.
    for broken in ["ops = first\nops = x\n", "ops\n"] {
        file.write(broken);
        tokio::time::sleep(10 * SOON).await;
        server.send(&carrying(call(), FIRST)).await.result();
        server.send(&carrying(call(), OTHER)).await.result();
    }
    std::fs::remove_file(&file.0).unwrap();
    tokio::time::sleep(10 * SOON).await;
    server.send(&carrying(call(), FIRST)).await.result();
    file.write("dev = other\n");
    until(&server, 401, FIRST, call()).await;
    server.send(&carrying(call(), OTHER)).await.result();
    // The last key can be removed too.
    file.write("# none\n");
    until(&server, 401, OTHER, call()).await;
}

#[tokio::test]
async fn a_file_that_is_being_written_is_not_read() {
    let file = File::new("written", "ops = first\n");
    let server = serving(&file).await;
    // The modification time is now, so the file may be incomplete.
    std::fs::write(&file.0, "").unwrap();
    tokio::time::sleep(10 * SOON).await;
    server.send(&carrying(call(), FIRST)).await.result();
    std::fs::write(&file.0, "ops = other\n").unwrap();
    until(&server, 200, OTHER, call()).await;
    server.send(&carrying(call(), FIRST)).await.refused(401, -32001);
}

/// A program updates the modification time continuously, like a synchronizer or an attacker that can do
/// only this.
#[tokio::test]
async fn a_removed_key_is_rejected_although_its_file_is_touched_continuously() {
    let file = File::new("touched", "ops = first\ndev = other\n");
    let server = serving(&file).await;
    let path = file.0.clone();
    let touching = tokio::spawn(async move {
        loop {
            let opened = std::fs::File::options().append(true).open(&path).unwrap();
            opened.set_modified(std::time::SystemTime::now()).unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.send(&carrying(call(), FIRST)).await.result();
    std::fs::write(&file.0, "dev = other\n").unwrap();
    until(&server, 401, FIRST, call()).await;
    server.send(&carrying(call(), OTHER)).await.result();
    // The last key can be removed too.
    std::fs::write(&file.0, "# none\n").unwrap();
    until(&server, 401, OTHER, call()).await;
    touching.abort();
}

/// Neither the modification time nor the length of the file changes.
#[cfg(unix)]
#[tokio::test]
async fn a_changed_secret_is_loaded_although_the_modification_time_is_the_same() {
    let file = File::new("restored", "ops = first\n");
    let server = serving(&file).await;
    server.send(&carrying(call(), FIRST)).await.result();
    let before = std::fs::metadata(&file.0).unwrap().modified().unwrap();
    tokio::time::sleep(5 * SOON).await;
    std::fs::write(&file.0, "ops = other\n").unwrap();
    std::fs::File::options().append(true).open(&file.0).unwrap().set_modified(before).unwrap();
    until(&server, 401, FIRST, call()).await;
    server.send(&carrying(call(), OTHER)).await.result();
}

/// Writing takes longer than the interval of checks, but less than a second passes between two writes.
#[tokio::test]
async fn a_file_that_is_written_slowly_drops_no_key() {
    let file = File::new("slow", "ops = first\ndev = other\n");
    let server = serving(&file).await;
    for text in
        ["", "o", "ops = first", "ops = first\nde", "ops = first\ndev = oth", "ops = first\ndev = other\n"]
    {
        std::fs::write(&file.0, text).unwrap();
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            server.send(&carrying(call(), FIRST)).await.result();
            server.send(&carrying(call(), OTHER)).await.result();
        }
    }
}

#[tokio::test]
async fn removing_a_key_ends_the_sessions_and_streams_of_its_caller() {
    let file = File::new("removed", "ops = first\ndev = other\n");
    let server = serving(&file).await;
    let session = server.session_of(LATEST, |ask| carrying(ask, FIRST)).await;
    let kept = server.session_of(LATEST, |ask| carrying(ask, OTHER)).await;
    let mut stream = server.open(&carrying(session.get(), FIRST)).await;
    let mut kept_stream = server.open(&carrying(kept.get(), OTHER)).await;
    let mut pipe = server.open(&carrying(Ask::new("GET", "/sse"), FIRST)).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listener = server.open(&carrying(Ask::modern("subscriptions/listen", filter), FIRST)).await;
    listener.message().await.unwrap();
    file.write("dev = other\n");
    stream.rest().await;
    while pipe.next().await.is_some() {}
    listener.rest().await;
    server.send(&carrying(session.ping(), FIRST)).await.refused(401, -32001);
    server.send(&carrying(kept.ping(), OTHER)).await.result();
    server.server.catalog().add_tool(ToolEntry::new("new", who)).unwrap();
    assert_eq!(kept_stream.message().await.unwrap()["method"], "notifications/tools/list_changed");
    // The session stays closed even if a key with the same name is added.
    file.write("dev = other\nops = first\n");
    until(&server, 200, FIRST, call()).await;
    server.send(&carrying(session.ping(), FIRST)).await.refused(404, -32001);
}

#[tokio::test]
async fn a_new_secret_ends_the_sessions_of_the_old_one() {
    let file = File::new("rotated", "ops = first\n");
    let server = serving(&file).await;
    let session = server.session_of(LATEST, |ask| carrying(ask, FIRST)).await;
    let mut stream = server.open(&carrying(session.get(), FIRST)).await;
    file.write("ops = other\n");
    stream.rest().await;
    until(&server, 404, OTHER, session.ping()).await;
    // Sessions of the new secret stay open.
    let session = server.session_of(LATEST, |ask| carrying(ask, OTHER)).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.send(&carrying(session.ping(), OTHER)).await.result();
    // Additional scopes end no session.
    file.write("ops = other orders.read\n");
    until(&server, 200, OTHER, Ask::modern_call("read", json!({}))).await;
    server.send(&carrying(session.ping(), OTHER)).await.result();
}

/// Opening a named pipe blocks until a program writes into it.
#[test]
fn a_key_file_must_be_a_regular_file() {
    let folder = std::env::temp_dir();
    let error = ApiKeys::from_file(&folder).unwrap_err().to_string();
    assert!(error.contains("it is not a regular file"), "{error}");
    let pipe = folder.join(format!("bindpost-keys-{}", std::process::id()));
    if std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        let error = ApiKeys::from_file(&pipe).unwrap_err().to_string();
        let _ = std::fs::remove_file(&pipe);
        assert!(error.contains("it is not a regular file"), "{error}");
    }
}

#[tokio::test]
async fn a_key_whose_name_is_not_accepted_is_unknown() {
    let keys = ApiKeys::new().key("mcp.alice", "alice's key").key("backup", "backup's key");
    let server =
        TestServer::of(mixed(), with(Auth::new(keys.accept_names(|name| name.starts_with("mcp."))))).await;
    let ask = |key: &str| call().header("x-api-key", key);
    assert_eq!(server.send(&ask("alice's key")).await.status, 200);
    server.send(&ask("backup's key")).await.refused(401, -32001);
}
