//! TLS with rustls: any `TlsAcceptor`, or one whose certificate files are read again when they change.

use std::convert::Infallible;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::accept::StreamAcceptor;
use crate::socket::ClientSocket;

/// The maximum size of each file.
const MAX_BYTES: u64 = 1024 * 1024;
/// A change is applied when both files have been the same for this time. The two files of a renewed pair
/// are not replaced at the same moment.
const SETTLED: Duration = Duration::from_secs(1);
/// The minimum interval of checks. A shorter one is raised to this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

impl<S: ClientSocket> StreamAcceptor<S> for TlsAcceptor {
    type Stream = TlsStream<S>;

    const IS_SECURE: bool = true;

    async fn accept(&self, socket: S) -> io::Result<TlsStream<S>> {
        let handshake = TlsAcceptor::accept(self, socket).await;
        handshake.map_err(|error| io::Error::new(error.kind(), format!("TLS handshake: {error}")))
    }
}

/// Accepts TLS with a certificate and a key in two PEM files, which are read again when they change.
///
/// A changed pair is used for new connections. If the new pair cannot be used, a warning is logged and the
/// previous pair stays in use. Clients can use HTTP/2 and HTTP/1.1, and TLS 1.3 and 1.2.
///
/// ```no_run
/// use std::time::Duration;
/// use bindpost_net_listener::{ConnectionLimits, Drain, TlsFileAcceptor, bind, serve_with};
/// use hyper::service::service_fn;
///
/// # async fn answer(_: http::Request<hyper::body::Incoming>)
/// #     -> Result<http::Response<http_body_util::Empty<bytes::Bytes>>, std::convert::Infallible> {
/// #     Ok(http::Response::default())
/// # }
/// # async fn run() -> std::io::Result<()> {
/// let tls = TlsFileAcceptor::open("server.pem", "server-key.pem", Duration::from_secs(5))?;
/// let listener = bind("0.0.0.0:8443").await?;
/// let (_trigger, drain) = Drain::new();
/// serve_with(tls, listener, |_| service_fn(answer), ConnectionLimits::default(), drain).await
/// # }
/// ```
#[derive(Clone)]
pub struct TlsFileAcceptor {
    paths: Arc<PemPaths>,
    look_every: Duration,
    /// The digest of the pair that was read first.
    first: u64,
    current: Arc<RwLock<TlsAcceptor>>,
}

impl TlsFileAcceptor {
    /// Reads the pair for the first time. While the listener serves, the files are checked at this interval.
    ///
    /// The certificate file has the certificate of the server, followed by the intermediate certificates.
    /// The key file has its private key, without a passphrase. The error says which file is wrong and what
    /// it must have.
    pub fn open(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        look_every: Duration,
    ) -> io::Result<TlsFileAcceptor> {
        let paths = PemPaths { certificate: certificate.into(), key: key.into() };
        let pair = paths.read();
        let first = pair.digest();
        let current = Arc::new(RwLock::new(paths.acceptor(pair)?));
        Ok(TlsFileAcceptor { paths: Arc::new(paths), look_every, first, current })
    }

    /// Uses a changed pair for new connections, if it is valid.
    fn apply(&self, pair: PemPair) {
        match self.paths.acceptor(pair) {
            Ok(acceptor) => {
                // A new configuration has no session to resume, so every client sees the new certificate.
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
                let certificate = self.paths.certificate.display();
                tracing::info!(%certificate, "new connections use the changed TLS certificate");
            }
            Err(error) => {
                tracing::warn!("the TLS files have changed, but the previous pair stays in use: {error}");
            }
        }
    }
}

impl std::fmt::Debug for TlsFileAcceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsFileAcceptor").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl<S: ClientSocket> StreamAcceptor<S> for TlsFileAcceptor {
    type Stream = TlsStream<S>;

    const IS_SECURE: bool = true;

    async fn accept(&self, socket: S) -> io::Result<TlsStream<S>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        StreamAcceptor::accept(&current, socket).await
    }

    /// Reads the files again when they have changed.
    async fn maintain(&self) -> Infallible {
        let mut applied = self.first;
        let mut pending = None;
        loop {
            let pause = if pending.is_some() { self.look_every.min(SETTLED) } else { self.look_every };
            tokio::time::sleep(pause.max(SHORTEST_PAUSE)).await;
            let paths = self.paths.clone();
            let Ok(pair) = tokio::task::spawn_blocking(move || paths.read()).await else { continue };
            let digest = pair.digest();
            if digest == applied {
                pending = None;
            } else if pending != Some(digest) {
                pending = Some(digest);
            } else {
                (applied, pending) = (digest, None);
                self.apply(pair);
            }
        }
    }
}

/// The paths of a certificate and its key.
#[derive(Debug)]
struct PemPaths {
    certificate: PathBuf,
    key: PathBuf,
}

/// The content of both files, or the reasons why they cannot be read.
struct PemPair {
    certificate: io::Result<Vec<u8>>,
    key: io::Result<Vec<u8>>,
}

impl PemPaths {
    fn read(&self) -> PemPair {
        PemPair { certificate: read_file(&self.certificate), key: read_file(&self.key) }
    }

    /// Builds the acceptor of a pair.
    fn acceptor(&self, pair: PemPair) -> io::Result<TlsAcceptor> {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        let unreadable = |kind: &str, path: &Path, error: io::Error| {
            let what = format!("the TLS {kind} {} cannot be read: {error}", path.display());
            let fix = "name a PEM file that this program may read";
            io::Error::new(error.kind(), format!("{what}\n  fix: {fix}"))
        };
        let invalid = |what: String, fix: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{what}\n  fix: {fix}"))
        };
        let chain = pair.certificate.map_err(|error| unreadable("certificate", &self.certificate, error))?;
        let private_key = pair.key.map_err(|error| unreadable("key", &self.key, error))?;

        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&chain).collect::<Result<_, _>>().map_err(|error| {
                let what = format!("the TLS certificate {certificate} is not valid PEM: {error}");
                invalid(what, "write the certificate of the server, then the intermediate certificates")
            })?;
        if chain.is_empty() {
            let what = format!("the TLS certificate {certificate} has no block `BEGIN CERTIFICATE`");
            return Err(invalid(what, "write the certificate of the server in PEM, not in DER or PKCS #12"));
        }
        let private_key = PrivateKeyDer::from_pem_slice(&private_key).map_err(|error| {
            let what = format!("the TLS key {key} has no private key in PEM: {error}");
            invalid(what, "write the key of the certificate without a passphrase, as `BEGIN PRIVATE KEY`")
        })?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, private_key));
        let mut config = config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => invalid(
                format!("the TLS key {key} does not belong to the certificate {certificate}"),
                "use the key with which the certificate was requested. The certificate of the server is the \
                 first one in its file",
            ),
            error => invalid(
                format!("the TLS certificate {certificate} and the key {key} cannot be used: {error}"),
                "use an X.509 certificate with an RSA, ECDSA (P-256, P-384) or Ed25519 key",
            ),
        })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl PemPair {
    /// Returns a digest by which changes are detected, so that the key is not kept a second time.
    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for file in [&self.certificate, &self.key] {
            file.as_ref().map_err(ToString::to_string).hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a named pipe would block until a program writes into it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 1 MiB"));
    }
    Ok(bytes)
}
