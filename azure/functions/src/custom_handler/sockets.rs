//! Which programs listen on which addresses of this machine. The system tells it on Linux only; elsewhere nothing is
//! known.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListeningSocket {
    address: SocketAddr,
    inode: u64,
}

/// Returns the program that listens on this port, such as `python (process 1234)`.
pub(super) fn owner_of(port: u16) -> Option<String> {
    let sockets = listening_sockets();
    let inodes: Vec<u64> =
        sockets.iter().filter(|socket| socket.address.port() == port).map(|socket| socket.inode).collect();
    let pid = processes().find(|pid| socket_inodes(*pid).any(|inode| inodes.contains(&inode)))?;
    if pid == std::process::id() {
        return Some("bindpost itself".to_owned());
    }
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|sign| !sign.is_control()).collect();
    Some(if name.is_empty() { format!("process {pid}") } else { format!("{name} (process {pid})") })
}

/// Returns the addresses on which the processes of a group listen.
pub(super) fn of_group(group: u32) -> Vec<SocketAddr> {
    let inodes: Vec<u64> =
        processes().filter(|pid| group_of(*pid) == Some(group)).flat_map(socket_inodes).collect();
    let sockets = listening_sockets().into_iter();
    sockets.filter(|socket| inodes.contains(&socket.inode)).map(|socket| socket.address).collect()
}

/// Returns the address with this port on which other machines can connect.
pub(crate) fn exposed_address(port: u16) -> Option<SocketAddr> {
    let sockets = listening_sockets().into_iter().map(|socket| socket.address);
    sockets
        .filter(|address| address.port() == port)
        .find(|address| !address.ip().to_canonical().is_loopback())
}

fn listening_sockets() -> Vec<ListeningSocket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts = tables.iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.flat_map(|text| text.lines().filter_map(parse_line).collect::<Vec<_>>()).collect()
}

/// Parses a line of the table. Returns `None` for sockets that do not listen.
fn parse_line(line: &str) -> Option<ListeningSocket> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, _, _, _, _, _, inode, ..] = fields.as_slice() else { return None };
    if *state != LISTEN {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    // Each group of eight digits is a number in the byte order of the machine.
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (part, at) in bytes.chunks_exact_mut(4).zip([0, 8, 16, 24]) {
                part.copy_from_slice(&word(at)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    let address = SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?);
    Some(ListeningSocket { address, inode: inode.parse().ok()? })
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the process group of a process.
fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may contain any character.
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

/// Returns the inodes of the sockets of a process. Those of other users are not visible.
fn socket_inodes(pid: u32) -> impl Iterator<Item = u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_listening_sockets_are_parsed() {
        let line =
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 123 1 0";
        let socket = ListeningSocket { address: "127.0.0.1:8080".parse().unwrap(), inode: 123 };
        assert_eq!(parse_line(line), Some(socket));
        let line = "1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 7 1";
        let socket = ListeningSocket { address: "[::1]:80".parse().unwrap(), inode: 7 };
        assert_eq!(parse_line(line), Some(socket));
        for other in
            ["", "  sl  local_address rem_address   st tx_queue", "0: 0100007F:1F90 0:0 01 0 0 0 0 0 1"]
        {
            assert_eq!(parse_line(other), None, "{other}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_owner_and_the_address_of_a_port_are_found() {
        let local = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = local.local_addr().unwrap().port();
        assert_eq!(owner_of(port).as_deref(), Some("bindpost itself"));
        assert_eq!(exposed_address(port), None);
        let open = std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap();
        assert_eq!(exposed_address(open.port()), None, "it is closed again");
        let open = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let address = open.local_addr().unwrap();
        assert_eq!(exposed_address(address.port()), Some(address));
    }
}
