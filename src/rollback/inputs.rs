//! Which input every slot has in every frame near the present, and the first frame that was simulated with a wrong one.
//!
//! Two rings of rows, frame-major: *confirmed* (what came) and *used* (what the game was given). A step's input block is
//! its row of *used*: one copy of the confirmed row, then the predicted slots over it.
//! Fed by: inputs of one slot in frame order, cuts. Yields: rows, ends, the first incorrect frame.
//! Never: rolls back for an input that was predicted rightly; overwrites a frame that may still be simulated.

use super::step::{SLOT_DISCONNECTED, SLOT_PREDICTED, SLOT_UNUSED};
use crate::base::limits::{MAX_SLOTS, ROLLBACK_RING};
use crate::base::{Frame, Input, Slot, SlotSet};

/// Later than any frame: the end of a slot that has left, since all its inputs are known.
pub const FOREVER: Frame = Frame(i32::MAX / 2);

/// The game's own guess of an input: its slot, its frame, and the slot's newest confirmed input.
pub type PredictFn = Box<dyn FnMut(Slot, Frame, &Input) -> Input + Send>;

/// What an input that is not held is taken to be.
pub enum Guess<'a> {
    /// The slot's newest held one.
    RepeatLast,
    /// All bytes zero.
    Zero,
    /// What the game says.
    Game(&'a mut PredictFn),
}

/// The inputs of all slots.
pub struct InputTable {
    used_slots: SlotSet,
    slots: usize,
    input_max: usize,
    confirmed: Vec<u8>,
    confirmed_sizes: Vec<u16>,
    used: Vec<u8>,
    used_sizes: Vec<u16>,
    ends: [Frame; MAX_SLOTS],
    cuts: [Option<Frame>; MAX_SLOTS],
    unused_status: u64,
    first_incorrect: Option<Frame>,
}

impl InputTable {
    /// A table in which nothing is known yet.
    pub fn new(used_slots: SlotSet, input_max: usize) -> Self {
        let slots = used_slots.into_iter().map(|slot| slot.index() + 1).max().unwrap_or(0);
        let unused = Slot::all().filter(|&slot| !used_slots.contains(slot));
        Self {
            used_slots,
            slots,
            input_max,
            confirmed: vec![0; ROLLBACK_RING * slots * input_max],
            confirmed_sizes: vec![0; ROLLBACK_RING * slots],
            used: vec![0; ROLLBACK_RING * slots * input_max],
            used_sizes: vec![0; ROLLBACK_RING * slots],
            ends: [Frame::ZERO; MAX_SLOTS],
            cuts: [None; MAX_SLOTS],
            unused_status: unused.fold(0, |status, slot| status | SLOT_UNUSED << (4 * slot.index())),
            first_incorrect: None,
        }
    }

    /// The slots that somebody plays or played.
    pub fn used_slots(&self) -> SlotSet {
        self.used_slots
    }

    /// Slots of a row: the highest one in use and all below it.
    pub fn slot_count(&self) -> usize {
        self.slots
    }

    /// First frame of a slot whose input is not held; [`FOREVER`] once it has left and all before is held.
    pub fn end(&self, slot: Slot) -> Frame {
        let end = self.ends[slot.index()];
        match self.cuts[slot.index()] {
            Some(cut) if end >= cut => FOREVER,
            _ => end,
        }
    }

    /// First frame of a slot that was never handed over; a cut does not change it.
    pub fn held_end(&self, slot: Slot) -> Frame {
        self.ends[slot.index()]
    }

    /// First frame from which a slot uses the disconnect input.
    pub fn cut_of(&self, slot: Slot) -> Option<Frame> {
        self.cuts[slot.index()]
    }

    /// First frame for which some slot's input is not held.
    pub fn confirmed_end(&self) -> Frame {
        self.oldest_missing(self.used_slots).map_or(FOREVER, |(_, end)| end)
    }

    /// Of these slots the one with the oldest missing input, and that frame.
    pub fn oldest_missing(&self, of: SlotSet) -> Option<(Slot, Frame)> {
        of.into_iter().map(|slot| (slot, self.end(slot))).min_by_key(|&(_, end)| end)
    }

    /// Takes one input that holds from `first` for `count` frames; says how many of these frames are settled.
    /// The others lie too far ahead of `oldest`, the oldest frame that may still be simulated: hand them in again later.
    pub fn push(
        &mut self,
        slot: Slot,
        first: Frame,
        count: i32,
        input: &Input,
        oldest: Frame,
        current: Frame,
    ) -> i32 {
        let s = slot.index();
        let end = self.ends[s];
        // A repeat is settled, a gap is a bug of the sender and never closes: both are ignored.
        if !self.used_slots.contains(slot) || first > end || self.end(slot) == FOREVER {
            return count;
        }
        let room = oldest + ROLLBACK_RING as i32;
        let stop = (first + count).min(room).min(self.cuts[s].unwrap_or(FOREVER));
        let size = input.len().min(self.input_max);
        let bytes = &input.as_slice()[..size];
        let mut frame = end;
        while frame < stop {
            let row = frame.ring_index::<ROLLBACK_RING>();
            let at = (row * self.slots + s) * self.input_max;
            let to = &mut self.confirmed[at..at + self.input_max];
            to[..size].copy_from_slice(bytes);
            to[size..].fill(0);
            self.confirmed_sizes[row * self.slots + s] = size as u16;
            if frame < current {
                let same = self.used[at..at + self.input_max] == *to
                    && self.used_sizes[row * self.slots + s] == size as u16;
                if !same {
                    self.mark_incorrect(frame);
                }
            }
            frame = frame.next();
        }
        self.ends[s] = frame.max(end);
        if first + count > room && stop == room { (room - first).clamp(0, count) } else { count }
    }

    /// From `end` on the slot uses the disconnect input.
    pub fn cut(&mut self, slot: Slot, end: Frame, current: Frame) -> bool {
        let s = slot.index();
        if !self.used_slots.contains(slot) || self.cuts[s].is_some() {
            return false;
        }
        self.cuts[s] = Some(end);
        // What was used from `end` on had another status, even where its bytes were empty too.
        if end < current {
            self.mark_incorrect(end);
        }
        true
    }

    fn mark_incorrect(&mut self, frame: Frame) {
        self.first_incorrect = Some(self.first_incorrect.map_or(frame, |first| first.min(frame)));
    }

    /// The oldest simulated frame whose prediction proved wrong.
    pub fn first_incorrect(&self) -> Option<Frame> {
        self.first_incorrect
    }

    /// The frame is about to be simulated again.
    pub fn clear_incorrect(&mut self) {
        self.first_incorrect = None;
    }

    /// Lays the used row of `frame` out and returns the status of its slots.
    pub fn build(&mut self, frame: Frame, guess: &mut Guess<'_>) -> u64 {
        let row = frame.ring_index::<ROLLBACK_RING>();
        let width = self.slots * self.input_max;
        let bytes = row * width..(row + 1) * width;
        let sizes = row * self.slots..(row + 1) * self.slots;
        self.used[bytes.clone()].copy_from_slice(&self.confirmed[bytes]);
        self.used_sizes[sizes.clone()].copy_from_slice(&self.confirmed_sizes[sizes]);
        let mut status = self.unused_status;
        for slot in self.used_slots {
            let s = slot.index();
            let end = self.ends[s];
            if self.cuts[s].is_some_and(|cut| frame >= cut) {
                status |= SLOT_DISCONNECTED << (4 * s);
                self.set_used(row, s, &Input::EMPTY);
            } else if frame >= end {
                status |= SLOT_PREDICTED << (4 * s);
                match guess {
                    Guess::RepeatLast if end > Frame::ZERO => {
                        let from = (end - 1).ring_index::<ROLLBACK_RING>() * self.slots + s;
                        let to = row * self.slots + s;
                        let size = self.input_max;
                        self.used[to * size..(to + 1) * size]
                            .copy_from_slice(&self.confirmed[from * size..(from + 1) * size]);
                        self.used_sizes[to] = self.confirmed_sizes[from];
                    }
                    Guess::RepeatLast => self.set_used(row, s, &Input::EMPTY),
                    Guess::Zero => self.set_used(row, s, &Input::zeros(self.input_max)),
                    Guess::Game(predict) => {
                        let input = predict(slot, frame, &self.newest(slot));
                        self.set_used(row, s, &input);
                    }
                }
            }
        }
        status
    }

    fn set_used(&mut self, row: usize, slot: usize, input: &Input) {
        let at = row * self.slots + slot;
        let size = input.len().min(self.input_max);
        let to = &mut self.used[at * self.input_max..(at + 1) * self.input_max];
        to[..size].copy_from_slice(&input.as_slice()[..size]);
        to[size..].fill(0);
        self.used_sizes[at] = size as u16;
    }

    /// What a step was given: bytes of all slots, and their sizes.
    pub fn row(&self, frame: Frame) -> (&[u8], &[u16]) {
        let row = frame.ring_index::<ROLLBACK_RING>();
        let width = self.slots * self.input_max;
        (
            &self.used[row * width..(row + 1) * width],
            &self.used_sizes[row * self.slots..(row + 1) * self.slots],
        )
    }

    /// The slot's newest held input; empty when there is none.
    pub fn newest(&self, slot: Slot) -> Input {
        match self.ends[slot.index()] {
            Frame::ZERO => Input::EMPTY,
            end => self.held(slot, end - 1),
        }
    }

    /// The confirmed input of a frame, as long as the ring has it.
    pub fn confirmed_input(&self, slot: Slot, frame: Frame) -> Option<Input> {
        let end = self.ends[slot.index()];
        if !self.used_slots.contains(slot) || frame < Frame::ZERO {
            return None;
        }
        if self.cuts[slot.index()].is_some_and(|cut| frame >= cut) {
            return Some(Input::EMPTY);
        }
        (frame < end && end - frame <= ROLLBACK_RING as i32).then(|| self.held(slot, frame))
    }

    fn held(&self, slot: Slot, frame: Frame) -> Input {
        let at = frame.ring_index::<ROLLBACK_RING>() * self.slots + slot.index();
        let size = usize::from(self.confirmed_sizes[at]);
        let bytes = &self.confirmed[at * self.input_max..at * self.input_max + size];
        Input::new(bytes).unwrap_or_default()
    }
}
