//! `cargo xtask versus`: retick beside its peers in one run, as ratios, each bar beside its figure.
//!
//! Fed by: the command line. Yields: tables on the terminal and in `docs/measurements`. Never: compares figures of two
//! runs, or fails because of a time.

mod rollback;
pub(crate) mod transport;

use crate::sh::{self, Outcome};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;

/// Options of `cargo xtask versus`.
#[derive(Args)]
pub(crate) struct Options {
    /// Which part is compared
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Rollback sessions of 2, 4 and 10 peers
    Rollback(rollback::Options),
    /// The channel between peers, over real sockets
    Transport(transport::Options),
}

/// Runs it.
pub(crate) fn run(options: &Options) -> Outcome {
    match &options.what {
        What::Rollback(options) => rollback::run(options),
        What::Transport(options) => transport::run(options),
    }
}

/// What the figures were measured on, as far as it says something to others.
pub(crate) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!("Machine: {cores} virtual cores, shared with other work.\n")
}

/// Builds a harness of `benches/versus`.
fn build(package: &str) -> Result<PathBuf, String> {
    let target = sh::target_dir().join("versus");
    let mut cargo = sh::cargo("build --quiet --release --locked --manifest-path benches/versus/Cargo.toml");
    sh::run(cargo.args(["--package", package, "--target-dir"]).arg(&target))?;
    Ok(target.join("release").join(package))
}

/// Writes a report below `docs/measurements`.
fn write(report: &str, text: &str) -> Outcome {
    let file = sh::root().join(report);
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("written to {report}");
    Ok(())
}

/// The median of each figure over lines of the same measurement.
fn medians(lines: &[String]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in lines.iter().flat_map(|line| crate::peers::pairs(line)) {
        if let Ok(value) = value.parse() {
            values.entry(name.to_owned()).or_default().push(value);
        }
    }
    values
        .into_iter()
        .map(|(name, mut values)| {
            values.sort_by(f64::total_cmp);
            let median = values[values.len() / 2];
            (name, median)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::value;

    #[test]
    fn the_median_is_taken_figure_by_figure() {
        let lines = ["lib=x a=1 b=9", "lib=x a=5 b=7", "lib=x a=3 b=8"].map(str::to_owned);
        let row = medians(&lines);
        assert_eq!((row["a"], row["b"]), (3.0, 8.0));
        assert_eq!(value(&lines[0], "lib"), Some("x"));
        assert!(!row.contains_key("lib"));
    }
}
