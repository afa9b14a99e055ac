//! The network half of one mesh: composes channels, handshakes and the mesh cores, and routes between them.
//!
//! Fed by: commands of the bridge, datagrams and time. Yields: datagrams to send and the time of the next call;
//! news go through the bridge. Never: reads a clock, touches a socket, or knows which driver runs it.

use crate::base::{Addr, Entropy, Instant};
use crate::bridge::NodePort;
use crate::config::ValidMeshConfig;

/// What the driver must do next; drain until `Wait`.
#[derive(Debug)]
pub enum Output<'a> {
    /// Send these bytes there.
    Transmit {
        /// Where to.
        to: Addr,
        /// One UDP payload.
        bytes: &'a [u8],
    },
    /// Nothing more now: call `handle_timeout` at this instant, or earlier on a datagram or command.
    Wait {
        /// `None`: nothing is scheduled.
        until: Option<Instant>,
        /// Which part asked for it, for the log.
        reason: &'static str,
    },
    /// The node said goodbye and can be dropped.
    Finished,
}

/// The network half of one mesh.
pub struct Node {}

impl Node {
    /// A node that is in no room yet.
    pub fn new(_config: ValidMeshConfig, _port: NodePort, _entropy: Box<dyn Entropy>, _now: Instant) -> Self {
        todo!()
    }
    /// Takes what the game half queued.
    pub fn handle_commands(&mut self, _now: Instant) {
        todo!()
    }
    /// A datagram came; `bytes` are opened in place.
    pub fn handle_datagram(&mut self, _from: Addr, _bytes: &mut [u8], _now: Instant) {
        todo!()
    }
    /// Fires every deadline that is due at `now`.
    pub fn handle_timeout(&mut self, _now: Instant) {
        todo!()
    }
    /// The next output. `Wait` or `Finished` ends the drain.
    pub fn poll_output(&mut self) -> Output<'_> {
        todo!()
    }
}
