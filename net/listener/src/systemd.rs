//! Sockets that systemd passes to a service (socket activation).
//!
//! The variables stay in the environment, because a program with threads cannot remove them safely. Child
//! processes ignore them: `LISTEN_PID` names this process, and the sockets are closed in children.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::{Mutex, PoisonError};

use socket2::{SockRef, Type};
use tokio::net::TcpListener;

use crate::unix::UnixSocketListener;

/// A listening socket of a `.socket` unit: TCP, or a Unix domain socket.
#[derive(Debug)]
pub enum SystemdListener {
    /// A socket of TCP.
    Tcp(TcpListener),
    /// A Unix domain socket. Its file belongs to systemd and is not deleted.
    Unix(UnixSocketListener),
}

/// A socket that was passed and not taken yet.
struct PassedSocket {
    name: Option<String>,
    socket: OwnedFd,
}

/// The sockets that were passed and not taken yet. `None` until they are first asked for.
static PASSED: Mutex<Option<Vec<PassedSocket>>> = Mutex::new(None);

/// Takes a listening socket that systemd has passed to this process (`LISTEN_FDS`).
///
/// `name` is the `FileDescriptorName=` of the `.socket` unit, by default the name of the unit. If several
/// sockets have it, each call takes the next one. Without a name, systemd must have passed one socket only.
///
/// No other code of the process may take these sockets.
pub fn take_systemd_socket(name: Option<&str>) -> io::Result<SystemdListener> {
    let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    let sockets = match &mut *passed {
        Some(sockets) => sockets,
        empty => empty.insert(passed_sockets()?),
    };
    let names = || {
        let names = sockets.iter().map(|socket| socket.name.as_deref().unwrap_or("unknown"));
        names.collect::<Vec<_>>().join(", ")
    };
    let found = match name {
        Some(name) => sockets.iter().position(|socket| socket.name.as_deref() == Some(name)),
        None => (sockets.len() == 1).then_some(0),
    };
    let Some(found) = found else {
        let problem = match name {
            _ if sockets.is_empty() => {
                "systemd has passed no socket to this process, or all of them are taken\n  \
                 fix: start it by a .socket unit, or listen on an address like 127.0.0.1:7071"
                    .to_owned()
            }
            Some(name) => format!(
                "systemd has passed no socket with the name {name:?}. Names: {}\n  fix: set \
                 FileDescriptorName={name} in the .socket unit, or use one of these names",
                names()
            ),
            None => format!(
                "systemd has passed {} sockets: {}\n  fix: choose one of them by its name",
                sockets.len(),
                names()
            ),
        };
        return Err(io::Error::new(io::ErrorKind::NotFound, problem));
    };
    to_listener(sockets.remove(found))
}

/// Takes all sockets. They are duplicated, because the copies are closed in child processes.
fn passed_sockets() -> io::Result<Vec<PassedSocket>> {
    let passed = sd_listen_fds::get().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    passed
        .into_iter()
        .map(|(name, socket)| Ok(PassedSocket { name, socket: socket.into_std().try_clone()? }))
        .collect()
}

fn to_listener(PassedSocket { name, socket }: PassedSocket) -> io::Result<SystemdListener> {
    let wrong = |what: &str| {
        let name = name.as_deref().unwrap_or("unknown");
        let problem = format!(
            "the socket {name:?} of systemd {what}\n  fix: use ListenStream= with a port or a path, and \
             Accept=no, in the .socket unit"
        );
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    };
    let details = SockRef::from(&socket);
    if details.r#type().map_err(|error| wrong(&format!("cannot be used: {error}")))? != Type::STREAM {
        return Err(wrong("is not a stream socket"));
    }
    if details.peer_addr().is_ok() {
        return Err(wrong("is a connection of a client, not a listening socket"));
    }
    let address = details.local_addr()?;
    if address.is_unix() {
        let listener = StdUnixListener::from(socket);
        listener.set_nonblocking(true)?;
        Ok(SystemdListener::Unix(UnixSocketListener::from_std(listener)?))
    } else if address.as_socket().is_some() {
        let listener = std::net::TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        Ok(SystemdListener::Tcp(TcpListener::from_std(listener)?))
    } else {
        Err(wrong("has neither an IP address nor a path"))
    }
}
