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
