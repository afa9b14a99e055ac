//! What is sent reliably and not acknowledged yet: a queue for the application, and one for the mesh itself.
//!
//! The oldest small messages ride in every packet until acknowledged; all others go once, and again when their packet is known to be
//! lost or nothing was heard for the resend timeout. What a packet carried is one run in a list, so that thousands may be under way.
//! Fed by: messages, packets acknowledged and lost, grants. Yields: sections, vectors to give back, when a packet is wanted.
//! Never: sends more than was granted, or has more in its queue than the receiver holds places for.

use super::CONTROL;
use crate::base::Instant;
use crate::base::limits::{CONTROL_WINDOW, LEAST_WINDOW, RELIABLE_WINDOW, message_cost, window_cost};
use crate::channel::{POOL, STREAMS};
use crate::wire::message::{emit_next, emit_reliable, next_size, section_size};
use std::collections::VecDeque;
use std::time::Duration;

/// A message up to this size rides in every packet.
const SMALL: usize = 64;
/// So many ride at once, the oldest ones; further ones are sent like large ones.
const RIDERS: usize = 16;
/// They are looked for among so many of the oldest: when nearly all of these arrived, the rest is as good as lost and known to be.
const RIDERS_AMONG: usize = 256;
/// The first repeats of a small message come this fast, just later than frames at 60 Hz carry it.
const RIDE_EVERY: Duration = Duration::from_millis(17);
const RIDE_REPEATS: u8 = 2;
/// A message that does not get through is repeated at most this slowly.
const SLOWEST_RESEND: Duration = Duration::from_secs(1);
/// The acknowledgement of a packet that was taken for lost is waited for so long.
const LATE: Duration = Duration::from_secs(1);
/// Packets whose content is remembered: as many as full ones hold the largest window, several times over.
const FLIGHTS: u64 = 4096;
/// Of the window, so many messages are kept for the mesh itself.
pub(super) const FOR_CONTROL: usize = 64;

#[derive(Debug)]
struct Message {
    stream: u8,
    seq: u16,
    acked: bool,
    /// Its packet is lost, and it is in the list of those.
    lost: bool,
    sends: u8,
    last_packet: u64,
    last_sent: Instant,
    size: u32,
    data: Vec<u8>,
}

/// A packet that carried messages.
#[derive(Debug)]
struct Flight {
    packet: u64,
    sent: Instant,
    /// Where what it carried begins in `carried`, and how much that is; nothing once it arrived.
    start: u32,
    count: u16,
    /// Messages that no later packet carried and that are not acknowledged: for these it has a deadline.
    pending: u16,
    /// The least that one of its messages was sent.
    sends: u8,
}

/// See the module.
#[derive(Debug)]
pub(in crate::channel) struct Queue {
    next_seq: [u16; STREAMS],
    /// In order of sending; a message stays until all earlier ones are acknowledged, which bounds what the receiver may have to
    /// hold back.
    messages: VecDeque<Message>,
    /// Number of the first, from the first ever on, modulo 2^32.
    first: u32,
    /// So many of the queue were sent before.
    sent_before: usize,
    unacked: u32,
    /// Numbers of those that are lost.
    lost: VecDeque<u32>,
    /// In order of their counters.
    flights: VecDeque<Flight>,
    /// Numbers of the messages in each of them, and the place of the first one, modulo 2^32.
    carried: VecDeque<u32>,
    carried_first: u32,
    /// When something arrived last that we did not know.
    heard: Instant,
    resend_at: Option<Instant>,
    resent: u64,
    /// Cost of the application's messages that may be sent and that were, from the first on, modulo 2^32.
    limit: u32,
    sent: u32,
    /// Window cost of the messages in the queue, and the cost in memory of those that are not acknowledged.
    window_cost: u32,
    memory_cost: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            next_seq: [0; STREAMS],
            messages: VecDeque::new(),
            first: 0,
            sent_before: 0,
            unacked: 0,
            lost: VecDeque::new(),
            flights: VecDeque::new(),
            carried: VecDeque::new(),
            carried_first: 0,
            heard: Instant::ZERO,
            resend_at: None,
            resent: 0,
            limit: LEAST_WINDOW,
            sent: 0,
            window_cost: 0,
            memory_cost: 0,
        }
    }
}

impl Queue {
    #[cfg(test)]
    pub(in crate::channel) fn start_at(&mut self, seq: u16) {
        self.next_seq = [seq; STREAMS];
    }

    /// Queues a message, or gives it back when the window is full.
    pub(in crate::channel) fn push(&mut self, stream: u8, data: Vec<u8>) -> Result<(), Vec<u8>> {
        let Some(next) = self.next_seq.get_mut(usize::from(stream)) else {
            return Err(data);
        };
        let cost = window_cost(data.len());
        let is_full = if stream == CONTROL {
            self.messages.len() >= FOR_CONTROL || self.window_cost + cost > CONTROL_WINDOW
        } else {
            self.messages.len() >= RELIABLE_WINDOW - FOR_CONTROL || self.limit.wrapping_sub(self.sent) < cost
        };
        if is_full {
            return Err(data);
        }
        self.sent = self.sent.wrapping_add(cost);
        self.window_cost += cost;
        self.memory_cost += message_cost(data.len());
        let seq = *next;
        *next = next.wrapping_add(1);
        self.unacked += 1;
        self.messages.push_back(Message {
            stream,
            seq,
            acked: false,
            lost: false,
            sends: 0,
            last_packet: 0,
            last_sent: Instant::ZERO,
            size: data.len() as u32,
            data,
        });
        self.resend_at = Some(Instant::ZERO);
        Ok(())
    }

    /// The other end may be sent this much in all; a late word of less changes nothing.
    pub(in crate::channel) fn handle_window(&mut self, limit: u32) {
        if (limit.wrapping_sub(self.limit) as i32) > 0 {
            self.limit = limit;
        }
    }

    /// What the messages cost that wait for their acknowledgement.
    pub(in crate::channel) fn memory_cost(&self) -> u32 {
        self.memory_cost
    }

    pub(in crate::channel) fn is_idle(&self) -> bool {
        self.messages.is_empty()
    }

    /// Messages that wait for their acknowledgement.
    pub(in crate::channel) fn waiting(&self) -> u32 {
        self.unacked
    }

    pub(in crate::channel) fn resent(&self) -> u64 {
        self.resent
    }

    /// Writes what is lost, then what was never sent, both unless `held_back`, and then what rides along, as `room` allows. Says
    /// whether anything due found no room.
    pub(in crate::channel) fn write(
        &mut self,
        packet: u64,
        room: usize,
        now: Instant,
        timeout: Duration,
        held_back: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.messages.is_empty() {
            return false;
        }
        self.forget(packet, now);
        self.expire(now, timeout);
        let mut page = Page { packet, now, room, out, after: None };
        let mut starved = false;
        while !held_back && let Some(&number) = self.lost.front() {
            let index = self.index(number).filter(|&index| self.messages[index].lost);
            if let Some(index) = index
                && !self.carry(index, &mut page)
            {
                starved = true;
                break;
            }
            self.lost.pop_front();
        }
        while !held_back && self.sent_before < self.messages.len() {
            if !self.carry(self.sent_before, &mut page) {
                starved = true;
                break;
            }
            self.sent_before += 1;
        }
        let mut riders = 0;
        for index in 0..self.sent_before.min(RIDERS_AMONG) {
            let message = &self.messages[index];
            if message.acked || message.data.len() > SMALL {
                continue;
            }
            riders += 1;
            if riders > RIDERS {
                break;
            }
            if message.last_packet != packet {
                let is_due = message.sends <= RIDE_REPEATS && message.last_sent + RIDE_EVERY <= now;
                starved |= !self.carry(index, &mut page) && is_due;
            }
        }
        self.schedule(timeout);
        starved
    }

    /// Puts a message into the packet, if it has room.
    fn carry(&mut self, index: usize, page: &mut Page<'_>) -> bool {
        let message = &mut self.messages[index];
        if !page.write(message) {
            return false;
        }
        let before = (message.sends > 0).then_some(message.last_packet);
        self.resent += u64::from(before.is_some());
        message.lost = false;
        message.sends = message.sends.saturating_add(1);
        message.last_packet = page.packet;
        message.last_sent = page.now;
        let sends = message.sends;
        if let Some(before) = before.and_then(|before| self.flight(before)) {
            self.flights[before].pending = self.flights[before].pending.saturating_sub(1);
        }
        if self.flights.back().is_none_or(|flight| flight.packet != page.packet) {
            let start = self.carried_first.wrapping_add(self.carried.len() as u32);
            let flight =
                Flight { packet: page.packet, sent: page.now, start, count: 0, pending: 0, sends: u8::MAX };
            self.flights.push_back(flight);
        }
        self.carried.push_back(self.first.wrapping_add(index as u32));
        if let Some(flight) = self.flights.back_mut() {
            flight.count += 1;
            flight.pending += 1;
            flight.sends = flight.sends.min(sends);
        }
        true
    }

    /// Where the message with this number is; `None` when it left the queue.
    fn index(&self, number: u32) -> Option<usize> {
        let index = number.wrapping_sub(self.first) as usize;
        (index < self.messages.len()).then_some(index)
    }

    fn flight(&self, packet: u64) -> Option<usize> {
        self.flights.binary_search_by_key(&packet, |flight| flight.packet).ok()
    }

    /// The numbers that a flight carried.
    fn number(&self, flight: usize, i: u16) -> u32 {
        let place = self.flights[flight].start.wrapping_sub(self.carried_first) as usize;
        self.carried[place + usize::from(i)]
    }

    /// Drops records of packets that arrived, and of those so old that no late acknowledgement of them matters any more.
    fn forget(&mut self, packet: u64, now: Instant) {
        while let Some(flight) = self.flights.front() {
            let is_settled = flight.count == 0 || flight.pending == 0 && flight.sent + LATE <= now;
            if !is_settled && flight.packet + FLIGHTS > packet {
                return;
            }
            self.lose(0);
            self.flights.pop_front();
            let start = self.flights.front().map(|next| next.start);
            let gone =
                start.map_or(self.carried.len(), |next| next.wrapping_sub(self.carried_first) as usize);
            self.carried.drain(..gone);
            self.carried_first = self.carried_first.wrapping_add(gone as u32);
        }
    }

    /// What no packet but this one carried last goes again.
    fn lose(&mut self, flight: usize) {
        let Flight { packet, count, pending, .. } = self.flights[flight];
        if pending == 0 {
            return;
        }
        self.flights[flight].pending = 0;
        for i in 0..count {
            let number = self.number(flight, i);
            let Some(index) = self.index(number) else { continue };
            let message = &mut self.messages[index];
            if message.last_packet == packet && !message.acked && !message.lost {
                message.lost = true;
                self.lost.push_back(number);
            }
        }
    }

    /// Packets whose deadline has passed count as lost.
    fn expire(&mut self, now: Instant, timeout: Duration) {
        for flight in 0..self.flights.len() {
            if self.deadline(&self.flights[flight], timeout).is_some_and(|at| at <= now) {
                self.lose(flight);
            }
        }
    }

    /// While news of other packets come, these tell what is lost; the deadline is for silence.
    fn deadline(&self, flight: &Flight, timeout: Duration) -> Option<Instant> {
        let doublings = u32::from(flight.sends.saturating_sub(RIDE_REPEATS + 1)).min(5);
        let wait = (timeout * (1 << doublings)).min(SLOWEST_RESEND);
        (flight.pending > 0).then(|| flight.sent.max(self.heard) + wait)
    }

    /// A packet of ours arrived.
    pub(in crate::channel) fn handle_acked(
        &mut self,
        packet: u64,
        now: Instant,
        released: &mut Vec<Vec<u8>>,
    ) {
        let Some(flight) = self.flight(packet) else { return };
        self.heard = now;
        let count = std::mem::take(&mut self.flights[flight].count);
        self.flights[flight].pending = 0;
        for i in 0..count {
            let Some(index) = self.index(self.number(flight, i)) else { continue };
            let message = &mut self.messages[index];
            if message.acked {
                continue;
            }
            message.acked = true;
            message.lost = false;
            self.unacked -= 1;
            let last = message.last_packet;
            self.memory_cost -= message_cost(message.data.len());
            let data = std::mem::take(&mut message.data);
            if released.len() < POOL {
                released.push(data);
            }
            if last != packet
                && let Some(later) = self.flight(last)
            {
                self.flights[later].pending = self.flights[later].pending.saturating_sub(1);
            }
        }
    }

    /// A packet of ours is lost.
    pub(in crate::channel) fn handle_lost(&mut self, packet: u64) {
        if let Some(flight) = self.flight(packet) {
            self.lose(flight);
        }
    }

    /// Call after a batch of `handle_acked` and `handle_lost`.
    pub(in crate::channel) fn settle(&mut self, timeout: Duration) {
        if self.messages.is_empty() {
            return;
        }
        while let Some(message) = self.messages.pop_front_if(|message| message.acked) {
            self.first = self.first.wrapping_add(1);
            self.sent_before -= 1;
            self.window_cost -= window_cost(message.size as usize);
        }
        if self.messages.is_empty() {
            self.lost.clear();
            self.flights.clear();
            self.carried.clear();
        }
        self.schedule(timeout);
    }

    fn schedule(&mut self, timeout: Duration) {
        if self.sent_before < self.messages.len() || self.lost.iter().any(|&number| self.is_lost(number)) {
            self.resend_at = Some(Instant::ZERO);
            return;
        }
        let deadlines = self.flights.iter().filter_map(|flight| self.deadline(flight, timeout));
        let oldest = self.messages.iter().take(self.sent_before.min(RIDERS_AMONG));
        let riders = oldest.filter(|message| !message.acked && message.data.len() <= SMALL).take(RIDERS);
        let again = riders
            .filter(|message| message.sends <= RIDE_REPEATS)
            .map(|message| message.last_sent + RIDE_EVERY);
        self.resend_at = deadlines.chain(again).min();
    }

    fn is_lost(&self, number: u32) -> bool {
        self.index(number).is_some_and(|index| self.messages[index].lost)
    }

    /// When a message wants a packet.
    pub(in crate::channel) fn poll_timeout(&self) -> Option<Instant> {
        self.resend_at
    }

    /// Gives back what a burst took, when nothing waits.
    pub(in crate::channel) fn trim(&mut self) {
        if self.messages.is_empty() && self.messages.capacity() > POOL {
            self.messages = VecDeque::new();
            self.lost = VecDeque::new();
            self.flights = VecDeque::new();
            self.carried = VecDeque::new();
        }
    }
}

/// The part of a packet that messages are written into.
struct Page<'a> {
    packet: u64,
    now: Instant,
    room: usize,
    out: &'a mut Vec<u8>,
    /// The number that needs no naming: the one after the last in this packet.
    after: Option<(u8, u16)>,
}

impl Page<'_> {
    fn write(&mut self, message: &Message) -> bool {
        let is_next = self.after == Some((message.stream, message.seq));
        let size = message.data.len();
        let size = if is_next { next_size(size) } else { section_size(size, true) };
        if size > self.room {
            return false;
        }
        self.room -= size;
        if is_next {
            emit_next(self.out, &message.data);
        } else {
            emit_reliable(self.out, message.stream, message.seq, &message.data);
        }
        self.after = Some((message.stream, message.seq.wrapping_add(1)));
        true
    }
}
