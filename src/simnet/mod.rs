//! Several meshes of one process on a simulated network in virtual time: the whole network half, no thread, no socket.
//!
//! Fed by: `advance` (virtual time passes) on the caller's thread. Yields: whatever the nodes tell through their bridges.
//! Never: reads a clock; its own time starts at zero. The same seed and calls give the same match.

mod clock;
mod drive;
mod trace;

pub use drive::Drive;
pub use trace::{Entry, Trace, What};

use crate::base::{Addr, Instant, Rng};
use crate::bridge::{self, MeshPort};
use crate::config::ValidMeshConfig;
use crate::netem::{Delivery, Fate, Link, Netem};
use crate::node::{Node, Output};
use clock::LocalClock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Datagrams that wait in the socket of a paused node: about what 1 MiB of kernel memory holds of small ones at 4 KiB each.
const SOCKET_QUEUE: usize = 256;
/// Rounds at one instant after which time is pushed on: two nodes that answer each other over a perfect link, or one that
/// asks for a time-out that has passed, must not stop the world.
const ROUNDS_PER_INSTANT: u32 = 64;

/// The simulated network.
pub struct Simnet<N = Node> {
    seed: u64,
    now: Instant,
    shared_now: Arc<AtomicU64>,
    netem: Netem,
    members: Vec<Member<N>>,
    /// Where the network sees each of them, and how often that changed.
    addresses: Vec<(Addr, u32)>,
    /// Processes that were started again.
    restarts: u32,
    sent: u64,
    drop_exactly: Option<u64>,
    /// Events' rounds at this instant.
    rounds: u32,
    /// How often in a row time had to be pushed on.
    pushes: u32,
    trace: Trace,
    /// What who listens on the path saw: sender, destination, bytes.
    #[cfg(test)]
    seen: Vec<(u32, Addr, Vec<u8>)>,
}

/// One attached node.
struct Member<N> {
    /// `None`: its process died or it said goodbye.
    node: Option<Box<N>>,
    clock: LocalClock,
    shared_local: Arc<AtomicU64>,
    /// Network time of the next `handle_timeout`.
    wake_at: Option<Instant>,
    /// Something was handed in, so there may be output.
    touched: bool,
    paused: bool,
    socket: VecDeque<Delivery>,
}

impl Simnet {
    /// The address of a node.
    pub fn address(index: u32) -> Addr {
        Addr::opaque(format!("sim:{index}").as_bytes()).expect("at most 14 bytes, and never none")
    }

    /// The number in such an address, or in one that [`Simnet::rebind`] gave.
    pub fn index_of(address: &Addr) -> Option<u32> {
        let text = std::str::from_utf8(address.opaque_bytes()?).ok()?.strip_prefix("sim:")?;
        text.split(':').next()?.parse().ok()
    }

    /// An empty network whose links are perfect.
    pub fn new(seed: u64) -> Self {
        Self::with_nodes(seed)
    }
}

impl<N: Drive> Simnet<N> {
    /// An empty network of another kind of node (a test's stand-in).
    pub fn with_nodes(seed: u64) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            shared_now: Arc::new(AtomicU64::new(0)),
            netem: Netem::new(seed),
            members: Vec::new(),
            addresses: Vec::new(),
            restarts: 0,
            sent: 0,
            drop_exactly: None,
            rounds: 0,
            pushes: 0,
            trace: Trace::new(),
            #[cfg(test)]
            seen: Vec::new(),
        }
    }

    /// Kills a node and starts another at its address, as a process that crashed and was started again.
    pub fn restart(&mut self, index: u32, config: ValidMeshConfig) -> Option<MeshPort> {
        self.restarts += 1;
        let seed = self.seed.rotate_left(32) ^ ((u64::from(self.restarts) << 32) | (u64::from(index) + 1));
        let address = self.addresses.get(index as usize)?.0;
        let (port, member) = self.member(config, address, Duration::ZERO, seed);
        *self.members.get_mut(index as usize)? = member;
        Some(port)
    }

    /// Attaches a node; its number is the order of attachment, its address `sim:<number>`.
    pub fn attach(&mut self, config: ValidMeshConfig) -> (u32, MeshPort) {
        self.attach_with_clock(config, Duration::ZERO)
    }

    /// Attaches a node whose clock is ahead of network time by `offset`.
    pub fn attach_with_clock(&mut self, config: ValidMeshConfig, offset: Duration) -> (u32, MeshPort) {
        let index = self.members.len() as u32;
        let address = Simnet::address(index);
        let seed = self.seed.rotate_left(32) ^ (u64::from(index) + 1);
        let (port, member) = self.member(config, address, offset, seed);
        self.addresses.push((address, 0));
        self.members.push(member);
        (index, port)
    }

    fn member(
        &self,
        mut config: ValidMeshConfig,
        address: Addr,
        offset: Duration,
        seed: u64,
    ) -> (MeshPort, Member<N>) {
        config.local_address = Some(address);
        // Nobody has to be woken: `advance` looks at every queue.
        let (port, node_port) = bridge::open(Arc::new(|| {}));
        let clock = LocalClock::new(self.now, offset.as_micros() as u64);
        let entropy = Box::new(Rng::new(seed));
        let member = Member {
            node: Some(Box::new(N::new(config, node_port, entropy, clock.local(self.now)))),
            clock,
            shared_local: Arc::new(AtomicU64::new(clock.local(self.now).0)),
            wake_at: Some(self.now),
            touched: false,
            paused: false,
            socket: VecDeque::new(),
        };
        (port, member)
    }

    /// Takes a node off without goodbye: its process died.
    pub fn detach(&mut self, index: u32) {
        if let Some(member) = self.members.get_mut(index as usize) {
            member.kill();
        }
    }

    /// Whether a node is still attached: it was neither detached nor did it finish after a goodbye.
    pub fn is_attached(&self, index: u32) -> bool {
        self.members.get(index as usize).is_some_and(|member| member.node.is_some())
    }

    /// A node stops running (its process hangs); datagrams wait in its socket (bounded, the oldest are dropped) until it
    /// is resumed. Its clock goes on.
    pub fn set_paused(&mut self, index: u32, paused: bool) {
        if let Some(member) = self.members.get_mut(index as usize) {
            member.paused = paused;
        }
    }

    /// From now on the network sees a node at another address, as when a NAT forgot its mapping: what goes to the old one is
    /// lost, and what is still under way seems to come from the new one. The node is not told.
    pub fn rebind(&mut self, index: u32) -> Addr {
        let Some((address, changes)) = self.addresses.get_mut(index as usize) else {
            return Simnet::address(index);
        };
        *changes += 1;
        *address = Addr::opaque(format!("sim:{index}:{changes}").as_bytes()).expect("at most 25 bytes");
        *address
    }

    /// Every link not set one by one.
    pub fn set_default_link(&mut self, link: Link) {
        self.netem.set_default_link(link);
    }

    /// One directed link.
    pub fn set_link(&mut self, from: u32, to: u32, link: Link) {
        self.netem.set_link(from, to, link);
    }

    /// What that link does now.
    pub fn link(&self, from: u32, to: u32) -> Link {
        self.netem.link(from, to)
    }

    /// From now on a node's clock runs this much faster (or, negative, slower) than network time.
    pub fn set_clock_skew_ppm(&mut self, index: u32, ppm: i32) {
        let now = self.now;
        if let Some(member) = self.members.get_mut(index as usize) {
            let due = member.wake_at.map(|at| member.clock.local(at.max(now)));
            member.clock.set_rate(ppm, now);
            member.wake_at = due.map(|local| member.clock.network(local));
        }
    }

    /// The `number`-th datagram sent since the start of the network (counted from 0) is lost, whatever its link does.
    pub fn drop_exactly(&mut self, number: u64) {
        self.drop_exactly = Some(number);
    }

    /// How many datagrams were sent since the start of the network, lost ones included.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What happened to the newest datagrams.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Runs every node until virtual time has moved by `by`.
    pub fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        self.take_commands();
        while self.run_next(end) {}
    }

    /// Runs up to the next event that is due at `end` or before, and says whether there was one; else time is at `end`.
    /// For tests that look at the nodes after every event; `advance` is cheaper.
    pub fn step(&mut self, end: Instant) -> bool {
        self.take_commands();
        self.run_next(end)
    }

    /// Virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What a node's clock shows; its session lives by this one.
    pub fn local_now(&self, index: u32) -> Instant {
        self.members.get(index as usize).map_or(self.now, |member| member.clock.local(self.now))
    }

    /// Virtual time in µs, readable from other handles.
    pub fn clock(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared_now)
    }

    /// A node's clock in µs, readable from other handles.
    pub fn local_clock(&self, index: u32) -> Arc<AtomicU64> {
        self.members
            .get(index as usize)
            .map_or_else(|| self.clock(), |member| Arc::clone(&member.shared_local))
    }

    fn set_now(&mut self, now: Instant) {
        if now == self.now {
            return;
        }
        self.now = now;
        self.rounds = 0;
        self.shared_now.store(now.0, Ordering::Relaxed);
        for member in &self.members {
            member.shared_local.store(member.clock.local(now).0, Ordering::Relaxed);
        }
    }

    fn run_next(&mut self, end: Instant) -> bool {
        let mut next = self.next_event();
        if next > self.now {
            self.pushes = 0;
        } else if self.rounds >= ROUNDS_PER_INSTANT {
            self.pushes += 1;
            next = self.now + Duration::from_micros(1 << self.pushes.min(10));
            if self.pushes >= 16 && self.pushes.is_power_of_two() {
                log::warn!("simnet: events without end at {}; newest datagrams:\n{}", self.now, self.trace);
            }
        }
        if next > end {
            self.set_now(self.now.max(end));
            return false;
        }
        self.set_now(self.now.max(next));
        self.rounds += 1;
        self.deliver();
        for index in 0..self.members.len() {
            let now = self.now;
            let member = &mut self.members[index];
            if !member.paused
                && member.wake_at.is_some_and(|at| at <= now)
                && let Some(node) = &mut member.node
            {
                node.handle_timeout(member.clock.local(now));
                member.touched = true;
            }
            self.collect(index);
        }
        true
    }

    /// The game half ran since the last call: its commands take effect at once.
    fn take_commands(&mut self) {
        for index in 0..self.members.len() {
            let now = self.now;
            let member = &mut self.members[index];
            if member.paused {
                continue;
            }
            let Some(node) = &mut member.node else { continue };
            node.handle_commands(member.clock.local(now));
            member.touched = true;
            self.collect(index);
        }
    }

    /// When something happens next; the end of time when nothing is scheduled.
    fn next_event(&self) -> Instant {
        let waits = self
            .members
            .iter()
            .filter(|member| member.node.is_some() && !member.paused)
            .map(|member| if member.socket.is_empty() { member.wake_at } else { Some(self.now) });
        waits.flatten().chain(self.netem.poll_timeout()).min().unwrap_or(Instant(u64::MAX))
    }

    /// Hands every datagram that is due to its receiver.
    fn deliver(&mut self) {
        for index in 0..self.members.len() {
            while !self.members[index].paused
                && let Some(delivery) = self.members[index].socket.pop_front()
            {
                self.hand_over(delivery);
            }
        }
        while let Some(delivery) = self.netem.poll(self.now) {
            self.hand_over(delivery);
        }
    }

    fn hand_over(&mut self, mut delivery: Delivery) {
        let (from, _) = self.addresses[delivery.from as usize];
        let now = self.now;
        let member = &mut self.members[delivery.to as usize];
        let Some(node) = &mut member.node else {
            self.trace.push(entry(now, What::Dropped, delivery.from, Some(delivery.to), &delivery.bytes));
            self.netem.recycle(delivery.bytes);
            return;
        };
        if member.paused {
            member.socket.push_back(delivery);
            let dropped = (member.socket.len() > SOCKET_QUEUE).then(|| member.socket.pop_front()).flatten();
            let (what, shown) = match &dropped {
                Some(old) => (What::Dropped, old),
                None => (What::Held, member.socket.back().expect("pushed above")),
            };
            self.trace.push(entry(now, what, shown.from, Some(shown.to), &shown.bytes));
            if let Some(old) = dropped {
                self.netem.recycle(old.bytes);
            }
            return;
        }
        self.trace.push(entry(now, What::Delivered, delivery.from, Some(delivery.to), &delivery.bytes));
        node.handle_datagram(from, &mut delivery.bytes, member.clock.local(now));
        member.touched = true;
        self.netem.recycle(delivery.bytes);
    }

    /// Puts what a node wants to send onto the network and learns when to call it again.
    fn collect(&mut self, index: usize) {
        if !std::mem::take(&mut self.members[index].touched) {
            return;
        }
        loop {
            // Fields one by one, because the bytes to send are borrowed from the node.
            let Self { members, addresses, netem, trace, .. } = self;
            let member = &mut members[index];
            let Some(node) = &mut member.node else { return };
            match node.poll_output() {
                Output::Transmit { to, bytes } => {
                    let from = index as u32;
                    #[cfg(test)]
                    self.seen.push((from, to, bytes.to_vec()));
                    let number = self.sent;
                    self.sent += 1;
                    let is_there =
                        |index: u32| addresses.get(index as usize).is_some_and(|(at, _)| *at == to);
                    let to = Simnet::index_of(&to).filter(|&index| is_there(index));
                    let what = match to {
                        None => What::Dropped,
                        Some(_) if self.drop_exactly == Some(number) => What::Picked,
                        Some(to) => match netem.submit(from, to, bytes, self.now) {
                            Fate::Lost => What::Lost,
                            Fate::Due(_) => What::Sent,
                        },
                    };
                    trace.push(entry(self.now, what, from, to, bytes));
                }
                Output::Wait { until, .. } => {
                    member.wake_at = until.map(|local| member.clock.network(local));
                    return;
                }
                Output::Finished => {
                    member.kill();
                    return;
                }
            }
        }
    }
}

impl<N> Member<N> {
    fn kill(&mut self) {
        self.node = None;
        self.wake_at = None;
        self.socket.clear();
    }
}

fn entry(at: Instant, what: What, from: u32, to: Option<u32>, bytes: &[u8]) -> Entry {
    Entry { at, what, from, to, size: bytes.len(), first: bytes.first().copied().unwrap_or(0) }
}

/// The C API keeps a network behind a handle that any thread may use.
const fn can_move_between_threads<T: Send>() {}
const _: () = can_move_between_threads::<Simnet>();

#[cfg(test)]
mod join_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod narrow_tests;
#[cfg(test)]
mod tests;
