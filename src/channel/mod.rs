//! The sealed pipe to one peer: acknowledgements, round-trip time, and every delivery kind in one packet.
//!
//! Fed by: packets of that peer, messages to send, time. Yields: packets, messages, clock samples, and the sections that
//! belong to the node. Never: decides *when* a packet goes (it says when it wants one; the node also knows the inputs).

mod ack;
#[cfg(test)]
mod ack_tests;
pub mod bulk;
mod crypto;
pub mod handshake;
mod pace;
pub mod path;
mod reliable;
mod rtt;
pub mod seal;
mod timing;
mod unreliable;
mod window;

#[cfg(test)]
mod delivery_tests;
#[cfg(test)]
mod tests;

use crate::base::Instant;
use crate::base::limits::{APP_STREAMS, MAX_HEADER, MAX_MESSAGE, TAG_SIZE};
use crate::wire::header::{Header, NO_SENDER};
use crate::wire::link::{Link, TOKEN_SIZE, WINDOW_SECTION};
use crate::wire::message::{Delivery, MAX_MESSAGE_OVERHEAD};
use crate::wire::section::{Section, sections};
use crate::wire::timing::MAX_TIMING;
use ack::Heard;
use pace::{Class, Pace};
use reliable::Taken;
use seal::Seal;
use std::collections::VecDeque;
use std::time::Duration;

pub use crypto::Cipher;
pub use seal::SessionKeys;
pub use timing::ClockSample;

/// Stream 0 is the mesh's own, `1..=APP_STREAMS` are the application's.
const STREAMS: usize = APP_STREAMS as usize + 1;
/// A new reliable message is acknowledged at most this late.
const ACK_WITHIN: Duration = Duration::from_millis(4);
/// A repeated one: its acknowledgement is most likely under way already.
const ACK_REPEATED_WITHIN: Duration = Duration::from_millis(25);
/// So many packets without one of ours, and the next goes at once: far below the 33 that one header confirms.
const ACK_AFTER_PACKETS: u8 = 12;
/// When the node's sections left no room for a message, the next packet is asked for after this long.
const STARVED_FOR: Duration = Duration::from_millis(1);
/// Vectors kept for received messages, and as many of sent ones.
const POOL: usize = 16;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It came before, or is too old to tell.
    Replayed,
    /// It is not from this peer, or was changed on the way.
    Forged,
    /// It makes no sense; when that is known only after opening, what stood before the nonsense was taken.
    Malformed,
}

/// A message that arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct Received {
    /// 0 is the mesh's own, 1 to 8 are the application's.
    pub stream: u8,
    /// How it travelled.
    pub delivery: Delivery,
    /// Its bytes; give the vector back with [`Channel::recycle`].
    pub data: Vec<u8>,
}

/// Counters of one link. Rates are over the last second; totals since the link came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Its smoothed variation.
    pub jitter_us: u32,
    /// Packets of ours that were lost, of a million.
    pub loss_sent_ppm: u32,
    /// Packets of theirs that were lost, of a million.
    pub loss_received_ppm: u32,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received and authenticated.
    pub packets_received: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP payload bytes received.
    pub bytes_received: u64,
    /// Reliable messages that wait for their acknowledgement.
    pub reliable_waiting: u32,
    /// Reliable messages sent again.
    pub reliable_resent: u64,
    /// Packets dropped because they were duplicates or too old.
    pub dropped_replayed: u64,
    /// Packets dropped because they did not authenticate.
    pub dropped_forged: u64,
    /// Packets or sections dropped because they made no sense.
    pub dropped_malformed: u64,
}

/// Most bytes of one message in packets of at most `max_datagram` bytes.
pub const fn max_message(max_datagram: usize) -> usize {
    let room = max_datagram
        .saturating_sub(MAX_HEADER + TAG_SIZE + WINDOW_SECTION + MAX_TIMING + MAX_MESSAGE_OVERHEAD);
    if room < MAX_MESSAGE { room } else { MAX_MESSAGE }
}

/// What to do with each packet that arrived.
fn acked(
    sending: &mut reliable::Sender,
    released: &mut Vec<Vec<u8>>,
    pace: &mut Pace,
    now: Instant,
) -> impl FnMut(u64) {
    let idle = sending.is_idle();
    move |packet| {
        pace.handle_arrived(packet, now);
        if !idle {
            sending.handle_acked(packet, now, released);
        }
    }
}

/// The sealed pipe to one peer.
#[derive(Debug)]
pub struct Channel {
    seal: Seal,
    max_datagram: usize,
    sender: u8,
    incoming: ack::Incoming,
    outgoing: ack::Outgoing,
    rtt: rtt::Rtt,
    pace: Pace,
    pings: timing::Pings,
    sending: reliable::Sender,
    receiving: reliable::Receiver,
    grant: window::Grant,
    unreliable: unreliable::Unreliable,
    ack_at: Option<Instant>,
    /// Messages found no room; they ask for no packet before this.
    starved_until: Option<Instant>,
    last_heard: Instant,
    last_sent: Instant,
    inbox: VecDeque<Received>,
    samples: VecDeque<ClockSample>,
    /// The newest challenge that waits for its answer, and the newest answer to ours.
    challenged: Option<[u8; TOKEN_SIZE]>,
    path_response: Option<[u8; TOKEN_SIZE]>,
    released: Vec<Vec<u8>>,
    pool: Vec<Vec<u8>>,
    stats: LinkStats,
}

impl Channel {
    /// A channel with the keys that a handshake agreed on; `max_datagram` bounds every packet.
    pub fn new(keys: SessionKeys, max_datagram: usize, now: Instant) -> Self {
        let seal = Seal::new(&keys, now);
        drop(keys); // wiped here
        Self {
            seal,
            max_datagram,
            sender: NO_SENDER,
            incoming: ack::Incoming::default(),
            outgoing: ack::Outgoing::new(),
            rtt: rtt::Rtt::default(),
            pace: Pace::new(),
            pings: timing::Pings::new(now),
            sending: reliable::Sender::default(),
            receiving: reliable::Receiver::default(),
            grant: window::Grant::default(),
            unreliable: unreliable::Unreliable::default(),
            ack_at: None,
            starved_until: None,
            last_heard: now,
            last_sent: now,
            inbox: VecDeque::with_capacity(16),
            samples: VecDeque::with_capacity(4),
            challenged: None,
            path_response: None,
            released: Vec::with_capacity(16),
            pool: Vec::with_capacity(16),
            stats: LinkStats::default(),
        }
    }

    /// Our index, once we have one: the second byte of every packet.
    pub fn set_sender(&mut self, index: u8) {
        self.sender = index;
    }

    /// Authenticates and opens a packet in place, takes acknowledgements, messages and timing, and hands `Inputs` and `Node`
    /// sections to `sink`. Nothing is believed before it is opened, and nothing twice.
    pub fn handle_packet(
        &mut self,
        packet: &mut [u8],
        now: Instant,
        sink: &mut dyn FnMut(Section<'_>),
    ) -> Result<(), DropReason> {
        let size = packet.len() as u64;
        let result = self.open(packet, now, sink);
        match result {
            Ok(()) => {}
            Err(DropReason::Replayed) => self.stats.dropped_replayed += 1,
            Err(DropReason::Forged) => self.stats.dropped_forged += 1,
            Err(DropReason::Malformed) => self.stats.dropped_malformed += 1,
        }
        if matches!(result, Ok(())) {
            self.stats.bytes_received += size;
        }
        result
    }

    fn open(
        &mut self,
        packet: &mut [u8],
        now: Instant,
        sink: &mut dyn FnMut(Section<'_>),
    ) -> Result<(), DropReason> {
        let (header, header_size) = Header::parse(packet).map_err(|_| DropReason::Malformed)?;
        let counter = self.incoming.rebuild(header.counter);
        if !self.incoming.is_fresh(counter) {
            return Err(DropReason::Replayed);
        }
        let content =
            self.seal.open(header.epoch, counter, header_size, packet, now).ok_or(DropReason::Forged)?;
        self.incoming.commit(counter, now);
        self.stats.packets_received += 1;
        self.last_heard = now;
        if self.incoming.uncovered() >= ACK_AFTER_PACKETS {
            self.want_ack(now);
        }
        self.handle_ack(&header, now);
        let walked = self.walk(content, header.ack, now, sink);
        self.settle_acks(now);
        walked
    }

    fn walk(
        &mut self,
        content: &[u8],
        ack: u16,
        now: Instant,
        sink: &mut dyn FnMut(Section<'_>),
    ) -> Result<(), DropReason> {
        let mut after = None;
        for section in sections(content) {
            match section.map_err(|_| DropReason::Malformed)? {
                section @ (Section::Inputs { .. } | Section::Node { .. }) => sink(section),
                Section::Timing(timing) => {
                    if let Some(sample) = self.pings.handle(timing, now) {
                        let trip = sample.received.since(sample.sent);
                        self.rtt.add_ping(trip);
                        self.pace.handle_ping(trip, now);
                        self.samples.push_back(sample);
                    }
                }
                Section::ExtAck(extended) => {
                    let tell = acked(&mut self.sending, &mut self.released, &mut self.pace, now);
                    self.outgoing.handle_extended(ack, &extended, now, tell);
                }
                Section::Link(Link::PathChallenge(token)) => {
                    self.challenged = Some(token);
                    self.want_ack(now);
                }
                Section::Link(Link::PathResponse(token)) => self.path_response = Some(token),
                Section::Link(Link::Window(limit)) => self.sending.handle_window(limit),
                Section::Reliable { stream, seq, data } => {
                    after = Some((stream, seq.wrapping_add(1)));
                    self.take_section(stream, seq, data, now)?;
                }
                Section::Next { data } => {
                    let (stream, seq) = after.ok_or(DropReason::Malformed)?;
                    after = Some((stream, seq.wrapping_add(1)));
                    self.take_section(stream, seq, data, now)?;
                }
                Section::Unreliable { stream, seq, data } => {
                    if self.unreliable.admit(stream, seq).ok_or(DropReason::Malformed)? {
                        let delivery =
                            if seq.is_some() { Delivery::UnreliableNewest } else { Delivery::Unreliable };
                        let mut copy = self.pool.pop().unwrap_or_default();
                        copy.clear();
                        copy.extend_from_slice(data);
                        self.inbox.push_back(Received { stream, delivery, data: copy });
                    }
                }
            }
        }
        Ok(())
    }

    fn take_section(&mut self, stream: u8, seq: u16, data: &[u8], now: Instant) -> Result<(), DropReason> {
        match self.receiving.handle(stream, seq, data, &mut self.grant) {
            Taken::New => self.want_ack(now + ACK_WITHIN),
            Taken::Repeated => self.want_ack(now + ACK_REPEATED_WITHIN),
            Taken::Refused => return Err(DropReason::Malformed),
        }
        Ok(())
    }

    fn handle_ack(&mut self, header: &Header, now: Instant) {
        let (sending, released, pace) = (&mut self.sending, &mut self.released, &mut self.pace);
        let tell = acked(sending, released, pace, now);
        match self.outgoing.handle_ack(header.ack, header.ack_bits, now, tell) {
            Heard::Taken(Some(took)) => self.rtt.add_ack(took),
            Heard::Taken(None) | Heard::Nothing => {}
            // The rest of the packet is taken: the ack alone makes no sense.
            Heard::Absurd => self.stats.dropped_malformed += 1,
        }
    }

    /// Once all that a packet acknowledges was taken: what is lost, what may leave the queue, and how fast.
    fn settle_acks(&mut self, now: Instant) {
        let (sending, pace, reordering) = (&mut self.sending, &mut self.pace, self.rtt.reordering());
        self.outgoing.settle(now, reordering, |packet| {
            pace.handle_lost(packet);
            sending.handle_lost(packet);
        });
        pace.settle(now);
        sending.settle(self.rtt.resend_timeout());
    }

    fn want_ack(&mut self, at: Instant) {
        self.ack_at = Some(self.ack_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Most bytes of one message on this channel.
    pub fn max_message(&self) -> usize {
        max_message(self.max_datagram)
    }

    /// Queues one message. It comes back when the window (reliable) or queue (unreliable) is full, when it is longer than
    /// [`Channel::max_message`], or when there is no such stream.
    pub fn send_message(&mut self, stream: u8, delivery: Delivery, data: Vec<u8>) -> Result<(), Vec<u8>> {
        if data.len() > self.max_message() {
            return Err(data);
        }
        match delivery {
            Delivery::Reliable => self.sending.push(stream, data),
            Delivery::Unreliable => self.unreliable.push(stream, false, data, &mut self.released),
            Delivery::UnreliableNewest => self.unreliable.push(stream, true, data, &mut self.released),
        }
    }

    /// Writes one packet: the node's sections, timing, reliable and unreliable messages as room allows, then `last` (the
    /// inputs, or nothing). `sections` and `last` together are at most `max_datagram - 60` bytes. `out` is cleared first.
    pub fn write_packet(
        &mut self,
        sections: &[u8],
        last: &[u8],
        now: Instant,
        mesh_now: Instant,
        out: &mut Vec<u8>,
    ) {
        debug_assert!(
            sections.len() + last.len() + 60 <= self.max_datagram,
            "the node bounds what it writes"
        );
        out.clear();
        let counter = self.outgoing.next_counter(now);
        let (ack, ack_bits) = self.incoming.ack();
        let epoch = self.seal.turn(counter, self.outgoing.newest_acked(), now);
        Header { epoch, sender: self.sender, counter: counter as u16, ack, ack_bits }.emit(out);
        let header = out.len();
        out.extend_from_slice(sections);
        if let Some(limit) = self.grant.write(counter, self.outgoing.newest_acked()) {
            Link::Window(limit).emit(out);
        }
        self.pings.write(now, mesh_now).emit(out);
        if let Some(token) = self.challenged.take() {
            Link::PathResponse(token).emit(out);
        }
        let all = self.max_datagram.saturating_sub(TAG_SIZE + last.len());
        // Room is kept for it unless the longest message would not fit any more; then it takes what is left.
        let extended = self.incoming.extended();
        let size = extended.map_or(0, |extended| extended.size());
        let longest = self.max_message() + MAX_MESSAGE_OVERHEAD;
        let end = if out.len() + longest + size <= all { all - size } else { all };
        let before = out.len();
        let mut starved = false;
        let paced = !self.pace.may_send(Class::Messages, now);
        if !self.sending.is_idle() {
            let room = end.saturating_sub(out.len());
            starved |= self.sending.write(counter, room, now, self.rtt.resend_timeout(), paced, out);
        }
        if !self.unreliable.is_idle() && !paced {
            starved |= self.unreliable.write(end.saturating_sub(out.len()), out, &mut self.released);
        }
        self.starved_until = (starved && out.len() == before).then(|| now + STARVED_FOR);
        let extended = extended.filter(|_| out.len() + size <= all);
        self.incoming.note_told(extended.is_some());
        if let Some(extended) = extended {
            extended.emit(out);
        }
        out.extend_from_slice(last);
        self.seal.seal(counter, header, out);
        self.pace.handle_sent(counter, out.len(), now);
        self.ack_at = None;
        self.last_sent = now;
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += out.len() as u64;
    }

    /// Writes a packet with a challenge and nothing else, for an address that has not answered yet: what it acknowledges is
    /// said again. `out` is cleared first.
    pub fn write_challenge(&mut self, token: [u8; TOKEN_SIZE], now: Instant, out: &mut Vec<u8>) {
        out.clear();
        let counter = self.outgoing.next_counter(now);
        let (ack, ack_bits) = self.incoming.ack();
        let epoch = self.seal.turn(counter, self.outgoing.newest_acked(), now);
        Header { epoch, sender: self.sender, counter: counter as u16, ack, ack_bits }.emit(out);
        let header = out.len();
        Link::PathChallenge(token).emit(out);
        self.seal.seal(counter, header, out);
        self.pace.handle_sent(counter, out.len(), now);
        debug_assert!(out.len() <= path::CHALLENGE_SIZE, "the path counts on it");
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += out.len() as u64;
    }

    /// The answer to a challenge of ours, if one came since the last call.
    pub fn take_path_response(&mut self) -> Option<[u8; TOKEN_SIZE]> {
        self.path_response.take()
    }

    /// The highest counter of a packet of this peer that was opened; 0 before the first.
    pub fn newest_received(&self) -> u64 {
        self.incoming.newest()
    }

    /// When the channel wants a packet: to acknowledge, to repeat, to ping or answer; an instant in the past means at once.
    /// The heartbeat is the node's. When it is due right after a packet was written, messages wait for room: write
    /// another with fewer sections.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let messages =
            if self.unreliable.is_idle() { self.sending.poll_timeout() } else { Some(Instant::ZERO) };
        let messages = messages.and_then(|at| self.pace.next_at(Class::Messages).map(|ready| at.max(ready)));
        let messages = [messages, self.sending.control_at()].into_iter().flatten().min();
        let messages = messages.map(|at| self.starved_until.map_or(at, |until| at.max(until)));
        let pings = Some(self.pings.poll_timeout());
        // It rides in what goes next; when nothing does, the peer may be waiting for it.
        let window = self.grant.is_news().then(|| self.last_sent + ACK_WITHIN);
        [self.ack_at, messages, pings, window].into_iter().flatten().min()
    }

    /// When a part of a large transfer may leave; `None` while it waits for an acknowledgement.
    pub fn bulk_at(&self) -> Option<Instant> {
        self.pace.next_at(Class::Bulk)
    }

    /// The next message that arrived and waits for nobody: of the mesh itself, or unreliable.
    pub fn poll_message(&mut self) -> Option<Received> {
        self.receiving.take_control(&mut self.pool).or_else(|| self.inbox.pop_front())
    }

    /// The next reliable message of the application; call when the game has room for it. The peer may then send as much again.
    pub fn take_reliable(&mut self) -> Option<Received> {
        self.receiving.take_app(&mut self.grant, &mut self.pool)
    }

    /// Whether [`Channel::take_reliable`] has one.
    pub fn has_reliable(&self) -> bool {
        self.receiving.has_app()
    }

    /// Grants the peer so much of undelivered reliable messages of the application; see [`window_cost`](crate::base::limits::window_cost).
    pub fn set_receive_window(&mut self, window: u32) {
        self.grant.set_window(window);
    }

    /// What the application's reliable messages cost that wait for their acknowledgement.
    pub fn reliable_cost(&self) -> u32 {
        self.sending.app_cost()
    }

    /// Gives a received message's vector back.
    pub fn recycle(&mut self, data: Vec<u8>) {
        if self.pool.len() < POOL {
            self.pool.push(data);
        }
    }

    /// A vector of a message that was acknowledged or sent, to give back to whoever queued it.
    pub fn poll_released(&mut self) -> Option<Vec<u8>> {
        self.released.pop()
    }

    /// The next clock sample; one per answered ping.
    pub fn poll_clock_sample(&mut self) -> Option<ClockSample> {
        self.samples.pop_front()
    }

    /// How often the peer is pinged: often while a clock is being set by it.
    pub fn set_ping_every(&mut self, every: Duration) {
        self.pings.set_every(every);
    }

    /// When the last packet of this peer was opened; at first, when the channel was made.
    pub fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// When the last packet was written; at first, when the channel was made.
    pub fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// Whether any packet of this peer was opened.
    pub fn was_heard(&self) -> bool {
        self.incoming.newest() > 0
    }

    /// Smoothed round trip.
    pub fn rtt(&self) -> Duration {
        self.rtt.smoothed()
    }

    /// Smoothed variation of the round trip.
    pub fn jitter(&self) -> Duration {
        self.rtt.jitter()
    }

    /// Whether the round trip was measured by a ping yet.
    pub fn is_rtt_measured(&self) -> bool {
        self.rtt.is_measured()
    }

    /// Reliable messages that wait for their acknowledgement.
    pub fn reliable_waiting(&self) -> u32 {
        self.sending.waiting()
    }

    /// Counters and what was measured; now and then, since what a burst took is given back here.
    pub fn stats(&mut self, now: Instant) -> LinkStats {
        self.sending.trim();
        self.receiving.trim();
        LinkStats {
            rtt_us: self.rtt.smoothed().as_micros() as u32,
            jitter_us: self.rtt.jitter().as_micros() as u32,
            loss_sent_ppm: self.outgoing.loss_ppm(now),
            loss_received_ppm: self.incoming.loss_ppm(now),
            reliable_waiting: self.sending.waiting(),
            reliable_resent: self.sending.resent(),
            ..self.stats
        }
    }
}
