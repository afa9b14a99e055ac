//! One target per decoder: any bytes are read or refused, and what was read is written and read again as the same.
//!
//! Fed by: bytes. Yields: a panic when a decoder breaks its promise. Never: keeps state between two inputs.

use crate::meter;
use retick::base::{Addr, Frame};
use retick::wire::ParseError;
use retick::wire::agreement::{Commit, Cut, Have, emit_needs, emit_suspects, parse_needs, parse_suspects};
use retick::wire::bulk::Part;
use retick::wire::control::{Codec, WireAddr};
use retick::wire::handshake::{Envelope, Finish, Greeting, Hello, PairCall, Refusal};
use retick::wire::header::{Header, Kind};
use retick::wire::inputs::{FillHead, InputsHead, block_count, emit_block, parse_block, uniform};
use retick::wire::section::{self, PADDING};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// What decoding one datagram's worth of bytes may take: a control message of 1024 bytes packs equal bits eightfold and more.
const DECODED_MOST: usize = 128 * 1024;

/// The clear header of a data packet.
pub fn header(bytes: &[u8]) {
    if let Some(first) = bytes.first() {
        let kind = Kind::of(*first);
        assert_eq!(kind.is_some(), *first >= 0x80);
        assert!(kind.is_none_or(|kind| kind.first_byte() == *first & 0xe0));
    }
    if let Ok((header, size)) = Header::parse(bytes) {
        assert!((6..=10).contains(&size));
        let mut again = Vec::new();
        header.emit(&mut again);
        assert_eq!(again, bytes[..size]);
    }
}

/// The content of an opened packet.
pub fn sections(bytes: &[u8]) {
    let mut again = Vec::new();
    let mut refused = false;
    for section in section::sections(bytes) {
        assert!(!refused, "the walk ends after an error");
        match section {
            Ok(section) => section.emit(&mut again),
            Err(_) => refused = true,
        }
    }
    assert_eq!(again, bytes[..again.len()], "what was walked is what is written");
    let rest = &bytes[again.len()..];
    assert!(refused || rest.first().is_none_or(|first| first & 0xf == PADDING), "only padding is not walked");
}

/// An INPUTS body, for a match that the first two bytes describe: slots and whether inputs have lengths, their size.
pub fn inputs(bytes: &[u8]) {
    let Some((&[slots, size], body)) = bytes.split_first_chunk::<2>() else { return };
    if let Ok((head, rest)) = InputsHead::parse(body) {
        round_trip(&head, |head, out| head.emit(out), |bytes| whole(InputsHead::parse(bytes)));
        block(slots, size, rest);
    }
}

/// A FILL body, likewise.
pub fn fill(bytes: &[u8]) {
    let Some((&[slots, size], body)) = bytes.split_first_chunk::<2>() else { return };
    if let Ok((head, rest)) = FillHead::parse(body) {
        round_trip(&head, |head, out| head.emit(out), |bytes| whole(FillHead::parse(bytes)));
        assert_eq!(head.first.0.to_le_bytes(), body[1..5]);
        assert_eq!(Frame(head.first.0), head.first);
        block(slots, size, rest);
    }
}

/// A block of inputs: at most 16 slots of at most 64 frames, each of at most 64 bytes, whatever the bytes are.
fn block(slots: u8, size: u8, bytes: &[u8]) {
    let (slots, lengths, size) =
        (usize::from(slots & 0x7f) % 17, slots & 0x80 != 0, usize::from(size) % 64 + 1);
    let read = |bytes: &[u8], skip| {
        let mut read = vec![Vec::new(); slots];
        parse_block(bytes, slots, size, lengths, skip, |slot, frame, input| {
            assert_eq!(frame, read[slot].len() + skip, "frames come in order");
            assert!(input.len() <= size && (lengths || input.len() == size));
            read[slot].push(input.to_vec());
        })
        .map(|()| read)
    };
    let Ok(all) = read(bytes, 0) else { return };
    let count = block_count(bytes).expect("it was read");
    assert!(count <= 64 && all.iter().all(|slot| slot.len() == count));
    let mut again = Vec::new();
    emit_block(&mut again, slots, count, size, lengths, |slot, i| &all[slot][i]);
    assert!(again.len() <= bytes.len(), "what is written is the shortest form");
    assert_eq!(read(&again, 0).as_ref(), Ok(&all));
    let inputs = || all.iter().flatten().map(Vec::as_slice);
    assert!(lengths || uniform(inputs(), size));
    let skip = count / 2;
    let tail = read(bytes, skip).expect("it was read");
    assert!(all.iter().zip(&tail).all(|(all, tail)| all[skip..] == tail[..]));
}

/// The bodies of SUSPECT, CUT, HAVE, COMMIT and NEED; the first byte tells which.
pub fn agreement(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    match kind % 5 {
        0 => same_bytes(body, parse_suspects, |set, out| emit_suspects(out, *set)),
        1 => same_bytes(body, Cut::parse, Cut::emit),
        // Slots may come in any order, and are written in theirs.
        2 => same_size(body, Have::parse, Have::emit),
        3 => same_size(body, Commit::parse, Commit::emit),
        _ => same_size(body, parse_needs, |needs, out| emit_needs(out, needs)),
    }
}

/// A piece of a large transfer; the first byte holds the flags of its section.
pub fn bulk(bytes: &[u8]) {
    let Some((flags, body)) = bytes.split_first() else { return };
    let Ok(part) = Part::parse(*flags, body) else { return };
    let mut again = Vec::new();
    part.emit(&mut again);
    assert_eq!((part.flags(), &again[..]), (*flags, body));
    match part {
        Part::Offer { key, .. } => {
            let chunks = key.chunks();
            assert!((1..=1 << 20).contains(&chunks), "a receiver keeps a bit for each");
            let range = |index| key.range(index).expect("there is such a chunk");
            assert_eq!((range(0).start, range(chunks - 1).end), (0, key.size as usize));
            assert!((chunks / 2..chunks).take(8).all(|index| !range(index).is_empty()));
            assert!((1..chunks).take(8).all(|index| range(index - 1).end == range(index).start));
            assert_eq!((key.range(chunks), key.range(u32::MAX)), (None, None));
        }
        Part::Have { ranges, .. } => {
            let ends: Vec<u32> = ranges.iter().flat_map(|(first, end)| [first, end]).collect();
            assert!(
                ends.is_sorted_by(|before, after| before < after),
                "ascending, and none touches the next"
            );
        }
        Part::Chunk { .. } | Part::Cancel { .. } | Part::Pause { .. } | Part::Done { .. } => {}
    }
}

/// A message of the mesh's own stream, as long as a message may be.
pub fn control(bytes: &[u8]) {
    let (decoded, taken) = meter::peak(|| Codec::default().decode(bytes));
    assert!(taken <= DECODED_MOST, "{} bytes take {taken} to decode", bytes.len());
    let Ok(message) = decoded else { return };
    let mut codec = Codec::default();
    let mut again = Vec::new();
    codec.encode(&message, &mut again);
    assert_eq!(codec.decode(&again).as_ref(), Ok(&message), "a codec that wrote reads, too");
}

/// The clear envelope of a handshake and every payload inside; the first byte tells which.
pub fn handshake(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    match kind % 6 {
        0 => {
            if let Ok((envelope, covered, mac)) = Envelope::parse(body) {
                let mut again = Vec::new();
                envelope.emit(&mut again);
                assert_eq!(again, covered);
                again.extend_from_slice(mac);
                assert_eq!(again, body);
            }
        }
        1 => {
            same_bytes(body, Refusal::parse, Refusal::emit);
            if let Ok(refusal) = Refusal::parse(body) {
                assert_eq!(refusal.turned().turned(), refusal);
            }
        }
        // Bits of these that are not known yet are ignored, so they are not written again.
        2 => same_size(body, Hello::parse, Hello::emit),
        3 => same_size(body, PairCall::parse, PairCall::emit),
        4 => same_size(body, Finish::parse, Finish::emit),
        _ => {
            let noise = [7; 32];
            let parse = |bytes: &[u8]| {
                let (parsed, taken) = meter::peak(|| Greeting::parse(bytes, &noise));
                assert!(taken <= 1024, "a chain of four takes {taken}");
                parsed
            };
            same_size(body, parse, Greeting::emit);
        }
    }
}

/// An address as it travels, and as an endpoint: the first byte tells which kind.
pub fn addresses(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    let addr = match kind % 3 {
        0 => {
            let Some(&[a, b, c, d, p0, p1]) = body.first_chunk() else { return };
            WireAddr::V4([a, b, c, d], u16::from_le_bytes([p0, p1]))
        }
        1 => {
            let Some((ip, [p0, p1, s0, s1, s2, s3, ..])) = body.split_first_chunk::<16>() else { return };
            WireAddr::V6(*ip, u16::from_le_bytes([*p0, *p1]), u32::from_le_bytes([*s0, *s1, *s2, *s3]))
        }
        _ => WireAddr::Opaque(body.to_vec()),
    };
    let parsed = addr.parse();
    match &addr {
        WireAddr::V4(ip, port) => {
            assert_eq!(parsed, Some(Addr::ip(SocketAddrV4::new(Ipv4Addr::from(*ip), *port).into())));
        }
        WireAddr::V6(ip, port, scope) => {
            let v6 = SocketAddrV6::new(Ipv6Addr::from(*ip), *port, 0, *scope);
            assert_eq!(parsed, Some(Addr::ip(v6.into())));
        }
        WireAddr::Opaque(bytes) => assert_eq!(parsed.is_some(), (1..=64).contains(&bytes.len())),
    }
    if let Some(parsed) = parsed {
        assert_eq!(WireAddr::from(parsed).parse(), Some(parsed), "an address goes and comes back");
        assert!(!parsed.to_string().is_empty());
    }
}

// ---- properties ----

/// What is read writes exactly the bytes it was read from.
fn same_bytes<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, ParseError>,
    emit: impl Fn(&T, &mut Vec<u8>),
) {
    if let Ok(value) = parse(bytes) {
        let mut again = Vec::new();
        emit(&value, &mut again);
        assert_eq!(again, bytes);
    }
}

/// What is read writes as many bytes as it was read from, which are read as the same.
fn same_size<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, ParseError>,
    emit: impl Fn(&T, &mut Vec<u8>),
) {
    if let Ok(value) = parse(bytes) {
        assert_eq!(round_trip(&value, emit, parse), bytes.len());
    }
}

/// What is written is read as the same; yields its size.
fn round_trip<T: PartialEq + std::fmt::Debug>(
    value: &T,
    emit: impl Fn(&T, &mut Vec<u8>),
    parse: impl Fn(&[u8]) -> Result<T, ParseError>,
) -> usize {
    let mut again = Vec::new();
    emit(value, &mut again);
    assert_eq!(parse(&again).as_ref(), Ok(value));
    again.len()
}

/// A head that nothing follows.
fn whole<T>(parsed: Result<(T, &[u8]), ParseError>) -> Result<T, ParseError> {
    match parsed? {
        (value, []) => Ok(value),
        _ => Err(ParseError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "left == right")]
    fn a_decoder_that_drops_a_byte_is_found() {
        same_bytes(&[1, 2, 3], |bytes| Ok(bytes[0]), |byte, out| out.extend([*byte, 2]));
    }

    #[test]
    #[should_panic(expected = "left == right")]
    fn a_decoder_that_reads_its_own_bytes_as_something_else_is_found() {
        same_size(&[4], |bytes| Ok(bytes[0]), |byte, out| out.push(byte ^ 1));
    }

    #[test]
    fn memory_is_counted_at_its_highest() {
        let (kept, taken) = meter::peak(|| {
            drop(vec![0u8; 5000]);
            vec![0u8; 100]
        });
        assert_eq!((kept.len(), taken), (100, 5000));
        assert_eq!(meter::peak(|| ()).1, 0);
    }
}
