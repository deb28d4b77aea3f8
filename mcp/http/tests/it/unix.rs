//! Unix domain sockets: calls, the socket file, limits, and what may be served.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindpost_mcp_http::listener::{Drain, DrainTrigger};
use bindpost_mcp_http::{AnyListener, Settings, bind_unix};
use bindpost_mcp_server::{Context, Server, ServerLimits, ToolEntry};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use crate::client::{Ask, attentive, fixture, within};

/// A path for a socket, in a folder that is deleted on drop.
struct SocketFolder(PathBuf);

impl SocketFolder {
    fn new() -> SocketFolder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bindpost-unix-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        SocketFolder(folder)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("mcp.sock")
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Says where the caller is.
async fn describe_caller(context: Context) -> String {
    let http = context.http().unwrap();
    format!("peer {:?}", http.peer)
}

fn server() -> Server {
    Server::builder("local", "1.0.0").tool(ToolEntry::new("caller", describe_caller)).build().unwrap()
}

type Running = (DrainTrigger, JoinHandle<std::io::Result<()>>);

async fn serve(path: &Path, settings: Settings) -> Running {
    let bound = bind_unix(path, 0o600).await.unwrap();
    let (trigger, drain) = Drain::new();
    (trigger, tokio::spawn(bound.serve_until(server(), settings, drain)))
}

async fn end((trigger, running): Running) {
    trigger.pull();
    within(running).await.unwrap().unwrap();
}

/// Sends one request and returns the response as text.
async fn send(path: &Path, ask: Ask) -> String {
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(&ask.header("connection", "close").bytes()).await.unwrap();
    let mut text = String::new();
    within(stream.read_to_string(&mut text)).await.unwrap();
    text
}

fn call() -> Ask {
    Ask::modern_call("caller", json!({}))
}

#[tokio::test]
async fn calls_are_served_and_the_file_is_deleted_at_the_end() {
    let folder = SocketFolder::new();
    let path = folder.socket();
    let running = serve(&path, attentive()).await;
    let reply = send(&path, call()).await;
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("peer None"), "{reply}");
    let metadata = std::fs::symlink_metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    end(running).await;
    assert!(!path.exists());

    let bound = bind_unix(&path, 0o666).await.unwrap();
    assert_eq!(bound.local_addr().path(), Some(path.as_path()));
    assert_eq!(bound.local_addr().to_string(), format!("unix:{}", path.display()));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
    drop(bound);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_drain_answers_clients_that_have_connected() {
    let folder = SocketFolder::new();
    let path = folder.socket();
    let bound = bind_unix(&path, 0o600).await.unwrap();
    let (trigger, drain) = Drain::new();
    // These clients are in the backlog when the drain begins.
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = UnixStream::connect(&path).await.unwrap();
        client.write_all(&call().bytes()).await.unwrap();
        clients.push(client);
    }
    trigger.pull();
    let running = tokio::spawn(bound.serve_until(server(), attentive(), drain));
    for mut client in clients {
        let mut text = String::new();
        within(client.read_to_string(&mut text)).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    }
    within(running).await.unwrap().unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn only_the_socket_of_a_process_that_has_ended_is_replaced() {
    let folder = SocketFolder::new();
    let path = folder.socket();
    // The standard library does not delete the file.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let running = serve(&path, attentive()).await;
    let error = bind_unix(&path, 0o600).await.unwrap_err();
    let expected =
        format!("cannot listen on unix:{}: another process listens on it\n  fix: ", path.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(send(&path, call()).await.starts_with("HTTP/1.1 200 "));
    end(running).await;

    for is_link in [false, true] {
        let file = folder.0.join("notes.txt");
        std::fs::write(&file, "keep me").unwrap();
        let path = if is_link { folder.0.join("link") } else { file.clone() };
        if is_link {
            std::os::unix::fs::symlink(&file, &path).unwrap();
        }
        let error = bind_unix(&path, 0o600).await.unwrap_err().to_string();
        assert!(error.contains("a file that is not a socket exists there"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "keep me");
    }
    let error = bind_unix(folder.0.join("no/such/folder/mcp.sock"), 0o600).await.unwrap_err().to_string();
    assert!(error.contains("no/such/folder/mcp.sock: "), "{error}");
}

#[tokio::test]
async fn the_file_of_a_newer_server_is_kept() {
    let folder = SocketFolder::new();
    let path = folder.socket();
    let older = serve(&path, attentive()).await;
    std::fs::remove_file(&path).unwrap();
    let newer = serve(&path, attentive()).await;
    end(older).await;
    assert!(send(&path, call()).await.starts_with("HTTP/1.1 200 "));
    end(newer).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn only_the_total_number_of_connections_is_limited() {
    let folder = SocketFolder::new();
    let path = folder.socket();
    let mut settings = attentive();
    settings.connections.connections_per_address = Some(1);
    settings.connections.connections = 3;
    let bound = bind_unix(&path, 0o600).await.unwrap();
    let (trigger, drain) = Drain::new();
    let (server, watch) = fixture(ServerLimits::default());
    let running = tokio::spawn(bound.serve_until(server, settings, drain));
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut client = UnixStream::connect(&path).await.unwrap();
        client.write_all(&Ask::modern_call("wait", json!({})).bytes()).await.unwrap();
        waiting.push(client);
    }
    within(watch.has_begun(3)).await;
    assert!(send(&path, call()).await.starts_with("HTTP/1.1 503 "));
    watch.go_on.add_permits(3);
    drop(waiting);
    end((trigger, running)).await;
}

#[tokio::test]
async fn the_host_header_is_checked() {
    let folder = SocketFolder::new();
    let path = folder.socket();
    let running = serve(&path, attentive()).await;
    assert!(send(&path, call().with("host", "api.example")).await.starts_with("HTTP/1.1 403 "));
    end(running).await;
}

#[tokio::test]
async fn a_proxy_in_front_requires_authentication() {
    let folder = SocketFolder::new();
    for settings in [
        Settings { behind_proxy: true, ..Settings::default() },
        Settings { allowed_hosts: vec!["api.example".to_owned()], ..Settings::default() },
    ] {
        let address = format!("unix:{}", folder.socket().display());
        let listener = AnyListener::bind(&address, 0o600).await.unwrap();
        assert_eq!(listener.to_string(), address);
        let (_trigger, drain) = Drain::new();
        let served =
            tokio::time::timeout(Duration::from_secs(10), listener.serve_until(server(), settings, drain));
        let error = served.await.unwrap().unwrap_err().to_string();
        assert!(error.contains("without authentication every caller may call everything"), "{error}");
        assert!(!folder.socket().exists());
    }
}
