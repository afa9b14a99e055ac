//! The clock of the mesh: local time bent into the coordinator's.
//!
//! Fed by: samples of answered pings (Cristian 1989: the answer is taken to be half way). Yields: a `ClockModel`, which
//! steps only until it is first in step and is slewed by at most ± 2 % from then on, so mesh time never runs backwards.
//! Never: reads a clock. Error: jitter's median plus half the path asymmetry, which no two-way clock can see.

use crate::base::ClockModel;
use crate::base::Instant;

/// Samples whose median steps the clock at the start.
const FIRST_SAMPLES: usize = 16;
/// Samples whose median steers it later: short enough to follow, long enough to outvote a jittered packet.
const WINDOW: usize = 7;
/// Largest rate difference, in parts per billion: what a player does not see.
const MAX_RATE_PPB: i64 = 20_000_000;
/// Phase errors are slewed away over about this long; with `DRIFT_S2` the loop is damped at 0.7.
const PHASE_S: i64 = 2;
/// Square of the loop's natural period over 2π, s².
const DRIFT_S2: i64 = 8;

/// One answered ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Local time half way between ping and answer.
    pub local: Instant,
    /// Mesh time that the answer told.
    pub mesh: Instant,
}

/// The clock of one member.
#[derive(Clone, Debug)]
pub struct MeshClock {
    model: ClockModel,
    samples: [Sample; FIRST_SAMPLES],
    count: usize,
    /// Estimated difference of the crystals.
    drift_ppb: i64,
    corrected_at: Instant,
    synced: bool,
}

impl MeshClock {
    /// Starts with mesh time equal to local time, not in step with anybody.
    pub fn new() -> Self {
        let zero = Sample { local: Instant::ZERO, mesh: Instant::ZERO };
        Self {
            model: ClockModel::IDENTITY,
            samples: [zero; FIRST_SAMPLES],
            count: 0,
            drift_ppb: 0,
            corrected_at: Instant::ZERO,
            synced: false,
        }
    }

    /// This member's clock *is* mesh time (the coordinator's, which goes on from whatever it held).
    pub fn lead(&mut self) {
        self.synced = true;
        self.count = 0;
    }

    /// Another coordinator answers from now on: its samples must not mix with the old one's.
    pub fn follow_another(&mut self) {
        self.count = 0;
    }

    /// Whether the first median was taken.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Mesh time as a line over local time.
    pub fn model(&self) -> ClockModel {
        self.model
    }

    /// Takes one sample; says whether the model changed.
    pub fn handle_sample(&mut self, sample: Sample, now: Instant) -> bool {
        self.samples[self.count % FIRST_SAMPLES] = sample;
        self.count += 1;
        if !self.synced {
            if self.count < FIRST_SAMPLES {
                return false;
            }
            let error = self.median_error(FIRST_SAMPLES);
            let mesh_at = Instant(self.model.mesh_time(now).0.saturating_add_signed(error));
            self.model = ClockModel { local_at: now, mesh_at, rate_ppb: 0 };
            self.synced = true;
            self.count = 0;
            self.corrected_at = now;
            return true;
        }
        if self.count < WINDOW {
            return false;
        }
        let error_us = self.median_error(WINDOW);
        let passed_us = now.since(self.corrected_at).as_micros().min(2_000_000) as i64;
        self.corrected_at = now;
        // error µs over PHASE_S s = error/PHASE_S ppm; the drift integrates error over time.
        self.drift_ppb += error_us * passed_us / 1_000_000 * 1000 / DRIFT_S2;
        self.drift_ppb = self.drift_ppb.clamp(-MAX_RATE_PPB, MAX_RATE_PPB);
        let rate = (self.drift_ppb + error_us * 1000 / PHASE_S).clamp(-MAX_RATE_PPB, MAX_RATE_PPB);
        self.model = ClockModel { local_at: now, mesh_at: self.model.mesh_time(now), rate_ppb: rate as i32 };
        true
    }

    /// Median of how far mesh time lies ahead of the model, over the newest samples, in µs.
    fn median_error(&self, newest: usize) -> i64 {
        let mut errors = [0i64; FIRST_SAMPLES];
        for (i, error) in errors.iter_mut().take(newest).enumerate() {
            let sample = self.samples[(self.count - 1 - i) % FIRST_SAMPLES];
            *error = sample.mesh.0 as i64 - self.model.mesh_time(sample.local).0 as i64;
        }
        let errors = &mut errors[..newest];
        errors.sort_unstable();
        errors[newest / 2]
    }
}

impl Default for MeshClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;
    use std::time::Duration;

    /// A remote clock that started elsewhere and runs at another rate.
    fn remote(local: Instant, ppm: i64) -> Instant {
        Instant(50_000_000 + (local.0 as i64 + local.0 as i64 * ppm / 1_000_000) as u64)
    }

    fn run(ppm: i64, jitter_us: u64, seconds: u64, mut check: impl FnMut(Instant, i64)) {
        let mut rng = Rng::new(3);
        let mut clock = MeshClock::new();
        let mut now = Instant::from_millis(1000);
        let mut last_mesh = Instant::ZERO;
        let end = now + Duration::from_secs(seconds);
        while now < end {
            let out = Duration::from_micros(40_000 + rng.below(jitter_us + 1));
            let back = Duration::from_micros(40_000 + rng.below(jitter_us + 1));
            let received = now + out + back;
            let was_synced = clock.is_synced();
            let local = Instant(u64::midpoint(now.0, received.0));
            clock.handle_sample(Sample { local, mesh: remote(now + out, ppm) }, received);
            let mesh = clock.model().mesh_time(received);
            if was_synced {
                assert!(mesh > last_mesh, "mesh time never runs backwards");
                check(received, mesh.0 as i64 - remote(received, ppm).0 as i64);
            }
            last_mesh = mesh;
            now += Duration::from_millis(if was_synced { 250 } else { 15 });
        }
    }

    #[test]
    fn a_clock_that_drifts_half_a_percent_is_held_within_half_a_frame() {
        let mut worst = 0;
        run(5_000, 30_000, 120, |at, error| {
            if at > Instant::from_millis(8_000) {
                worst = worst.max(error.abs());
            }
        });
        assert!(worst <= 16_667, "{worst} µs");
    }

    #[test]
    fn the_first_step_is_within_3_ms_at_10_ms_jitter() {
        let mut first = None;
        run(50, 10_000, 2, |_, error| {
            first.get_or_insert(error);
        });
        assert!(first.is_some_and(|error| error.abs() <= 3_000), "{first:?}");
    }
}
