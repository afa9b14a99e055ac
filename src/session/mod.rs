//! The game half: composes the rollback core with the bridge. This is the Rust API that the C ABI wraps.
//!
//! Fed by: the game's calls and the news of the bridge. Yields: steps to run, events, stats and samples.
//! Never: blocks, starts a thread, or runs user code.

use crate::base::{Frame, Instant, PeerIndex, Slot};
use crate::bridge::SessionPort;
use crate::config::ValidSessionConfig;

/// What a `begin_frame` decided. Steps may have to be run in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A new frame is among the steps.
    Advance,
    /// No new frame, but corrected ones: draw the new picture.
    ResimulateOnly,
    /// No new frame because something is missing: repeat the last picture.
    Stall(StallReason),
}

/// Why no new frame was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// The match has not begun.
    NotStarted,
    /// The prediction window is full; this peer's input is the oldest one missing.
    Window(PeerIndex),
    /// The survivors are agreeing on a leaver's last frame; the window is full meanwhile.
    Cut(PeerIndex),
    /// The others went on without us.
    CutOff,
}

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
    /// Advance: 4 bits a slot, bit 0 predicted, bit 1 disconnected.
    pub slot_status: u64,
}

/// Why a call was refused; the session stays usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// A step list is open (or none is, for calls that need one).
    ListOpen,
    /// No step list is open.
    NoListOpen,
    /// The slot belongs to another peer, or to nobody.
    NotLocalSlot,
    /// The input is longer than `input_max`.
    InputTooLong,
    /// No such step, or not one of that kind.
    NoSuchStep,
    /// A state larger than 1 GiB.
    StateTooLarge,
    /// Input delay out of range.
    BadDelay,
    /// The node is gone (shutdown).
    Closed,
}

/// News for the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The match begins; read the roster with `start_info`.
    Started,
    /// From this frame on the slot uses the disconnect input, on every peer alike.
    SlotLeft {
        /// Whose.
        slot: Slot,
        /// Who played it.
        peer: PeerIndex,
        /// First frame with the disconnect input.
        frame: Frame,
    },
    /// Two digests of one confirmed frame differ.
    Desync {
        /// Whose digest differs from ours.
        peer: PeerIndex,
        /// The mark.
        frame: Frame,
        /// Our digest.
        ours: u64,
        /// Theirs.
        theirs: u64,
    },
    /// The others went on without us; nothing will be confirmed any more.
    CutOff,
    /// So many events were dropped because the game did not poll.
    Overflow {
        /// How many.
        dropped: u32,
    },
}

/// The game's timeline.
pub struct Session {}

impl Session {
    /// A session on a mesh (`port`), or a local one.
    pub fn new(_config: ValidSessionConfig, _port: Option<SessionPort>, _now: Instant) -> Self {
        todo!()
    }
}
