//! What a driver (the simulated network, the IO thread) needs of a network half: the node's own contract as a trait.
//!
//! Fed by: nothing. Yields: the seam at which tests of a driver put a small stand-in. Never: adds to what a node does.

use crate::base::{Addr, Entropy, Instant};
use crate::bridge::NodePort;
use crate::config::ValidMeshConfig;
use crate::node::{Node, Output};

/// A network half; see [`Node`] for the meaning of each function.
pub trait Drive: Send {
    /// See [`Node::new`].
    fn new(config: ValidMeshConfig, port: NodePort, entropy: Box<dyn Entropy>, now: Instant) -> Self
    where
        Self: Sized;
    /// See [`Node::handle_commands`].
    fn handle_commands(&mut self, now: Instant);
    /// See [`Node::handle_datagram`].
    fn handle_datagram(&mut self, from: Addr, bytes: &mut [u8], now: Instant);
    /// See [`Node::handle_timeout`].
    fn handle_timeout(&mut self, now: Instant);
    /// See [`Node::poll_output`].
    fn poll_output(&mut self) -> Output<'_>;
}

impl Drive for Node {
    fn new(config: ValidMeshConfig, port: NodePort, entropy: Box<dyn Entropy>, now: Instant) -> Self {
        Self::new(config, port, entropy, now)
    }
    fn handle_commands(&mut self, now: Instant) {
        self.handle_commands(now);
    }
    fn handle_datagram(&mut self, from: Addr, bytes: &mut [u8], now: Instant) {
        self.handle_datagram(from, bytes, now);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }
    fn poll_output(&mut self) -> Output<'_> {
        self.poll_output()
    }
}
