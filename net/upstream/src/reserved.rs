//! Addresses that documents may not use: the metadata services from which cloud machines get credentials,
//! and link-local networks. The operator may configure them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Host names of metadata services.
const NAMES: [&str; 7] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Returns whether the host of an address is reserved. The URL parser has already normalised its spelling.
pub(crate) fn is_reserved(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(address) => is_reserved_address(address),
        Err(_) => NAMES.iter().any(|name| host.eq_ignore_ascii_case(name)),
    }
}

fn is_reserved_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_reserved_v4(address),
        IpAddr::V6(address) => {
            let is_metadata = address.segments().starts_with(&[0xfd00, 0x0ec2]);
            is_metadata
                || address.is_unicast_link_local()
                || address.is_multicast()
                || embedded(address).is_some_and(is_reserved_v4)
        }
    }
}

fn is_reserved_v4(address: Ipv4Addr) -> bool {
    // Metadata services that are not link-local.
    const METADATA: [Ipv4Addr; 3] =
        [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
    address.is_link_local() || address.is_multicast() || address.is_broadcast() || METADATA.contains(&address)
}

/// Returns the IPv4 address in an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(join(high, low))
        }
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

/// Resolves names and removes reserved addresses. It runs for every connection, so a name cannot change
/// to a reserved address later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnreservedResolver;

/// The error for a name that resolves only to reserved addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservedAddressError;

impl fmt::Display for ReservedAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name resolves to a link-local or metadata address")
    }
}

impl std::error::Error for ReservedAddressError {}

impl Resolve for UnreservedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(without_reserved(found)?.into_iter()) as Addrs)
        })
    }
}

/// Returns the addresses that may be used, or an error if all of them are reserved.
fn without_reserved(mut found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, ReservedAddressError> {
    let is_known = !found.is_empty();
    found.retain(|address| !is_reserved_address(address.ip()));
    if is_known && found.is_empty() { Err(ReservedAddressError) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(address: &str) -> bool {
        is_reserved(&Url::parse(address).unwrap())
    }

    #[test]
    fn every_spelling_of_a_reserved_address_is_recognised() {
        for address in [
            "http://169.254.169.254",
            "http://169.254.169.254.",
            "http://169.254.170.2/v2",
            "http://169.254.1.1:8080/a",
            "http://2852039166",
            "http://0xA9FEA9FE",
            "http://0xa9.0xfe.0xa9.0xfe",
            "http://0251.0376.0251.0376",
            "http://169.254.43518",
            "http://%31%36%39.254.169.254",
            "http://１６９.254.169.254",
            "http://169。254。169。254",
            "http://user:pass@169.254.169.254",
            "http://[fe80::1]",
            "http://[FE80::A9FE:A9FE]",
            "http://[fd00:ec2::254]",
            "http://[fd00:0ec2:0:0::23]",
            "http://[::ffff:169.254.169.254]",
            "http://[::ffff:a9fe:a9fe]",
            "http://[::169.254.169.254]",
            "http://[64:ff9b::169.254.169.254]",
            "http://[2002:a9fe:a9fe::1]",
            "http://100.100.100.200",
            "http://168.63.129.16",
            "http://192.0.0.192",
            "http://255.255.255.255",
            "http://224.0.0.1",
            "http://metadata.google.internal/computeMetadata",
            "http://METADATA.google.Internal./",
            "http://metadata",
            "http://instance-data",
        ] {
            assert!(is(address), "{address}");
        }
    }

    #[test]
    fn a_name_does_not_resolve_to_reserved_addresses() {
        let found = |addresses: &[&str]| -> Vec<SocketAddr> {
            addresses.iter().map(|address| format!("{address}:0").parse().unwrap()).collect()
        };
        assert!(without_reserved(found(&["169.254.169.254", "[fd00:ec2::254]", "[::ffff:a9fe:1]"])).is_err());
        assert_eq!(without_reserved(found(&["169.254.1.1", "10.0.0.1"])).unwrap(), found(&["10.0.0.1"]));
        assert!(without_reserved(Vec::new()).unwrap().is_empty());
    }

    #[test]
    fn other_addresses_are_not_reserved() {
        for address in [
            "https://api.example.com",
            "http://localhost:1",
            "http://127.0.0.1",
            "http://[::1]",
            "http://0.0.0.0:8000",
            "http://10.0.0.1",
            "http://192.168.1.1",
            "http://172.16.0.1",
            "http://[fd12::1]",
            "http://169.253.1.1",
            "http://metadata.example.com",
            "http://169.254.169.254.example.com",
        ] {
            assert!(!is(address), "{address}");
        }
    }
}
