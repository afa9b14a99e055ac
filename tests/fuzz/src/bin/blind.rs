//! Fuzzes one target without libFuzzer: `blind TARGET SECONDS SEED CRASHES KNOWN…`, where KNOWN are folders of inputs.
//!
//! What makes the target panic is written into the folder CRASHES, and ends the run.

use retick::base::Rng;
use retick_fuzz::{blind, seeds, target};
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "how long to go on is asked of the clock; no target sees it")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, seed, crashes, folders @ ..] = &words[..] else {
        eprintln!("usage: blind TARGET SECONDS SEED CRASHES KNOWN…");
        return ExitCode::FAILURE;
    };
    let (Some(target), Ok(seconds), Ok(seed)) = (target(name), seconds.parse(), seed.parse()) else {
        eprintln!("no target `{name}`, or no numbers: `{seconds}`, `{seed}`");
        return ExitCode::FAILURE;
    };
    let mut known = seeds::of(target);
    for file in folders.iter().flat_map(std::fs::read_dir).flatten().flatten() {
        known.extend(std::fs::read(file.path()));
    }
    let mut rng = Rng::new(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0u64;
    while Instant::now() < end {
        let input = blind::mutate(&known, target.max_len, &mut rng);
        runs += 1;
        if catch_unwind(|| (target.run)(&input)).is_err() {
            let file = Path::new(crashes).join(format!("{name}-blind-{seed}-{runs}"));
            match std::fs::write(&file, &input) {
                Ok(()) => eprintln!("the input is in {}", file.display()),
                Err(error) => eprintln!("{}: {error}; the input is {input:?}", file.display()),
            }
            return ExitCode::FAILURE;
        }
    }
    println!("{name}: {runs} runs, nothing found");
    ExitCode::SUCCESS
}
