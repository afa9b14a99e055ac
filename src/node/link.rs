//! One link: the channel to a member, where it is, and how far each side holds the other's stream.
//!
//! Fed by: the node. Yields: when a packet is due. Never: knows other links.

use crate::base::limits::{HEARTBEAT, HELD_UNRELIABLE, LOG_FRAMES, MAX_SLOTS, message_cost};
use crate::base::{Addr, Frame, Instant, Slot};
use crate::bridge::{Delivery, LeaveReason};
use crate::channel::path::Path;
use crate::channel::{Channel, Received};
use crate::wire::agreement::SlotEnds;
use std::collections::VecDeque;
use std::time::Duration;

/// A packet goes at least this often while survivors agree on a leaver: its sections are repeated, not acknowledged.
const AGREEMENT_EVERY: Duration = Duration::from_millis(8);
/// Above this loss a link gets more heartbeats: one every 20 ms, just rarer than frames at 60 Hz.
const LOSSY_PPM: u32 = 60_000;
/// Newest frames that a peer gets whose acknowledgements we do not hear.
const UNHEARD_FRAMES: i32 = 32;
/// Beside the round trip, the answer to a fill takes the pace of the packets that carry both.
const ANSWER_SLACK: Duration = Duration::from_millis(20);
/// A NEED holds so long after the packet that carried it.
const NEED_HOLDS: Duration = Duration::from_millis(200);
/// A peer that is out is told so at most this often.
const TELL_GONE_EVERY: Duration = Duration::from_millis(100);

/// A peer that is out but said no goodbye is called at this pace until it is forgotten: after a split nobody else would
/// speak first, and the smaller side must learn that it is out.
const CALL_GONE_EVERY: Duration = Duration::from_millis(500);

/// Messages of the mesh itself that wait behind its window: far more than an honest lobby says in a round trip.
const MAX_CONTROL: usize = 512;

/// What a packet on this link is sent for, so that its pace fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Nothing but heartbeats and what the channel asks for.
    Heartbeat,
    /// Survivors agree on something.
    Agreement,
    /// The peer is out: it is told so when it sends, and called now and then.
    Gone,
    /// We are out: the others are answered, no more.
    Mute,
}

/// What a peer said before it fell silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Farewell {
    /// It closed its session but stays in the room.
    EndedMatch,
    /// It left the room.
    Goodbye,
    /// Nothing: another process has its address.
    Restarted,
}

impl Farewell {
    /// Why who said it, or nothing, is out of the room.
    pub(super) fn reason(farewell: Option<Self>) -> LeaveReason {
        match farewell {
            Some(Self::Goodbye) => LeaveReason::Goodbye,
            Some(Self::Restarted) => LeaveReason::Restarted,
            Some(Self::EndedMatch) | None => LeaveReason::TimedOut,
        }
    }
}

/// A reliable message that found the channel's window full.
#[derive(Debug)]
struct Waiting {
    stream: u8,
    data: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) channel: Channel,
    pub(super) path: Path,
    /// End of our stream that the peer holds.
    pub(super) acked: Frame,
    /// Ends of our stream in the last packets: a packet carries what the last four newly carried.
    recent_ends: [Frame; 3],
    /// Packets that still repeat the newest input change.
    pub(super) repeats: u8,
    /// The peer's game thread does not call in.
    pub(super) asleep_since: Option<Instant>,
    pub(super) asleep_told: bool,
    pub(super) farewell: Option<Farewell>,
    /// The attempt of the newest match that the peer said it began; what it said before is about earlier ones.
    pub(super) began: u32,
    /// A handshake of ours still repeats its last message until this link is heard.
    pub(super) confirmed: bool,
    needs: SlotEnds,
    needs_until: Instant,
    /// How far each needed slot was filled, and when to begin again at what is still needed.
    fills: [(Frame, Instant); MAX_SLOTS],
    /// Messages of the mesh itself that wait for room in the channel.
    control: VecDeque<Waiting>,
    /// Reliable messages of the application that do, and what they cost.
    outbox: VecDeque<Waiting>,
    outbox_cost: u32,
    /// Unreliable messages that the game has not polled for, and what they cost; the reliable ones wait in the channel.
    held: VecDeque<Received>,
    held_cost: u32,
    pub(super) wanted_at: Option<Instant>,
    pub(super) pace: Pace,
    heartbeat: Duration,
    gone_told_at: Instant,
}

impl Link {
    pub(super) fn new(channel: Channel, addr: Addr) -> Self {
        Self {
            channel,
            path: Path::new(addr),
            acked: Frame::ZERO,
            recent_ends: [Frame::ZERO; 3],
            repeats: 0,
            asleep_since: None,
            asleep_told: false,
            farewell: None,
            began: 0,
            confirmed: false,
            needs: SlotEnds::default(),
            needs_until: Instant::ZERO,
            fills: [(Frame::ZERO, Instant::ZERO); MAX_SLOTS],
            control: VecDeque::new(),
            outbox: VecDeque::new(),
            outbox_cost: 0,
            held: VecDeque::new(),
            held_cost: 0,
            wanted_at: None,
            pace: Pace::Heartbeat,
            heartbeat: HEARTBEAT,
            gone_told_at: Instant::ZERO,
        }
    }

    /// A match begins: nothing of the one before holds.
    pub(super) fn begin_match(&mut self) {
        self.acked = Frame::ZERO;
        self.recent_ends = [Frame::ZERO; 3];
        self.repeats = 0;
        self.asleep_since = None;
        self.farewell = None;
        self.needs = SlotEnds::default();
        self.fills = [(Frame::ZERO, Instant::ZERO); MAX_SLOTS];
        self.pace = Pace::Heartbeat;
    }

    /// When the next packet is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let every = match self.pace {
            Pace::Heartbeat => self.heartbeat,
            Pace::Agreement => AGREEMENT_EVERY,
            Pace::Gone | Pace::Mute => {
                let answer = self.wanted_at.map(|at| at.max(self.gone_told_at + TELL_GONE_EVERY));
                let calls = self.pace == Pace::Gone && self.farewell.is_none();
                let call = calls.then(|| self.gone_told_at + CALL_GONE_EVERY);
                // Our word that we are out is repeated until it is acknowledged.
                let owes = self.pace == Pace::Mute && self.channel.reliable_waiting() > 0;
                let word = owes.then(|| self.channel.last_sent() + HEARTBEAT);
                return [answer, call, word].into_iter().flatten().min();
            }
        };
        let regular = self.channel.last_sent() + every;
        let asked = self.channel.poll_timeout().unwrap_or(regular);
        Some(regular.min(asked).min(self.wanted_at.unwrap_or(regular)))
    }

    /// On a lossy link heartbeats go more often: three lost in a row must stay so rare that no live peer is suspected.
    pub(super) fn adapt_heartbeat(&mut self, loss_ppm: u32) {
        self.heartbeat = if loss_ppm > LOSSY_PPM { HEARTBEAT * 2 / 5 } else { HEARTBEAT };
    }

    /// Asks for a packet at once.
    pub(super) fn want(&mut self, now: Instant) {
        self.wanted_at = Some(now);
    }

    /// The first frame of our stream that the next packet repeats: the newest four, what the last packets newly carried, or,
    /// when the acknowledgement is later than a round trip and two frames, everything unacknowledged. A peer that we do not
    /// hear may well hear us: its acknowledgements are not waited for, and it gets the newest half second.
    pub(super) fn first_to_send(&self, end: Frame, period_us: u64, is_heard: bool) -> Frame {
        if !is_heard {
            return self.acked.max(end - UNHEARD_FRAMES);
        }
        // A peer that hears us only through others acknowledges nothing; what the log no longer holds is theirs to fill.
        let acked = self.acked.max(end - LOG_FRAMES);
        let unacked = end - acked;
        let rtt_us = self.channel.rtt().as_micros() as u64;
        let rtt_frames = rtt_us.div_ceil(period_us) as i32;
        // Our stream stands still (a full window): what was lost would never grow late by frames.
        let stands_still = self.recent_ends[0] == end;
        if unacked > rtt_frames + 3 || stands_still {
            return acked;
        }
        (end - 4).min(self.recent_ends[0]).max(acked)
    }

    /// A packet with our stream up to `end` was written.
    pub(super) fn note_sent(&mut self, end: Frame, now: Instant) {
        self.recent_ends.rotate_left(1);
        self.recent_ends[2] = end;
        self.wanted_at = None;
        if matches!(self.pace, Pace::Gone | Pace::Mute) {
            self.gone_told_at = now;
        }
    }

    /// The peer asked for inputs of others.
    pub(super) fn note_needs(&mut self, needs: SlotEnds, now: Instant) {
        self.needs = needs;
        self.needs_until = now + NEED_HOLDS;
    }

    /// What the peer still asks for.
    pub(super) fn needs(&self, now: Instant) -> Option<&SlotEnds> {
        (self.needs_until > now).then_some(&self.needs)
    }

    /// Where the next fill of a slot begins that is needed from `from` on: behind the last one, and at `from` again once the
    /// answer to that one could have come. Waiting for it after each packet would be slower than the game.
    pub(super) fn next_fill(&mut self, slot: Slot, from: Frame, now: Instant) -> Frame {
        let again_at = now + self.channel.rtt() + ANSWER_SLACK;
        let (next, again) = &mut self.fills[slot.index()];
        if *next < from || *again <= now {
            (*next, *again) = (from, again_at);
        }
        *next
    }

    /// A fill of a slot ended there.
    pub(super) fn note_fill(&mut self, slot: Slot, end: Frame) {
        self.fills[slot.index()].0 = end;
    }

    /// Queues a message; it leaves as soon as the channel's window has room, in order.
    pub(super) fn send(&mut self, stream: u8, delivery: Delivery, data: Vec<u8>, now: Instant) {
        if delivery == Delivery::Reliable {
            if data.len() > self.channel.max_message() {
                log::error!("a message of {} bytes does not fit a packet and was dropped", data.len());
            } else if stream != 0 {
                self.outbox_cost += message_cost(data.len());
                self.outbox.push_back(Waiting { stream, data });
            } else if self.control.len() < MAX_CONTROL {
                self.control.push_back(Waiting { stream, data });
            } else {
                log::error!("a peer acknowledges nothing: a message of the mesh to it was dropped");
            }
            self.pump_outbox();
        } else {
            // Refused only when too many unreliable messages wait; the oldest were dropped by the channel already.
            drop(self.channel.send_message(stream, delivery, data));
        }
        self.want(now);
    }

    /// Moves what waits into the channel while it has room. A peer whose game does not poll holds up no word of the mesh.
    pub(super) fn pump_outbox(&mut self) {
        while let Some(Waiting { stream, data }) = self.control.pop_front() {
            if let Err(data) = self.channel.send_message(stream, Delivery::Reliable, data) {
                self.control.push_front(Waiting { stream, data });
                break;
            }
        }
        while let Some(Waiting { stream, data }) = self.outbox.pop_front() {
            let cost = message_cost(data.len());
            if let Err(data) = self.channel.send_message(stream, Delivery::Reliable, data) {
                self.outbox.push_front(Waiting { stream, data });
                break;
            }
            self.outbox_cost -= cost;
        }
    }

    /// What the application's reliable messages cost that the peer has not acknowledged.
    pub(super) fn cost_under_way(&self) -> u32 {
        self.channel.reliable_cost() + self.outbox_cost
    }

    /// Keeps an unreliable message until the game has room for it. Says how many it had to drop for that, the oldest first.
    pub(super) fn hold(&mut self, received: Received) -> u64 {
        let mut dropped = 0;
        self.held_cost += message_cost(received.data.len());
        self.held.push_back(received);
        while self.held_cost > HELD_UNRELIABLE
            && let Some(old) = self.held.pop_front()
        {
            self.held_cost -= message_cost(old.data.len());
            self.channel.recycle(old.data);
            dropped += 1;
        }
        dropped
    }

    /// The next message for the game; call only when it has room. What may be dropped goes before what keeps.
    pub(super) fn next_held(&mut self) -> Option<Received> {
        let Some(received) = self.held.pop_front() else { return self.channel.take_reliable() };
        self.held_cost -= message_cost(received.data.len());
        Some(received)
    }

    /// Whether messages wait for the game.
    pub(super) fn holds_messages(&self) -> bool {
        !self.held.is_empty() || self.channel.has_reliable()
    }
}
