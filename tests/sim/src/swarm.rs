//! Draws a setup and a script of faults from a seed.
//!
//! Swarm testing (Groce et al., 2012): every seed switches each kind of fault on or off as a whole, so that some runs see
//! only one kind and often, instead of all kinds always.
//! Fed by: a seed. Yields: values that print as one line. Never: looks at the run.

use crate::setup::{Fault, Setup};
use crate::trace::Trace;
use retick::base::Rng;
use retick::netem::Link;
use std::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A draw.
pub struct Swarm {
    rng: Rng,
}

impl Swarm {
    /// From a seed; draws do not depend on the world's own randomness.
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed ^ 0x5377_6172_6d00) }
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.rng.below(high - low + 1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.rng.chance_ppm(percent * 10_000)
    }

    /// One of the peers.
    pub fn peer(&mut self, setup: &Setup) -> usize {
        self.between(0, setup.peers.len() as u64 - 1) as usize
    }

    /// A mesh with some network quality, of so many peers.
    pub fn setup(&mut self, least: u64, most: u64) -> Setup {
        let mut setup = Setup::new(self.between(least, most) as usize);
        setup.link = self.link();
        setup.window = match self.between(0, 5) {
            0 => 8,
            1 => 10,
            2 => 24,
            _ => 16,
        };
        setup.trace = match self.between(0, 5) {
            0 => Trace::Every,
            1 => Trace::Sizes,
            2 => Trace::Constant,
            _ => Trace::Hold(8),
        };
        setup.desync_level = self.between(1, 2) as u32;
        setup.join_every = MS(self.between(0, 60));
        let delay = self.between(0, 4) as u32;
        let mixed_delay = self.percent(30);
        let skewed = self.percent(30);
        let mut room = 16 - setup.peers.len() as u64;
        for index in 0..setup.peers.len() {
            let phase = Duration::from_micros(self.between(0, 16_666));
            let offset = MS(self.between(0, 100_000));
            let own_delay = if mixed_delay { self.between(0, 6) as u32 } else { delay };
            let skew = if skewed { self.between(0, 10_000) as i32 - 5000 } else { 0 };
            let two = room > 0 && self.percent(15);
            room -= u64::from(two);
            let peer = &mut setup.peers[index];
            peer.phase = phase;
            peer.clock_offset = offset;
            peer.delay = own_delay;
            peer.skew_ppm = skew;
            peer.slots = 1 + u8::from(two);
        }
        setup
    }

    /// A path, good or bad.
    pub fn link(&mut self) -> Link {
        let mut link = Link { latency: MS(self.between(1, 70)), ..Link::default() };
        if self.percent(60) {
            link.jitter = MS(self.between(1, 30));
        }
        if self.percent(60) {
            link.loss_ppm = self.between(1, 12) as u32 * 10_000;
        }
        if self.percent(20) {
            link.burst_ppm = 2000;
            link.burst = MS(self.between(20, 90));
        }
        if self.percent(40) {
            link.duplicate_ppm = self.between(1, 50) as u32 * 1000;
        }
        if self.percent(40) {
            link.reorder_ppm = self.between(1, 50) as u32 * 1000;
        }
        link
    }

    /// Faults for a match of this length, each with its time after the start; at the end all is healed.
    pub fn script(&mut self, setup: &mut Setup, length: Duration) -> Vec<(Duration, Fault)> {
        let kinds = self.between(0, (1 << KINDS) - 1);
        let count = self.between(1, 5);
        let mut script = Vec::new();
        let mut at = self.between(100, 2000);
        for _ in 0..count {
            if at + 1000 > length.as_millis() as u64 {
                break;
            }
            let kind = self.between(0, KINDS - 1);
            if kinds >> kind & 1 == 1 {
                let fault = self.fault(kind, setup);
                script.push((MS(at), fault));
                if !fault.is_mere_change() && self.percent(70) {
                    let by = if self.percent(50) { self.between(20, 400) } else { self.between(400, 3000) };
                    script.push((MS(at + by), Fault::Heal));
                }
            }
            at += self.between(10, 4000);
        }
        script.sort_by_key(|&(at, _)| at);
        script
    }

    fn fault(&mut self, kind: u64, setup: &mut Setup) -> Fault {
        let (a, mut b) = (self.peer(setup), self.peer(setup));
        if a == b {
            b = (a + 1) % setup.peers.len();
        }
        match kind {
            0 => Fault::Crash(a),
            1 => Fault::Leave(a),
            2 => Fault::Pause(a, MS(self.between(30, 3500))),
            3 => Fault::Hang(a, MS(self.between(50, 4000))),
            4 => Fault::Slow(a, MS(self.between(200, 2000))),
            5 => Fault::OneWay(a, b),
            6 => Fault::OneLink(a, b),
            7 => match self.between(0, 2) {
                0 => Fault::Isolate(a),
                1 => Fault::Mute(a),
                _ => Fault::Deafen(a),
            },
            8 => Fault::Split(self.between(1, (1 << setup.peers.len()) - 2) as u16),
            9 => Fault::Path(a, Link { loss_ppm: 300_000, ..self.link() }),
            // A crystal that warms up at once.
            10 => Fault::Skew(a, setup.peers[a].skew_ppm + self.between(0, 600) as i32 - 300),
            _ => {
                setup.trace = Trace::Every;
                setup.delay_changes = true;
                Fault::Delay(a, self.between(0, 6) as u32)
            }
        }
    }
}

/// Kinds of faults.
const KINDS: u64 = 12;

/// A setup and its script in one line.
pub fn describe(setup: &Setup, script: &[(Duration, Fault)]) -> String {
    let faults: Vec<String> =
        script.iter().map(|(at, fault)| format!("{:.2} s {fault}", at.as_secs_f32())).collect();
    format!("{setup}; faults: {}", if faults.is_empty() { "none".into() } else { faults.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_every_kind_of_fault_is_drawn() {
        let draw = |seed| {
            let mut swarm = Swarm::new(seed);
            let mut setup = swarm.setup(2, 10);
            let script = swarm.script(&mut setup, Duration::from_secs(20));
            describe(&setup, &script)
        };
        let all: Vec<String> = (0..400).map(draw).collect();
        assert_eq!(all, (0..400).map(draw).collect::<Vec<_>>());
        for kind in [
            "Crash", "Leave", "Pause", "Hang", "Slow", "OneWay", "OneLink", "Mute", "split", "path", "Skew",
            "Delay",
        ] {
            assert!(all.iter().any(|line| line.contains(kind)), "{kind}");
        }
    }
}
