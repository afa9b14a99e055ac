//! What a simnet handle holds: the simulated network.
//!
//! Fed by: checked arguments. Yields: attached ports, virtual time.
//! Never: more than 1024 nodes, and no node that was never attached.

use super::guard::{Failure, Outcome};
use super::library::{RETICK_OK, retick_result};
use super::mesh_types::RETICK_ALL_PEERS;
use super::session_handle::Clock;
use crate::base::Addr;
use crate::bridge::MeshPort;
use crate::config::ValidMeshConfig;
use crate::netem::Link;
use crate::simnet::Simnet;
use std::time::Duration;

/// Nodes that links may be set for, whether they are attached already or will be.
const MAX_NODES: u32 = 1024;

pub(super) struct SimnetHandle {
    net: Simnet,
    attached: u32,
    /// Set for every sender or receiver before all nodes were there: applied to later ones too.
    wildcards: Vec<(Option<u32>, Option<u32>, Link)>,
}

/// A node that was attached.
pub(super) struct Attached {
    pub(super) port: MeshPort,
    pub(super) address: Addr,
    pub(super) clock: Clock,
    pub(super) max_datagram: usize,
}

impl SimnetHandle {
    pub(super) fn new(seed: u64) -> Self {
        Self { net: Simnet::new(seed), attached: 0, wildcards: Vec::new() }
    }

    pub(super) fn attach(&mut self, config: ValidMeshConfig) -> Attached {
        let max_datagram = config.max_datagram;
        let (index, port) = self.net.attach(config);
        self.attached = index + 1;
        for at in 0..self.wildcards.len() {
            let (from, to, link) = self.wildcards[at];
            match (from, to) {
                (Some(from), None) => self.net.set_link(from, index, link),
                (None, Some(to)) => self.net.set_link(index, to, link),
                _ => {}
            }
        }
        let clock = Clock::Virtual(self.net.local_clock(index));
        Attached { port, address: Simnet::address(index), clock, max_datagram }
    }

    pub(super) fn set_link(&mut self, from: u32, to: u32, link: Link) -> Outcome<retick_result> {
        let node = |name: &str, index: u32| match index {
            RETICK_ALL_PEERS => Ok(None),
            index if index < MAX_NODES => Ok(Some(index)),
            index => Err(Failure::argument(format!(
                "{name} is {index}; use a node's number in order of creation, below {MAX_NODES}, or RETICK_ALL_PEERS"
            ))),
        };
        let (from, to) = (node("from", from)?, node("to", to)?);
        match (from, to) {
            (Some(from), Some(to)) => self.net.set_link(from, to, link),
            (None, None) => {
                self.wildcards.clear();
                self.net.set_default_link(link);
                for from in 0..self.attached {
                    for to in 0..self.attached {
                        self.net.set_link(from, to, link);
                    }
                }
            }
            (from, to) => {
                for other in 0..self.attached {
                    self.net.set_link(from.unwrap_or(other), to.unwrap_or(other), link);
                }
                self.wildcards.retain(|&(f, t, _)| (f, t) != (from, to));
                self.wildcards.push((from, to, link));
            }
        }
        Ok(RETICK_OK)
    }

    pub(super) fn set_paused(&mut self, index: u32, paused: bool) -> Outcome<retick_result> {
        if index >= self.attached {
            return Err(Failure::argument(format!(
                "index is {index}, and {} nodes are on this network; they are numbered from 0",
                self.attached
            )));
        }
        self.net.set_paused(index, paused);
        Ok(RETICK_OK)
    }

    pub(super) fn advance(&mut self, by: Duration) -> Outcome<retick_result> {
        self.net.advance(by);
        Ok(RETICK_OK)
    }

    pub(super) fn now_us(&self) -> u64 {
        self.net.now().as_micros()
    }
}
