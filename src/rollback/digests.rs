//! Whether our confirmed frames have the digests that the others have.
//!
//! Fed by: our final digests, and those of peers, which may come earlier or later. Yields: mismatches, once per peer and mark.
//! Never: compares a frame that is not confirmed here.

use crate::base::limits::MAX_PEERS;
use crate::base::{Frame, PeerIndex, PeerSet};

/// A frame whose digest all peers exchange: multiples of this.
pub const MARK_EVERY: i32 = 60;
/// Marks of ours that are kept at level 1.
const OUR_MARKS: usize = 16;
/// Frames of ours that are kept at level 2: the 600 that are promised, as a power of two.
const OUR_FRAMES: usize = 1024;
/// Frames that are promised at level 2.
const KEPT_FRAMES: i32 = 600;
/// Marks of each peer that are kept; a peer is at most 160 frames ahead of us, or we of it.
const THEIR_MARKS: usize = 8;

/// Whether `frame` is one whose digest is exchanged.
pub const fn is_mark(frame: Frame) -> bool {
    frame.0 % MARK_EVERY == 0
}

/// Two digests of one confirmed frame differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Whose digest differs from ours.
    pub peer: PeerIndex,
    /// The mark.
    pub frame: Frame,
    /// Our digest.
    pub ours: u64,
    /// Theirs.
    pub theirs: u64,
}

#[derive(Clone, Copy)]
struct Theirs {
    frame: Frame,
    value: u64,
    compared: bool,
}

/// The digests of one session.
pub struct Digests {
    every_frame: bool,
    ours: Vec<Option<(Frame, u64)>>,
    newest: Frame,
    theirs: [[Option<Theirs>; THEIR_MARKS]; MAX_PEERS],
    /// Peers that left the timeline: if they play on, then on one of their own.
    parted: PeerSet,
}

impl Digests {
    /// `every_frame`: all frames are kept, not only marks.
    pub fn new(every_frame: bool) -> Self {
        Self {
            every_frame,
            ours: vec![None; if every_frame { OUR_FRAMES } else { OUR_MARKS }],
            newest: Frame::ZERO,
            theirs: [[None; THEIR_MARKS]; MAX_PEERS],
            parted: PeerSet::EMPTY,
        }
    }

    /// The peer was cut: its marks may lie beyond the last frame that counted, so they are compared no more.
    pub fn part(&mut self, peer: PeerIndex) {
        self.parted.insert(peer);
    }

    fn place(&self, frame: Frame) -> usize {
        let number = if self.every_frame { frame.0 } else { frame.0 / MARK_EVERY };
        number as u32 as usize % self.ours.len()
    }

    /// Notes the final digest of one of our frames, and compares it with what has come.
    pub fn set_ours(&mut self, frame: Frame, value: u64, mut found: impl FnMut(Mismatch)) {
        let place = self.place(frame);
        self.ours[place] = Some((frame, value));
        self.newest = self.newest.max(frame);
        if is_mark(frame) {
            let parted = self.parted;
            for peer in PeerIndex::all().filter(|&peer| !parted.contains(peer)) {
                self.compare(peer, frame, &mut found);
            }
        }
    }

    /// Notes a peer's digest of a mark, and compares it if ours is final.
    pub fn set_theirs(&mut self, peer: PeerIndex, frame: Frame, value: u64, mut found: impl FnMut(Mismatch)) {
        if !is_mark(frame) || frame < Frame::ZERO || self.parted.contains(peer) {
            return;
        }
        let kept = &mut self.theirs[peer.index()][(frame.0 / MARK_EVERY) as usize % THEIR_MARKS];
        if kept.is_none_or(|kept| kept.frame < frame) {
            *kept = Some(Theirs { frame, value, compared: false });
            self.compare(peer, frame, &mut found);
        }
    }

    fn compare(&mut self, peer: PeerIndex, frame: Frame, found: &mut impl FnMut(Mismatch)) {
        let ours = self.ours(frame);
        let theirs = &mut self.theirs[peer.index()][(frame.0 / MARK_EVERY) as usize % THEIR_MARKS];
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return };
        if theirs.frame == frame && !theirs.compared {
            theirs.compared = true;
            if theirs.value != ours {
                found(Mismatch { peer, frame, ours, theirs: theirs.value });
            }
        }
    }

    /// Our digest of a confirmed frame, as long as it is kept.
    pub fn ours(&self, frame: Frame) -> Option<u64> {
        if frame < Frame::ZERO || (!self.every_frame && !is_mark(frame)) {
            return None;
        }
        let (held, value) = self.ours[self.place(frame)]?;
        (held == frame && (!self.every_frame || self.newest - frame < KEPT_FRAMES)).then_some(value)
    }
}
