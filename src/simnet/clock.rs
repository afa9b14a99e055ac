//! A node's own clock: network time with an offset and a rate of its own.
//!
//! Fed by: network time. Yields: the node's local time and back. Never: jumps or runs backwards when its rate changes.

use crate::base::Instant;

const MILLION: i128 = 1_000_000;

/// `local = local_at + (network - network_at) * (1 + ppm / 10^6)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalClock {
    network_at: Instant,
    local_at: Instant,
    ppm: i32,
}

impl LocalClock {
    /// Runs like network time, from `offset_us` on.
    pub(super) const fn new(now: Instant, offset_us: u64) -> Self {
        Self { network_at: now, local_at: Instant(now.0.saturating_add(offset_us)), ppm: 0 }
    }

    /// From `now` on it runs this much faster (or slower).
    pub(super) fn set_rate(&mut self, ppm: i32, now: Instant) {
        *self = Self { network_at: now, local_at: self.local(now), ppm: ppm.clamp(-500_000, 500_000) };
    }

    /// Local time at a network instant not before the last change.
    pub(super) fn local(&self, network: Instant) -> Instant {
        let passed = network.0.saturating_sub(self.network_at.0);
        if self.ppm == 0 {
            return Instant(self.local_at.0.saturating_add(passed));
        }
        let passed = i128::from(passed);
        Instant(self.local_at.0.saturating_add((passed * (MILLION + i128::from(self.ppm)) / MILLION) as u64))
    }

    /// The first network instant at which this clock shows `local` or later.
    pub(super) fn network(&self, local: Instant) -> Instant {
        let passed = local.0.saturating_sub(self.local_at.0);
        if self.ppm == 0 {
            return Instant(self.network_at.0.saturating_add(passed));
        }
        let passed = i128::from(passed);
        let rate = MILLION + i128::from(self.ppm);
        let network = (passed * MILLION + rate - 1) / rate;
        Instant(self.network_at.0.saturating_add(u64::try_from(network).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_finds_the_first_instant_that_shows_the_time() {
        for ppm in [-500_000, -200, -1, 0, 1, 300, 99_999] {
            let mut clock = LocalClock::new(Instant(10), 1_000_000);
            clock.set_rate(ppm, Instant(777));
            for local in (clock.local_at.0..clock.local_at.0 + 3000).step_by(7) {
                let network = clock.network(Instant(local));
                assert!(clock.local(network) >= Instant(local), "{ppm} ppm, {local}");
                let before = Instant(network.0 - 1);
                assert!(before < Instant(777) || clock.local(before) < Instant(local), "{ppm} ppm, {local}");
            }
        }
    }

    #[test]
    fn a_change_of_rate_does_not_make_the_clock_jump() {
        let mut clock = LocalClock::new(Instant::ZERO, 5);
        clock.set_rate(100, Instant::ZERO);
        assert_eq!(clock.local(Instant(1_000_000)), Instant(1_000_105));
        clock.set_rate(-100, Instant(1_000_000));
        assert_eq!(clock.local(Instant(1_000_000)), Instant(1_000_105));
        assert_eq!(clock.local(Instant(2_000_000)), Instant(2_000_005));
    }
}
