//! The sections by which survivors agree on a leaver's last frame: SUSPECT, CUT, HAVE, COMMIT, and NEED for what is missing.
//!
//! They are repeated in every packet while they matter, so they need no acknowledgement. Protocol: `docs/protocol.md`, *Cut*.
//! Fed by: the cut core (emit) and section bodies (parse). Yields: values whose indices are in range.
//! Never: longer than their bound; lists hold at most 16 slots.

use super::ParseError;
use crate::base::limits::MAX_SLOTS;
use crate::base::{Frame, PeerIndex, PeerSet, Slot};

/// Orders cut rounds: a higher counter wins, then the higher decider (it decides only because it believes the lower one
/// lost); two deciders never share an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch {
    /// Grows with every round.
    pub counter: u16,
    /// Who opened it.
    pub decider: u8,
}

/// One frame bound per slot, for the slots that have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotEnds {
    ends: [Option<(Frame, u8)>; MAX_SLOTS],
}

impl SlotEnds {
    /// The end of a slot and, in a commit, who holds it.
    pub fn get(&self, slot: Slot) -> Option<(Frame, u8)> {
        self.ends[slot.index()]
    }

    /// Sets the end of a slot.
    pub fn set(&mut self, slot: Slot, end: Frame, holder: u8) {
        self.ends[slot.index()] = Some((end, holder));
    }

    /// Slots that have an end, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, Frame, u8)> + '_ {
        Slot::all().filter_map(|slot| self.get(slot).map(|(end, holder)| (slot, end, holder)))
    }

    fn emit(&self, out: &mut Vec<u8>) {
        for (slot, end, holder) in self.iter() {
            out.push(slot.get() | holder << 4);
            out.extend_from_slice(&end.0.to_le_bytes());
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (entries, rest) = bytes.as_chunks::<5>();
        if !rest.is_empty() {
            return Err(ParseError::Truncated);
        }
        let mut ends = Self::default();
        for &[head, e0, e1, e2, e3] in entries {
            let slot = Slot::new(head & 0x0F).ok_or(ParseError::Malformed)?;
            let end = Frame(i32::from_le_bytes([e0, e1, e2, e3]));
            if end < Frame::ZERO || ends.get(slot).is_some() {
                return Err(ParseError::Malformed);
            }
            ends.set(slot, end, head >> 4);
        }
        Ok(ends)
    }
}

/// A round: these leave, those decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Its number.
    pub epoch: Epoch,
    /// Everybody who was ever cut, and those who are now.
    pub leavers: PeerSet,
    /// Who must answer.
    pub members: PeerSet,
}

/// A member's answer: the end of what it holds of every leaver's slot. Members repeat each other's answers, so that one
/// broken link between a member and the decider stops nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Have {
    /// Which round.
    pub epoch: Epoch,
    /// Whose answer.
    pub member: PeerIndex,
    /// Ends of the leavers' slots.
    pub ends: SlotEnds,
}

/// The result: the first frame of every leaver's slot that no longer counts, and who holds all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The round.
    pub cut: Cut,
    /// Ends and holders.
    pub ends: SlotEnds,
}

impl Epoch {
    fn emit(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.counter.to_le_bytes());
        out.push(self.decider);
    }

    fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[c0, c1, decider], rest) = bytes.split_first_chunk::<3>().ok_or(ParseError::Truncated)?;
        PeerIndex::new(decider).ok_or(ParseError::Malformed)?;
        Ok((Self { counter: u16::from_le_bytes([c0, c1]), decider }, rest))
    }
}

impl Cut {
    /// Appends the body.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.epoch.emit(out);
        out.extend_from_slice(&self.leavers.bits().to_le_bytes());
        out.extend_from_slice(&self.members.bits().to_le_bytes());
    }

    fn parse_prefix(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (epoch, rest) = Epoch::parse(bytes)?;
        let (&[l0, l1, m0, m1], rest) = rest.split_first_chunk::<4>().ok_or(ParseError::Truncated)?;
        let leavers = PeerSet::from_bits(u16::from_le_bytes([l0, l1]));
        let members = PeerSet::from_bits(u16::from_le_bytes([m0, m1]));
        if !leavers.intersection(members).is_empty() || leavers.is_empty() {
            return Err(ParseError::Malformed);
        }
        Ok((Self { epoch, leavers, members }, rest))
    }

    /// Reads a body.
    pub fn parse(body: &[u8]) -> Result<Self, ParseError> {
        match Self::parse_prefix(body)? {
            (cut, []) => Ok(cut),
            _ => Err(ParseError::Malformed),
        }
    }
}

impl Have {
    /// Appends the body.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.epoch.emit(out);
        out.push(self.member.get());
        self.ends.emit(out);
    }

    /// Reads a body.
    pub fn parse(body: &[u8]) -> Result<Self, ParseError> {
        let (epoch, rest) = Epoch::parse(body)?;
        let (&member, rest) = rest.split_first().ok_or(ParseError::Truncated)?;
        let member = PeerIndex::new(member).ok_or(ParseError::Malformed)?;
        Ok(Self { epoch, member, ends: SlotEnds::parse(rest)? })
    }
}

impl Commit {
    /// Appends the body.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.cut.emit(out);
        self.ends.emit(out);
    }

    /// Reads a body.
    pub fn parse(body: &[u8]) -> Result<Self, ParseError> {
        let (cut, rest) = Cut::parse_prefix(body)?;
        Ok(Self { cut, ends: SlotEnds::parse(rest)? })
    }
}

/// Appends a SUSPECT body: whom the sender suspects.
pub fn emit_suspects(out: &mut Vec<u8>, suspects: PeerSet) {
    out.extend_from_slice(&suspects.bits().to_le_bytes());
}

/// Reads a SUSPECT body.
pub fn parse_suspects(body: &[u8]) -> Result<PeerSet, ParseError> {
    let &[b0, b1] = body.as_array::<2>().ok_or(ParseError::Truncated)?;
    Ok(PeerSet::from_bits(u16::from_le_bytes([b0, b1])))
}

/// Appends a NEED body: the sender lacks these slots' inputs from these frames on.
pub fn emit_needs(out: &mut Vec<u8>, needs: &SlotEnds) {
    needs.emit(out);
}

/// Reads a NEED body.
pub fn parse_needs(body: &[u8]) -> Result<SlotEnds, ParseError> {
    SlotEnds::parse(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_parse_to_what_emits_them_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut out = Vec::new();
            if let Ok(cut) = Cut::parse(&bytes) {
                cut.emit(&mut out);
                prop_assert_eq!(&out, &bytes);
                out.clear();
            }
            if let Ok(have) = Have::parse(&bytes) {
                have.emit(&mut out);
                prop_assert_eq!(Have::parse(&out), Ok(have));
                out.clear();
            }
            if let Ok(commit) = Commit::parse(&bytes) {
                commit.emit(&mut out);
                prop_assert_eq!(Commit::parse(&out), Ok(commit));
            }
            out.clear();
            if let Ok(needs) = parse_needs(&bytes) {
                emit_needs(&mut out, &needs);
                prop_assert_eq!(out.len(), bytes.len(), "one entry a slot, so that nothing is dropped");
                prop_assert_eq!(parse_needs(&out), Ok(needs));
                out.clear();
            }
            if let Ok(suspects) = parse_suspects(&bytes) {
                emit_suspects(&mut out, suspects);
                prop_assert_eq!(&out, &bytes);
            }
        }
    }

    #[test]
    fn a_slot_named_twice_and_an_end_below_zero_are_refused() {
        assert!(parse_needs(&[3, 9, 0, 0, 0, 4, 9, 0, 0, 0]).is_ok());
        assert_eq!(parse_needs(&[3, 9, 0, 0, 0, 3, 9, 0, 0, 0]), Err(ParseError::Malformed));
        assert_eq!(parse_needs(&[3, 0, 0, 0, 0x80]), Err(ParseError::Malformed));
        assert_eq!(parse_needs(&[3, 0, 0, 0]), Err(ParseError::Truncated));
    }

    #[test]
    fn the_golden_commit_of_the_protocol_text() {
        let mut ends = SlotEnds::default();
        ends.set(Slot::new(2).expect("small"), Frame(0x0102_0304), 1);
        let commit = Commit {
            cut: Cut {
                epoch: Epoch { counter: 5, decider: 0 },
                leavers: PeerSet::from_bits(0b100),
                members: PeerSet::from_bits(0b1011),
            },
            ends,
        };
        let mut out = Vec::new();
        commit.emit(&mut out);
        assert_eq!(out, [5, 0, 0, 4, 0, 11, 0, 0x12, 4, 3, 2, 1]);
        assert_eq!(Commit::parse(&out), Ok(commit));
    }
}
