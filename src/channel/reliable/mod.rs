//! Reliable messages: exactly once, in order within a stream, no stream waits for another.
//!
//! `Sender` keeps what is not acknowledged and decides what each packet carries; `Receiver` keeps what the game has not taken.
//! Fed by: messages to send, packets acknowledged and lost, message sections. Yields: sections, messages in order, vectors to
//! give back. Never: holds more than the window, at either end.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use crate::base::Instant;
use sender::Queue;
use std::time::Duration;

pub(super) use receiver::{Receiver, Taken};

/// The stream of the mesh itself: not held up by a game that does not poll, nor by the pace.
const CONTROL: u8 = 0;

/// The sending side of all streams of one peer.
#[derive(Debug, Default)]
pub(super) struct Sender {
    control: Queue,
    app: Queue,
}

impl Sender {
    #[cfg(test)]
    pub(super) fn start_at(&mut self, seq: u16) {
        self.control.start_at(seq);
        self.app.start_at(seq);
    }

    /// Queues a message, or gives it back when the window is full.
    pub(super) fn push(&mut self, stream: u8, data: Vec<u8>) -> Result<(), Vec<u8>> {
        if stream == CONTROL { self.control.push(stream, data) } else { self.app.push(stream, data) }
    }

    /// The other end may be sent this much of the application's in all; a late word of less changes nothing.
    pub(super) fn handle_window(&mut self, limit: u32) {
        self.app.handle_window(limit);
    }

    /// What the application's messages cost that wait for their acknowledgement.
    pub(super) fn app_cost(&self) -> u32 {
        self.app.memory_cost()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.control.is_idle() && self.app.is_idle()
    }

    /// Messages that wait for their acknowledgement.
    pub(super) fn waiting(&self) -> u32 {
        self.control.waiting() + self.app.waiting()
    }

    pub(super) fn resent(&self) -> u64 {
        self.control.resent() + self.app.resent()
    }

    /// Writes what is due and then what rides along, as `room` allows; of what is due only the mesh's own while the pace holds
    /// the application's back. Says whether anything due found no room.
    pub(super) fn write(
        &mut self,
        packet: u64,
        room: usize,
        now: Instant,
        timeout: Duration,
        held_back: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let before = out.len();
        let starved = self.control.write(packet, room, now, timeout, false, out);
        let room = room - (out.len() - before);
        self.app.write(packet, room, now, timeout, held_back, out) || starved
    }

    /// A packet of ours arrived.
    pub(super) fn handle_acked(&mut self, packet: u64, now: Instant, released: &mut Vec<Vec<u8>>) {
        self.control.handle_acked(packet, now, released);
        self.app.handle_acked(packet, now, released);
    }

    /// A packet of ours is lost.
    pub(super) fn handle_lost(&mut self, packet: u64) {
        self.control.handle_lost(packet);
        self.app.handle_lost(packet);
    }

    /// Call after a batch of `handle_acked` and `handle_lost`.
    pub(super) fn settle(&mut self, timeout: Duration) {
        self.control.settle(timeout);
        self.app.settle(timeout);
    }

    /// When a message of the mesh itself wants a packet.
    pub(super) fn control_at(&self) -> Option<Instant> {
        self.control.poll_timeout()
    }

    /// When a message wants a packet.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.control.poll_timeout(), self.app.poll_timeout()].into_iter().flatten().min()
    }

    /// Gives back what a burst took, when nothing waits.
    pub(super) fn trim(&mut self) {
        self.control.trim();
        self.app.trim();
    }
}
