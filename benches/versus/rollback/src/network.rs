//! The network between the peers: latency, jitter, loss and duplicates per ordered link, from a seed, in virtual time.
//!
//! Fed by: datagrams. Yields: those that are due, oldest first. Never: limits bandwidth; counts as a library's work.

use crate::meter::{self, Doer};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What every link does.
#[derive(Clone, Copy, Default)]
pub struct Conditions {
    /// One way.
    pub latency_ns: u64,
    /// Added, uniform from 0.
    pub jitter_ns: u64,
    /// Of a million.
    pub loss_ppm: u64,
    /// Of a million, those that come twice.
    pub duplicate_ppm: u64,
}

/// What was sent, lost datagrams included.
#[derive(Clone, Copy, Default)]
pub struct Traffic {
    /// Datagrams.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// The largest one.
    pub largest: usize,
}

struct Datagram {
    due_ns: u64,
    bytes: Vec<u8>,
}

struct Line {
    under_way: VecDeque<Datagram>,
    random: u64,
}

struct Network {
    peers: usize,
    conditions: Conditions,
    /// `[to * peers + from]`.
    lines: Vec<Line>,
    free: Vec<Vec<u8>>,
    traffic: Traffic,
}

/// One peer's socket.
#[derive(Clone)]
pub struct Socket {
    network: Rc<RefCell<Network>>,
    us: usize,
}

/// A network, seen from each of its peers.
pub fn open(peers: usize, conditions: Conditions, seed: u64) -> Vec<Socket> {
    let line = |index: usize| Line {
        under_way: VecDeque::with_capacity(64),
        random: (seed * 1000 + index as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95) | 1,
    };
    let network = Network {
        peers,
        conditions,
        lines: (0..peers * peers).map(line).collect(),
        free: (0..peers * peers * 16).map(|_| Vec::with_capacity(1500)).collect(),
        traffic: Traffic::default(),
    };
    let network = Rc::new(RefCell::new(network));
    (0..peers).map(|us| Socket { network: Rc::clone(&network), us }).collect()
}

impl Socket {
    /// Sends a datagram.
    pub fn send(&self, to: usize, bytes: &[u8]) {
        meter::run(Doer::Network, || self.network.borrow_mut().send(self.us, to, bytes));
    }

    /// The next datagram that has arrived: its length and sender.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<(usize, usize)> {
        meter::run(Doer::Network, || self.network.borrow_mut().receive(self.us, buffer))
    }

    /// When the next datagram arrives.
    pub fn next_due_ns(&self) -> Option<u64> {
        let network = self.network.borrow();
        network.first(self.us).map(|(due_ns, _)| due_ns)
    }

    /// What all peers sent so far; the largest datagram since the last call.
    pub fn traffic(&self) -> Traffic {
        let traffic = &mut self.network.borrow_mut().traffic;
        let so_far = *traffic;
        traffic.largest = 0;
        so_far
    }
}

impl Network {
    fn send(&mut self, from: usize, to: usize, bytes: &[u8]) {
        self.traffic.packets += 1;
        self.traffic.bytes += bytes.len() as u64;
        self.traffic.largest = self.traffic.largest.max(bytes.len());
        let line = &mut self.lines[to * self.peers + from];
        if line.chance(self.conditions.loss_ppm) {
            return;
        }
        let copies = if line.chance(self.conditions.duplicate_ppm) { 2 } else { 1 };
        for _ in 0..copies {
            let jitter_ns = line.below(self.conditions.jitter_ns);
            let due_ns = meter::now_ns() + self.conditions.latency_ns + jitter_ns;
            let mut copy = self.free.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(bytes);
            let place =
                line.under_way.iter().rposition(|other| other.due_ns <= due_ns).map_or(0, |last| last + 1);
            line.under_way.insert(place, Datagram { due_ns, bytes: copy });
        }
    }

    /// When and from whom the oldest datagram for `to` comes.
    fn first(&self, to: usize) -> Option<(u64, usize)> {
        let lines = &self.lines[to * self.peers..(to + 1) * self.peers];
        let heads =
            lines.iter().enumerate().filter_map(|(from, line)| Some((line.under_way.front()?.due_ns, from)));
        heads.min()
    }

    fn receive(&mut self, to: usize, buffer: &mut [u8]) -> Option<(usize, usize)> {
        let (_, from) = self.first(to).filter(|&(due_ns, _)| due_ns <= meter::now_ns())?;
        let datagram = self.lines[to * self.peers + from].under_way.pop_front()?;
        let length = datagram.bytes.len();
        buffer[..length].copy_from_slice(&datagram.bytes);
        self.free.push(datagram.bytes);
        Some((length, from))
    }
}

impl Line {
    /// xorshift64, of which the upper bits are used.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if bound == 0 { 0 } else { (self.random >> 20) % bound }
    }

    fn chance(&mut self, ppm: u64) -> bool {
        self.below(1_000_000) < ppm
    }
}
