//! Several meshes of one process on a simulated network in virtual time: the whole network half, no thread, no socket.
//!
//! Fed by: `advance` (virtual time passes) on the caller's thread. Yields: whatever the nodes tell through their bridges.
//! Never: reads a clock; its own time starts at zero. The same seed and calls give the same match.

use crate::base::{Addr, Instant};
use crate::bridge::MeshPort;
use crate::config::ValidMeshConfig;
use crate::netem::Link;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The simulated network.
pub struct Simnet {}

impl Simnet {
    /// An empty network whose links are perfect.
    pub fn new(_seed: u64) -> Self {
        todo!()
    }
    /// Attaches a node; its number is the order of attachment, its address `sim:<number>`.
    pub fn attach(&mut self, _config: ValidMeshConfig) -> (u32, MeshPort) {
        todo!()
    }
    /// Takes a node off without goodbye: its process died.
    pub fn detach(&mut self, _index: u32) {
        todo!()
    }
    /// A node stops running (its process hangs); datagrams wait in its socket (bounded) until it is resumed.
    pub fn set_paused(&mut self, _index: u32, _paused: bool) {
        todo!()
    }
    /// The address of a node.
    pub fn address(_index: u32) -> Addr {
        todo!()
    }
    /// Every link not set one by one.
    pub fn set_default_link(&mut self, _link: Link) {
        todo!()
    }
    /// One directed link.
    pub fn set_link(&mut self, _from: u32, _to: u32, _link: Link) {
        todo!()
    }
    /// Runs every node until virtual time has moved by `by`.
    pub fn advance(&mut self, _by: Duration) {
        todo!()
    }
    /// Virtual time.
    pub fn now(&self) -> Instant {
        todo!()
    }
    /// Virtual time in µs, readable from other handles.
    pub fn clock(&self) -> Arc<AtomicU64> {
        todo!()
    }
}
