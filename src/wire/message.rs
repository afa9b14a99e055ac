//! The sections of reliable and unreliable messages, and the delivery kinds themselves.
//!
//! Reliable: type, stream, seq u16, length, bytes. Unreliable: type (flag 1: newest wins), stream, seq u16 (only then), length,
//! bytes; with flag 1 ("next") stream and seq are left out: the message follows the one before it in the packet. A length is one byte below 128, else two (low 7 bits first, with the high bit set).
//! Fed by: the sections of a packet. Yields: messages, or a `ParseError`. Never: keeps order; the channel does.

use super::ParseError;
use super::section::{RELIABLE, Section, UNRELIABLE};

/// Flag of an unreliable message: it has a sequence number and the newest wins.
const NEWEST: u8 = 1;
/// Flag of a reliable message: its stream is that of the reliable message before it in this packet, its number the next.
const NEXT: u8 = 1;
/// Most bytes that a message costs besides its own.
pub const MAX_MESSAGE_OVERHEAD: usize = 6;

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Exactly once, in order within its stream.
    Reliable,
    /// At most once, in any order; none is repeated.
    Unreliable,
    /// At most once; one older than the newest delivered of its stream is dropped.
    UnreliableNewest,
}

/// Appends a reliable message.
pub fn emit_reliable(out: &mut Vec<u8>, stream: u8, seq: u16, data: &[u8]) {
    let [s0, s1] = seq.to_le_bytes();
    out.extend_from_slice(&[RELIABLE, stream, s0, s1]);
    emit_sized(out, data);
}

/// Appends a reliable message that follows the one before it in its stream.
pub fn emit_next(out: &mut Vec<u8>, data: &[u8]) {
    out.push(RELIABLE | NEXT << 4);
    emit_sized(out, data);
}

/// Appends an unreliable message; `seq` when only the newest matters.
pub fn emit_unreliable(out: &mut Vec<u8>, stream: u8, seq: Option<u16>, data: &[u8]) {
    if let Some(seq) = seq {
        let [s0, s1] = seq.to_le_bytes();
        out.extend_from_slice(&[UNRELIABLE | NEWEST << 4, stream, s0, s1]);
    } else {
        out.extend_from_slice(&[UNRELIABLE, stream]);
    }
    emit_sized(out, data);
}

/// Bytes that a message of `len` takes in a packet.
pub const fn section_size(len: usize, has_seq: bool) -> usize {
    2 + if has_seq { 2 } else { 0 } + if len < 128 { 1 } else { 2 } + len
}

/// Bytes that a reliable message of `len` takes behind its predecessor.
pub const fn next_size(len: usize) -> usize {
    section_size(len, true) - 3
}

pub(super) fn parse_reliable(flags: u8, bytes: &[u8]) -> Result<(Section<'_>, &[u8]), ParseError> {
    if flags == NEXT {
        return parse_sized(bytes).map(|(data, rest)| (Section::Next { data }, rest));
    }
    if flags != 0 {
        return Err(ParseError::Malformed);
    }
    let (&[stream, s0, s1], rest) = bytes.split_first_chunk::<3>().ok_or(ParseError::Truncated)?;
    let (data, rest) = parse_sized(rest)?;
    Ok((Section::Reliable { stream, seq: u16::from_le_bytes([s0, s1]), data }, rest))
}

pub(super) fn parse_unreliable(flags: u8, bytes: &[u8]) -> Result<(Section<'_>, &[u8]), ParseError> {
    let (&stream, rest) = bytes.split_first().ok_or(ParseError::Truncated)?;
    let (seq, rest) = match flags {
        0 => (None, rest),
        NEWEST => {
            let (&seq, rest) = rest.split_first_chunk::<2>().ok_or(ParseError::Truncated)?;
            (Some(u16::from_le_bytes(seq)), rest)
        }
        _ => return Err(ParseError::Malformed),
    };
    let (data, rest) = parse_sized(rest)?;
    Ok((Section::Unreliable { stream, seq, data }, rest))
}

fn emit_sized(out: &mut Vec<u8>, data: &[u8]) {
    debug_assert!(data.len() < 1 << 14, "send_message refuses longer ones");
    if data.len() < 128 {
        out.push(data.len() as u8);
    } else {
        out.extend_from_slice(&[data.len() as u8 | 0x80, (data.len() >> 7) as u8]);
    }
    out.extend_from_slice(data);
}

fn parse_sized(bytes: &[u8]) -> Result<(&[u8], &[u8]), ParseError> {
    let (&low, mut rest) = bytes.split_first().ok_or(ParseError::Truncated)?;
    let mut len = usize::from(low & 0x7f);
    if low & 0x80 != 0 {
        let (&high, after) = rest.split_first().ok_or(ParseError::Truncated)?;
        if high == 0 || high & 0x80 != 0 {
            return Err(ParseError::Malformed);
        }
        len |= usize::from(high) << 7;
        rest = after;
    }
    rest.split_at_checked(len).ok_or(ParseError::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_costs_what_the_sizes_say() {
        for (len, size) in [(0, 5), (127, 132), (128, 134), (1024, 1030)] {
            let mut out = Vec::new();
            emit_reliable(&mut out, 1, 2, &vec![7; len]);
            assert_eq!((out.len(), section_size(len, true)), (size, size));
            assert!(size <= len + MAX_MESSAGE_OVERHEAD);
            out.clear();
            emit_next(&mut out, &vec![7; len]);
            assert_eq!((out.len(), next_size(len)), (size - 3, size - 3));
            out.clear();
            emit_unreliable(&mut out, 1, None, &vec![7; len]);
            assert_eq!((out.len(), section_size(len, false)), (size - 2, size - 2));
        }
    }

    #[test]
    fn a_short_length_in_the_long_form_is_refused() {
        assert_eq!(parse_sized(&[0x83, 0, 1, 2, 3]), Err(ParseError::Malformed));
        assert_eq!(parse_sized(&[0x80, 0x80]), Err(ParseError::Malformed));
        assert_eq!(parse_sized(&[0x80]), Err(ParseError::Truncated));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_to_what_emits_them_or_are_refused(
            flags in 0u8..16,
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            len in 0u8..=255,
        ) {
            // A length that fits comes up often enough.
            if let Some(low) = bytes.get_mut(3) {
                *low = len;
            }
            for (kind, parsed) in
                [(RELIABLE, parse_reliable(flags, &bytes)), (UNRELIABLE, parse_unreliable(flags, &bytes))]
            {
                if let Ok((section, rest)) = parsed {
                    let mut again = Vec::new();
                    section.emit(&mut again);
                    prop_assert_eq!(again[0], kind | flags << 4);
                    again.extend_from_slice(rest);
                    prop_assert_eq!(&again[1..], &bytes[..]);
                }
            }
        }
    }
}
