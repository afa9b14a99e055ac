//! The event struct and its constants, as the header shows them; meshes and sessions share it.
//!
//! Fed by: the event stores of the handles. Yields: nothing by itself.
//! Never: owns memory; `text` and `data` point into the handle's event store.

use std::ffi::c_char;

/// Mesh: we are in the room; peer = our index. retick_mesh_room works from here on.
pub const RETICK_EVENT_JOINED: u32 = 1;
/// Mesh: somebody was not let in: reason = RETICK_REFUSE_*, value0 ours, value1 theirs; stream = 1 when it is us who were refused.
pub const RETICK_EVENT_REFUSED: u32 = 2;
/// Mesh: a member was admitted.
pub const RETICK_EVENT_PEER_JOINED: u32 = 3;
/// Mesh: the direct channel to a member is up.
pub const RETICK_EVENT_PEER_CONNECTED: u32 = 4;
/// Mesh: a member is ready; value0 = how many slots it plays.
pub const RETICK_EVENT_PEER_READY: u32 = 5;
/// Mesh: the start was refused because a member's session settings differ; value0 our digest, value1 theirs.
pub const RETICK_EVENT_SETTINGS_DIFFER: u32 = 6;
/// Mesh: the match starts; value0 = mesh time of frame 0 in microseconds.
pub const RETICK_EVENT_STARTING: u32 = 7;
/// Mesh: nothing was heard of a member for suspect_ms.
pub const RETICK_EVENT_INTERRUPTED: u32 = 8;
/// Mesh: a member is heard again; value0 = how many milliseconds it was silent.
pub const RETICK_EVENT_RESUMED: u32 = 9;
/// Mesh: a member's game stopped calling in, though its network is alive.
pub const RETICK_EVENT_PEER_STALLED: u32 = 10;
/// Mesh: a member's game calls in again.
pub const RETICK_EVENT_PEER_UNSTALLED: u32 = 11;
/// Mesh: a member is gone; reason = RETICK_LEAVE_*. With our own index: the others went on without us.
pub const RETICK_EVENT_LEFT: u32 = 12;
/// Mesh: one message; peer, stream, value0 = the delivery, data, data_size.
pub const RETICK_EVENT_MESSAGE: u32 = 13;
/// Mesh: the network half of this mesh no longer runs, and all others see silence: it failed (the log says why), or its simulated
/// network was destroyed. Destroy the mesh; another one can be created.
pub const RETICK_EVENT_FAILED: u32 = 14;
/// Session: the match begins; read the roster with retick_session_start_info.
pub const RETICK_EVENT_STARTED: u32 = 20;
/// Session: from `frame` on the slot uses the disconnect input, on every peer alike.
pub const RETICK_EVENT_SLOT_LEFT: u32 = 21;
/// Session: two digests of one confirmed frame differ; value0 ours, value1 the other peer's.
pub const RETICK_EVENT_DESYNC: u32 = 22;
/// Session: the others went on without us; nothing will be confirmed any more.
pub const RETICK_EVENT_CUT_OFF: u32 = 23;
/// value0 events were dropped because the game did not read them.
pub const RETICK_EVENT_OVERFLOW: u32 = 24;

/// reason of RETICK_EVENT_LEFT: it said goodbye.
pub const RETICK_LEAVE_GOODBYE: u32 = 1;
/// reason of RETICK_EVENT_LEFT: silence.
pub const RETICK_LEAVE_TIMED_OUT: u32 = 2;
/// reason of RETICK_EVENT_LEFT: the others went on without it.
pub const RETICK_LEAVE_CUT_OFF: u32 = 3;
/// reason of RETICK_EVENT_LEFT: another process joins from its very address, so its own is gone. Told by the coordinator; the
/// others say RETICK_LEAVE_TIMED_OUT.
pub const RETICK_LEAVE_RESTARTED: u32 = 4;

/// reason of RETICK_EVENT_REFUSED: another game_id.
pub const RETICK_REFUSE_GAME_ID: u32 = 1;
/// reason of RETICK_EVENT_REFUSED: another build_id.
pub const RETICK_REFUSE_BUILD_ID: u32 = 2;
/// reason of RETICK_EVENT_REFUSED: another version of the wire protocol.
pub const RETICK_REFUSE_WIRE_VERSION: u32 = 3;
/// reason of RETICK_EVENT_REFUSED: session settings differ.
pub const RETICK_REFUSE_SETTINGS: u32 = 4;
/// reason of RETICK_EVENT_REFUSED: all places are taken.
pub const RETICK_REFUSE_ROOM_FULL: u32 = 5;
/// reason of RETICK_EVENT_REFUSED: the match is running.
pub const RETICK_REFUSE_ALREADY_STARTED: u32 = 6;
/// reason of RETICK_EVENT_REFUSED: the secret, the room key or a certificate is wrong.
pub const RETICK_REFUSE_BAD_ROOM: u32 = 7;
/// reason of RETICK_EVENT_REFUSED: nobody answered at that address.
pub const RETICK_REFUSE_NO_ANSWER: u32 = 8;
/// reason of RETICK_EVENT_REFUSED: that member does not admit; join through the room's coordinator.
pub const RETICK_REFUSE_NOT_COORDINATOR: u32 = 9;

/// News for the game. Fields that a kind does not name are 0 (peer, slot: RETICK_NO_PEER, RETICK_NO_SLOT; frame: -1).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_event {
    /// Set by the caller: sizeof(retick_event).
    pub struct_size: u32,
    /// RETICK_EVENT_*; ignore kinds that you do not know.
    pub kind: u32,
    /// Which peer, or RETICK_NO_PEER.
    pub peer: u32,
    /// Which slot, or RETICK_NO_SLOT.
    pub slot: u32,
    /// Which frame, or -1.
    pub frame: i32,
    /// RETICK_LEAVE_* or RETICK_REFUSE_*.
    pub reason: u32,
    /// See the kind.
    pub value0: i64,
    /// See the kind.
    pub value1: i64,
    /// MESSAGE: its stream.
    pub stream: u32,
    /// Bytes at data.
    pub data_size: u32,
    /// The event as a sentence, UTF-8; never NULL. Lives until the next poll (mesh) or begin of a frame (session) of this handle.
    pub text: *const c_char,
    /// MESSAGE: its bytes. Lives as long as text.
    pub data: *const u8,
}
