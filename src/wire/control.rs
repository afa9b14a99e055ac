//! Control messages of the mesh: admission, introductions, readiness, the start barrier, checksums, goodbye.
//!
//! Encoded with `bitcode`; they travel on the channel's reliable stream 0, so each arrives once and in order.
//! Fed by: the lobby (encode) and that stream (decode). Yields: messages; indices are checked where they are used.
//! Never: stored or sent outside a sealed channel.

use crate::base::Addr;
use crate::base::limits::{MAX_CANDIDATES, MAX_MESSAGE, MAX_OPAQUE_ADDR};
use crate::wire::ParseError;
use crate::wire::handshake::MAX_CHAIN;
use bitcode::{Decode, Encode};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// A member's two public keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// X25519, for Noise.
    pub noise: [u8; 32],
    /// Ed25519, for certificates.
    pub sign: [u8; 32],
}

/// "This member may introduce others", signed by the room key or by a member of the chain before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Certificate {
    /// Whose.
    pub identity: Identity,
    /// Until when, seconds since 1970; 0 = no limit (simulation).
    pub expires_unix_s: u64,
    /// Ed25519 over label, room id, identity and expiry.
    pub signature: [u8; 64],
}

/// An address as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum WireAddr {
    /// IPv4.
    V4([u8; 4], u16),
    /// IPv6 with scope id.
    V6([u8; 16], u16, u32),
    /// A custom transport's.
    Opaque(Vec<u8>),
}

impl From<Addr> for WireAddr {
    fn from(addr: Addr) -> Self {
        match addr {
            Addr::Ip(SocketAddr::V4(v4)) => Self::V4(v4.ip().octets(), v4.port()),
            Addr::Ip(SocketAddr::V6(v6)) => Self::V6(v6.ip().octets(), v6.port(), v6.scope_id()),
            Addr::Opaque(_) => Self::Opaque(addr.opaque_bytes().unwrap_or_default().to_vec()),
        }
    }
}

impl WireAddr {
    /// The address, or nothing when an opaque one has a wrong size.
    pub fn parse(&self) -> Option<Addr> {
        match self {
            Self::V4(ip, port) => Some(Addr::ip(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(*ip)), *port))),
            Self::V6(ip, port, scope) => {
                Some(Addr::ip(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(*ip), *port, 0, *scope))))
            }
            Self::Opaque(bytes) if bytes.len() <= MAX_OPAQUE_ADDR => Addr::opaque(bytes),
            Self::Opaque(_) => None,
        }
    }
}

/// Who owns each slot; 255 = nobody.
pub type SlotOwners = [u8; 16];

/// One control message.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Control {
    /// Coordinator → guest: you are in, as this member; with your certificate chain.
    Admit {
        /// The guest's index.
        you: u8,
        /// The coordinator's own index.
        us: u8,
        /// Places of the room.
        max_peers: u8,
        /// The attempt that the room's last match began with; 0 = none yet.
        started_attempt: u32,
        /// Chain from the room key to the guest.
        chain: Vec<Certificate>,
    },
    /// Guest → coordinator: where else I can be reached.
    Candidates {
        /// Own addresses.
        addresses: Vec<WireAddr>,
    },
    /// Coordinator → all: this member exists.
    Member {
        /// Its index.
        index: u8,
        /// Its keys.
        identity: Identity,
        /// Where to try.
        addresses: Vec<WireAddr>,
    },
    /// Coordinator → all: this member is no more (lobby only; in play the cut decides).
    Removed {
        /// Its index.
        index: u8,
    },
    /// Member → all: where I stand.
    Status {
        /// Slots that I play; 0 = not ready.
        local_slots: u8,
        /// Digest of my session settings.
        settings: u64,
        /// Members that I have a channel to, as bits.
        connected: u16,
    },
    /// Coordinator → all: get ready for this line-up.
    Prepare {
        /// Which attempt.
        attempt: u32,
        /// The shared seed.
        seed: u64,
        /// Owners of the slots.
        slots: SlotOwners,
    },
    /// Member → coordinator: clock in step, session open, all connected.
    Prepared {
        /// Which attempt.
        attempt: u32,
    },
    /// Coordinator → all, and from each to all once: frame 0 is at this mesh time.
    Go {
        /// Which attempt.
        attempt: u32,
        /// The shared seed.
        seed: u64,
        /// Owners of the slots.
        slots: SlotOwners,
        /// Mesh time of frame 0, µs.
        frame0_at: u64,
    },
    /// Coordinator → member: your session settings differ from mine.
    SettingsDiffer {
        /// The coordinator's digest.
        coordinator: u64,
    },
    /// Member → all: digest of a confirmed mark frame.
    Checksum {
        /// The mark.
        frame: i32,
        /// Its digest.
        value: u64,
    },
    /// Member → all: goodbye.
    Bye,
    /// Member → all: I end this match and stay in the room.
    EndMatch,
}

/// Encodes and decodes with buffers that are kept, so that a repeated kind allocates nothing.
#[derive(Default)]
pub struct Codec {
    buffer: bitcode::Buffer,
}

impl Codec {
    /// Appends the encoding.
    pub fn encode(&mut self, control: &Control, out: &mut Vec<u8>) {
        out.extend_from_slice(self.buffer.encode(control));
        debug_assert!(
            out.len() <= MAX_MESSAGE,
            "control messages are split by member, so each fits a packet"
        );
    }

    /// Decodes a whole message.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<Control, ParseError> {
        let control: Control = self.buffer.decode(bytes).map_err(|_| ParseError::Malformed)?;
        // Equal bits are packed, so a short message may hold far more than any that is sent.
        let is_bounded = match &control {
            Control::Member { addresses, .. } | Control::Candidates { addresses } => {
                addresses.len() <= MAX_CANDIDATES && addresses.iter().all(|address| address.parse().is_some())
            }
            Control::Admit { chain, .. } => chain.len() <= MAX_CHAIN,
            Control::Removed { .. }
            | Control::Status { .. }
            | Control::Prepare { .. }
            | Control::Prepared { .. }
            | Control::Go { .. }
            | Control::SettingsDiffer { .. }
            | Control::Checksum { .. }
            | Control::Bye
            | Control::EndMatch => true,
        };
        if is_bounded { Ok(control) } else { Err(ParseError::Malformed) }
    }
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Codec")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_admission_fits_one_message_of_the_smallest_datagram() {
        let certificate = Certificate {
            identity: Identity { noise: [0xAA; 32], sign: [0xBB; 32] },
            expires_unix_s: u64::MAX,
            signature: [0xCC; 64],
        };
        let mut out = Vec::new();
        Codec::default().encode(
            &Control::Admit {
                you: 15,
                us: 0,
                max_peers: 16,
                started_attempt: u32::MAX,
                chain: vec![certificate; 4],
            },
            &mut out,
        );
        assert!(out.len() <= 570, "{}", out.len());
    }

    #[test]
    fn what_is_packed_into_a_short_message_but_longer_than_any_that_is_sent_is_refused() {
        let certificate = Certificate {
            identity: Identity { noise: [0; 32], sign: [0; 32] },
            expires_unix_s: 0,
            signature: [0; 64],
        };
        let takes = |control: &Control| {
            let bytes = bitcode::encode(control);
            assert!(bytes.len() <= MAX_MESSAGE, "{}", bytes.len());
            Codec::default().decode(&bytes).is_ok()
        };
        let admit = |links| Control::Admit {
            you: 1,
            us: 0,
            max_peers: 2,
            started_attempt: 0,
            chain: vec![certificate; links],
        };
        assert!(takes(&admit(MAX_CHAIN)) && !takes(&admit(MAX_CHAIN + 1)));
        let opaque = |size| Control::Candidates { addresses: vec![WireAddr::Opaque(vec![0; size])] };
        assert!(
            takes(&opaque(MAX_OPAQUE_ADDR)) && !takes(&opaque(MAX_OPAQUE_ADDR + 1)) && !takes(&opaque(0))
        );
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut codec = Codec::default();
            if let Ok(control) = codec.decode(&bytes) {
                let mut out = Vec::new();
                codec.encode(&control, &mut out);
                prop_assert_eq!(codec.decode(&out), Ok(control));
            }
        }
    }
}
