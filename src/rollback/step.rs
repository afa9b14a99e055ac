//! What one entry of the step list says.
//!
//! Fed by: the plan. Yields: plain values for the game.
//! Never: holds a reference into a ring or a buffer.

use crate::base::Frame;

/// Status bit of a slot in [`Step::slot_status`]: the input is a guess.
pub const SLOT_PREDICTED: u64 = 1;
/// Status bit of a slot in [`Step::slot_status`]: the slot has left; its input is empty.
pub const SLOT_DISCONNECTED: u64 = 2;
/// Status bit of a slot in [`Step::slot_status`]: nobody plays it in this match.
pub const SLOT_UNUSED: u64 = 4;

/// What the game must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Write the state of `frame`.
    Save,
    /// Bring the state of `frame` back.
    Load,
    /// Simulate `frame` with these inputs.
    Advance,
}

/// One step of the open list.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What to do.
    pub kind: StepKind,
    /// Its frame.
    pub frame: Frame,
    /// Advance: the frame was simulated before (no sounds).
    pub resimulating: bool,
    /// Advance: every input is confirmed.
    pub confirmed: bool,
    /// Save: the game's own checksum is read (if it gives one).
    pub wants_checksum: bool,
    /// Save and load: which saved state; the slot number in `StateMode::Slots`.
    pub state_index: u32,
    /// Load: bytes of the state. Save: room.
    pub state_size: u64,
    /// Advance: 4 bits a slot, bit 0 predicted, bit 1 disconnected, bit 2 unused.
    pub slot_status: u64,
}
