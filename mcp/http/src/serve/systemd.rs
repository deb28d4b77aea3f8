//! Sockets that systemd passes to a service.

use std::io;

use super::{AnyListener, BoundListener};
use crate::listener::{SystemdListener, take_systemd_socket};

/// Takes a listening socket that systemd has passed to this process (`LISTEN_FDS`).
///
/// `name` is the `FileDescriptorName=` of the `.socket` unit. Without a name, systemd must have passed one
/// socket only. What other machines can reach is decided by the address of the socket, as for
/// [`bind`](crate::bind).
///
/// ```no_run
/// # async fn run(server: bindpost_mcp_server::Server) -> std::io::Result<()> {
/// use bindpost_mcp_http::{Settings, bind_systemd};
///
/// bind_systemd(None)?.serve(server, Settings::default()).await
/// # }
/// ```
pub fn bind_systemd(name: Option<&str>) -> io::Result<AnyListener> {
    Ok(match take_systemd_socket(name)? {
        SystemdListener::Tcp(listener) => AnyListener::Tcp(BoundListener::new(listener)?),
        SystemdListener::Unix(listener) => AnyListener::Unix(BoundListener::new(listener)?),
    })
}
