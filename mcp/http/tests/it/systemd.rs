//! Socket activation: a child process gets listening sockets by number and serves them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};

use bindpost_mcp_http::listener::Drain;
use bindpost_mcp_http::{AnyListener, Settings};
use bindpost_mcp_server::ServerLimits;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::client::{Ask, Client, fixture, within};

/// The variable that makes this test binary serve. Its value is the address.
const ROLE: &str = "BINDPOST_TEST_ADDRESS";
/// The test that serves in the child process.
const CHILD: &str = "systemd::the_child_process_serves";

/// The child process. In the test run itself this does nothing.
#[test]
fn the_child_process_serves() {
    let Ok(address) = std::env::var(ROLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let served = runtime.block_on(async {
        let listener = AnyListener::bind(&address, 0o600).await?;
        // A socket is taken once.
        assert!(AnyListener::bind(&address, 0o600).await.is_err());
        let (_trigger, drain) = Drain::new();
        listener.serve_until(fixture(ServerLimits::default()).0, Settings::default(), drain).await
    });
    panic!("{}", served.unwrap_err());
}

/// Ends the process on drop.
struct Activated(Child);

impl Activated {
    /// Starts a child with these sockets from number 3 on, as systemd does. They reach the shell as stdin and
    /// stdout.
    fn start(address: &str, first: OwnedFd, second: Option<OwnedFd>, names: &str) -> Activated {
        let (move_sockets, count) = match second {
            Some(_) => ("exec 3<&0 4<&1 1>&2 0</dev/null", "2"),
            None => ("exec 3<&0 0</dev/null", "1"),
        };
        let script = format!("{move_sockets}; LISTEN_PID=$$ exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", CHILD, "--nocapture"])
            .env(ROLE, address)
            .env("LISTEN_FDS", count)
            .env("LISTEN_FDNAMES", names)
            .env("RUST_BACKTRACE", "0")
            .stdin(first)
            .stderr(Stdio::piped());
        match second {
            Some(second) => command.stdout(second),
            None => command.stdout(Stdio::null()),
        };
        Activated(command.spawn().unwrap())
    }

    /// Waits for the end of a child that cannot serve, and returns its messages.
    fn failure(mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(!self.0.wait().unwrap().success());
        text
    }
}

impl Drop for Activated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tcp(host: &str) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn call() -> Ask {
    Ask::modern_call("echo", json!({"a": 1}))
}

#[tokio::test]
async fn a_passed_tcp_socket_is_served() {
    let (listener, address) = tcp("127.0.0.1");
    let _child = Activated::start("systemd", listener.into(), None, "");
    // The socket already listens, so the client waits in its backlog.
    let reply = within(async { Client::connect(address).await.send(&call()).await }).await;
    assert_eq!(reply.tool_text(), r#"{"a":1}"#);
}

#[tokio::test]
async fn a_socket_is_chosen_by_its_name() {
    let (other, _) = tcp("127.0.0.1");
    let path = std::env::temp_dir().join(format!("bindpost-systemd-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let child = Activated::start("systemd:mcp", other.into(), Some(listener.into()), "web:mcp");
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(&call().header("connection", "close").bytes()).await.unwrap();
    let mut text = String::new();
    within(stream.read_to_string(&mut text)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 ") && text.contains(r#"{\"a\":1}"#), "{text}");
    drop(child);
    // The file belongs to systemd.
    assert!(path.exists());
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn mistakes_are_explained() {
    let two = |address: &str| {
        let child =
            Activated::start(address, tcp("127.0.0.1").0.into(), Some(tcp("127.0.0.1").0.into()), "a:b");
        child.failure()
    };
    let text = two("systemd");
    assert!(text.contains("systemd has passed 2 sockets: a, b\n  fix: "), "{text}");
    let text = two("systemd:mcp");
    assert!(text.contains("no socket with the name \"mcp\". Names: a, b\n  fix: "), "{text}");

    let datagram = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let text = Activated::start("systemd", datagram.into(), None, "mcp").failure();
    assert!(text.contains("the socket \"mcp\" of systemd is not a stream socket\n  fix: "), "{text}");
    let (listener, address) = tcp("127.0.0.1");
    let _client = std::net::TcpStream::connect(address).unwrap();
    let text = Activated::start("systemd", listener.accept().unwrap().0.into(), None, "mcp").failure();
    assert!(text.contains("is a connection of a client"), "{text}");
    let file = std::fs::File::open("/dev/null").unwrap();
    let text = Activated::start("systemd", file.into(), None, "mcp").failure();
    assert!(text.contains("of systemd cannot be used: "), "{text}");

    let error = AnyListener::bind("systemd", 0o600).await.unwrap_err().to_string();
    assert!(error.contains("systemd has passed no socket to this process"), "{error}");
}

/// The address of the passed socket decides, not the text of the option.
#[tokio::test]
async fn a_passed_socket_for_other_machines_requires_authentication() {
    let text = Activated::start("systemd", tcp("0.0.0.0").0.into(), None, "").failure();
    assert!(text.contains("can be reached from other machines"), "{text}");
}

/// The program of systemd itself, where it is installed.
#[tokio::test]
async fn systemd_socket_activate_starts_a_server() {
    const PROGRAM: &str = "systemd-socket-activate";
    if Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: {PROGRAM} is not installed");
        return;
    }
    let (listener, address) = tcp("127.0.0.1");
    drop(listener);
    let child = Command::new(PROGRAM)
        .args(["--listen", &address.to_string(), "--fdname=mcp", "--setenv", ROLE])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", CHILD, "--nocapture"])
        .env(ROLE, "systemd:mcp")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _child = Activated(child);
    within(async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let reply = within(async { Client::connect(address).await.send(&call()).await }).await;
    assert_eq!(reply.tool_text(), r#"{"a":1}"#);
}
