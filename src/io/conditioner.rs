//! Makes a good network bad on purpose: outgoing datagrams of one mesh pass a seeded `netem` before they reach the socket.
//!
//! Fed by: datagrams to send and time. Yields: those whose time has come. Never: touches what is received.

use crate::base::{Addr, Instant};
use crate::netem::{Link, Netem};

/// Destinations with luck of their own; further ones share that of the last.
const DESTINATIONS: usize = 256;

/// Tells the conditioner to make links like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) link: Link,
    pub(super) seed: u64,
}

pub(super) struct Conditioner {
    seed: u64,
    netem: Netem,
    /// Their place is their number in `netem`; we are 0.
    destinations: Vec<Addr>,
}

impl Conditioner {
    pub(super) fn new(setting: Setting) -> Self {
        let mut netem = Netem::new(setting.seed);
        netem.set_default_link(setting.link);
        Self { seed: setting.seed, netem, destinations: Vec::new() }
    }

    /// Datagrams on their way keep their time; another seed starts afresh, and they are lost.
    pub(super) fn change(&mut self, setting: Setting) {
        if setting.seed == self.seed {
            self.netem.set_default_link(setting.link);
        } else {
            *self = Self::new(setting);
        }
    }

    pub(super) fn submit(&mut self, to: Addr, bytes: &[u8], now: Instant) {
        let known = self.destinations.iter().position(|&known| known == to);
        let number = known.unwrap_or_else(|| {
            if self.destinations.len() == DESTINATIONS {
                self.destinations.pop();
            }
            self.destinations.push(to);
            self.destinations.len() - 1
        });
        self.netem.submit(0, number as u32, bytes, now);
    }

    /// Sends what is due.
    pub(super) fn deliver(&mut self, now: Instant, mut send: impl FnMut(Addr, &[u8])) {
        while let Some(delivery) = self.netem.poll(now) {
            if let Some(&to) = self.destinations.get(delivery.to as usize) {
                send(to, &delivery.bytes);
            }
            self.netem.recycle(delivery.bytes);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.netem.poll_timeout()
    }
}
