//! What a world begins with, and what can happen to it.
//!
//! Fed by: a test, or the swarm. Yields: plain values that print as one line. Never: changes during a run.

use crate::game::STATE_SIZE;
use crate::trace::Trace;
use retick::netem::Link;
use std::fmt;
use std::time::Duration;

/// One peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSetup {
    /// Slots it plays.
    pub slots: u8,
    /// Input delay of each at the start.
    pub delay: u32,
    /// When in its frame (of network time) its game calls.
    pub phase: Duration,
    /// How fast its clock runs.
    pub skew_ppm: i32,
    /// What its clock shows more than network time.
    pub clock_offset: Duration,
}

/// One world.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The peers; the first hosts, the others join at its address.
    pub peers: Vec<PeerSetup>,
    /// The prediction window.
    pub window: u32,
    /// How the players play.
    pub trace: Trace,
    /// 0, 1 or 2.
    pub desync_level: u32,
    /// Every link at first, and after healing.
    pub link: Link,
    /// Whether application messages are sent.
    pub messages: bool,
    /// Bytes of the game's state.
    pub state_size: usize,
    /// From one joiner to the next.
    pub join_every: Duration,
    /// Whether some input delay changes in play (the trace must be [`Trace::Every`]).
    pub delay_changes: bool,
}

impl Setup {
    /// So many peers on perfect links, in phase with nobody.
    pub fn new(peers: usize) -> Self {
        let peer = |index: usize| PeerSetup {
            slots: 1,
            delay: 2,
            phase: Duration::from_micros(16_667 * index as u64 / peers as u64 + 137 * index as u64),
            skew_ppm: 0,
            clock_offset: Duration::from_millis(977 * index as u64),
        };
        Self {
            peers: (0..peers).map(peer).collect(),
            window: 16,
            trace: Trace::Hold(8),
            desync_level: 2,
            link: Link::default(),
            messages: true,
            state_size: STATE_SIZE,
            join_every: Duration::from_millis(20),
            delay_changes: false,
        }
    }

    /// All links like this.
    #[must_use]
    pub fn link(mut self, link: Link) -> Self {
        self.link = link;
        self
    }

    /// Latency and loss of all links.
    #[must_use]
    pub fn path(self, latency_ms: u64, jitter_ms: u64, loss_percent: u32) -> Self {
        self.link(path(latency_ms, jitter_ms, loss_percent))
    }

    /// All with this prediction window.
    #[must_use]
    pub fn window(mut self, window: u32) -> Self {
        self.window = window;
        self
    }

    /// All with this input delay.
    #[must_use]
    pub fn delay(mut self, delay: u32) -> Self {
        self.peers.iter_mut().for_each(|peer| peer.delay = delay);
        self
    }

    /// All with this habit.
    #[must_use]
    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = trace;
        self
    }

    /// Nobody sends messages.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.messages = false;
        self
    }

    /// How far two clocks may be apart: 6 ms (what a drift learnt on a bad path adds), a bad path's jitter, and what skew makes of three seconds without news.
    pub fn clock_tolerance(&self) -> Duration {
        let skew = self.peers.iter().map(|peer| peer.skew_ppm.unsigned_abs()).max().unwrap_or(0);
        Duration::from_millis(6) + self.link.jitter + Duration::from_micros(u64::from(skew) * 3)
    }
}

/// A link of this quality.
pub fn path(latency_ms: u64, jitter_ms: u64, loss_percent: u32) -> Link {
    Link {
        latency: Duration::from_millis(latency_ms),
        jitter: Duration::from_millis(jitter_ms),
        loss_ppm: loss_percent * 10_000,
        ..Link::default()
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} peers, window {}, {:?}, ", self.peers.len(), self.window, self.trace)?;
        write_link(f, &self.link)?;
        let each = |of: fn(&PeerSetup) -> String| {
            let all: Vec<String> = self.peers.iter().map(of).collect();
            if all.iter().all(|one| *one == all[0]) { all[0].clone() } else { all.join("/") }
        };
        write!(f, ", slots {}, delay {}", each(|p| p.slots.to_string()), each(|p| p.delay.to_string()))?;
        if self.peers.iter().any(|p| p.skew_ppm != 0) {
            write!(f, ", skew {} ppm", each(|p| p.skew_ppm.to_string()))?;
        }
        if self.messages {
            f.write_str(", messages")?;
        }
        Ok(())
    }
}

fn write_link(f: &mut fmt::Formatter<'_>, link: &Link) -> fmt::Result {
    write!(f, "{} + {} ms", link.latency.as_millis(), link.jitter.as_millis())?;
    for (what, ppm) in [
        ("loss", link.loss_ppm),
        ("bursts", link.burst_ppm),
        ("dup", link.duplicate_ppm),
        ("reorder", link.reorder_ppm),
    ] {
        if ppm > 0 {
            write!(f, " {what} {}.{} %", ppm / 10_000, ppm / 1000 % 10)?;
        }
    }
    Ok(())
}

/// Something that happens. Peers are numbers of attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies.
    Crash(usize),
    /// It says goodbye.
    Leave(usize),
    /// The whole process stands still.
    Pause(usize, Duration),
    /// The game's thread stands still; the network half lives.
    Hang(usize, Duration),
    /// The game gets called half as often.
    Slow(usize, Duration),
    /// One directed link is down.
    OneWay(usize, usize),
    /// One link is down both ways.
    OneLink(usize, usize),
    /// Nothing reaches this peer or comes from it.
    Isolate(usize),
    /// What this peer sends reaches nobody, but it hears all.
    Mute(usize),
    /// This peer hears nobody, but all hear it.
    Deafen(usize),
    /// All peers whose bit is set on one side, the others on the other.
    Split(u16),
    /// All links as at first; who stood still goes on.
    Heal,
    /// All links of this peer become like this.
    Path(usize, Link),
    /// The input delay of this peer's slots.
    Delay(usize, u32),
    /// The peer's clock runs like this from now on.
    Skew(usize, i32),
}

impl Fault {
    /// Whether a member may rightly be cut for it.
    pub fn is_mere_change(self) -> bool {
        matches!(self, Self::Hang(..) | Self::Slow(..) | Self::Delay(..) | Self::Skew(..) | Self::Heal)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(peer, link) => {
                write!(f, "path of {peer} ")?;
                write_link(f, link)
            }
            Self::Split(side) => write!(f, "split {side:#b}"),
            other => write!(f, "{other:?}"),
        }
    }
}
