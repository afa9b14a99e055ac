//! `cargo xtask sim`: whole meshes by seed in virtual time, and one seed again.
//!
//! Fed by: the command line. Yields: a run of the `retick-sim` crate's tests. Never: decides what a scenario does.

use crate::sh::{self, Outcome};
use clap::Args;

/// Options of `cargo xtask sim`.
#[derive(Args)]
pub(crate) struct Options {
    /// How many seeds each scenario plays (default: what `cargo xtask test` plays)
    #[arg(long)]
    seeds: Option<u32>,
    /// Plays only this seed, as printed by a failure (0x… or decimal)
    #[arg(long)]
    seed: Option<String>,
    /// Only scenarios (test names) that contain this
    #[arg(long)]
    scenario: Option<String>,
}

/// Seeds per scenario of an ordinary test run: what fits into 8 minutes on 2 cores.
pub(crate) const SEEDS: u32 = 40;
/// Seeds per scenario that the issues promise.
pub(crate) const SEEDS_FULL: u32 = 300;

/// Runs it.
pub(crate) fn run(options: &Options) -> Outcome {
    seeds(options.seeds.unwrap_or(SEEDS), options.seed.as_deref(), options.scenario.as_deref())
}

/// Plays `count` seeds of each scenario. An explicit `RETICK_SIM_SEEDS` of the caller wins.
pub(crate) fn seeds(count: u32, seed: Option<&str>, scenario: Option<&str>) -> Outcome {
    let mut command = sh::cargo("test --locked --release --package retick-sim");
    if std::env::var_os("RETICK_SIM_SEEDS").is_none() {
        command.env("RETICK_SIM_SEEDS", count.to_string());
    }
    if let Some(seed) = seed {
        command.env("RETICK_SIM_SEED", seed);
    }
    if let Some(scenario) = scenario {
        command.args(["--", scenario, "--nocapture"]);
    }
    sh::run(&mut command)
}
