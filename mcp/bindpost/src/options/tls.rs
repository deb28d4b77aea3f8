//! `[tls]`: the certificate with which the server serves HTTPS.

use std::path::PathBuf;
use std::time::Duration;

use bindpost_mcp_http::TlsFiles;

use super::Options;
use super::mistake::{OptionMistake, OptionSource};

/// The certificate with which the server serves HTTPS. Without one it serves plain HTTP. Requires the
/// feature `tls`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TlsOptions {
    /// A PEM file with the certificate of the server, followed by the intermediate certificates. Changes
    /// are applied while the server runs.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the private key of the certificate, without a passphrase.
    pub key: Option<PathBuf>,
    /// The interval at which both files are checked for changes. Default: 5 s.
    pub look_every: Duration,
}

impl Default for TlsOptions {
    fn default() -> TlsOptions {
        TlsOptions { certificate: None, key: None, look_every: Duration::from_secs(5) }
    }
}

impl Options {
    /// Returns the files of the certificate, or `None` for plain HTTP.
    pub(super) fn tls_files(&self, mistakes: &mut Vec<OptionMistake>) -> Option<TlsFiles> {
        let TlsOptions { certificate, key, look_every } = &self.tls;
        let mut mistake = |key: &'static str, what: &str| {
            mistakes.push(OptionMistake::about(key, self.source_of(key), what));
        };
        // An empty variable of a deployment must not turn HTTPS off.
        for (name, path) in [("tls.certificate", certificate), ("tls.key", key)] {
            if path.is_none() && matches!(self.source_of(name), OptionSource::Variable(_)) {
                mistake(name, "is empty; set a value, or remove the variable");
            }
        }
        match (certificate, key) {
            (Some(_), None) => mistake("tls.certificate", "has no effect without `tls.key`"),
            (None, Some(_)) => mistake("tls.key", "has no effect without `tls.certificate`"),
            (None, None) if !self.externally_set("tls.look_every").is_empty() => {
                mistake("tls.look_every", "has no effect without `tls.certificate` and `tls.key`");
            }
            (Some(_), Some(_)) if !cfg!(feature = "tls") => {
                let what = "cannot be used: this program was built without the feature `tls` of bindpost";
                mistake("tls.certificate", what);
            }
            _ => {}
        }
        let (certificate, key) = (certificate.clone()?, key.clone()?);
        Some(TlsFiles { certificate, key, look_every: *look_every })
    }
}
