//! Which frame a local sample becomes the input of: the input delay, and its changes in play.
//!
//! Every frame gets exactly one input. Raising the delay repeats the previous input for one frame; lowering it drops
//! the older of two samples; one frame per change, at least 15 frames apart.
//! Fed by: samples and the start of each new frame. Yields: stamped inputs in the table, and those not yet sent.
//! Never: stamps one frame twice, or leaves one out.

use super::inputs::InputTable;
use crate::base::limits::MAX_SLOTS;
use crate::base::{Frame, Input, Slot, SlotSet};

/// Frames between two changes of a delay by one.
pub const DELAY_CHANGE_EVERY: i32 = 15;
/// Unsent inputs at which no new frame is begun: half the ring, so that nothing unsent is ever overwritten.
const MAX_UNSENT: i32 = 128;

#[derive(Clone, Copy, Default)]
struct Local {
    delay: i32,
    wanted_delay: i32,
    changed_at: Option<Frame>,
    sample: Input,
    /// First frame whose input was not handed to the node yet.
    sent_end: Frame,
}

/// The slots played on this machine.
pub struct LocalSlots {
    slots: SlotSet,
    each: [Local; MAX_SLOTS],
    /// First frame that no sample was stamped for.
    next: Frame,
}

impl LocalSlots {
    /// The frames before the first sample takes effect get the empty input at once.
    pub fn new(slots: SlotSet, delays: &[i32; MAX_SLOTS], table: &mut InputTable) -> Self {
        let mut each = [Local::default(); MAX_SLOTS];
        for slot in slots {
            let delay = delays[slot.index()];
            each[slot.index()].delay = delay;
            each[slot.index()].wanted_delay = delay;
            table.push(slot, Frame::ZERO, delay, &Input::EMPTY, Frame::ZERO, Frame::ZERO);
        }
        Self { slots, each, next: Frame::ZERO }
    }

    /// Which they are.
    pub fn slots(&self) -> SlotSet {
        self.slots
    }

    /// Overwrites the slot's pending sample; it stays until the next one.
    pub fn set_sample(&mut self, slot: Slot, sample: Input) {
        self.each[slot.index()].sample = sample;
    }

    /// The delay moves towards this, one frame at a time.
    pub fn set_delay(&mut self, slot: Slot, frames: i32) {
        self.each[slot.index()].wanted_delay = frames;
    }

    /// The delay now.
    pub fn delay(&self, slot: Slot) -> i32 {
        self.each[slot.index()].delay
    }

    /// Stamps the pending samples for the start of `current`, once per frame.
    pub fn stamp(&mut self, current: Frame, oldest: Frame, table: &mut InputTable) {
        if self.next > current {
            return;
        }
        self.next = current.next();
        for slot in self.slots {
            let local = &mut self.each[slot.index()];
            let may_change = local.changed_at.is_none_or(|at| current - at >= DELAY_CHANGE_EVERY);
            if may_change && local.wanted_delay != local.delay {
                local.changed_at = Some(current);
                if local.wanted_delay < local.delay {
                    // The frame that this sample would be for has the one before it already: this one is the older of two.
                    local.delay -= 1;
                    continue;
                }
                local.delay += 1;
                let previous = table.newest(slot);
                table.push(slot, table.held_end(slot), 1, &previous, oldest, current);
            }
            debug_assert!(table.cut_of(slot).is_some() || table.held_end(slot) == current + local.delay);
            table.push(slot, table.held_end(slot), 1, &local.sample, oldest, current);
        }
    }

    /// Whether so much is unsent that no new frame may be begun.
    pub fn is_backed_up(&self, table: &InputTable) -> bool {
        self.slots
            .into_iter()
            .any(|slot| table.held_end(slot) - self.each[slot.index()].sent_end > MAX_UNSENT)
    }

    /// The next stamped input that the node does not have.
    pub fn next_unsent(&self, table: &InputTable) -> Option<(Slot, Frame, Input)> {
        self.slots.into_iter().find_map(|slot| {
            let frame = self.each[slot.index()].sent_end;
            (frame < table.held_end(slot))
                .then(|| table.confirmed_input(slot, frame))?
                .map(|i| (slot, frame, i))
        })
    }

    /// The node took what `next_unsent` gave.
    pub fn mark_sent(&mut self, slot: Slot) {
        let local = &mut self.each[slot.index()];
        local.sent_end = local.sent_end.next();
    }
}
