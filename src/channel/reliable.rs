//! Reliable ordered streams: exactly once, in order within a stream, no stream waits for another.
//!
//! Small messages ride in every packet until acknowledged; larger ones go once, and again when their packet is known to be
//! lost or the resend timeout passed. Each message remembers which packets of the sent ring carried it, so an
//! acknowledgement needs no record per packet. Fed by: messages to send, packets acknowledged and lost, message sections.
//! Yields: sections, messages in order, vectors to give back. Never: holds more than the window, at either end.

use super::window::Grant;
use super::{Received, STREAMS};
use crate::base::Instant;
use crate::base::limits::{CONTROL_WINDOW, LEAST_WINDOW, RELIABLE_WINDOW, message_cost};
use crate::wire::message::{Delivery, emit_reliable, section_size};
use std::collections::VecDeque;
use std::time::Duration;

/// A message up to this size rides in every packet.
const SMALL: usize = 64;
/// So many ride at once, the oldest ones; further ones are sent like large ones.
const RIDERS: usize = 16;
/// The first repeats of a small message come this fast: a lost packet then costs no more than a frame or two.
const RIDE_EVERY: Duration = Duration::from_millis(20);
const RIDE_REPEATS: u8 = 2;
/// Newest packets of which a message knows whether they carried it.
const CARRIERS: usize = 256;
/// A message that does not get through is repeated at most this slowly.
const SLOWEST_RESEND: Duration = Duration::from_secs(1);
/// Of the window, so many messages are kept for the mesh itself.
const FOR_CONTROL: usize = 64;
/// The stream of the mesh itself: not held up by a game that does not poll.
const CONTROL: u8 = 0;

#[derive(Debug)]
struct Message {
    stream: u8,
    seq: u16,
    acked: bool,
    cost: u32,
    /// Not in a packet yet, or its packet is lost.
    due: bool,
    sends: u8,
    last_packet: u64,
    last_sent: Instant,
    /// Bit `i`: of the newest packets, the one whose counter is `i` modulo their number carried it.
    carried: [u64; CARRIERS / 64],
    data: Vec<u8>,
}

impl Message {
    fn resend_at(&self, timeout: Duration) -> Instant {
        if self.due {
            return Instant::ZERO;
        }
        if self.data.len() <= SMALL && self.sends <= RIDE_REPEATS {
            return self.last_sent + RIDE_EVERY;
        }
        let doublings = u32::from(self.sends.saturating_sub(RIDE_REPEATS + 1)).min(5);
        self.last_sent + (timeout * (1 << doublings)).min(SLOWEST_RESEND)
    }
}

/// The sending side of all streams of one peer.
#[derive(Debug)]
pub(super) struct Sender {
    next_seq: [u16; STREAMS],
    /// In order of sending; a message stays until all earlier ones of its stream are acknowledged, which bounds what the
    /// receiver may have to hold back.
    queue: Vec<Message>,
    /// The newest packet that was written.
    newest: u64,
    resend_at: Option<Instant>,
    /// The same, of the mesh's own messages only: they never wait for the pace.
    control_at: Option<Instant>,
    resent: u64,
    /// Cost of the application's messages that may be sent and that were, from the first on, modulo 2^32.
    limit: u32,
    sent: u32,
    /// Cost of the mesh's own messages in the queue.
    control_cost: u32,
    /// Cost of the application's that are not acknowledged.
    app_cost: u32,
}

impl Default for Sender {
    fn default() -> Self {
        Self {
            next_seq: [0; STREAMS],
            queue: Vec::new(),
            newest: 0,
            resend_at: None,
            control_at: None,
            resent: 0,
            limit: LEAST_WINDOW,
            sent: 0,
            control_cost: 0,
            app_cost: 0,
        }
    }
}

impl Sender {
    #[cfg(test)]
    pub(super) fn start_at(&mut self, seq: u16) {
        self.next_seq = [seq; STREAMS];
    }

    /// Queues a message, or gives it back when the window is full.
    pub(super) fn push(&mut self, stream: u8, data: Vec<u8>) -> Result<(), Vec<u8>> {
        let Some(next) = self.next_seq.get_mut(usize::from(stream)) else {
            return Err(data);
        };
        let cost = message_cost(data.len());
        if stream == CONTROL {
            if self.queue.len() >= RELIABLE_WINDOW || self.control_cost + cost > CONTROL_WINDOW {
                return Err(data);
            }
            self.control_cost += cost;
        } else {
            let room = self.limit.wrapping_sub(self.sent);
            if self.queue.len() >= RELIABLE_WINDOW - FOR_CONTROL || room < cost {
                return Err(data);
            }
            self.sent = self.sent.wrapping_add(cost);
            self.app_cost += cost;
        }
        let seq = *next;
        *next = next.wrapping_add(1);
        self.queue.push(Message {
            stream,
            seq,
            acked: false,
            cost,
            due: true,
            sends: 0,
            last_packet: 0,
            last_sent: Instant::ZERO,
            carried: [0; CARRIERS / 64],
            data,
        });
        self.resend_at = Some(Instant::ZERO);
        if stream == CONTROL {
            self.control_at = Some(Instant::ZERO);
        }
        Ok(())
    }

    /// The other end may be sent this much in all; a late word of less changes nothing.
    pub(super) fn handle_window(&mut self, limit: u32) {
        if (limit.wrapping_sub(self.limit) as i32) > 0 {
            self.limit = limit;
        }
    }

    /// Cost of the application's messages that wait for their acknowledgement.
    pub(super) fn app_cost(&self) -> u32 {
        self.app_cost
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Messages that wait for their acknowledgement.
    pub(super) fn waiting(&self) -> u32 {
        self.queue.iter().filter(|message| !message.acked).count() as u32
    }

    pub(super) fn resent(&self) -> u64 {
        self.resent
    }

    /// Writes what is due and then what rides along, as `room` allows; of what is due only the mesh's own while the pace holds
    /// the application's back. Says whether anything due found no room.
    pub(super) fn write(
        &mut self,
        packet: u64,
        mut room: usize,
        now: Instant,
        timeout: Duration,
        held_back: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        self.newest = packet;
        let index = packet as usize % CARRIERS;
        let (word, bit) = (index / 64, 1 << (index % 64));
        for message in &mut self.queue {
            message.carried[word] &= !bit;
        }
        let mut starved = false;
        for riding in [false, true] {
            let mut riders = 0;
            for message in self.queue.iter_mut().filter(|message| !message.acked) {
                let in_it = message.carried[word] & bit != 0;
                if riding {
                    if message.data.len() > SMALL {
                        continue;
                    }
                    riders += 1;
                    if riders > RIDERS {
                        break;
                    }
                    if in_it {
                        continue;
                    }
                } else if held_back && message.stream != CONTROL || message.resend_at(timeout) > now {
                    continue;
                }
                let size = section_size(message.data.len(), true);
                if size > room {
                    starved |= !riding;
                    continue;
                }
                room -= size;
                emit_reliable(out, message.stream, message.seq, &message.data);
                self.resent += u64::from(message.sends > 0);
                message.carried[word] |= bit;
                message.due = false;
                message.sends = message.sends.saturating_add(1);
                message.last_packet = packet;
                message.last_sent = now;
            }
        }
        self.schedule(timeout);
        starved
    }

    /// A packet of ours arrived.
    pub(super) fn handle_acked(&mut self, packet: u64, released: &mut Vec<Vec<u8>>) {
        if packet + CARRIERS as u64 <= self.newest {
            // Its place is another's: what it carried goes again.
            return;
        }
        let index = packet as usize % CARRIERS;
        for message in self.queue.iter_mut().filter(|message| !message.acked) {
            if message.carried[index / 64] >> (index % 64) & 1 == 1 {
                message.acked = true;
                if message.stream != CONTROL {
                    self.app_cost -= message.cost;
                }
                released.push(std::mem::take(&mut message.data));
            }
        }
    }

    /// A packet of ours is lost.
    pub(super) fn handle_lost(&mut self, packet: u64) {
        for message in &mut self.queue {
            message.due |= message.last_packet == packet && !message.acked;
        }
    }

    /// Call after a batch of `handle_acked` and `handle_lost`.
    pub(super) fn settle(&mut self, timeout: Duration) {
        if self.queue.is_empty() {
            return;
        }
        let mut waiting = 0_u16;
        let control_cost = &mut self.control_cost;
        self.queue.retain(|message| {
            waiting |= u16::from(!message.acked) << message.stream;
            let stays = waiting >> message.stream & 1 == 1;
            if !stays && message.stream == CONTROL {
                *control_cost -= message.cost;
            }
            stays
        });
        self.schedule(timeout);
    }

    fn schedule(&mut self, timeout: Duration) {
        (self.resend_at, self.control_at) = (None, None);
        for message in self.queue.iter().filter(|message| !message.acked) {
            let at = message.resend_at(timeout);
            let sooner = |before: Option<Instant>| Some(before.map_or(at, |before| before.min(at)));
            self.resend_at = sooner(self.resend_at);
            if message.stream == CONTROL {
                self.control_at = sooner(self.control_at);
            }
        }
    }

    /// When a message of the mesh itself wants a packet.
    pub(super) fn control_at(&self) -> Option<Instant> {
        self.control_at
    }

    /// When a message wants a packet.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.resend_at
    }
}

/// What became of a message section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is delivered, or kept until its turn.
    New,
    /// It came before.
    Repeated,
    /// No honest sender writes it.
    Refused,
}

/// The receiving side of all streams of one peer.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    expected: [u16; STREAMS],
    /// Messages that came before an earlier one of their stream.
    early: Vec<(u8, u16, Vec<u8>)>,
    /// Cost of those of the mesh itself.
    early_control: u32,
}

impl Receiver {
    #[cfg(test)]
    pub(super) fn start_at(&mut self, seq: u16) {
        self.expected = [seq; STREAMS];
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.early.is_empty()
    }

    #[cfg(test)]
    pub(super) fn holds(&self, start: &[u8]) -> bool {
        self.early.iter().any(|(_, _, data)| data.starts_with(start))
    }

    /// Takes one message; whatever is now in order goes to `inbox`.
    pub(super) fn handle(
        &mut self,
        stream: u8,
        seq: u16,
        data: &[u8],
        grant: &mut Grant,
        pool: &mut Vec<Vec<u8>>,
        inbox: &mut VecDeque<Received>,
    ) -> Taken {
        let Some(expected) = self.expected.get_mut(usize::from(stream)) else {
            return Taken::Refused;
        };
        let ahead = seq.wrapping_sub(*expected);
        if ahead >= 1 << 15 {
            return Taken::Repeated;
        }
        if usize::from(ahead) >= RELIABLE_WINDOW {
            return Taken::Refused;
        }
        if ahead > 0 {
            if self.early.iter().any(|early| early.0 == stream && early.1 == seq) {
                return Taken::Repeated;
            }
            if self.early.len() >= RELIABLE_WINDOW {
                return Taken::Refused;
            }
        }
        // More than was granted is not from an honest sender.
        let cost = message_cost(data.len());
        if stream != CONTROL && !grant.admit(cost) {
            return Taken::Refused;
        }
        if stream == CONTROL && ahead > 0 {
            if self.early_control + cost > CONTROL_WINDOW {
                return Taken::Refused;
            }
            self.early_control += cost;
        }
        let copy = |pool: &mut Vec<Vec<u8>>| {
            let mut copy = pool.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(data);
            copy
        };
        if ahead > 0 {
            self.early.push((stream, seq, copy(pool)));
            return Taken::New;
        }
        *expected = expected.wrapping_add(1);
        inbox.push_back(Received { stream, delivery: Delivery::Reliable, data: copy(pool) });
        while let Some(next) = self.early.iter().position(|early| early.0 == stream && early.1 == *expected) {
            let (_, _, data) = self.early.swap_remove(next);
            if stream == CONTROL {
                self.early_control -= message_cost(data.len());
            }
            *expected = expected.wrapping_add(1);
            inbox.push_back(Received { stream, delivery: Delivery::Reliable, data });
        }
        Taken::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::section::{Section, sections};

    const TIMEOUT: Duration = Duration::from_millis(50);

    #[test]
    fn a_packet_that_reuses_a_ring_place_acknowledges_nothing_of_its_predecessor() {
        let mut sender = Sender::default();
        sender.push(1, vec![0; 500]).expect("room");
        let (mut out, mut released) = (Vec::new(), Vec::new());
        sender.write(1, 1000, Instant::ZERO, TIMEOUT, false, &mut out);
        let reuse = 1 + CARRIERS as u64;
        sender.write(reuse, 0, Instant::ZERO, TIMEOUT, false, &mut out);
        sender.handle_acked(reuse, &mut released);
        sender.write(reuse + 1, 1000, Instant::from_millis(60), TIMEOUT, false, &mut out);
        sender.handle_acked(2, &mut released);
        assert!(released.is_empty(), "2 carried nothing; what has its place now did");
        sender.handle_acked(reuse + 1, &mut released);
        assert_eq!(released.len(), 1);
    }

    #[test]
    fn the_sixteen_oldest_small_messages_ride_in_every_packet_and_large_ones_do_not() {
        let mut sender = Sender::default();
        for i in 0..40 {
            sender.push(1, vec![i; if i % 2 == 0 { 8 } else { 80 }]).expect("room");
        }
        let mut out = Vec::new();
        sender.write(1, 10_000, Instant::ZERO, TIMEOUT, false, &mut out);
        assert_eq!(numbers(&out), (0..40).collect::<Vec<_>>());
        out.clear();
        sender.write(2, 10_000, Instant::from_millis(1), TIMEOUT, false, &mut out);
        assert_eq!(numbers(&out), (0..32).step_by(2).collect::<Vec<_>>());
        // Where the room is short, what was never sent goes before what rides along.
        sender.push(1, vec![99; 90]).expect("room");
        out.clear();
        sender.write(3, 120, Instant::from_millis(2), TIMEOUT, false, &mut out);
        assert_eq!(numbers(&out), [99, 0]);
    }

    #[test]
    fn what_the_receiver_must_hold_back_counts_for_the_window() {
        let mut sender = Sender::default();
        let mut receiver = Receiver::default();
        let (mut pool, mut inbox, mut released) = (Vec::new(), VecDeque::new(), Vec::new());
        let mut out = Vec::new();
        let mut grant = Grant::default();
        let mut take = |receiver: &mut Receiver, seq, data: &[u8]| {
            receiver.handle(1, seq, data, &mut grant, &mut pool, &mut inbox)
        };
        let window = RELIABLE_WINDOW - FOR_CONTROL;
        for i in 0..window {
            sender.push(1, vec![i as u8; 100]).expect("room");
            out.clear();
            sender.write(1 + i as u64, 1000, Instant::ZERO, TIMEOUT, false, &mut out);
            if i > 0 {
                sender.handle_acked(1 + i as u64, &mut released);
                sender.settle(TIMEOUT);
                assert_eq!(take(&mut receiver, i as u16, &[i as u8]), Taken::New);
            }
        }
        assert_eq!((sender.waiting(), released.len()), (1, window - 1));
        assert!(sender.push(1, vec![0]).is_err(), "the first one is still missing there");
        assert!(sender.push(CONTROL, vec![0]).is_ok(), "the mesh has places of its own");
        assert_eq!(take(&mut receiver, RELIABLE_WINDOW as u16, &[0]), Taken::Refused);
        assert_eq!(take(&mut receiver, 9, &[9]), Taken::Repeated);
        assert_eq!(take(&mut receiver, 0, &[0]), Taken::New);
        assert_eq!(inbox.len(), window);
        sender.handle_acked(1, &mut released);
        sender.settle(TIMEOUT);
        assert!(sender.push(1, vec![0]).is_ok());
    }

    #[test]
    fn what_was_not_granted_is_refused_at_both_ends_and_the_mesh_has_a_window_of_its_own() {
        let mut sender = Sender::default();
        let mut receiver = Receiver::default();
        let (mut pool, mut inbox) = (Vec::new(), VecDeque::new());
        let mut grant = Grant::default();
        let fits = LEAST_WINDOW / message_cost(1000);
        for i in 0..fits {
            sender.push(1, vec![0; 1000]).expect("granted");
            assert_eq!(
                receiver.handle(1, i as u16, &[0; 1000], &mut grant, &mut pool, &mut inbox),
                Taken::New
            );
        }
        assert_eq!(sender.push(1, vec![0; 1000]), Err(vec![0; 1000]));
        let more = receiver.handle(1, fits as u16, &[0; 1000], &mut grant, &mut pool, &mut inbox);
        assert_eq!(more, Taken::Refused, "and it is not counted as come");
        assert!(sender.push(CONTROL, vec![0; 1000]).is_ok());
        assert_eq!(receiver.handle(CONTROL, 0, &[0; 1000], &mut grant, &mut pool, &mut inbox), Taken::New);
        sender.handle_window(2 * LEAST_WINDOW);
        sender.handle_window(LEAST_WINDOW);
        assert!(sender.push(1, vec![0; 1000]).is_ok(), "a late word of less takes nothing back");
        for _ in 0..message_cost(1000) {
            grant.take(LEAST_WINDOW / message_cost(1000));
        }
        let more = receiver.handle(1, fits as u16, &[0; 1000], &mut grant, &mut pool, &mut inbox);
        assert_eq!(more, Taken::New);
    }

    fn numbers(bytes: &[u8]) -> Vec<u8> {
        let number = |section| match section {
            Ok(Section::Reliable { data, .. }) => data[0],
            other => panic!("{other:?} is no reliable message"),
        };
        sections(bytes).map(number).collect()
    }
}
