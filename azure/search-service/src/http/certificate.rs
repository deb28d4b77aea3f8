//! TLS certificates for this machine: a local certificate authority, and the listener's certificate that
//! it signs.
//!
//! Both are created at the first start and kept in `tls/`. Clients trust `ca.pem`, which is valid for ten
//! years. The listener's certificate is renewed at a start if it expires within a month.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, Duration, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::files::{self, FileAccess};

/// The TLS configuration of the listener.
pub struct TlsCertificates {
    pub acceptor: TlsAcceptor,
    /// The certificate file that clients must trust.
    pub authority: PathBuf,
}

/// An error that prevents TLS.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("{}: {source}\n  fix: make the data folder writable, or serve without TLS", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("a certificate could not be created: {0}")]
    Make(#[from] rcgen::Error),
    #[error("the certificates cannot be used: {0}\n  fix: delete the folder tls in the data folder")]
    Use(#[from] rustls::Error),
}

/// The names in every certificate.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const AUTHORITY_DAYS: i64 = 3650;
/// Some clients reject certificates that are valid for more than 398 days.
const LEAF_DAYS: i64 = 365;
const RENEW_DAYS: i64 = 30;

/// Reads the certificates in `tls` in this folder, or creates them. `names` are additional names of
/// this machine.
pub fn open(folder: &Path, names: &[String]) -> Result<TlsCertificates, CertificateError> {
    let files = CertificateFiles::new(folder)?;
    let names: Vec<String> =
        NAMES.iter().map(|name| (*name).to_owned()).chain(names.iter().cloned()).collect();
    let now = Utc::now();
    if !files.are_good(&names, now) {
        files.renew(&names, now)?;
    }
    let chain = [files.read_certificate(&files.leaf)?, files.read_certificate(&files.authority)?];
    let key = PrivateKeyDer::from_pem_slice(&files.read(&files.leaf_key)?).map_err(|_| unreadable())?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain.into(), key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsCertificates { acceptor: TlsAcceptor::from(Arc::new(config)), authority: files.authority })
}

struct CertificateFiles {
    authority: PathBuf,
    authority_key: PathBuf,
    leaf: PathBuf,
    leaf_key: PathBuf,
    notes: PathBuf,
}

/// Facts about the certificates, stored next to them. This module does not parse certificates.
#[derive(Serialize, Deserialize)]
struct CertificateNotes {
    authority_until: DateTime<Utc>,
    leaf_until: DateTime<Utc>,
    names: Vec<String>,
    /// SHA-256 of both certificates. Notes with another digest are ignored.
    digest: String,
}

impl CertificateFiles {
    fn new(folder: &Path) -> Result<Self, CertificateError> {
        let folder = folder.join("tls");
        fs::create_dir_all(&folder)
            .map_err(|source| CertificateError::File { path: folder.clone(), source })?;
        Ok(Self {
            authority: folder.join("ca.pem"),
            authority_key: folder.join("ca-key.pem"),
            leaf: folder.join("server.pem"),
            leaf_key: folder.join("server-key.pem"),
            notes: folder.join("notes.json"),
        })
    }

    fn are_good(&self, names: &[String], now: DateTime<Utc>) -> bool {
        let soon = now + Duration::days(RENEW_DAYS);
        self.leaf_key.exists()
            && self.notes().is_some_and(|notes| {
                notes.leaf_until > soon && notes.authority_until > soon && notes.names == names
            })
    }

    /// Returns the notes if they belong to these files.
    fn notes(&self) -> Option<CertificateNotes> {
        let notes: CertificateNotes = serde_json::from_slice(&fs::read(&self.notes).ok()?).ok()?;
        (notes.digest == self.digest().ok()?).then_some(notes)
    }

    /// Creates a new certificate for the listener. Creates a new authority only if the old one is invalid
    /// or expires too early.
    fn renew(&self, names: &[String], now: DateTime<Utc>) -> Result<(), CertificateError> {
        let kept = self.kept_authority(now + Duration::days(LEAF_DAYS));
        let (key, authority_until) = match kept {
            Some(kept) => kept,
            None => {
                let key = KeyPair::generate()?;
                let until = now + Duration::days(AUTHORITY_DAYS);
                let authority = authority_params(now, until).self_signed(&key)?;
                self.write(&self.authority_key, &key.serialize_pem(), FileAccess::Owner)?;
                self.write(&self.authority, &authority.pem(), FileAccess::Everyone)?;
                (key, until)
            }
        };
        let issuer = Issuer::new(authority_params(now, authority_until), key);
        let leaf_until = now + Duration::days(LEAF_DAYS);
        let leaf_key = KeyPair::generate()?;
        let leaf = leaf_params(names, now, leaf_until)?.signed_by(&leaf_key, &issuer)?;
        self.write(&self.leaf_key, &leaf_key.serialize_pem(), FileAccess::Owner)?;
        self.write(&self.leaf, &leaf.pem(), FileAccess::Everyone)?;
        let digest =
            self.digest().map_err(|source| CertificateError::File { path: self.leaf.clone(), source })?;
        let notes = CertificateNotes { authority_until, leaf_until, names: names.to_vec(), digest };
        let text = serde_json::to_string_pretty(&notes).map_err(|error| CertificateError::File {
            path: self.notes.clone(),
            source: io::Error::other(error),
        })?;
        // The notes are written last. After an interrupted start the certificates are created again.
        self.write(&self.notes, &text, FileAccess::Everyone)
    }

    /// Returns the key and the expiry of the authority if it is valid long enough. An issuer needs only
    /// the same name as the certificate, and [`authority_params`] sets that name.
    fn kept_authority(&self, until: DateTime<Utc>) -> Option<(KeyPair, DateTime<Utc>)> {
        let notes = self.notes().filter(|notes| notes.authority_until > until)?;
        let key = KeyPair::from_pem(&fs::read_to_string(&self.authority_key).ok()?).ok()?;
        Some((key, notes.authority_until))
    }

    fn digest(&self) -> io::Result<String> {
        let both = [fs::read(&self.authority)?, fs::read(&self.leaf)?].concat();
        Ok(Sha256::digest(both).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, CertificateError> {
        fs::read(path).map_err(|source| CertificateError::File { path: path.to_owned(), source })
    }

    fn read_certificate(&self, path: &Path) -> Result<CertificateDer<'static>, CertificateError> {
        CertificateDer::from_pem_slice(&self.read(path)?).map_err(|_| unreadable())
    }

    fn write(&self, path: &Path, text: &str, readers: FileAccess) -> Result<(), CertificateError> {
        files::write_atomically(path, text.as_bytes(), readers)
            .map_err(|source| CertificateError::File { path: path.to_owned(), source })
    }
}

fn unreadable() -> CertificateError {
    CertificateError::Use(rustls::Error::General("a file in tls is not PEM".to_owned()))
}

fn authority_params(from: DateTime<Utc>, until: DateTime<Utc>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("Local search service authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, from, until);
    params
}

fn leaf_params(
    names: &[String],
    from: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named("localhost");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    set_validity(&mut params, from, until);
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Sets the validity. It starts one day early, for clients with slow clocks.
fn set_validity(params: &mut CertificateParams, from: DateTime<Utc>, until: DateTime<Utc>) {
    let day = |time: DateTime<Utc>| {
        let number = |number: u32| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(time.year(), number(time.month()), number(time.day()))
    };
    params.not_before = day(from - Duration::days(1));
    params.not_after = day(until);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::scratch::TestFolder;

    fn names() -> Vec<String> {
        NAMES.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn certificates_are_created_once() {
        let folder = TestFolder::new();
        let first = open(folder.path(), &[]).unwrap();
        let before = fs::read(folder.path().join("tls/server.pem")).unwrap();
        open(folder.path(), &[]).unwrap();
        assert_eq!(fs::read(folder.path().join("tls/server.pem")).unwrap(), before);
        assert_eq!(first.authority, folder.path().join("tls/ca.pem"));
    }

    #[test]
    fn a_renewal_keeps_the_authority() {
        let folder = TestFolder::new();
        open(folder.path(), &[]).unwrap();
        let read = |name: &str| fs::read(folder.path().join("tls").join(name)).unwrap();
        let (authority, leaf) = (read("ca.pem"), read("server.pem"));
        let files = CertificateFiles::new(folder.path()).unwrap();
        let later = Utc::now() + Duration::days(LEAF_DAYS - 10);
        assert!(!files.are_good(&names(), later));
        files.renew(&names(), later).unwrap();
        assert!(files.are_good(&names(), later));
        assert_eq!(read("ca.pem"), authority);
        assert_ne!(read("server.pem"), leaf);
    }

    #[test]
    fn a_new_name_or_a_damaged_file_creates_new_certificates() {
        let folder = TestFolder::new();
        open(folder.path(), &[]).unwrap();
        let files = CertificateFiles::new(folder.path()).unwrap();
        assert!(files.are_good(&names(), Utc::now()));
        open(folder.path(), &["search.internal".to_owned()]).unwrap();
        assert!(!files.are_good(&names(), Utc::now()));
        fs::write(&files.authority, "damaged").unwrap();
        open(folder.path(), &[]).unwrap();
        assert!(fs::read_to_string(&files.authority).unwrap().contains("BEGIN CERTIFICATE"));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_keys() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = TestFolder::new();
        open(folder.path(), &[]).unwrap();
        for name in ["ca-key.pem", "server-key.pem"] {
            let mode = fs::metadata(folder.path().join("tls").join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
