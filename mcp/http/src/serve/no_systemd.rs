//! The substitute for `systemd.rs` in a program built without the feature `systemd`, or for another system.

use std::io;

use super::AnyListener;

pub(super) fn bind_systemd(_: Option<&str>) -> io::Result<AnyListener> {
    let problem = "sockets of systemd cannot be used: this program was built without the feature `systemd` of \
                   bindpost, or not for Linux\n  fix: enable the feature, or listen on an address like \
                   127.0.0.1:7071";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
}
