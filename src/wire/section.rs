//! The sections inside a sealed packet: a type (low 4 bits) with flags (high 4 bits), then the body.
//!
//! The sections of the node carry a u16 length, so that the channel walks past them; `INPUTS` takes the whole rest and
//! `PADDING` ends the packet. Fed by: an opened packet. Yields: one [`Section`] after the other, or a `ParseError`.
//! Never: understands what belongs to the node.

use super::ext_ack::ExtAck;
use super::link::Link;
use super::timing::Timing;
use super::{ParseError, message};

/// The rest of the packet means nothing.
pub const PADDING: u8 = 0;
/// Inputs; always the last section.
pub const INPUTS: u8 = 1;
/// Inputs of another slot, to fill a gap.
pub const FILL: u8 = 2;
/// One reliable message.
pub const RELIABLE: u8 = 3;
/// One unreliable message.
pub const UNRELIABLE: u8 = 4;
/// Ping and pong.
pub const TIMING: u8 = 5;
/// Members that the sender does not hear.
pub const SUSPECT: u8 = 6;
/// A cut was opened.
pub const CUT: u8 = 7;
/// What the sender holds of those who leave.
pub const HAVE: u8 = 8;
/// The cut's result.
pub const COMMIT: u8 = 9;
/// What the sender lacks of the cut's result.
pub const NEED: u8 = 10;
/// 256 more ack bits.
pub const EXT_ACK: u8 = 11;
/// Reserved: a piece of a large message.
pub const FRAGMENT: u8 = 12;
/// What the two ends of a link tell each other about it; the flags say what.
pub const LINK: u8 = 14;

/// Bytes before the body of a section of the node.
pub const NODE_OVERHEAD: usize = 3;

/// One section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section<'a> {
    /// The rest of the packet, for the node.
    Inputs {
        /// High 4 bits of the type byte.
        flags: u8,
        /// Everything behind it.
        body: &'a [u8],
    },
    /// A section that only the node understands.
    Node {
        /// `FILL`, or `SUSPECT` to `NEED`.
        kind: u8,
        /// High 4 bits of the type byte.
        flags: u8,
        /// Its body.
        body: &'a [u8],
    },
    /// One reliable message.
    Reliable {
        /// 0 is the mesh's own, 1 to 8 are the application's.
        stream: u8,
        /// Its place in the stream.
        seq: u16,
        /// Its bytes.
        data: &'a [u8],
    },
    /// The reliable message that follows the one before it in this packet.
    Next {
        /// Its bytes.
        data: &'a [u8],
    },
    /// One unreliable message.
    Unreliable {
        /// As above.
        stream: u8,
        /// Present when only the newest of the stream matters.
        seq: Option<u16>,
        /// Its bytes.
        data: &'a [u8],
    },
    /// Ping and pong.
    Timing(Timing),
    /// More of what came than the header tells.
    ExtAck(ExtAck),
    /// About the path.
    Link(Link),
}

impl Section<'_> {
    /// Appends the section. An `Inputs` section must be the last of its packet.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Inputs { flags, body } => {
                out.push(INPUTS | flags << 4);
                out.extend_from_slice(body);
            }
            Self::Node { kind, flags, body } => emit_node(out, kind, flags, body),
            Self::Reliable { stream, seq, data } => message::emit_reliable(out, stream, seq, data),
            Self::Next { data } => message::emit_next(out, data),
            Self::Unreliable { stream, seq, data } => message::emit_unreliable(out, stream, seq, data),
            Self::Timing(timing) => timing.emit(out),
            Self::ExtAck(ack) => ack.emit(out),
            Self::Link(link) => link.emit(out),
        }
    }
}

/// Appends a section of the node without flags.
pub fn node_section(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    emit_node(out, kind, 0, body);
}

/// Appends a section of the node whose body `write` appends.
pub fn node_section_with(out: &mut Vec<u8>, kind: u8, flags: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind | flags << 4, 0, 0]);
    let start = out.len();
    write(out);
    let len = (out.len() - start) as u16;
    out[start - 2..start].copy_from_slice(&len.to_le_bytes());
}

fn emit_node(out: &mut Vec<u8>, kind: u8, flags: u8, body: &[u8]) {
    node_section_with(out, kind, flags, |out| out.extend_from_slice(body));
}

/// Walks the sections of an opened packet; ends after the first error.
pub fn sections(bytes: &[u8]) -> Sections<'_> {
    Sections { rest: bytes }
}

/// See [`sections`].
#[derive(Clone, Debug)]
pub struct Sections<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Sections<'a> {
    type Item = Result<Section<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&first, body) = self.rest.split_first()?;
        let (kind, flags) = (first & 0xf, first >> 4);
        let parsed = match kind {
            PADDING => {
                self.rest = &[];
                return None;
            }
            INPUTS => Ok((Section::Inputs { flags, body }, &[][..])),
            FILL | SUSPECT..=NEED => parse_node(kind, flags, body),
            RELIABLE => message::parse_reliable(flags, body),
            UNRELIABLE => message::parse_unreliable(flags, body),
            TIMING => Timing::parse(flags, body).map(|(timing, rest)| (Section::Timing(timing), rest)),
            EXT_ACK => ExtAck::parse(flags, body).map(|(ack, rest)| (Section::ExtAck(ack), rest)),
            LINK => Link::parse(flags, body).map(|(link, rest)| (Section::Link(link), rest)),
            _ => Err(ParseError::Malformed),
        };
        Some(match parsed {
            Ok((section, rest)) => {
                self.rest = rest;
                Ok(section)
            }
            Err(error) => {
                self.rest = &[];
                Err(error)
            }
        })
    }
}

fn parse_node(kind: u8, flags: u8, bytes: &[u8]) -> Result<(Section<'_>, &[u8]), ParseError> {
    let (&len, rest) = bytes.split_first_chunk::<2>().ok_or(ParseError::Truncated)?;
    let (body, rest) =
        rest.split_at_checked(usize::from(u16::from_le_bytes(len))).ok_or(ParseError::Truncated)?;
    Ok((Section::Node { kind, flags, body }, rest))
}

#[cfg(test)]
mod tests {
    use super::super::timing::{MAX_TIMING, Pong};
    use super::*;

    #[test]
    fn sections_are_walked_in_order_and_inputs_take_the_rest() {
        let timing = Timing { ping: Some(7), pong: Some(Pong { echo: 1, held_us: 2, mesh_us: 3 }) };
        let written = [
            Section::Node { kind: HAVE, flags: 3, body: &[1, 2, 3] },
            Section::Timing(timing),
            Section::ExtAck(ExtAck { bits: [u64::MAX, 7, u64::MAX, 1 << 63] }),
            Section::Link(Link::Window(0x8000_0001)),
            Section::Link(Link::PathChallenge([4; 8])),
            Section::Link(Link::PathResponse([5; 8])),
            Section::Reliable { stream: 0, seq: 65_535, data: &[9; 300] },
            Section::Next { data: &[7; 3] },
            Section::Unreliable { stream: 8, seq: None, data: &[] },
            Section::Unreliable { stream: 8, seq: Some(4), data: &[5; 127] },
            Section::Inputs { flags: 1, body: &[0, 0, 0] },
        ];
        let mut out = Vec::new();
        for section in written {
            section.emit(&mut out);
        }
        assert_eq!(sections(&out).collect::<Result<Vec<_>, _>>(), Ok(written.to_vec()));
        let mut alone = Vec::new();
        timing.emit(&mut alone);
        assert_eq!(alone.len(), MAX_TIMING);
    }

    #[test]
    fn reserved_and_unknown_types_stop_the_walk() {
        for kind in [EXT_ACK | 1 << 4, FRAGMENT, 13, LINK | 0xf0, 15] {
            let mut walk = sections(std::slice::from_ref(&kind));
            assert_eq!(walk.next(), Some(Err(ParseError::Malformed)));
            assert_eq!(walk.next(), None);
        }
    }

    #[test]
    fn padding_ends_a_packet() {
        assert_eq!(sections(&[PADDING, 255, 255]).next(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(0u8..=255, 0..80)) {
            let mut again = Vec::new();
            let mut refused = false;
            for section in sections(&bytes) {
                match section {
                    Ok(section) => section.emit(&mut again),
                    Err(_) => refused = true,
                }
            }
            if refused {
                proptest::prop_assert_eq!(&again[..], &bytes[..again.len()]);
            } else {
                // Whatever was not walked is padding.
                proptest::prop_assert_eq!(&again[..], &bytes[..again.len()]);
                proptest::prop_assert!(bytes.get(again.len()).is_none_or(|b| b & 0xf == PADDING));
            }
        }
    }
}
