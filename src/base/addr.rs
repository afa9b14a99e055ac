//! Where a datagram goes to or comes from.
//!
//! An address is an IP endpoint, or 1–64 opaque bytes that only a custom transport or the simulated network understands.
//! Never: identifies a peer; keys do that.

use crate::base::limits::MAX_OPAQUE_ADDR;
use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

/// An endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Addr {
    /// An IP endpoint; a v4-mapped IPv6 address is stored as IPv4, so that both compare equal.
    Ip(SocketAddr),
    /// Bytes that the game's own transport (or the simulated network) understands.
    Opaque(OpaqueAddr),
}

/// 1–64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpaqueAddr {
    len: u8,
    bytes: [u8; MAX_OPAQUE_ADDR],
}

impl Addr {
    /// An IP endpoint in canonical form (scope id kept, flow label dropped).
    pub fn ip(addr: SocketAddr) -> Self {
        Self::Ip(match addr {
            SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
                Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
                None => SocketAddr::V6(SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id())),
            },
            v4 @ SocketAddr::V4(_) => v4,
        })
    }

    /// An address of a custom transport: 1–64 bytes, else nothing.
    pub fn opaque(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        let mut addr = OpaqueAddr { len: bytes.len().try_into().ok()?, bytes: [0; MAX_OPAQUE_ADDR] };
        addr.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self::Opaque(addr))
    }

    /// The bytes of a custom transport's address.
    pub fn opaque_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Ip(_) => None,
            Self::Opaque(addr) => Some(&addr.bytes[..usize::from(addr.len)]),
        }
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(addr) => addr.fmt(f),
            Self::Opaque(addr) => {
                let bytes = &addr.bytes[..usize::from(addr.len)];
                match std::str::from_utf8(bytes) {
                    Ok(text) if text.chars().all(|c| c.is_ascii_graphic()) => f.write_str(text),
                    _ => bytes.iter().try_for_each(|b| write!(f, "{b:02x}")),
                }
            }
        }
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Addr({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Addr {
        Addr::ip(text.parse().expect("an address"))
    }

    #[test]
    fn an_ipv4_address_is_the_same_one_however_the_socket_tells_it() {
        let (plain, mapped) = (ip("192.0.2.7:7000"), ip("[::ffff:192.0.2.7]:7000"));
        assert_eq!((plain, plain.cmp(&mapped)), (mapped, std::cmp::Ordering::Equal));
        assert_eq!(mapped.to_string(), "192.0.2.7:7000");
        assert_ne!(plain, ip("[::ffff:192.0.2.7]:7001"));
        assert_ne!(
            plain,
            ip("[::192.0.2.7]:7000"),
            "only mapped ones are meant, not the old compatible ones"
        );
    }

    #[test]
    fn a_link_local_address_keeps_its_scope_and_loses_its_flow() {
        let at = |flow, scope| {
            Addr::ip(SocketAddrV6::new("fe80::1".parse().expect("an address"), 7000, flow, scope).into())
        };
        assert_eq!(at(5, 2), at(0, 2));
        assert_ne!(at(0, 2), at(0, 3), "the same address on another interface is another machine");
        let Addr::Ip(SocketAddr::V6(kept)) = at(5, 2) else { panic!("IPv6 stays IPv6") };
        assert_eq!((kept.scope_id(), kept.flowinfo()), (2, 0));
    }
}
