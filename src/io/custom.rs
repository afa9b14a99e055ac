//! A mesh on the game's own transport: datagrams are handed in and taken out, no socket is opened.
//!
//! Fed by: `receive` and `run`. Yields: outgoing datagrams. Never: runs while nobody calls; others see silence then.

use super::OpenError;
use super::thread::node;
use crate::base::limits::MAX_DATAGRAM;
use crate::base::{Addr, Instant};
use crate::bridge::{self, MeshPort, NodePort};
use crate::config::ValidMeshConfig;
use crate::node::Output;
use crate::simnet::Drive;
use std::collections::VecDeque;
use std::sync::Arc;

/// Outgoing datagrams that may wait to be taken: 15 peers × 4 frames × 17; one more pushes out the oldest.
const OUTGOING: usize = 1024;

/// A mesh without sockets.
pub struct CustomMesh {
    /// The game half's end.
    pub port: MeshPort,
    /// `None` after it said goodbye.
    node: Option<Box<dyn Drive>>,
    wake_at: Option<Instant>,
    outgoing: VecDeque<(Addr, Vec<u8>)>,
    /// The one that the caller looks at.
    taken: Vec<u8>,
    free: Vec<Vec<u8>>,
    /// The node opens datagrams in place, and the caller's bytes are not ours.
    incoming: Vec<u8>,
    dropped: u64,
}

impl CustomMesh {
    /// Opens one; `config.local_address` is what the others know it by.
    pub fn open(config: ValidMeshConfig) -> Result<Self, OpenError> {
        Self::with_node(|port| node(config, port))
    }

    pub(super) fn with_node(
        make: impl FnOnce(NodePort) -> Result<Box<dyn Drive>, OpenError>,
    ) -> Result<Self, OpenError> {
        // Nobody has to be woken: `run` looks at the queue.
        let (port, node_port) = bridge::open(Arc::new(|| {}));
        Ok(Self {
            port,
            node: Some(make(node_port)?),
            wake_at: None,
            outgoing: VecDeque::new(),
            taken: Vec::new(),
            free: Vec::new(),
            incoming: Vec::with_capacity(MAX_DATAGRAM),
            dropped: 0,
        })
    }

    /// A datagram came from `from`. One that is empty or longer than any of ours is dropped.
    pub fn receive(&mut self, from: Addr, bytes: &[u8], now: Instant) {
        if bytes.is_empty() || bytes.len() > MAX_DATAGRAM {
            self.dropped += 1;
            return;
        }
        let Some(node) = &mut self.node else { return };
        self.incoming.clear();
        self.incoming.extend_from_slice(bytes);
        node.handle_datagram(from, &mut self.incoming, now);
        self.drain();
    }

    /// Takes the game half's commands and fires what is due.
    pub fn run(&mut self, now: Instant) {
        let Some(node) = &mut self.node else { return };
        node.handle_commands(now);
        if self.wake_at.is_none_or(|at| at <= now) {
            node.handle_timeout(now);
        }
        self.drain();
    }

    /// The next datagram to send; its bytes are valid until the next call.
    pub fn next_outgoing(&mut self) -> Option<(Addr, &[u8])> {
        let (to, bytes) = self.outgoing.pop_front()?;
        let before = std::mem::replace(&mut self.taken, bytes);
        self.recycle(before);
        Some((to, &self.taken))
    }

    /// When `run` has something to do, if nothing comes before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.wake_at
    }

    /// Whether the node still runs; it does not after it said goodbye.
    pub fn is_open(&self) -> bool {
        self.node.is_some()
    }

    /// Datagrams dropped: of a wrong size when received, or never taken.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn drain(&mut self) {
        while let Some(node) = &mut self.node {
            match node.poll_output() {
                Output::Transmit { to, bytes } => {
                    let mut copy = self.free.pop().unwrap_or_else(|| Vec::with_capacity(MAX_DATAGRAM));
                    copy.clear();
                    copy.extend_from_slice(bytes);
                    self.outgoing.push_back((to, copy));
                    if self.outgoing.len() > OUTGOING
                        && let Some((_, oldest)) = self.outgoing.pop_front()
                    {
                        self.dropped += 1;
                        self.recycle(oldest);
                    }
                }
                Output::Wait { until, .. } => {
                    self.wake_at = until;
                    return;
                }
                Output::Finished => {
                    self.node = None;
                    self.wake_at = None;
                }
            }
        }
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if self.free.len() < OUTGOING {
            self.free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
