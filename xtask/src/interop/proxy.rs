//! A proxy that breaks connections between a client and `examples/conformance`.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

use super::report::{ClientReport, Verdict};

/// Forwards bytes to the server and back. Once, after a progress notification, it closes the connection.
pub(super) struct DisconnectingProxy {
    pub(super) url: String,
    seen: Arc<ProxyEvents>,
}

#[derive(Default)]
struct ProxyEvents {
    cut: AtomicBool,
    /// The number of requests that resume a stream.
    resumed: AtomicUsize,
}

impl DisconnectingProxy {
    pub(super) fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let proxy = Self { url: format!("http://{}/mcp", listener.local_addr()?), seen: Arc::default() };
        let seen = Arc::clone(&proxy.seen);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                // Broken connections are expected here, so errors are ignored.
                thread::spawn(move || forward(client, server, seen));
            }
        });
        Ok(proxy)
    }

    /// Fails the checks of a client for which the proxy did not break the connection or saw no resumption.
    pub(super) fn verify_report(&self, report: &mut ClientReport) {
        let claims = ["hang-up", "cut"].map(|check| report.verdict(check) == Some(Verdict::Passed));
        let [claims_hang_up, claims_cut] = claims;
        if claims_cut && !self.seen.cut.load(Ordering::SeqCst) {
            report.fail("cut", "the proxy saw no progress notification, so it closed no connection");
        }
        let resumed = claims.into_iter().map(usize::from).sum();
        if claims_hang_up && self.seen.resumed.load(Ordering::SeqCst) < resumed {
            report.fail("hang-up", "the proxy saw no request with Last-Event-ID for it");
        }
    }
}

fn forward(client: TcpStream, server: SocketAddr, seen: Arc<ProxyEvents>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    let (requests, to_server) = (client.try_clone()?, server.try_clone()?);
    let also_seen = Arc::clone(&seen);
    thread::spawn(move || {
        pass_on(requests, to_server, |bytes| {
            let resumes = mentions(&bytes.to_ascii_lowercase(), b"last-event-id:");
            also_seen.resumed.fetch_add(resumes.into(), Ordering::SeqCst);
            false
        });
    });
    // An event that is split between two reads is not detected. Then the connection is closed after the
    // next one.
    pass_on(server, client, |bytes| {
        mentions(bytes, b"notifications/progress") && !seen.cut.swap(true, Ordering::SeqCst)
    });
    Ok(())
}

/// Copies until the end, or until `stop` returns true after a read. After that both
/// connections are unusable.
fn pass_on(mut from: TcpStream, mut to: TcpStream, stop: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let bytes = &buffer[..length];
        if to.write_all(bytes).is_err() || stop(bytes) {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn mentions(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::Ordering;

    use super::DisconnectingProxy;

    #[test]
    fn cuts_once_and_after_the_event() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = DisconnectingProxy::start(server.local_addr().unwrap()).unwrap();
        let address = proxy.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut client = TcpStream::connect(&address).unwrap();
            let (mut connection, _) = server.accept().unwrap();
            connection.write_all(b"notifications/progress").unwrap();
            let mut answer = vec![0; 22];
            client.read_exact(&mut answer).unwrap();
            // The server detects the closed connection only when it writes, so the second write may or may
            // not fail.
            let _ = connection.write_all(b" and more");
            drop(connection);
            client.read_to_end(&mut answer).unwrap();
            answers.push(String::from_utf8(answer).unwrap());
        }
        assert_eq!(answers, ["notifications/progress", "notifications/progress and more"]);
        assert!(proxy.seen.cut.load(Ordering::SeqCst));
    }
}
