//! The clock of the mesh: local time bent into the coordinator's.
//!
//! Fed by: samples of answered pings (Cristian 1989: the answer is taken to be half way). Yields: a `ClockModel`, which
//! steps only until it is first in step and is slewed by at most ± 2 % from then on, so mesh time never runs backwards.
//! Never: reads a clock. Error: what is left of jitter plus half the path asymmetry, which no two-way clock can see.
//!
//! Where mesh time is (offset and drift, a Kalman filter over raw samples that trusts quick ones) and how the model gets there (a slew) are kept
//! apart: a filter that looks at its own slewed model corrects what it is already correcting, and swings.

use crate::base::ClockModel;
use crate::base::Instant;
use std::time::Duration;

/// Samples whose median steps the clock at the start.
const FIRST_SAMPLES: usize = 16;
/// Of these, the quickest are believed.
const BEST: usize = 5;
/// Largest rate difference, in parts per billion: what a player does not see.
const MAX_RATE_PPB: i64 = 20_000_000;
/// Phase errors are slewed away over about this long: six pings, so that a few lost ones make no overshoot.
const PHASE_S: f64 = 3.0;
/// Pings while the clock is being set, while its drift is being learnt, and later.
const PING_EVERY: [Duration; 3] =
    [Duration::from_millis(15), Duration::from_millis(100), Duration::from_millis(500)];
/// Drift is learnt when it is known within 150 ppm.
const LEARNT_DRIFT_VAR: f64 = 150.0 * 150.0;
/// Without a further answer a slew goes on for no longer.
const SLEW_AT_MOST: Duration = Duration::from_millis(2500);
/// Crystals differ by at most about half a percent (µs per s), squared.
const FIRST_DRIFT_VAR: f64 = 2_500.0 * 2_500.0;
/// How fast a crystal's rate may wander, (µs/s)² per s: 10 ppm in a second, as one that warms up.
const DRIFT_NOISE: f64 = 100.0;
/// Another coordinator's mesh time may be off by its own error (3 ms) and rate (300 ppm).
const HANDOVER_OFFSET_VAR: f64 = 3_000.0 * 3_000.0;
/// See [`HANDOVER_OFFSET_VAR`].
const HANDOVER_DRIFT_VAR: f64 = 300.0 * 300.0;
/// A sample is never believed to be better than 0.2 ms.
const LEAST_NOISE: f64 = 200.0 * 200.0;

/// One answered ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Local time half way between ping and answer.
    pub local: Instant,
    /// Mesh time that the answer told.
    pub mesh: Instant,
    /// From ping to answer.
    pub rtt_us: u32,
}

impl Sample {
    fn offset_us(&self) -> f64 {
        (self.mesh.0 as i64).wrapping_sub(self.local.0 as i64) as f64
    }
}

/// How far mesh time is ahead of local time, and how fast that grows. All in µs and s.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    at: Instant,
    offset: f64,
    drift: f64,
    /// Variances of offset and drift, and their covariance.
    offset_var: f64,
    drift_var: f64,
    covariance: f64,
    /// Round trips of the last samples.
    rtts: [u32; FIRST_SAMPLES],
    count: usize,
    /// The last three samples: a path that changes between ping and answer spoils one, and the middle one is believed.
    last: [Sample; 3],
}

impl Estimate {
    fn first(samples: &[Sample; FIRST_SAMPLES]) -> Self {
        let mut best = *samples;
        best.sort_unstable_by_key(|sample| sample.rtt_us);
        let mut offsets: [f64; BEST] = std::array::from_fn(|i| best[i].offset_us());
        offsets.sort_unstable_by(f64::total_cmp);
        Self {
            at: samples.iter().map(|sample| sample.local).max().unwrap_or_default(),
            offset: offsets[BEST / 2],
            drift: 0.0,
            offset_var: noise(best[BEST - 1].rtt_us, &best.map(|sample| sample.rtt_us)) / 2.0,
            drift_var: FIRST_DRIFT_VAR,
            covariance: 0.0,
            rtts: samples.map(|sample| sample.rtt_us),
            count: 0,
            last: [best[0]; 3],
        }
    }

    fn offset_at(&self, local: Instant) -> f64 {
        self.offset + self.drift * seconds(self.at, local)
    }

    /// How far a sample lies from what was expected then.
    fn surprise(&self, sample: &Sample) -> f64 {
        sample.offset_us() - self.offset_at(sample.local)
    }

    fn handle_sample(&mut self, sample: Sample) {
        self.last[self.count % 3] = sample;
        self.rtts[self.count % FIRST_SAMPLES] = sample.rtt_us;
        self.count += 1;
        let mut last = self.last;
        last.sort_unstable_by(|a, b| self.surprise(a).total_cmp(&self.surprise(b)));
        // Its surprise is judged at its own time, then counted as if it had come now.
        let surprise = self.surprise(&last[1]);
        let dt = seconds(self.at, sample.local).max(0.0);
        self.offset += self.drift * dt;
        self.offset_var += dt * (2.0 * self.covariance + dt * self.drift_var);
        self.covariance += dt * self.drift_var;
        self.drift_var += dt * DRIFT_NOISE;
        self.at = self.at.max(sample.local);
        let sum = self.offset_var + noise(last[1].rtt_us, &self.rtts);
        let (gain, drift_gain) = (self.offset_var / sum, self.covariance / sum);
        self.offset += gain * surprise;
        self.drift += drift_gain * surprise;
        let limit = MAX_RATE_PPB as f64 / 2000.0;
        self.drift = self.drift.clamp(-limit, limit);
        self.drift_var -= drift_gain * self.covariance;
        self.covariance -= gain * self.covariance;
        self.offset_var -= gain * self.offset_var;
    }
}

/// Variance of a sample: its error is at most half of what it took longer than the path needs, and either way equally
/// likely. The path may need less than the quickest of the last ones took: by about two fifths of what is usual beyond it.
fn noise(rtt_us: u32, last: &[u32; FIRST_SAMPLES]) -> f64 {
    let mut sorted = *last;
    sorted.sort_unstable();
    let (quickest, usual) = (f64::from(sorted[0]), f64::from(sorted[FIRST_SAMPLES / 2]));
    let excess = f64::from(rtt_us) - quickest + (usual - quickest) * 0.4;
    LEAST_NOISE + excess * excess / 12.0
}

fn seconds(from: Instant, to: Instant) -> f64 {
    (to.0 as i64).wrapping_sub(from.0 as i64) as f64 / 1e6
}

/// The clock of one member.
#[derive(Clone, Debug)]
pub struct MeshClock {
    model: ClockModel,
    samples: [Sample; FIRST_SAMPLES],
    count: usize,
    estimate: Option<Estimate>,
    synced: bool,
    /// The model is on its way to the estimate, as of this sample.
    slewing_since: Option<Instant>,
}

impl MeshClock {
    /// Starts with mesh time equal to local time, not in step with anybody.
    pub fn new() -> Self {
        let zero = Sample { local: Instant::ZERO, mesh: Instant::ZERO, rtt_us: 0 };
        Self {
            model: ClockModel::IDENTITY,
            samples: [zero; FIRST_SAMPLES],
            count: 0,
            estimate: None,
            synced: false,
            slewing_since: None,
        }
    }

    /// This member's clock *is* mesh time (the coordinator's, which goes on from whatever it held, at the rate that it
    /// believed in).
    pub fn lead(&mut self, now: Instant) {
        self.synced = true;
        self.go_on(now);
    }

    fn go_on(&mut self, now: Instant) {
        self.slewing_since = None;
        let rate_ppb = self.estimate.map_or(0, |estimate| (estimate.drift * 1000.0) as i32);
        self.model = ClockModel { local_at: now, mesh_at: self.model.mesh_time(now), rate_ppb };
    }

    /// No answer came for long: a slew must not go past what it was for. Says whether the model changed.
    pub fn coast(&mut self, now: Instant) -> bool {
        let is_over = self.slewing_since.is_some_and(|since| since + SLEW_AT_MOST <= now);
        if is_over {
            self.go_on(now);
        }
        is_over
    }

    /// Another coordinator answers from now on: it goes on with mesh time as it held it.
    pub fn follow_another(&mut self) {
        self.count = 0;
        if let Some(estimate) = &mut self.estimate {
            estimate.offset_var += HANDOVER_OFFSET_VAR;
            estimate.drift_var += HANDOVER_DRIFT_VAR;
        }
    }

    /// How often the coordinator should be pinged.
    pub fn ping_every(&self) -> Duration {
        match &self.estimate {
            _ if !self.synced => PING_EVERY[0],
            Some(estimate) if estimate.drift_var < LEARNT_DRIFT_VAR => PING_EVERY[2],
            _ => PING_EVERY[1],
        }
    }

    /// Another coordinator answers and nobody plays yet: the clock may be set anew, which is better than to slew for seconds.
    pub fn start_over(&mut self) {
        *self = Self { model: self.model, ..Self::new() };
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
        if let Some(estimate) = self.estimate.as_mut().filter(|_| self.synced) {
            estimate.handle_sample(sample);
            let wanted = estimate.offset_at(now);
            let held = (self.model.mesh_time(now).0 as i64).wrapping_sub(now.0 as i64) as f64;
            self.slewing_since = Some(now);
            // µs per s = ppm.
            let rate = ((estimate.drift + (wanted - held) / PHASE_S) * 1000.0) as i64;
            self.model = ClockModel {
                local_at: now,
                mesh_at: self.model.mesh_time(now),
                rate_ppb: rate.clamp(-MAX_RATE_PPB, MAX_RATE_PPB) as i32,
            };
            return true;
        }
        self.samples[self.count % FIRST_SAMPLES] = sample;
        self.count += 1;
        if self.count < FIRST_SAMPLES {
            return false;
        }
        let estimate = Estimate::first(&self.samples);
        self.estimate = Some(estimate);
        if !self.synced {
            let mesh_at = Instant(now.0.saturating_add_signed(estimate.offset as i64));
            self.model = ClockModel { local_at: now, mesh_at, rate_ppb: 0 };
            self.synced = true;
        }
        true
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

    /// A remote clock that started elsewhere and runs at another rate.
    fn remote(local: Instant, ppm: i64) -> Instant {
        Instant(50_000_000 + (local.0 as i64 + local.0 as i64 * ppm / 1_000_000) as u64)
    }

    /// As it is in play: a ping every 500 ms, one of three lost.
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
            if !(was_synced && rng.below(3) == 0) {
                let rtt_us = (out + back).as_micros() as u32;
                clock.handle_sample(Sample { local, mesh: remote(now + out, ppm), rtt_us }, received);
            }
            let mesh = clock.model().mesh_time(received);
            if was_synced {
                assert!(mesh > last_mesh, "mesh time never runs backwards");
                check(received, mesh.0 as i64 - remote(received, ppm).0 as i64);
            }
            last_mesh = mesh;
            now += clock.ping_every();
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
    fn a_jittered_clock_does_not_swing() {
        for jitter_us in [0, 2_000, 10_000, 40_000] {
            let mut worst = 0;
            run(20, jitter_us, 300, |at, error| {
                if at > Instant::from_millis(30_000) {
                    worst = worst.max(error.abs());
                }
            });
            assert!(worst <= 500 + jitter_us as i64 / 4, "jitter {jitter_us} µs: {worst} µs");
        }
    }

    #[test]
    fn a_coordinator_that_came_to_lead_goes_on_at_the_rate_of_the_mesh() {
        let mut clock = MeshClock::new();
        let mut now = Instant::from_millis(1000);
        for _ in 0..80 {
            now += Duration::from_millis(500);
            clock.handle_sample(Sample { local: now, mesh: remote(now, 1_000), rtt_us: 0 }, now);
        }
        clock.lead(now);
        now += Duration::from_secs(10);
        let error = clock.model().mesh_time(now).0 as i64 - remote(now, 1_000).0 as i64;
        assert!(error.abs() < 500, "{error} µs");
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
