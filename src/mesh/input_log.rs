//! The input log: own and received inputs of all slots for the last 600 frames.
//!
//! It lives on the IO thread, so acknowledging, resending, filling gaps and cutting go on while the game hangs.
//! Fed by: local inputs, INPUTS and FILL sections, the cut. Yields: stream ends, inputs for packets, and in-order records
//! for the session. Never: holds a gap (a frame is accepted only right behind the ones before it), or grows.

use crate::base::limits::{LOG_FRAMES, LOG_RING, MAX_FRAMES_PER_SECTION, MAX_PEERS, MAX_SLOTS};
use crate::base::{Frame, Input, PeerIndex, Slot, SlotSet};

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the log.
    Stored,
    /// It was there already, or the slot is frozen or cut.
    Ignored,
    /// A frame before it is missing.
    Gap,
    /// The session is too far behind; the sender will repeat it.
    TooFar,
}

/// A slot that nobody will feed beyond `end` any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Live,
    /// A cut round is open: nothing is accepted until its commit.
    Frozen,
    /// The commit: frames before `end` may still be filled in.
    Cut {
        end: Frame,
    },
}

#[derive(Clone, Debug)]
struct SlotLog {
    owner: PeerIndex,
    /// A length byte and `input_max` bytes a frame: a dense ring stays in the cache.
    ring: Box<[u8]>,
    end: Frame,
    handed: Frame,
    state: State,
    cut_handed: bool,
}

impl SlotLog {
    fn input(&self, frame: Frame, input_max: usize) -> &[u8] {
        let at = frame.ring_index::<LOG_RING>() * (1 + input_max);
        &self.ring[at + 1..][..usize::from(self.ring[at])]
    }
}

/// Records for the session, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// `count` frames from `first` on have this input.
    Inputs {
        /// First frame.
        first: Frame,
        /// How many.
        count: u16,
        /// Their input.
        input: Input,
    },
    /// Everything before `end` was handed over; from there on the slot is disconnected.
    Cut {
        /// First frame that does not count.
        end: Frame,
    },
}

/// The log of one match.
#[derive(Clone, Debug, Default)]
pub struct InputLog {
    input_max: usize,
    slots: [Option<SlotLog>; MAX_SLOTS],
    by_owner: [SlotSet; MAX_PEERS],
}

impl InputLog {
    /// An empty log for these owners, whose inputs are at most `input_max` bytes long.
    pub fn new(owners: &[Option<PeerIndex>; MAX_SLOTS], input_max: usize) -> Self {
        let mut by_owner = [SlotSet::EMPTY; MAX_PEERS];
        for slot in Slot::all() {
            if let Some(owner) = owners[slot.index()] {
                by_owner[owner.index()].insert(slot);
            }
        }
        Self {
            input_max,
            by_owner,
            slots: owners.map(|owner| {
                owner.map(|owner| SlotLog {
                    owner,
                    ring: vec![0; LOG_RING * (1 + input_max)].into_boxed_slice(),
                    end: Frame::ZERO,
                    handed: Frame::ZERO,
                    state: State::Live,
                    cut_handed: false,
                })
            }),
        }
    }

    /// Slots of a peer, ascending.
    pub fn slots_of(&self, peer: PeerIndex) -> SlotSet {
        self.by_owner[peer.index()]
    }

    /// Who plays a slot.
    pub fn owner(&self, slot: Slot) -> Option<PeerIndex> {
        self.slot(slot).map(|log| log.owner)
    }

    /// End of what is held of a slot.
    pub fn end(&self, slot: Slot) -> Frame {
        self.slot(slot).map_or(Frame::ZERO, |log| log.end)
    }

    /// End of a set of slots that travel together: the earliest of their ends.
    pub fn common_end(&self, slots: SlotSet) -> Frame {
        slots.into_iter().map(|slot| self.end(slot)).min().unwrap_or(Frame::ZERO)
    }

    /// Notes one input.
    pub fn push(&mut self, slot: Slot, frame: Frame, input: &[u8]) -> Pushed {
        let input_max = self.input_max;
        let Some(log) = self.slots[slot.index()].as_mut() else {
            return Pushed::Ignored;
        };
        let accepted = match log.state {
            State::Live => true,
            State::Frozen => false,
            State::Cut { end } => frame < end,
        };
        if !accepted || frame < log.end {
            return Pushed::Ignored;
        }
        if frame > log.end {
            return Pushed::Gap;
        }
        // The ring must keep what the session has not seen and what others may still ask for.
        if frame - log.handed >= LOG_FRAMES {
            return Pushed::TooFar;
        }
        let input = &input[..input.len().min(input_max)];
        let at = frame.ring_index::<LOG_RING>() * (1 + input_max);
        log.ring[at] = input.len() as u8;
        log.ring[at + 1..][..input.len()].copy_from_slice(input);
        log.end = frame.next();
        Pushed::Stored
    }

    /// An input that is still held.
    pub fn get(&self, slot: Slot, frame: Frame) -> Option<&[u8]> {
        let log = self.slot(slot)?;
        let held = frame < log.end && frame >= Frame::ZERO && log.end - frame <= LOG_RING as i32;
        held.then(|| log.input(frame, self.input_max))
    }

    /// Whether a slot's newest input differs from the one before.
    pub fn changed_at_end(&self, slot: Slot, end: Frame) -> bool {
        self.get(slot, end - 1) != self.get(slot, end - 2)
    }

    /// A cut round freezes a slot: nothing more is accepted before the commit, and neither is what an earlier commit still
    /// lacks here; else a late fill would go beyond what this member has answered, and beyond the new commit.
    pub fn freeze(&mut self, slot: Slot) {
        if let Some(log) = self.slots[slot.index()].as_mut()
            && !log.cut_handed
        {
            log.state = State::Frozen;
        }
    }

    /// A newer round or commit keeps the slot's owner: what an overtaken round froze goes on.
    pub fn thaw(&mut self, slot: Slot) {
        if let Some(log) = self.slots[slot.index()].as_mut()
            && log.state == State::Frozen
        {
            log.state = State::Live;
        }
    }

    /// The commit: frames before `end` count, and may be filled in.
    ///
    /// A later round may name an earlier end only while nothing past it was handed over as final.
    pub fn commit(&mut self, slot: Slot, end: Frame) {
        let Some(log) = self.slots[slot.index()].as_mut() else { return };
        if log.cut_handed {
            return;
        }
        log.state = State::Cut { end };
        // What we alone might hold beyond the agreed end does not count.
        log.end = log.end.min(end);
    }

    /// Whether a committed slot still lacks inputs, and from which frame on.
    pub fn missing(&self, slot: Slot) -> Option<Frame> {
        match self.slot(slot)?.state {
            State::Cut { end } if self.end(slot) < end => Some(self.end(slot)),
            State::Cut { .. } | State::Live | State::Frozen => None,
        }
    }

    /// The next record for the session, without taking it.
    pub fn next_record(&self, slot: Slot) -> Option<Record> {
        let log = self.slot(slot)?;
        if log.handed < log.end {
            let first = log.handed;
            let input = log.input(first, self.input_max);
            let most = (log.end - first).min(MAX_FRAMES_PER_SECTION);
            let same = (1..most).take_while(|i| log.input(first + *i, self.input_max) == input).count();
            return Some(Record::Inputs { first, count: same as u16 + 1, input: Input::new(input)? });
        }
        match log.state {
            State::Cut { end } if log.end == end && !log.cut_handed => Some(Record::Cut { end }),
            State::Cut { .. } | State::Live | State::Frozen => None,
        }
    }

    /// The session took that record.
    pub fn take_record(&mut self, slot: Slot, record: &Record) {
        let Some(log) = self.slots[slot.index()].as_mut() else { return };
        match *record {
            Record::Inputs { first, count, .. } => log.handed = first + i32::from(count),
            Record::Cut { .. } => log.cut_handed = true,
        }
    }

    /// A local slot's records need not be handed back: the session made them.
    pub fn mark_local(&mut self, slot: Slot) {
        if let Some(log) = self.slots[slot.index()].as_mut() {
            log.handed = log.end;
        }
    }

    fn slot(&self, slot: Slot) -> Option<&SlotLog> {
        self.slots[slot.index()].as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (InputLog, Slot) {
        let mut owners = [None; MAX_SLOTS];
        owners[3] = PeerIndex::new(1);
        (InputLog::new(&owners, 4), Slot::new(3).expect("small"))
    }

    fn input(value: u8) -> Input {
        Input::new(&[value]).expect("short")
    }

    fn drain(log: &mut InputLog, slot: Slot) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some(record) = log.next_record(slot) {
            log.take_record(slot, &record);
            records.push(record);
        }
        records
    }

    #[test]
    fn equal_inputs_are_handed_over_as_one_record() {
        let (mut log, slot) = log();
        for (frame, value) in [(0, 7), (1, 7), (2, 7), (3, 8)] {
            assert_eq!(log.push(slot, Frame(frame), &[value]), Pushed::Stored);
        }
        assert_eq!(log.push(slot, Frame(2), &[9]), Pushed::Ignored);
        assert_eq!(log.push(slot, Frame(5), &[9]), Pushed::Gap);
        assert_eq!(
            drain(&mut log, slot),
            [
                Record::Inputs { first: Frame(0), count: 3, input: input(7) },
                Record::Inputs { first: Frame(3), count: 1, input: input(8) },
            ]
        );
    }

    #[test]
    fn a_session_that_hangs_stops_the_log_after_600_frames_and_loses_nothing() {
        let (mut log, slot) = log();
        let mut frame = Frame::ZERO;
        while log.push(slot, frame, &[frame.0 as u8]) == Pushed::Stored {
            frame += 1;
        }
        assert_eq!(frame, Frame(LOG_FRAMES));
        let records = drain(&mut log, slot);
        assert_eq!(records.len(), LOG_FRAMES as usize);
        assert_eq!(log.push(slot, frame, &[1]), Pushed::Stored);
    }

    #[test]
    fn a_fill_that_comes_during_a_second_round_goes_not_beyond_what_was_answered() {
        let (mut log, slot) = log();
        for frame in 0..7 {
            log.push(slot, Frame(frame), &[1]);
        }
        log.freeze(slot);
        log.commit(slot, Frame(10));
        // The holder of the last three is gone: another round opens, and this member answers 7.
        log.freeze(slot);
        assert_eq!(log.push(slot, Frame(7), &[7]), Pushed::Ignored, "a late fill of the holder");
        log.commit(slot, Frame(8));
        assert_eq!(log.push(slot, Frame(7), &[8]), Pushed::Stored);
        assert_eq!(drain(&mut log, slot).last(), Some(&Record::Cut { end: Frame(8) }));
        // What is final stays so.
        log.freeze(slot);
        log.commit(slot, Frame(5));
        assert_eq!((log.end(slot), log.missing(slot)), (Frame(8), None));
    }

    #[test]
    fn a_slot_that_an_overtaken_round_froze_goes_on() {
        let (mut log, slot) = log();
        log.freeze(slot);
        assert_eq!(log.push(slot, Frame(0), &[1]), Pushed::Ignored);
        log.thaw(slot);
        assert_eq!(log.push(slot, Frame(0), &[1]), Pushed::Stored);
        log.freeze(slot);
        log.commit(slot, Frame(1));
        log.thaw(slot);
        assert_eq!(log.push(slot, Frame(1), &[1]), Pushed::Ignored, "what was cut stays cut");
    }

    #[test]
    fn a_cut_is_handed_over_after_the_last_input_that_counts_and_only_then() {
        let (mut log, slot) = log();
        for frame in 0..3 {
            log.push(slot, Frame(frame), &[frame as u8]);
        }
        drain(&mut log, slot);
        log.freeze(slot);
        assert_eq!(log.push(slot, Frame(3), &[3]), Pushed::Ignored);
        log.commit(slot, Frame(5));
        assert_eq!(drain(&mut log, slot), []);
        assert_eq!(log.missing(slot), Some(Frame(3)));
        assert_eq!(log.push(slot, Frame(3), &[3]), Pushed::Stored);
        assert_eq!(log.push(slot, Frame(4), &[4]), Pushed::Stored);
        assert_eq!(log.push(slot, Frame(5), &[5]), Pushed::Ignored);
        assert_eq!(log.missing(slot), None);
        assert_eq!(drain(&mut log, slot).last(), Some(&Record::Cut { end: Frame(5) }));
        assert_eq!(drain(&mut log, slot), []);
    }
}
