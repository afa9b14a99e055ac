//! The timing section: a ping, and the answer to the other side's ping with the mesh time at which it left.
//!
//! Fed by: the sections of a packet. Yields: a [`Timing`], or a `ParseError`.
//! Never: judges a sample; that is the channel's and the clock's work.

use super::ParseError;

/// Flag: a ping is in it.
const PING: u8 = 1;
/// Flag: a pong is in it.
const PONG: u8 = 2;
/// Most bytes of the section, type byte included.
pub const MAX_TIMING: usize = 21;

/// What a timing section holds: one of both at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Low 32 bits of the sender's local µs.
    pub ping: Option<u32>,
    /// The answer to a ping.
    pub pong: Option<Pong>,
}

/// The answer to a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pong {
    /// The ping's own value.
    pub echo: u32,
    /// How long the ping waited for a packet to answer in.
    pub held_us: u32,
    /// The responder's mesh time when the answer left.
    pub mesh_us: u64,
}

impl Timing {
    /// Reads the body behind the type byte; yields the rest.
    pub(super) fn parse(flags: u8, bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        if flags == 0 || flags & !(PING | PONG) != 0 {
            return Err(ParseError::Malformed);
        }
        let mut rest = bytes;
        let mut timing = Self { ping: None, pong: None };
        if flags & PING != 0 {
            timing.ping = Some(u32::from_le_bytes(take(&mut rest)?));
        }
        if flags & PONG != 0 {
            timing.pong = Some(Pong {
                echo: u32::from_le_bytes(take(&mut rest)?),
                held_us: u32::from_le_bytes(take(&mut rest)?),
                mesh_us: u64::from_le_bytes(take(&mut rest)?),
            });
        }
        Ok((timing, rest))
    }

    /// Appends the section; nothing when it would be empty.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.ping.is_some()) * PING + u8::from(self.pong.is_some()) * PONG;
        if flags == 0 {
            return;
        }
        out.push(super::section::TIMING | flags << 4);
        if let Some(ping) = self.ping {
            out.extend_from_slice(&ping.to_le_bytes());
        }
        if let Some(pong) = self.pong {
            out.extend_from_slice(&pong.echo.to_le_bytes());
            out.extend_from_slice(&pong.held_us.to_le_bytes());
            out.extend_from_slice(&pong.mesh_us.to_le_bytes());
        }
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], ParseError> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or(ParseError::Truncated)?;
    *bytes = rest;
    Ok(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::section::TIMING;

    #[test]
    fn a_timing_section_that_holds_nothing_is_neither_written_nor_read() {
        let mut out = Vec::new();
        Timing { ping: None, pong: None }.emit(&mut out);
        assert_eq!(out, []);
        assert_eq!(Timing::parse(0, &[0; 20]), Err(ParseError::Malformed));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_parse_to_what_emits_them_or_are_refused(
            flags in 0u8..16,
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..30),
        ) {
            match Timing::parse(flags, &bytes) {
                Ok((timing, rest)) => {
                    let mut again = Vec::new();
                    timing.emit(&mut again);
                    proptest::prop_assert_eq!(again[0], TIMING | flags << 4);
                    proptest::prop_assert!(again.len() <= MAX_TIMING);
                    again.extend_from_slice(rest);
                    proptest::prop_assert_eq!(&again[1..], &bytes[..]);
                }
                Err(error) => {
                    let is_known = (1..4).contains(&flags);
                    proptest::prop_assert_eq!(error == ParseError::Truncated, is_known);
                }
            }
        }
    }
}
