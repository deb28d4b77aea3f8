//! The substitute for `tls.rs` in a program built without the feature `tls`.

use std::io;

use crate::listener::{ConnectionLimits, Drain};
use crate::settings::TlsFiles;

pub(super) async fn serve_tls<L, M>(
    _: &TlsFiles,
    _: L,
    _: M,
    _: ConnectionLimits,
    _: Drain,
) -> io::Result<()> {
    let problem = "`Settings::tls` is set, but this program was built without the feature `tls` of bindpost\n  \
                   fix: enable the feature, or let a proxy serve HTTPS";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
}
