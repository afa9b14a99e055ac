//! Pings and their answers: what feeds the round trip and the clock of the mesh.
//!
//! A ping goes every 500 ms (oftener while a clock is being set); its answer rides in the next packet and says how long it
//! waited. Fed by: timing sections, time. Yields: timing sections, one sample per answered ping.
//! Never: answers one ping twice, or takes an answer to what was not asked.

use crate::base::Instant;
use crate::wire::timing::{Pong, Timing};
use std::time::Duration;

const PING_EVERY: Duration = Duration::from_millis(500);
/// A ping or an answer waits at most this long for a packet to ride in: a frame and a bit. The wait costs nothing, since an
/// answer tells it; at the fast pace there is none to wait for.
const RIDE_WITHIN: Duration = Duration::from_millis(20);
/// Pings that may be under way: a round trip of 1.9 s at the fast pace.
const UNDER_WAY: usize = 128;

/// One answered ping, for Cristian's algorithm: at local time `(sent + received) / 2` the peer's mesh clock showed
/// `mesh_at_peer`, give or take half of `received - sent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// Local time of the ping, moved by how long the answer was held.
    pub sent: Instant,
    /// The peer's mesh time when the answer left.
    pub mesh_at_peer: Instant,
    /// Local time of the answer.
    pub received: Instant,
}

/// Pings of one peer, both ways.
#[derive(Debug)]
pub(super) struct Pings {
    every: Duration,
    next: Instant,
    under_way: [Option<Instant>; UNDER_WAY],
    at: usize,
    to_answer: Option<(u32, Instant)>,
}

impl Pings {
    pub(super) fn new(now: Instant) -> Self {
        Self { every: PING_EVERY, next: now, under_way: [None; UNDER_WAY], at: 0, to_answer: None }
    }

    pub(super) fn set_every(&mut self, every: Duration) {
        if every < self.every {
            // Its own past ping counts for the new pace.
            self.next = self.next - self.every + every;
        }
        self.every = every;
    }

    /// What the next packet carries.
    pub(super) fn write(&mut self, now: Instant, mesh_now: Instant) -> Timing {
        let ask = (self.next <= now).then(|| {
            self.next = now + self.every;
            self.under_way[self.at] = Some(now);
            self.at = (self.at + 1) % UNDER_WAY;
            now.0 as u32
        });
        let answer = self.to_answer.take().map(|(echo, came)| Pong {
            echo,
            held_us: now.since(came).as_micros().min(u128::from(u32::MAX)) as u32,
            mesh_us: mesh_now.0,
        });
        Timing { ping: ask, pong: answer }
    }

    /// Takes a timing section; yields the sample that its answer gives.
    pub(super) fn handle(&mut self, timing: Timing, now: Instant) -> Option<ClockSample> {
        if let Some(ping) = timing.ping {
            self.to_answer = Some((ping, now));
        }
        let pong = timing.pong?;
        let asked = self.under_way.iter_mut().find(|at| at.is_some_and(|at| at.0 as u32 == pong.echo))?;
        let sent = asked.take()? + Duration::from_micros(u64::from(pong.held_us));
        // Held longer than the whole round trip took: not an honest answer.
        (sent <= now).then_some(ClockSample { sent, mesh_at_peer: Instant(pong.mesh_us), received: now })
    }

    /// When a ping or an answer wants a packet of its own.
    pub(super) fn poll_timeout(&self) -> Instant {
        if self.every < crate::base::limits::HEARTBEAT {
            return self.to_answer.map_or(self.next, |(_, came)| self.next.min(came));
        }
        let earliest = self.to_answer.map_or(self.next, |(_, came)| self.next.min(came));
        earliest + RIDE_WITHIN
    }
}
