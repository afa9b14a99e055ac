//! Our own instant: microseconds on a monotonic clock that starts anywhere.
//!
//! Ours, because a test wants to start at zero and print times, and because a core is told the time.
//! Never: reads a clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time, in µs. Local unless its name says `mesh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// The start of time; every deadline lies after it.
    pub const ZERO: Self = Self(0);

    /// From milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1000)
    }

    /// In µs.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long after `earlier`; zero when it lies before.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_micros() as u64))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration.as_micros() as u64))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
