//! Ports for programs that are told on which one to listen.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// Ports that the usual systems give to no socket by themselves: Linux begins at 32768, others at 49152. A port of
/// the system could be given to another program before the one that it was chosen for listens.
const CHOSEN: Range<u16> = 20_000..32_000;
/// How many ports are tried before the system chooses.
const ATTEMPTS: usize = 100;

/// Returns a port that is free at the moment.
pub(super) fn choose_free() -> io::Result<u16> {
    for _ in 0..ATTEMPTS {
        let random = getrandom::u32().map_err(io::Error::other)?;
        let port = CHOSEN.start + (random % u32::from(CHOSEN.end - CHOSEN.start)) as u16;
        if bind(port).is_ok() {
            return Ok(port);
        }
    }
    Ok(bind(0)?.local_addr()?.port())
}

/// Returns whether another program listens on this port.
pub(super) fn is_in_use(port: u16) -> bool {
    // Another error, such as a missing permission, is for the program to tell.
    bind(port).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    use super::{CHOSEN, bind, choose_free, is_in_use};

    #[test]
    fn a_chosen_port_is_free_and_not_one_that_the_system_gives_out() {
        let port = choose_free().unwrap();
        assert!(CHOSEN.contains(&port), "{port}");
        assert!(!is_in_use(port));
        let listener = bind(port).unwrap();
        assert!(is_in_use(port));
        drop(listener);
    }
}
