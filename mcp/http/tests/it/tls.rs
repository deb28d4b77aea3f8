//! HTTPS with real certificates and a real TLS client, and certificates that are replaced while the server
//! runs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail wherever it likes")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindpost_mcp_http::listener::Drain;
use bindpost_mcp_http::{Auth, Authorizer, Denial, Settings, TlsFiles, bind};
use bindpost_mcp_server::{Caller, HttpRequest, ServerLimits};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::client::{Ask, TestServer, attentive, fixture, within};
use crate::logs::Warnings;

/// A folder with a certificate and its key. It is deleted on drop.
struct CertificateFolder(PathBuf);

impl CertificateFolder {
    fn new() -> CertificateFolder {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bindpost-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        CertificateFolder(folder)
    }

    fn files(&self) -> TlsFiles {
        let files = TlsFiles::new(self.0.join("cert.pem"), self.0.join("key.pem"));
        TlsFiles { look_every: Duration::from_millis(50), ..files }
    }

    fn write(&self, name: &str, text: &str) {
        // Replaced by a rename, like the tools that renew certificates do.
        let temporary = self.0.join(format!("{name}.new"));
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(temporary, self.0.join(name)).unwrap();
    }

    /// Writes a new pair and returns its certificate.
    fn renew(&self) -> CertificateDer<'static> {
        let (certificate, key) = pair();
        self.write("cert.pem", &certificate.pem());
        self.write("key.pem", &key.serialize_pem());
        certificate.der().clone()
    }
}

impl Drop for CertificateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pair() -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "localhost");
    (params.self_signed(&key).unwrap(), key)
}

async fn try_connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    within(TlsConnector::from(Arc::new(config)).connect(name, socket)).await
}

/// Sends one request over HTTP/1.1 and returns the response as text.
async fn send(address: SocketAddr, trusted: &CertificateDer<'static>, ask: Ask) -> std::io::Result<String> {
    let mut stream = try_connect(address, trusted, &["http/1.1"]).await?;
    stream.write_all(&ask.header("connection", "close").bytes()).await?;
    let mut text = Vec::new();
    within(stream.read_to_end(&mut text)).await?;
    Ok(String::from_utf8(text).unwrap())
}

fn call() -> Ask {
    Ask::modern_call("echo", json!({"a": 1}))
}

/// Waits until new connections use this certificate.
async fn until_used(server: &TestServer, certificate: &CertificateDer<'static>) {
    within(async {
        while try_connect(server.address, certificate, &["http/1.1"]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

async fn serve(folder: &CertificateFolder) -> TestServer {
    TestServer::start(Settings { tls: Some(folder.files()), ..attentive() }).await
}

#[tokio::test]
async fn https_serves_calls_over_both_protocols() {
    let folder = CertificateFolder::new();
    let trusted = folder.renew();
    let server = serve(&folder).await;
    let reply = send(server.address, &trusted, call()).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains(r#"{\"a\":1}"#), "{reply}");

    let stream = try_connect(server.address, &trusted, &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let ask = String::from_utf8(call().bytes()).unwrap();
    let (head, body) = ask.split_once("\r\n\r\n").unwrap();
    let mut request = http::Request::post(format!("https://localhost:{}/mcp", server.address.port()));
    for (name, value) in head.lines().skip(1).map(|line| line.split_once(": ").unwrap()) {
        if name != "host" {
            request = request.header(name, value);
        }
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let reply = within(client.send_request(request)).await.unwrap();
    assert_eq!(reply.status(), 200);
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains(r#"{\"a\":1}"#));
    drop(client);
    within(connection).await.unwrap().unwrap();
    server.trigger.pull();
    server.ended().await;
}

#[tokio::test]
async fn a_client_that_trusts_another_certificate_cannot_connect() {
    let folder = CertificateFolder::new();
    folder.renew();
    let server = serve(&folder).await;
    let other = pair().0.der().clone();
    assert!(send(server.address, &other, call()).await.is_err());
    // A client without TLS gets no HTTP response.
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(&call().bytes()).await.unwrap();
    let mut text = Vec::new();
    let _ = within(plain.read_to_end(&mut text)).await;
    assert!(!text.starts_with(b"HTTP"), "{text:?}");
}

#[tokio::test]
async fn a_changed_pair_is_used_for_new_connections() {
    let folder = CertificateFolder::new();
    let first = folder.renew();
    let server = serve(&folder).await;
    let mut open = try_connect(server.address, &first, &["http/1.1"]).await.unwrap();

    let second = folder.renew();
    until_used(&server, &second).await;
    assert!(try_connect(server.address, &first, &["http/1.1"]).await.is_err());
    let reply = send(server.address, &second, call()).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");

    // A connection that was opened before is served to its end.
    open.write_all(&call().header("connection", "close").bytes()).await.unwrap();
    let mut text = Vec::new();
    within(open.read_to_end(&mut text)).await.unwrap();
    assert!(text.starts_with(b"HTTP/1.1 200 "));
}

#[tokio::test]
async fn an_invalid_new_pair_leaves_the_previous_one_in_use() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let folder = CertificateFolder::new();
    let first = folder.renew();
    let server = serve(&folder).await;
    until_used(&server, &first).await;
    let broken: [(&dyn Fn(), &str); 4] = [
        (&|| folder.write("cert.pem", "no certificate"), "has no block `BEGIN CERTIFICATE`"),
        (&|| folder.write("cert.pem", &pair().0.pem()), "does not belong to the certificate"),
        (&|| std::fs::remove_file(folder.0.join("key.pem")).unwrap(), "cannot be read"),
        (&|| folder.write("key.pem", "no key"), "has no private key in PEM"),
    ];
    for (change, problem) in broken {
        change();
        let warning = within(async {
            loop {
                if let Some(warning) = warnings.0.lock().unwrap().pop() {
                    break warning;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert!(
            warning.contains("the previous pair stays in use: ") && warning.contains(problem),
            "{warning}"
        );
        assert!(warning.contains(&folder.0.display().to_string()) && warning.contains("fix: "), "{warning}");
        let reply = send(server.address, &first, call()).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    }
    let last = folder.renew();
    until_used(&server, &last).await;
    // Each problem is reported once.
    assert_eq!(*warnings.0.lock().unwrap(), [""; 0]);
}

/// Serves with these files and returns the error.
async fn failure(files: TlsFiles) -> String {
    let settings = Settings { tls: Some(files), ..Settings::default() };
    let bound = bind("127.0.0.1:0").await.unwrap();
    let (server, _watch) = fixture(ServerLimits::default());
    let (_trigger, drain) = Drain::new();
    within(bound.serve_until(server, settings, drain)).await.unwrap_err().to_string()
}

#[tokio::test]
async fn an_invalid_pair_at_the_start_is_an_error_that_says_what_to_fix() {
    let folder = CertificateFolder::new();
    folder.renew();
    let (other, other_key) = pair();
    folder.write("other.pem", &other.pem());
    folder.write("other-key.pem", &other_key.serialize_pem());
    folder.write("empty.pem", "");
    folder.write("cut.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    folder.write("garbage.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let path = |name: &str| folder.0.join(name);
    let shown = |name: &str| path(name).display().to_string();
    for (certificate, key, expected) in [
        ("missing.pem", "key.pem", format!("the TLS certificate {} cannot be read", shown("missing.pem"))),
        ("cert.pem", "missing.pem", format!("the TLS key {} cannot be read", shown("missing.pem"))),
        ("", "key.pem", "it is not a regular file".to_owned()),
        ("empty.pem", "key.pem", "has no block `BEGIN CERTIFICATE`".to_owned()),
        ("key.pem", "key.pem", "has no block `BEGIN CERTIFICATE`".to_owned()),
        ("cut.pem", "key.pem", "is not valid PEM".to_owned()),
        ("garbage.pem", "key.pem", "cannot be used".to_owned()),
        ("cert.pem", "cert.pem", format!("the TLS key {} has no private key in PEM", shown("cert.pem"))),
        (
            "cert.pem",
            "other-key.pem",
            format!("{} does not belong to the certificate", shown("other-key.pem")),
        ),
    ] {
        let text = failure(TlsFiles::new(path(certificate), path(key))).await;
        assert!(text.contains(&expected) && text.contains("\n  fix: "), "{text}");
        assert!(!text.contains("PRIVATE KEY-----\n"), "{text}");
    }
}

/// Rejects all tokens of one issuer.
#[derive(Debug)]
struct NoTokens;

impl Authorizer for NoTokens {
    async fn authorize(&self, _: &HttpRequest) -> Result<Caller, Denial> {
        Err(Denial::missing())
    }

    fn authorization_servers(&self) -> Vec<String> {
        vec!["https://issuer.example".to_owned()]
    }
}

/// Clients look for the metadata at the URL of the challenge, so it must have the scheme of the server.
#[tokio::test]
async fn urls_for_clients_begin_with_https() {
    let folder = CertificateFolder::new();
    let trusted = folder.renew();
    let mut settings = Settings { tls: Some(folder.files()), ..attentive() };
    settings.auth = Some(Auth::new(NoTokens));
    let server = TestServer::start(settings).await;
    let denied = send(server.address, &trusted, call()).await.unwrap();
    assert!(denied.contains("https://localhost/.well-known/oauth-protected-resource/mcp"), "{denied}");
    server.trigger.pull();

    let mut settings = Settings { tls: Some(folder.files()), ..attentive() };
    settings.sse.absolute = true;
    let server = TestServer::start(settings).await;
    let mut stream = try_connect(server.address, &trusted, &[]).await.unwrap();
    stream.write_all(&Ask::new("GET", "/sse").bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains("sessionId") {
        let mut bytes = [0; 4096];
        let read = within(stream.read(&mut bytes)).await.unwrap();
        assert!(read > 0, "{text}");
        text += std::str::from_utf8(&bytes[..read]).unwrap();
    }
    assert!(text.contains("data: https://localhost/message?sessionId="), "{text}");
}
