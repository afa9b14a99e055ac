//! How fast one link is sent on: open until there is evidence of a bottleneck, then at the rate that the bottleneck delivers.
//!
//! Loss alone says nothing: a radio link loses 5 % at any rate. A bottleneck shows by what it does to packets: they wait (the
//! least round trip rises), they come out slower than they went in, or far more of them are lost than usual.
//! Fed by: packets sent, acknowledged and lost, answered pings. Yields: whether a message or a bulk packet may leave now, or
//! when. Never: holds back inputs, control or acknowledgements (they are counted, so that everything else yields to them).

mod filter;
mod flight;

#[cfg(test)]
mod tests;

use crate::base::Instant;
use filter::{Greatest, Least};
use flight::Flight;
use std::time::Duration;

/// Rate on a link of which nothing is known, in bytes a second: six full packets a millisecond, a fast home uplink.
const FIRST_RATE: u64 = 6_500_000;
/// So much may be in flight on such a link: what that rate sends in a round trip to another continent's near side, 107 ms.
const ALLOWANCE: u32 = 700_000;
/// No evidence slows a link down below this: a few packets a round trip.
const LEAST_RATE: u64 = 32_000;
/// 1 Gbit/s; no socket of ours is faster for long.
const MOST_RATE: u64 = 125_000_000;
/// Never fewer bytes in flight than this: the acknowledgements of a LAN come in lumps of 12 packets.
const LEAST_FLIGHT: u32 = 24_000;
/// Of what was not sent while there was nothing to send, so much may be made up for at once: timers of a busy machine.
const CATCH_UP: Duration = Duration::from_millis(4);
/// What waits for its time waits at least so long: a wake-up for each packet would cost more than the packet.
const BATCH_NS: u64 = 1_000_000;
/// Messages may run ahead of the rate by this, and of the flight limit by a quarter: bulk before them costs them nothing.
const MESSAGES_AHEAD: u64 = 16_000;

/// The least round trip is that of the last 10 to 20 s: routes change.
const BASE_WINDOW: Duration = Duration::from_secs(10);
/// A round trip for reckoning is at least this: acknowledgements wait up to 4 ms, and threads to run.
const LEAST_TRIP: Duration = Duration::from_millis(20);
/// What comes back is looked at in pieces of a quarter round trip within these bounds: longer than jitter, shorter than harm.
const SLICE: std::ops::RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_millis(50);
/// Packets that a piece must have for a verdict.
const FEWEST: u32 = 12;
/// Slower traffic than this cannot tell a bottleneck from chance: it is inputs, and nothing is to be held back.
const FEWEST_RATE: u64 = 64_000;
/// A queue: so much longer than its base, or a quarter of it, is the least round trip of a piece.
const QUEUED: Duration = Duration::from_millis(20);
/// Loss above the link's usual one, of 1024, that is no chance.
const FAR_MORE_LOST: u32 = 200;

/// One round trip of these is a probe by a quarter more, the next drains what it queued.
const CYCLE: u64 = 8;
/// A probe asks for so much more on top: of links that share a line, the one with less gains more by it.
const PROBE_MORE: u64 = 40_000;
/// The rate delivered is the greatest over so many round trips, that is one to two probes.
const RATE_TRIPS: u32 = 10;

/// So long without evidence, and a link is open again; doubled when that proves wrong soon, halved when it does not.
const CALM: std::ops::RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_secs(32);
/// Evidence so soon after a link was opened again is a relapse.
const RELAPSE: Duration = Duration::from_secs(10);

/// What is to be sent, by how it yields. What is in neither class never waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Messages of the application.
    Messages,
    /// Large transfers: behind everything else.
    Bulk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No bottleneck is known: the rate grows while it is used.
    Open {
        /// It was narrow until then, not long ago.
        since: Option<Instant>,
    },
    /// The rate is what the bottleneck delivers.
    Narrow { since: Instant, evidence_at: Instant },
}

/// What came back since the last verdict.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    since: Option<Instant>,
    arrived_bytes: u32,
    arrived: u32,
    lost: u32,
    /// Least round trip of its second half.
    least_trip: Option<Duration>,
    /// When the newest packet known to have arrived was sent, and all bytes sent up to it: at the start, and now.
    sent: [(Instant, u32); 2],
}

/// The congestion core of one link.
#[derive(Debug)]
pub(super) struct Pace {
    flight: Flight,
    state: State,
    /// When a packet last left or came back.
    now: Instant,
    /// Then something had come back not long ago: what is reckoned from it holds.
    is_heard: bool,
    /// Bytes a second, before the probe's gain.
    rate: u64,
    /// When all that was sent will have left at that rate, in ns.
    clear_at_ns: u64,
    base: Least,
    slice: Slice,
    /// Pieces in a row with evidence, weighed.
    evidence: u32,
    /// The last piece's rate of sending.
    sent_rate: u64,
    /// How much of the last pieces came in how long, for a rate that jitter does not shake.
    recent: [(u32, Duration); 8],
    delivered: Greatest,
    /// The link's usual loss, of 1024 and times 64, so that small steps are not rounded away.
    usual_loss64: u32,
    /// How much longer than its base the least round trip of the newest piece was.
    queued: Duration,
    /// Pieces in a row in which a queue stood.
    standing: u32,
    calm: Duration,
    /// Bytes in flight when the bottleneck showed that are not there any more, most likely: lost before it, though that is not known yet.
    written_off: u32,
    /// Bytes in flight that were sent before then.
    sent_before: u32,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            flight: Flight::new(),
            state: State::Open { since: None },
            now: Instant::ZERO,
            is_heard: false,
            rate: FIRST_RATE,
            clear_at_ns: 0,
            base: Least::default(),
            slice: Slice::default(),
            evidence: 0,
            sent_rate: 0,
            recent: [(0, Duration::ZERO); 8],
            delivered: Greatest::default(),
            usual_loss64: 0,
            queued: Duration::ZERO,
            standing: 0,
            calm: *CALM.start(),
            written_off: 0,
            sent_before: 0,
        }
    }

    /// A packet left, whatever was in it.
    pub(super) fn handle_sent(&mut self, counter: u64, size: usize, now: Instant) {
        self.note_time(now);
        self.flight.handle_sent(counter, size, now);
        let earliest = (now - CATCH_UP).0 * 1000;
        self.clear_at_ns =
            self.clear_at_ns.max(earliest) + size as u64 * 1_000_000_000 / self.gained_rate(now);
    }

    /// A packet of ours arrived; `settle` follows.
    pub(super) fn handle_arrived(&mut self, counter: u64, now: Instant) {
        let Some(arrival) = self.flight.handle_arrived(counter) else { return };
        let trip = now.since(arrival.sent_at);
        self.note_settled(arrival.sent_at, arrival.size);
        self.base.add(trip, BASE_WINDOW, now);
        let slice = &mut self.slice;
        slice.arrived += 1;
        slice.arrived_bytes += u32::from(arrival.size);
        if slice.since.is_some_and(|since| since + slice_length(self.base.get()) / 2 <= now) {
            slice.least_trip = Some(slice.least_trip.map_or(trip, |least| least.min(trip)));
        }
        if arrival.sent_at >= slice.sent[1].0 {
            slice.sent[1] = (arrival.sent_at, arrival.end);
        }
    }

    /// A packet of ours is lost; `settle` follows.
    pub(super) fn handle_lost(&mut self, counter: u64) {
        let Some(packet) = self.flight.handle_lost(counter) else { return };
        self.note_settled(packet.sent_at, packet.size);
        self.slice.lost += 1;
    }

    fn note_time(&mut self, now: Instant) {
        self.now = now;
        self.is_heard = now.since(self.slice.sent[1].0) < 2 * (self.trip() + self.queued);
    }

    fn note_settled(&mut self, sent_at: Instant, size: u16) {
        if let State::Narrow { since, .. } = self.state
            && sent_at <= since
        {
            self.sent_before = self.sent_before.saturating_sub(u32::from(size));
        }
    }

    /// A ping was answered, at once or with the time that it was held taken off.
    pub(super) fn handle_ping(&mut self, trip: Duration, now: Instant) {
        self.base.add(trip, BASE_WINDOW, now);
    }

    /// After a batch of `handle_arrived` and `handle_lost`: looks at what came back.
    pub(super) fn settle(&mut self, now: Instant) {
        self.note_time(now);
        let slice = self.slice;
        let length = slice_length(self.base.get());
        let Some(since) = slice.since else {
            return self.begin_slice(now);
        };
        let passed = now.since(since);
        if passed < length || slice.arrived < FEWEST && passed < 4 * length {
            return;
        }
        self.begin_slice(now);
        let delivered = per_second(slice.arrived_bytes, passed);
        let sent_for = slice.sent[1].0.since(slice.sent[0].0);
        let sent_rate = per_second(slice.sent[1].1.wrapping_sub(slice.sent[0].1), sent_for.max(length / 8));
        // The first piece of a burst comes back late by the jitter of its first packets: only what was sent so fast before counts.
        let steady = sent_rate.min(std::mem::replace(&mut self.sent_rate, sent_rate));
        if slice.arrived + slice.lost < FEWEST {
            self.evidence = 0;
            return;
        }
        if passed < 2 * length {
            self.recent.rotate_right(1);
            self.recent[0] = (slice.arrived_bytes, passed);
        }
        let base = self.base.get().unwrap_or(LEAST_TRIP);
        self.queued = slice.least_trip.map_or(Duration::ZERO, |trip| trip.saturating_sub(base));
        let lost = slice.lost * 1024 / (slice.arrived + slice.lost);
        let queued = QUEUED.max(base / 4);
        let waits = u32::from(self.queued > queued) + u32::from(self.queued > 3 * queued);
        self.standing = if waits > 0 { self.standing + 1 } else { 0 };
        let evidence = if sent_rate < FEWEST_RATE {
            0
        } else {
            let slower = u32::from(delivered * 5 < steady * 3);
            let loses = u32::from(slice.arrived + slice.lost >= 2 * FEWEST)
                * u32::from(lost > self.usual_loss64 / 64 + FAR_MORE_LOST);
            waits + slower + loses
        };
        if evidence == 0 {
            self.evidence = 0;
            self.usual_loss64 = self.usual_loss64 - self.usual_loss64 / 64 + lost;
        } else {
            self.evidence += evidence;
        }
        let full = evidence > 0 || sent_rate * 5 >= self.gained_rate(now) * 4;
        self.judge(full, now);
    }

    fn judge(&mut self, full: bool, now: Instant) {
        let trip = self.trip();
        match &mut self.state {
            State::Open { since } if self.evidence >= 2 => {
                if since.is_some() {
                    self.calm = (self.calm * 2).min(*CALM.end());
                }
                self.state = State::Narrow { since: now, evidence_at: now };
                let delivered = self.smoothed_delivery();
                self.delivered = Greatest::of(delivered, now);
                self.set_rate(delivered);
                self.sent_before = self.flight.bytes();
                let there = delivered * (trip + self.queued).as_micros() as u64 / 1_000_000;
                self.written_off = self.sent_before.saturating_sub(there as u32);
            }
            State::Open { since } => {
                if since.is_some_and(|since| now.since(since) >= RELAPSE) {
                    *since = None;
                    self.calm = (self.calm / 2).max(*CALM.start());
                }
                if full && self.evidence == 0 {
                    // A quarter more each round trip, told in pieces of a quarter.
                    let pieces = (trip.as_micros() / slice_length(self.base.get()).as_micros()).max(1);
                    self.set_rate(self.rate + self.rate / (4 * pieces as u64));
                }
            }
            State::Narrow { evidence_at, .. } => {
                if self.evidence > 0 {
                    *evidence_at = now;
                }
                if self.queued > 2 * QUEUED {
                    // The queue is a deep one, and what was sent waits in it.
                    self.written_off = 0;
                }
                if now.since(*evidence_at) >= self.calm {
                    self.state = State::Open { since: Some(now) };
                }
                let delivered = self.smoothed_delivery();
                if self.standing >= 3 {
                    // A queue stands for longer than a probe explains: what once was delivered is no more.
                    self.delivered = Greatest::of(delivered, now);
                } else {
                    self.delivered.add(delivered, full, trip * RATE_TRIPS, now);
                }
                self.set_rate(self.delivered.get());
            }
        }
    }

    fn begin_slice(&mut self, now: Instant) {
        let newest = self.slice.sent[1];
        self.slice = Slice { since: Some(now), sent: [newest; 2], ..Slice::default() };
    }

    fn smoothed_delivery(&self) -> u64 {
        let (bytes, passed) =
            self.recent.iter().fold((0, Duration::ZERO), |(bytes, passed), (b, p)| (bytes + b, passed + *p));
        per_second(bytes, passed)
    }

    fn set_rate(&mut self, rate: u64) {
        self.rate = rate.clamp(LEAST_RATE, MOST_RATE);
    }

    /// The least round trip, for reckoning.
    fn trip(&self) -> Duration {
        self.base.get().unwrap_or(LEAST_TRIP).max(LEAST_TRIP)
    }

    /// Bytes a second just now: a bottleneck is probed, drained, and drained more while a queue stands before it.
    fn gained_rate(&self, now: Instant) -> u64 {
        let State::Narrow { since, .. } = self.state else { return self.rate };
        let trip = self.trip();
        let rate = self.rate;
        let queued = self.queued_now(now);
        let gained = if queued > 4 * QUEUED {
            rate / 2
        } else if queued > QUEUED {
            rate * 4 / 5
        } else {
            // The switch itself filled the queue: the first round trips do not probe.
            match (now.since(since).as_micros() / trip.as_micros()) as u64 % CYCLE {
                6 => rate * 5 / 4 + PROBE_MORE,
                7 => rate * 3 / 4,
                _ => rate,
            }
        };
        gained.max(LEAST_RATE)
    }

    /// How long a packet that leaves now will wait: as the newest that came back did, and what was sent since, less what passed since.
    fn queued_now(&self, now: Instant) -> Duration {
        let (sent_at, end) = self.slice.sent[1];
        let since = u64::from(self.flight.total().wrapping_sub(end)) * 1_000_000 / self.rate;
        (self.queued + Duration::from_micros(since)).saturating_sub(now.since(sent_at))
    }

    /// Bytes in flight, as far as they may still be there: what is lost shows only by what comes back later.
    fn in_flight(&self, now: Instant) -> u32 {
        let bytes = self.flight.bytes();
        let State::Narrow { .. } = self.state else { return bytes };
        let written_off = self.written_off.min(self.sent_before).min(bytes);
        let there = (self.trip() + self.queued_now(now)).as_micros() as u64 * self.rate / 1_000_000;
        (bytes - written_off).min(if self.is_heard { there.min(1 << 31) as u32 } else { u32::MAX })
    }

    /// Most bytes in flight.
    fn limit(&self) -> u32 {
        let two_trips = (self.rate * 2 * self.trip().as_micros() as u64 / 1_000_000).min(1 << 30) as u32;
        match self.state {
            State::Open { .. } => two_trips.max(ALLOWANCE),
            State::Narrow { .. } => two_trips.max(LEAST_FLIGHT),
        }
    }

    /// When what is of this class may leave, as far as is known now; `None` when it waits for an acknowledgement.
    pub(super) fn next_at(&self, class: Class) -> Option<Instant> {
        self.ready_at(class, self.now)
    }

    /// Whether what is of this class may leave now.
    pub(super) fn may_send(&self, class: Class, now: Instant) -> bool {
        self.ready_at(class, now).is_some_and(|at| at <= now)
    }

    fn ready_at(&self, class: Class, now: Instant) -> Option<Instant> {
        let limit = self.limit();
        let (limit, ahead) = match class {
            Class::Messages => (limit + limit / 4, MESSAGES_AHEAD * 1_000_000_000 / self.rate),
            Class::Bulk => (limit, 0),
        };
        if self.in_flight(now) >= limit {
            return None;
        }
        let at_ns = self.clear_at_ns.saturating_sub(ahead);
        if at_ns <= now.0 * 1000 {
            return Some(now);
        }
        Some(Instant((at_ns / BATCH_NS + 1) * (BATCH_NS / 1000)))
    }
}

fn slice_length(base: Option<Duration>) -> Duration {
    (base.unwrap_or(LEAST_TRIP) / 4).clamp(*SLICE.start(), *SLICE.end())
}

fn per_second(bytes: u32, time: Duration) -> u64 {
    u64::from(bytes) * 1_000_000 / (time.as_micros() as u64).max(1)
}
