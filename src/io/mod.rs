//! The driver: runs network halves on real sockets, on one thread of its own or on the caller's.
//!
//! Fed by: the operating system (datagrams, time, entropy) and the mesh handles. Yields: calls of the node's contract.
//! Never: knows what is in a datagram. The only place with threads, sockets and clocks.
//!
//! `socket` opens what datagrams move on, `datagrams` moves them, `fault` says what an error means, `poll` waits for them,
//! `turn` is one iteration of the driver; `thread` runs it for every mesh of the process, `manual` for one mesh on the
//! caller's thread, and `custom` does without sockets.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "threads, sockets, clocks and the system's entropy come in here and nowhere else"
)]

mod clock;
mod conditioner;
mod cpu;
mod custom;
mod datagrams;
mod entropy;
mod fault;
mod manual;
mod poll;
mod socket;
#[cfg(test)]
mod testing;
mod thread;
mod turn;

pub use clock::{now, unix_time_s};
pub use custom::CustomMesh;
pub use datagrams::Counters;
pub use entropy::OsEntropy;
pub use fault::{Fault, FaultCounters};
pub use manual::{ManualMesh, open_manual};
pub use socket::{BindConfig, LocalAddrs};
pub use thread::{ThreadHandle, ThreadedMesh, open_threaded, shutdown, thread_count_for_tests};

use std::fmt;

/// Why a mesh could not be opened: a full sentence with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The sentence.
    pub message: String,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for OpenError {}

/// The C API keeps meshes behind handles that any thread may use, one at a time.
const fn can_move_between_threads<T: Send>() {}
const _: () = {
    can_move_between_threads::<ThreadedMesh>();
    can_move_between_threads::<ManualMesh>();
    can_move_between_threads::<CustomMesh>();
};

#[cfg(test)]
mod tests;
