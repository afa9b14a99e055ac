//! Which seeds a test plays, and what it prints when one fails.
//!
//! Fed by: `RETICK_SIM_SEEDS` (seeds of each scenario, 40), `RETICK_SIM_FULL` (1 = 300) and `RETICK_SIM_SEED` (only this one).
//! Yields: seeds in a fixed order, kept ones first. Never: depends on what the seeds before did.

use retick::base::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Seeds of each scenario in an ordinary run: the whole crate takes no more than 8 minutes on 2 cores.
const ORDINARY: u64 = 40;
/// Seeds of each scenario that the bars are about.
const FULL: u64 = 300;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether everything that the bars promise is to be played.
pub fn is_full() -> bool {
    number("RETICK_SIM_FULL") == Some(1) || number("RETICK_SIM_SEEDS").is_some_and(|count| count >= FULL)
}

/// How many seeds a scenario plays; `percent` of the budget of each.
pub fn count(percent: u64) -> u64 {
    let budget = number("RETICK_SIM_SEEDS").unwrap_or(if is_full() { FULL } else { ORDINARY });
    (budget * percent).div_ceil(100).max(1)
}

/// Plays `scenario` with the `kept` seeds (they failed once) and `percent` of the budget of others. A failing seed prints how
/// to play it alone. `file` is the test file's name, `test` the test's.
pub fn play(file: &str, test: &str, kept: &[u64], percent: u64, mut scenario: impl FnMut(u64)) {
    let mut one = |seed: u64| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| scenario(seed))) {
            say(&format!(
                "RETICK_SIM_SEED={seed:#x} cargo test -p retick-sim --release --test {file} {test} -- --nocapture"
            ));
            resume_unwind(panic);
        }
    };
    if let Some(seed) = number("RETICK_SIM_SEED") {
        return one(seed);
    }
    kept.iter().copied().for_each(&mut one);
    let name = retick::kit::hash::digest(test.as_bytes());
    for index in 0..count(percent) {
        one(Rng::new(name ^ index).next_u64());
    }
}

/// A line for the person who runs the tests.
#[expect(clippy::print_stdout, reason = "figures and reproduction lines are what a test run is read for")]
pub fn say(line: &str) {
    println!("{line}");
}
