//! HTTP functions that stream: the host forwards the request to an HTTP server in the worker, and tells the worker about it
//! by an ordinary invocation. Here is how the two find each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use http::Uri;
use tokio::sync::oneshot;

/// Where to forward the request of an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTarget {
    /// The id of the invocation, which the forwarded request carries.
    pub invocation: Arc<str>,
    /// The address of the worker's server.
    pub server: SocketAddr,
}

/// The place in which an invocation leaves its [`StreamTarget`] when its worker is known.
#[derive(Clone, Debug)]
pub struct StreamSlot(Arc<Mutex<Option<oneshot::Sender<StreamTarget>>>>);

impl StreamSlot {
    /// Creates a slot, and the receiver of its target.
    pub fn new() -> (StreamSlot, oneshot::Receiver<StreamTarget>) {
        let (sender, receiver) = oneshot::channel();
        (StreamSlot(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Fills the slot. Only the first target counts, because an invocation is sent once.
    pub(crate) fn fill(&self, target: StreamTarget) {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The request may have been given up.
            let _ = sender.send(target);
        }
    }
}

/// Returns the address of a worker's server, such as `http://localhost:55123/`. Other machines are not forwarded to.
pub(crate) fn server_address(uri: &str) -> Option<SocketAddr> {
    let uri: Uri = uri.parse().ok()?;
    let port = uri.port_u16()?;
    let ip = match uri.host()? {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        "[::1]" => IpAddr::V6(Ipv6Addr::LOCALHOST),
        host => host.parse().ok().filter(|ip: &IpAddr| ip.is_loopback())?,
    };
    (uri.scheme_str() == Some("http")).then_some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_on_this_machine_are_accepted() {
        for (uri, expected) in [
            ("http://localhost:55123/", Some("127.0.0.1:55123")),
            ("http://127.0.0.1:1", Some("127.0.0.1:1")),
            ("http://[::1]:7/", Some("[::1]:7")),
            ("http://localhost/", None),
            ("https://localhost:1/", None),
            ("http://example.com:80/", None),
            ("http://169.254.169.254:80/", None),
            ("localhost:55123", None),
            ("", None),
        ] {
            assert_eq!(server_address(uri), expected.map(|address| address.parse().unwrap()), "{uri}");
        }
    }

    #[test]
    fn a_slot_passes_on_its_first_target() {
        let target = |invocation: &str| StreamTarget {
            invocation: invocation.into(),
            server: "127.0.0.1:1".parse().unwrap(),
        };
        let (slot, mut receiver) = StreamSlot::new();
        slot.clone().fill(target("1"));
        slot.fill(target("2"));
        assert_eq!(receiver.try_recv(), Ok(target("1")));
    }
}
