//! The receiving side of all reliable streams of one peer: what came stays here until the game takes it.
//!
//! Every message is kept in one block of bytes and has a place of four bytes in the row of its stream, so that what it takes is
//! what it was granted, however small. Fed by: message sections, the game's polls. Yields: messages, in order within a stream.
//! Never: takes more than was granted, or allocates by the message.

use super::CONTROL;
use crate::base::limits::{CONTROL_WINDOW, RELIABLE_WINDOW, window_cost};
use crate::channel::window::Grant;
use crate::channel::{Received, STREAMS};
use crate::wire::message::Delivery;
use std::collections::VecDeque;

/// A place whose message has not come.
const MISSING: u32 = u32::MAX;
/// Before each message in the block: its size and stream, then its number.
const HEAD: usize = 4;
const SIZE_BITS: u32 = 11;
/// In place of the stream, when the message was taken.
const DEAD: u8 = 0xf;
/// The block grows by this much at least, and is kept when it has no more.
const STEP: usize = 2048;
/// Beyond, it grows by this part of itself, and is packed when so much of it is dead.
const SLACK: usize = 16;

/// What became of a message section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::channel) enum Taken {
    /// It is kept until its turn.
    New,
    /// It came before.
    Repeated,
    /// No honest sender writes it.
    Refused,
}

#[derive(Debug, Default)]
struct Stream {
    /// Number of the first place.
    first: u16,
    /// So many places from there on have their message.
    ready: usize,
    /// Where in the block each message is.
    places: VecDeque<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub(in crate::channel) struct Receiver {
    streams: [Stream; STREAMS],
    /// Places from the first missing message of each stream on: no more than an honest sender's window.
    open: usize,
    control_cost: u32,
    block: Vec<u8>,
    dead: usize,
    /// The application's stream that is asked first next time.
    turn: usize,
}

impl Receiver {
    #[cfg(test)]
    pub(in crate::channel) fn start_at(&mut self, seq: u16) {
        self.streams.iter_mut().for_each(|stream| stream.first = seq);
    }

    #[cfg(test)]
    pub(in crate::channel) fn is_empty(&self) -> bool {
        self.streams.iter().all(|stream| stream.places.is_empty()) && self.block.is_empty()
    }

    #[cfg(test)]
    pub(in crate::channel) fn holds(&self, start: &[u8]) -> bool {
        let mut places = self.streams.iter().flat_map(|stream| &stream.places).filter(|at| **at != MISSING);
        places.any(|at| self.block[*at as usize + HEAD..].starts_with(start))
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(in crate::channel) fn memory(&self) -> usize {
        let places: usize = self.streams.iter().map(|stream| stream.places.capacity() * 4).sum();
        places + self.block.capacity()
    }

    /// Takes one message.
    pub(in crate::channel) fn handle(
        &mut self,
        stream: u8,
        seq: u16,
        data: &[u8],
        grant: &mut Grant,
    ) -> Taken {
        let index = usize::from(stream);
        let Some(row) = self.streams.get(index) else { return Taken::Refused };
        let ahead = usize::from(seq.wrapping_sub(row.first.wrapping_add(row.ready as u16)));
        if ahead >= 1 << 15 {
            return Taken::Repeated;
        }
        let open = row.places.len() - row.ready;
        if ahead < open && row.places[row.ready + ahead] != MISSING {
            return Taken::Repeated;
        }
        let grows = (ahead + 1).saturating_sub(open);
        if self.open + grows > RELIABLE_WINDOW || data.len() >> SIZE_BITS != 0 {
            return Taken::Refused;
        }
        // More than was granted is not from an honest sender.
        let cost = window_cost(data.len());
        if stream == CONTROL {
            if self.control_cost + cost > CONTROL_WINDOW {
                return Taken::Refused;
            }
            self.control_cost += cost;
        } else if !grant.admit(cost) {
            return Taken::Refused;
        }
        let at = self.store(stream, seq, data);
        let row = &mut self.streams[index];
        let places = row.places.len() + grows;
        if places > row.places.capacity() {
            row.places.reserve_exact(grows.max(row.places.len() / SLACK).max(16));
        }
        row.places.resize(places, MISSING);
        row.places[row.ready + ahead] = at;
        self.open += grows;
        while row.places.get(row.ready).is_some_and(|at| *at != MISSING) {
            row.ready += 1;
            self.open -= 1;
        }
        Taken::New
    }

    fn store(&mut self, stream: u8, seq: u16, data: &[u8]) -> u32 {
        let size = HEAD + data.len();
        if self.block.len() + size > self.block.capacity() && self.dead > self.block.len() / SLACK {
            self.pack();
        }
        if self.block.len() + size > self.block.capacity() {
            self.block.reserve_exact(size.max(STEP).max(self.block.len() / SLACK));
        }
        let at = self.block.len() as u32;
        self.block.extend_from_slice(&(data.len() as u16 | u16::from(stream) << SIZE_BITS).to_le_bytes());
        self.block.extend_from_slice(&seq.to_le_bytes());
        self.block.extend_from_slice(data);
        at
    }

    /// Size, stream and number of the message that begins there.
    fn head(&self, at: usize) -> (usize, u8, u16) {
        let [a, b, c, d] = self.block[at..].first_chunk().copied().unwrap_or_default();
        let both = u16::from_le_bytes([a, b]);
        let size = usize::from(both & ((1 << SIZE_BITS) - 1));
        (size, (both >> SIZE_BITS) as u8, u16::from_le_bytes([c, d]))
    }

    /// Moves the messages together, over those that were taken.
    fn pack(&mut self) {
        let (mut from, mut to) = (0, 0);
        while from < self.block.len() {
            let (size, stream, seq) = self.head(from);
            let end = from + HEAD + size;
            if stream != DEAD {
                let row = &mut self.streams[usize::from(stream)];
                row.places[usize::from(seq.wrapping_sub(row.first))] = to as u32;
                self.block.copy_within(from..end, to);
                to += HEAD + size;
            }
            from = end;
        }
        self.block.truncate(to);
        self.dead = 0;
    }

    /// The next word of the mesh itself.
    pub(in crate::channel) fn take_control(&mut self, pool: &mut Vec<Vec<u8>>) -> Option<Received> {
        let received = self.take(CONTROL, pool)?;
        self.control_cost -= window_cost(received.data.len());
        Some(received)
    }

    /// The next message of the application, from each stream in turn. The peer may send as much again.
    pub(in crate::channel) fn take_app(
        &mut self,
        grant: &mut Grant,
        pool: &mut Vec<Vec<u8>>,
    ) -> Option<Received> {
        for i in 1..STREAMS {
            let stream = 1 + (self.turn + i - 1) % (STREAMS - 1);
            if let Some(received) = self.take(stream as u8, pool) {
                grant.take(window_cost(received.data.len()));
                self.turn = stream % (STREAMS - 1);
                return Some(received);
            }
        }
        None
    }

    /// Whether a message of the application can be taken.
    pub(in crate::channel) fn has_app(&self) -> bool {
        self.streams[1..].iter().any(|stream| stream.ready > 0)
    }

    fn take(&mut self, stream: u8, pool: &mut Vec<Vec<u8>>) -> Option<Received> {
        let row = &mut self.streams[usize::from(stream)];
        if row.ready == 0 {
            return None;
        }
        let at = row.places.pop_front()? as usize;
        row.ready -= 1;
        row.first = row.first.wrapping_add(1);
        let (size, ..) = self.head(at);
        let end = at + HEAD + size;
        let mut data = pool.pop().unwrap_or_default();
        data.clear();
        data.extend_from_slice(&self.block[at + HEAD..end]);
        if end == self.block.len() {
            self.block.truncate(at);
        } else {
            self.block[at + 1] |= DEAD << (SIZE_BITS - 8);
            self.dead += HEAD + size;
        }
        if self.dead == self.block.len() {
            self.block.clear();
            self.dead = 0;
        }
        Some(Received { stream, delivery: Delivery::Reliable, data })
    }

    /// Gives back what a burst took, when nothing waits.
    pub(in crate::channel) fn trim(&mut self) {
        if self.block.is_empty() && self.block.capacity() > STEP {
            self.block = Vec::new();
            self.streams.iter_mut().filter(|row| row.places.is_empty()).for_each(|row| {
                row.places = VecDeque::new();
            });
        }
    }
}
