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

/// Mesh time as a line: `mesh = mesh_at + (local - local_at) * (1 + rate_ppb / 10^9)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockModel {
    /// Local time of the anchor.
    pub local_at: Instant,
    /// Mesh time there.
    pub mesh_at: Instant,
    /// Rate difference, in parts per billion; within ± 2 %.
    pub rate_ppb: i32,
}

impl ClockModel {
    /// Mesh time equals local time.
    pub const IDENTITY: Self = Self { local_at: Instant::ZERO, mesh_at: Instant::ZERO, rate_ppb: 0 };

    /// Mesh time at a local instant (also before the anchor).
    pub fn mesh_time(&self, local: Instant) -> Instant {
        // The usual case without wide arithmetic: 64 bits hold the product for a day and a half from the anchor.
        let passed = local.0.wrapping_sub(self.local_at.0) as i64;
        if passed.unsigned_abs() < 1 << 37
            && self.rate_ppb.unsigned_abs() <= 1 << 25
            && self.mesh_at.0 < 1 << 62
            && local.0 < 1 << 62
        {
            let drift = passed * i64::from(self.rate_ppb) / 1_000_000_000;
            return Instant((self.mesh_at.0 as i64 + passed + drift).max(0) as u64);
        }
        let passed = i128::from(local.0) - i128::from(self.local_at.0);
        let mesh = i128::from(self.mesh_at.0) + passed + passed * i128::from(self.rate_ppb) / 1_000_000_000;
        Instant(mesh.clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// Local time at which the mesh time is reached.
    pub fn local_time(&self, mesh: Instant) -> Instant {
        let passed = (i128::from(mesh.0) - i128::from(self.mesh_at.0)) * 1_000_000_000;
        let local = i128::from(self.local_at.0) + passed / (1_000_000_000 + i128::from(self.rate_ppb));
        Instant(local.clamp(0, i128::from(u64::MAX)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_that_a_peer_may_tell_overflows() {
        let extremes = [0, 1, 1 << 62, 1 << 63, u64::MAX].map(Instant);
        for mesh_at in extremes {
            for rate_ppb in [-20_000_000, 0, 20_000_000] {
                let clock = ClockModel { local_at: Instant(60_000_000), mesh_at, rate_ppb };
                for time in extremes {
                    let _ = (clock.mesh_time(time), clock.local_time(time));
                }
                assert_eq!(clock.mesh_time(clock.local_at), mesh_at);
            }
        }
    }
}
