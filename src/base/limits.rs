//! Every bound of the library, each with the reason for its size.
//!
//! A queue, table or message that grows by what others send has its bound here.
//! Never: a tunable; those are in `config`.

use std::time::Duration;

/// Most members of a mesh: a full mesh of 16 has 120 links, and sets of peers fit 16 bits.
pub const MAX_PEERS: usize = 16;
/// Most slots of a session.
pub const MAX_SLOTS: usize = 16;
/// Most bytes of one slot's input for one frame.
pub const MAX_INPUT: usize = 64;
/// Most bytes of a custom transport's address.
pub const MAX_OPAQUE_ADDR: usize = 64;

/// Bytes of one UDP payload that every path is expected to carry: IPv6's minimum MTU 1280 less headers, with room for a relay.
pub const MAX_DATAGRAM: usize = 1200;
/// Smallest `max_datagram` that a custom transport may set.
pub const MIN_DATAGRAM: usize = 600;
/// AEAD tag behind every packet.
pub const TAG_SIZE: usize = 16;
/// Worst header: kind, sender, counter 2, ack 2, ack bits 4.
pub const MAX_HEADER: usize = 10;
/// Most bytes of one reliable or unreliable message: one packet less header, tag and the other sections; fragments come on top of this.
pub const MAX_MESSAGE: usize = 1024;

/// Frames of inputs that the log keeps for resends and cuts: 10 s at 60 Hz.
pub const LOG_FRAMES: i32 = 600;
/// Ring behind it: the next power of two.
pub const LOG_RING: usize = 1024;
/// Largest prediction window.
pub const MAX_WINDOW: i32 = 64;
/// Largest input delay.
pub const MAX_INPUT_DELAY: i32 = 32;
/// Rings of the rollback core: window, delay and the frames that remote peers may be ahead, as a power of two.
pub const ROLLBACK_RING: usize = 256;
/// Most frames of one slot in one packet; more are sent in the following ones.
pub const MAX_FRAMES_PER_SECTION: i32 = 64;

/// Commands from the game half that may wait: 16 slots × 16 frames.
pub const COMMAND_QUEUE: usize = 1024;
/// Session news that may wait; the input log is the backlog behind it, so a full queue loses nothing.
pub const SESSION_NEWS_QUEUE: usize = 2048;
/// Mesh events that may wait; beyond, unreliable messages are dropped and counted, and the rest waits in the node.
pub const MESH_NEWS_QUEUE: usize = 1024;

/// Reliable messages of one peer and direction from the oldest unacknowledged on: as many small ones as the window has bytes for.
pub const RELIABLE_WINDOW: usize = 4096;
/// What a message counts beside its bytes where it waits in a vector of its own.
pub const MESSAGE_RECORD: u32 = 32;
/// What it counts at the receiver, whose block of bytes holds it: its head there, and its place in the row of its stream.
pub const PLACE_RECORD: u32 = 8;
/// Undelivered reliable messages of the application that one link grants a peer: with what else a peer can make us hold, at most
/// 300 kB.
pub const LINK_WINDOW: u32 = 224 * 1024;
/// All links together; with more than five, each gets its part.
pub const MESH_WINDOW: u32 = 1152 * 1024;
/// What every link grants, unsaid: the part of a full mesh.
pub const LEAST_WINDOW: u32 = MESH_WINDOW / MAX_PEERS as u32;
/// Unacknowledged messages of the mesh itself on one link, beside that window: its game may not poll, its lobby still acts.
pub const CONTROL_WINDOW: u32 = 16 * 1024;
/// Reliable messages of the application to one peer that are not acknowledged: refused beyond. 10,000 of 64 bytes fit.
pub const SEND_BUDGET: u32 = 1024 * 1024;
/// Messages in the queue to the game: with the windows, all that a game that never polls costs.
pub const UNPOLLED_BUDGET: u32 = 128 * 1024;
/// Unreliable messages of one peer that wait behind that queue; beyond, the oldest is dropped and counted.
pub const HELD_UNRELIABLE: u32 = 16 * 1024;
/// Streams that the application may use, `0..APP_STREAMS`.
pub const APP_STREAMS: u8 = 8;
/// Packets in flight that are remembered per peer: 4 s at 60 Hz.
pub const SENT_RING: usize = 256;
/// The same while much more is under way, which takes 36 kB then: half a second of 8,000 packets a second.
pub const MAX_SENT_RING: usize = 4096;
/// Replay window in packets (RFC 6479 in spirit; 1024 as in `WireGuard`).
pub const REPLAY_WINDOW: u64 = 1024;
/// Half-open handshakes at once.
pub const MAX_HANDSHAKES: usize = 32;
/// Candidate addresses of one member.
pub const MAX_CANDIDATES: usize = 4;

/// A heartbeat is any packet; one is sent when this long passed without.
pub const HEARTBEAT: Duration = Duration::from_millis(50);

/// What a reliable message of so many bytes counts in the window of its receiver.
pub const fn window_cost(size: usize) -> u32 {
    size as u32 + PLACE_RECORD
}

/// What a message of so many bytes counts where it waits in a vector of its own.
pub const fn message_cost(size: usize) -> u32 {
    size as u32 + MESSAGE_RECORD
}
