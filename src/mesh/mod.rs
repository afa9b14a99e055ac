//! The cores of the mesh: liveness, clock, lobby, input log and cut. Each is told the time and yields outputs.
//!
//! Fed by: the node. Yields: outputs, drained by the node right after the cause.
//! Never: know each other, a channel or a socket.

pub mod clock;
pub mod cut;
pub mod input_log;
pub mod liveness;
pub mod lobby;
