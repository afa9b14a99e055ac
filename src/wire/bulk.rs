//! The BULK sections: one large transfer in chunks, which the receiving game allows first. The sub-kind is in the flags.
//!
//! Fed by: the body of a BULK section. Yields: a [`Part`] whose fields make sense together, or a `ParseError`.
//! Never: knows which transfers exist; `channel::bulk` does.

use super::ParseError;

/// Bytes of the hash that tells one content from another.
pub const HASH_SIZE: usize = 16;
/// Most bytes of the note that the sending game gives an offer.
pub const MAX_TAG: usize = 32;
/// Most bytes of one transfer: more is split by the game.
pub const MAX_SIZE: u32 = 256 << 20;
/// Least bytes of a chunk, so that no offer asks for a count of chunks that is out of all proportion to its size.
pub const MIN_CHUNK: u16 = 256;
/// Most bytes of a chunk: one packet.
pub const MAX_CHUNK: u16 = 1024;
/// Most ranges in one HAVE.
pub const MAX_RANGES: usize = 16;
/// Bytes that a CHUNK costs besides its data, type and length included.
pub const CHUNK_OVERHEAD: usize = 3 + 8;

const OFFER: u8 = 0;
const HAVE: u8 = 1;
const CHUNK: u8 = 2;
const CANCEL: u8 = 3;
const PAUSE: u8 = 4;
const DONE: u8 = 5;

/// What makes a transfer the same one after its link was lost and made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Chosen by the sender, never used twice on one pair.
    pub id: u32,
    /// Bytes of the whole content, at least 1.
    pub size: u32,
    /// Bytes of every chunk but the last.
    pub chunk: u16,
    /// BLAKE2s of the content.
    pub hash: [u8; HASH_SIZE],
}

impl Key {
    /// How many chunks there are.
    pub fn chunks(&self) -> u32 {
        self.size.div_ceil(u32::from(self.chunk))
    }

    /// Which bytes a chunk holds; `None` when there is no such chunk.
    pub fn range(&self, index: u32) -> Option<std::ops::Range<usize>> {
        let start = u64::from(index) * u64::from(self.chunk);
        if start >= u64::from(self.size) {
            return None;
        }
        let end = (start + u64::from(self.chunk)).min(u64::from(self.size));
        Some(start as usize..end as usize)
    }
}

/// Chunks that a receiver holds: ascending half-open ranges that do not touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    ranges: [(u32, u32); MAX_RANGES],
    len: usize,
}

impl Ranges {
    /// Adds a range behind the others. Says whether there was room and it is in order.
    pub fn push(&mut self, first: u32, end: u32) -> bool {
        let in_order = self.iter().last().is_none_or(|(_, before)| before < first);
        if self.len == MAX_RANGES || first >= end || !in_order {
            return false;
        }
        self.ranges[self.len] = (first, end);
        self.len += 1;
        true
    }

    /// First and end of each.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges[..self.len].iter().copied()
    }
}

/// One BULK section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// May this be sent? Repeated until answered.
    Offer {
        /// What it is.
        key: Key,
        /// A note of the sending game.
        tag: &'a [u8],
    },
    /// It may, and these chunks are held already.
    Have {
        /// Which transfer.
        id: u32,
        /// Some of what is held.
        ranges: Ranges,
    },
    /// One chunk.
    Chunk {
        /// Which transfer.
        id: u32,
        /// Its place.
        index: u32,
        /// Its bytes.
        data: &'a [u8],
    },
    /// The sender of this wants no more of it; to an offer, a refusal.
    Cancel {
        /// Which transfer.
        id: u32,
    },
    /// The sender pauses or goes on.
    Pause {
        /// Which transfer.
        id: u32,
        /// Whether it pauses.
        paused: bool,
    },
    /// The receiver holds everything.
    Done {
        /// Which transfer.
        id: u32,
        /// Whether it has the hash that was offered.
        intact: bool,
    },
}

impl<'a> Part<'a> {
    /// Sub-kind for the flags of the section.
    pub fn flags(&self) -> u8 {
        match self {
            Self::Offer { .. } => OFFER,
            Self::Have { .. } => HAVE,
            Self::Chunk { .. } => CHUNK,
            Self::Cancel { .. } => CANCEL,
            Self::Pause { .. } => PAUSE,
            Self::Done { .. } => DONE,
        }
    }

    /// Appends the body.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Offer { key, tag } => {
                out.extend_from_slice(&key.id.to_le_bytes());
                out.extend_from_slice(&key.size.to_le_bytes());
                out.extend_from_slice(&key.chunk.to_le_bytes());
                out.extend_from_slice(&key.hash);
                out.extend_from_slice(tag);
            }
            Self::Have { id, ranges } => {
                out.extend_from_slice(&id.to_le_bytes());
                for (first, end) in ranges.iter() {
                    out.extend_from_slice(&first.to_le_bytes());
                    out.extend_from_slice(&end.to_le_bytes());
                }
            }
            Self::Chunk { id, index, data } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.extend_from_slice(&index.to_le_bytes());
                out.extend_from_slice(data);
            }
            Self::Cancel { id } => out.extend_from_slice(&id.to_le_bytes()),
            Self::Pause { id, paused: yes } | Self::Done { id, intact: yes } => {
                out.extend_from_slice(&id.to_le_bytes());
                out.push(u8::from(yes));
            }
        }
    }

    /// Reads a body.
    pub fn parse(flags: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        let (id, rest) = take_u32(body)?;
        let (part, rest) = match flags {
            OFFER => {
                let (size, rest) = take_u32(rest)?;
                let (&chunk, rest) = rest.split_first_chunk::<2>().ok_or(ParseError::Truncated)?;
                let (&hash, tag) = rest.split_first_chunk::<HASH_SIZE>().ok_or(ParseError::Truncated)?;
                let chunk = u16::from_le_bytes(chunk);
                let makes_sense = (1..=MAX_SIZE).contains(&size) && (MIN_CHUNK..=MAX_CHUNK).contains(&chunk);
                if !makes_sense || tag.len() > MAX_TAG {
                    return Err(ParseError::Malformed);
                }
                (Self::Offer { key: Key { id, size, chunk, hash }, tag }, &[][..])
            }
            HAVE => {
                let (mut ranges, mut rest) = (Ranges::default(), rest);
                while !rest.is_empty() {
                    let (first, after) = take_u32(rest)?;
                    let (end, after) = take_u32(after)?;
                    if !ranges.push(first, end) {
                        return Err(ParseError::Malformed);
                    }
                    rest = after;
                }
                (Self::Have { id, ranges }, rest)
            }
            CHUNK => {
                let (index, data) = take_u32(rest)?;
                if data.is_empty() || data.len() > usize::from(MAX_CHUNK) {
                    return Err(ParseError::Malformed);
                }
                (Self::Chunk { id, index, data }, &[][..])
            }
            CANCEL => (Self::Cancel { id }, rest),
            PAUSE | DONE => {
                let (&yes, rest) = rest.split_first().ok_or(ParseError::Truncated)?;
                let yes = match yes {
                    0 => false,
                    1 => true,
                    _ => return Err(ParseError::Malformed),
                };
                let pause = flags == PAUSE;
                (if pause { Self::Pause { id, paused: yes } } else { Self::Done { id, intact: yes } }, rest)
            }
            _ => return Err(ParseError::Malformed),
        };
        if rest.is_empty() { Ok(part) } else { Err(ParseError::Malformed) }
    }
}

fn take_u32(bytes: &[u8]) -> Result<(u32, &[u8]), ParseError> {
    let (&value, rest) = bytes.split_first_chunk::<4>().ok_or(ParseError::Truncated)?;
    Ok((u32::from_le_bytes(value), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_offer_of_no_bytes_too_many_or_tiny_chunks_is_refused() {
        let offer = |size, chunk| {
            let mut body = Vec::new();
            Part::Offer { key: Key { id: 1, size, chunk, hash: [0; HASH_SIZE] }, tag: b"level" }
                .emit(&mut body);
            Part::parse(OFFER, &body).is_ok()
        };
        assert!(offer(1, MIN_CHUNK) && offer(MAX_SIZE, MAX_CHUNK));
        assert!(!offer(0, MIN_CHUNK) && !offer(MAX_SIZE + 1, MAX_CHUNK));
        assert!(!offer(9, MIN_CHUNK - 1) && !offer(9, MAX_CHUNK + 1));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_to_what_emits_them_or_are_refused(
            flags in 0u8..8,
            bytes in proptest::collection::vec(0u8..4, 0..80),
        ) {
            if let Ok(part) = Part::parse(flags, &bytes) {
                let mut again = Vec::new();
                part.emit(&mut again);
                prop_assert_eq!((part.flags(), again), (flags, bytes));
            }
        }
    }
}
