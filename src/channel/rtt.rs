//! The smoothed round trip of one link, in integer µs: EWMA with variation (RFC 6298), and the resend timeout from it.
//!
//! Fed by: answered pings less the time they were held, and until the first of them the delay of acknowledgements.
//! Yields: round trip, jitter, resend timeout, reordering tolerance. Never: reads a clock.

use std::time::Duration;

/// Taken for the round trip before anything was measured: between a LAN and a continent.
const FIRST_GUESS_US: u64 = 100_000;
/// Resend timeout: never sooner than a delayed acknowledgement and a heartbeat may take, never later than is felt as loss.
const RTO_US: std::ops::RangeInclusive<u64> = 50_000..=1_000_000;
/// How much later a packet must have been sent to prove an earlier one lost: below, jitter is taken for loss.
const REORDER_US: std::ops::RangeInclusive<u64> = 4_000..=25_000;

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    /// Eight times the smoothed round trip, so that small steps are not rounded away.
    smoothed8_us: u64,
    /// Four times the smoothed deviation.
    variation4_us: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Nothing,
    FromAcks,
    FromPings,
}

impl Rtt {
    /// One answered ping.
    pub(super) fn add_ping(&mut self, sample: Duration) {
        self.add(sample.as_micros() as u64, State::FromPings);
    }

    /// An acknowledgement that came this long after its packet; counts only until a ping was answered.
    pub(super) fn add_ack(&mut self, sample: Duration) {
        if self.state != State::FromPings {
            self.add(sample.as_micros() as u64, State::FromAcks);
        }
    }

    fn add(&mut self, sample_us: u64, source: State) {
        if self.state != source {
            self.state = source;
            self.smoothed8_us = sample_us * 8;
            self.variation4_us = sample_us * 2;
            return;
        }
        let deviation = sample_us.abs_diff(self.smoothed8_us / 8);
        self.variation4_us = self.variation4_us - self.variation4_us / 4 + deviation;
        self.smoothed8_us = self.smoothed8_us - self.smoothed8_us / 8 + sample_us;
    }

    fn smoothed_us(&self) -> u64 {
        if self.state == State::Nothing { FIRST_GUESS_US } else { self.smoothed8_us / 8 }
    }

    /// Smoothed round trip.
    pub(super) fn smoothed(&self) -> Duration {
        Duration::from_micros(self.smoothed_us())
    }

    /// Smoothed deviation from it.
    pub(super) fn jitter(&self) -> Duration {
        Duration::from_micros(if self.state == State::Nothing { 0 } else { self.variation4_us / 4 })
    }

    /// After this long without acknowledgement a message goes again.
    pub(super) fn resend_timeout(&self) -> Duration {
        Duration::from_micros((2 * self.smoothed_us()).clamp(*RTO_US.start(), *RTO_US.end()))
    }

    /// A packet is lost when one sent this much later was acknowledged.
    pub(super) fn reordering(&self) -> Duration {
        Duration::from_micros((self.smoothed_us() / 4).clamp(*REORDER_US.start(), *REORDER_US.end()))
    }

    /// Whether any ping was answered yet.
    pub(super) fn is_measured(&self) -> bool {
        self.state == State::FromPings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_converges_and_the_first_ping_replaces_what_acks_said() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.smoothed(), Duration::from_millis(100));
        rtt.add_ack(Duration::from_millis(70));
        rtt.add_ping(Duration::from_micros(800));
        assert_eq!(rtt.smoothed(), Duration::from_micros(800));
        rtt.add_ack(Duration::from_millis(70));
        for _ in 0..100 {
            rtt.add_ping(Duration::from_micros(650));
        }
        assert!(rtt.smoothed().as_micros().abs_diff(650) <= 8, "{:?}", rtt.smoothed());
        assert!(rtt.jitter() <= Duration::from_micros(8), "{:?}", rtt.jitter());
        assert_eq!(rtt.resend_timeout(), Duration::from_millis(50));
        assert_eq!(rtt.reordering(), Duration::from_millis(4));
    }
}
