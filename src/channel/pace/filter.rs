//! The least and the greatest of the newest samples, in constant memory: two windows, of which the older is dropped whole.
//!
//! Fed by: samples and time. Yields: the extreme of the last one to two windows. Never: knows what is measured.

use crate::base::Instant;
use std::time::Duration;

/// The least sample of the last one to two windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Least {
    since: Instant,
    /// Of this window and of the one before.
    values: [Option<Duration>; 2],
}

impl Least {
    pub(super) fn add(&mut self, value: Duration, window: Duration, now: Instant) {
        if self.since + window <= now {
            self.since = now;
            self.values = [None, self.values[0]];
        }
        self.values[0] = Some(self.values[0].map_or(value, |least| least.min(value)));
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.values.into_iter().flatten().min()
    }
}

/// The greatest sample of the last one to two windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Greatest {
    since: Instant,
    values: [u64; 2],
}

impl Greatest {
    /// One that has seen this sample only.
    pub(super) fn of(value: u64, now: Instant) -> Self {
        Self { since: now, values: [value, value] }
    }

    /// A sample. Only an `honest` one, of a sender that had enough to send, makes older ones grow old.
    pub(super) fn add(&mut self, value: u64, honest: bool, window: Duration, now: Instant) {
        if honest && self.since + window <= now {
            self.since = now;
            self.values = [0, self.values[0]];
        }
        self.values[0] = self.values[0].max(value);
    }

    pub(super) fn get(&self) -> u64 {
        self.values[0].max(self.values[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(1);

    #[test]
    fn an_extreme_holds_for_one_to_two_windows() {
        let mut least = Least::default();
        let mut greatest = Greatest::of(1, Instant::ZERO);
        let mut held = [0, 0];
        for ms in (0..5_000).step_by(100) {
            let now = Instant::from_millis(ms);
            let is_extreme = ms == 1_500;
            least.add(Duration::from_millis(if is_extreme { 10 } else { 50 }), WINDOW, now);
            greatest.add(if is_extreme { 90 } else { 30 }, true, WINDOW, now);
            held[0] += u64::from(least.get() == Some(Duration::from_millis(10))) * 100;
            held[1] += u64::from(greatest.get() == 90) * 100;
        }
        assert!(held.iter().all(|held| (1_000..=2_000).contains(held)), "{held:?}");
    }

    #[test]
    fn samples_of_an_idle_sender_do_not_lower_the_greatest() {
        let mut greatest = Greatest::of(90, Instant::ZERO);
        for ms in (0..60_000).step_by(100) {
            greatest.add(3, false, WINDOW, Instant::from_millis(ms));
        }
        assert_eq!(greatest.get(), 90);
        greatest.add(100, false, WINDOW, Instant::from_millis(60_000));
        assert_eq!(greatest.get(), 100);
    }
}
