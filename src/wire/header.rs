//! The header of a data packet: kind, sender, packet counter, acknowledgement.
//!
//! Layout: `0x80 | kind << 5 | epoch << 4 | mask`, sender, counter (low 16 bits), newest counter received (low 16 bits),
//! then the ack-bit bytes that the mask names; a byte of all ones is left out. 6 bytes when nothing is lost, 10 at worst.
//! Fed by: datagrams. Yields: a [`Header`], or a `ParseError`. Never: knows a key; the header is authenticated, not hidden.

use super::ParseError;

/// Set in the first byte of every datagram of ours; below it are STUN, TURN and DHT.
pub const OURS: u8 = 0x80;
/// The second byte of who has no index yet.
pub const NO_SENDER: u8 = 255;
/// Fixed part of the header.
const FIXED: usize = 6;

/// What a datagram of ours is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sealed packet of a channel.
    Data,
    /// A step of a handshake.
    Handshake,
    /// A packet that a fellow player forwards.
    Relay,
    /// A packet of a replication server or viewer.
    Replication,
}

impl Kind {
    /// The kind named by a datagram's first byte; nothing when it is not ours.
    pub const fn of(first: u8) -> Option<Self> {
        if first & OURS == 0 {
            return None;
        }
        Some(match first >> 5 & 3 {
            0 => Self::Data,
            1 => Self::Handshake,
            2 => Self::Relay,
            _ => Self::Replication,
        })
    }

    /// The first byte of this kind, with epoch and mask zero.
    pub const fn first_byte(self) -> u8 {
        OURS | (self as u8) << 5
    }
}

/// The clear part of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which of two keys sealed it (always false until rekeying exists).
    pub epoch: bool,
    /// The sender's index; [`NO_SENDER`] when it has none.
    pub sender: u8,
    /// Low 16 bits of the packet counter.
    pub counter: u16,
    /// Low 16 bits of the newest counter received; 0 = none. Counters with low bits 0 are never used.
    pub ack: u16,
    /// Bit `i`: counter `ack - 1 - i` was received too.
    pub ack_bits: u32,
}

impl Header {
    /// Reads a header and how many bytes it takes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        let (&[first, sender, c0, c1, a0, a1], rest) =
            bytes.split_first_chunk::<FIXED>().ok_or(ParseError::Truncated)?;
        if Kind::of(first) != Some(Kind::Data) {
            return Err(ParseError::Malformed);
        }
        let mut bits = [0xff; 4];
        let mut present = rest.iter();
        for (i, byte) in bits.iter_mut().enumerate() {
            if first >> i & 1 == 1 {
                *byte = *present.next().ok_or(ParseError::Truncated)?;
                if *byte == 0xff {
                    return Err(ParseError::Malformed);
                }
            }
        }
        let counter = u16::from_le_bytes([c0, c1]);
        if counter == 0 {
            return Err(ParseError::Malformed);
        }
        let header = Self {
            epoch: first & 0x10 != 0,
            sender,
            counter,
            ack: u16::from_le_bytes([a0, a1]),
            ack_bits: u32::from_le_bytes(bits),
        };
        Ok((header, FIXED + (first & 0xf).count_ones() as usize))
    }

    /// Appends the header.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let bits = self.ack_bits.to_le_bytes();
        let mut first = Kind::Data.first_byte() | u8::from(self.epoch) << 4;
        for (i, &byte) in bits.iter().enumerate() {
            first |= u8::from(byte != 0xff) << i;
        }
        let [c0, c1] = self.counter.to_le_bytes();
        let [a0, a1] = self.ack.to_le_bytes();
        out.extend_from_slice(&[first, self.sender, c0, c1, a0, a1]);
        out.extend(bits.into_iter().filter(|&byte| byte != 0xff));
    }
}

/// Rebuilds a 64-bit counter from its low 16 bits: the one nearest to `near`.
pub const fn counter_near(low: u16, near: u64) -> u64 {
    near.wrapping_add(low.wrapping_sub(near as u16) as i16 as i64 as u64)
}

/// The sender index of any datagram of ours.
pub fn sender_of(datagram: &[u8]) -> Option<u8> {
    datagram.get(1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_free_header_takes_six_bytes_and_the_worst_ten() {
        let mut header = Header { epoch: false, sender: 3, counter: 0x0102, ack: 0x0304, ack_bits: u32::MAX };
        let mut out = Vec::new();
        header.emit(&mut out);
        assert_eq!(out, [0x80, 3, 2, 1, 4, 3]);
        header.ack_bits = 0;
        out.clear();
        header.emit(&mut out);
        assert_eq!(out, [0x8f, 3, 2, 1, 4, 3, 0, 0, 0, 0]);
    }

    #[test]
    fn the_nearest_counter_is_found_across_a_wrap() {
        for near in [1, 65_535, 65_540, 1 << 40] {
            for counter in near..near + 32_000 {
                assert_eq!(counter_near(counter as u16, near), counter);
            }
        }
        assert_eq!(counter_near(65_000, 65_540), 65_000);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(mut bytes: Vec<u8>) {
            if let Some(first) = bytes.first_mut() {
                *first = *first & 0x1f | 0x80;
            }
            if let Ok((header, size)) = Header::parse(&bytes) {
                let mut again = Vec::new();
                header.emit(&mut again);
                proptest::prop_assert_eq!(&again[..], &bytes[..size]);
            }
        }

        #[test]
        fn what_is_emitted_is_parsed(epoch: bool, sender: u8, counter in 1u16.., ack: u16, ack_bits: u32) {
            let header = Header { epoch, sender, counter, ack, ack_bits };
            let mut out = Vec::new();
            header.emit(&mut out);
            proptest::prop_assert_eq!(Header::parse(&out), Ok((header, out.len())));
        }
    }
}
