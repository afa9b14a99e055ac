//! The messages of the harness: 64 bytes or more, with a kind, a number and the time of sending.
//!
//! Fed by: rows. Yields: bytes and back. Never: part of a library.

use crate::system::now_ns;

/// Most of the rows' messages are so long.
pub const SIZE: usize = 64;

/// What the far end does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Answers with `Welcome`.
    Hello,
    /// The connection carries messages.
    Welcome,
    /// Notes when it came.
    Note,
    /// Notes it and sends it back.
    Ping,
    /// One that came back.
    Pong,
    /// Counts its bytes.
    Bulk,
}

const KINDS: [Kind; 6] = [Kind::Hello, Kind::Welcome, Kind::Note, Kind::Ping, Kind::Pong, Kind::Bulk];

/// A message of the usual size.
pub fn message(kind: Kind, number: u64) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    write(&mut bytes, kind, number);
    bytes
}

/// Writes kind, number and the current time over the first 24 bytes.
pub fn write(bytes: &mut [u8], kind: Kind, number: u64) {
    bytes[0] = kind as u8;
    bytes[8..16].copy_from_slice(&now_ns().to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
}

/// Kind, time of sending and number.
pub fn read(bytes: &[u8]) -> Option<(Kind, u64, u64)> {
    let kind = *KINDS.get(usize::from(*bytes.first()?))?;
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some((kind, word(8)?, word(16)?))
}
