//! The `EXT_ACK` section: 256 ack bits behind the 32 of the header, for bursts whose packets overtake each other.
//!
//! Layout: type, mask `u32`, then the bytes that the mask names, lowest first; a byte of all ones is left out, as in the header.
//! Fed by: the body of the section. Yields: the bits, or a `ParseError`. Never: knows which packets they are about.

use super::ParseError;
use super::section::EXT_ACK;

/// Counters that it tells of.
pub const EXT_BITS: u64 = 256;
const BYTES: usize = EXT_BITS as usize / 8;
/// Type and mask.
const FIXED: usize = 5;

/// The section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtAck {
    /// Bit `i` (from the lowest of the first): counter `ack - 33 - i` was received too.
    pub bits: [u64; 4],
}

impl ExtAck {
    fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.bits.iter().flat_map(|word| word.to_le_bytes())
    }

    /// Bytes of the section, 5 to 37.
    pub fn size(&self) -> usize {
        FIXED + self.bytes().filter(|&byte| byte != 0xff).count()
    }

    /// Appends the section.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut mask = 0_u32;
        for (i, byte) in self.bytes().enumerate() {
            mask |= u32::from(byte != 0xff) << i;
        }
        out.push(EXT_ACK);
        out.extend_from_slice(&mask.to_le_bytes());
        out.extend(self.bytes().filter(|&byte| byte != 0xff));
    }

    /// Reads a body; yields what is behind it too.
    pub fn parse(flags: u8, body: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        if flags != 0 {
            return Err(ParseError::Malformed);
        }
        let (&mask, mut rest) = body.split_first_chunk::<4>().ok_or(ParseError::Truncated)?;
        let mask = u32::from_le_bytes(mask);
        let mut bytes = [0xff; BYTES];
        for (i, byte) in bytes.iter_mut().enumerate() {
            if mask >> i & 1 == 1 {
                let (&first, behind) = rest.split_first().ok_or(ParseError::Truncated)?;
                if first == 0xff {
                    return Err(ParseError::Malformed);
                }
                (*byte, rest) = (first, behind);
            }
        }
        let mut bits = [0; 4];
        for (word, bytes) in bits.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok((Self { bits }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lost_takes_five_bytes_and_the_worst_thirty_seven() {
        for (bits, size) in [([u64::MAX; 4], 5), ([u64::MAX, u64::MAX ^ 4, u64::MAX, 0], 14), ([0; 4], 37)] {
            let ack = ExtAck { bits };
            let mut out = Vec::new();
            ack.emit(&mut out);
            assert_eq!((out.len(), ack.size()), (size, size));
            assert_eq!(ExtAck::parse(0, &out[1..]), Ok((ack, &[][..])));
            assert_eq!(ExtAck::parse(0, &out[1..size - 1]), Err(ParseError::Truncated));
        }
        assert_eq!(ExtAck::parse(0, &[1, 0, 0, 0, 0xff]), Err(ParseError::Malformed), "it has two forms");
    }
}
