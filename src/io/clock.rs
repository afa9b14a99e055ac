//! The two clocks of the machine.
//!
//! Fed by: the operating system. Yields: monotonic instants and the wall clock's seconds. Never: used by a core.

use crate::base::Instant;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the clock shows at the first call: room for "one minute ago" without reaching zero.
const START: Instant = Instant::from_millis(60_000);

/// The monotonic clock of this process.
pub fn now() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    START + ORIGIN.get_or_init(std::time::Instant::now).elapsed()
}

/// Seconds since 1970; at least 1, because 0 stands for "not checked".
pub fn unix_time_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_backwards_and_starts_after_a_minute() {
        let first = now();
        assert!(first >= START && now() >= first);
        assert!(unix_time_s() > 1_700_000_000);
    }
}
