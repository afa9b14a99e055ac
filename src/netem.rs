//! A seeded link conditioner: latency, jitter, loss, bursts, duplicates, reordering, partitions, per directed link.
//!
//! Fed by: `submit` (a datagram enters a link) and `poll` (time). Yields: datagrams whose time has come, in a repeatable order.
//! Never: reads a clock or a socket; the simulated network and the real driver both run it.

use crate::base::Instant;
use std::time::Duration;

/// What a directed link does to datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// One-way delay.
    pub latency: Duration,
    /// Uniform extra delay, `0..jitter`; reorders when larger than the spacing of packets.
    pub jitter: Duration,
    /// Independent loss, of a million.
    pub loss_ppm: u32,
    /// Chance, of a million per datagram, that a burst of loss begins.
    pub burst_ppm: u32,
    /// How long a burst loses everything.
    pub burst: Duration,
    /// Datagrams that arrive twice, of a million.
    pub duplicate_ppm: u32,
    /// Datagrams delayed by one extra latency + jitter, of a million.
    pub reorder_ppm: u32,
    /// Nothing passes.
    pub down: bool,
}

/// A datagram in flight or due. `from` and `to` are the owner's numbers.
#[derive(Debug)]
pub struct Delivery {
    /// Sender.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// Its bytes; give the vector back with [`Netem::recycle`].
    pub bytes: Vec<u8>,
}

/// The conditioner.
#[derive(Debug)]
pub struct Netem {}

impl Netem {
    /// The same seed and the same calls give the same deliveries.
    pub fn new(_seed: u64) -> Self {
        todo!()
    }
    /// What links do that were not set one by one.
    pub fn set_default_link(&mut self, _link: Link) {
        todo!()
    }
    /// What one directed link does from now on; datagrams in flight keep their time.
    pub fn set_link(&mut self, _from: u32, _to: u32, _link: Link) {
        todo!()
    }
    /// What that link does now.
    pub fn link(&self, _from: u32, _to: u32) -> Link {
        todo!()
    }
    /// A datagram enters the link.
    pub fn submit(&mut self, _from: u32, _to: u32, _bytes: &[u8], _now: Instant) {
        todo!()
    }
    /// The next datagram due at `now`; ties by order of submission.
    pub fn poll(&mut self, _now: Instant) -> Option<Delivery> {
        todo!()
    }
    /// When the next one is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        todo!()
    }
    /// Gives a delivered datagram's vector back.
    pub fn recycle(&mut self, _bytes: Vec<u8>) {
        todo!()
    }
}
