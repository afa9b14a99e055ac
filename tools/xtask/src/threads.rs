//! `cargo xtask test --only threads`: the tests with real threads under a thread sanitizer, which sees a data race even where
//! nothing went wrong.
//!
//! Fed by: a nightly toolchain, where one is installed; no other has the sanitizer. Yields: pass or fail.
//! Never: installs a toolchain, or trusts a run whose control (a planted race) was not seen.

use crate::sh::{self, Outcome};
use std::process::Command;

/// Targets whose nightly toolchain brings the sanitizer's run time.
const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
const FLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";

/// Runs them; says so where it cannot.
pub(crate) fn run() -> Outcome {
    let version = sh::output(sh::command("rustup").args(["run", "nightly", "rustc", "-vV"]));
    let host = version.unwrap_or_default();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    if !TARGETS.contains(&host) {
        println!("no nightly toolchain with a thread sanitizer is installed (1 skipped)");
        return Ok(());
    }
    let seen = sh::output(test(host, "planted_race").arg("--").arg("--ignored"));
    if !seen.is_err_and(|told| told.contains("WARNING: ThreadSanitizer: data race")) {
        return Err("the sanitizer did not see the planted race: its silence would mean nothing".into());
    }
    println!("the planted race was seen");
    sh::run(test(host, "b14_threads").args(["--", "--test-threads=1"]))?;
    sh::run(&mut test(host, "t20_asleep"))
}

fn test(host: &str, name: &str) -> Command {
    let suppressions = sh::root().join("tests/thread_sanitizer.supp");
    let mut command = sh::command("rustup");
    command.args(["run", "nightly", "cargo", "test", "--quiet", "--locked", "--package", "retick"]);
    command.args(["--no-default-features", "--features", "io", "--target", host, "--test", name]);
    command.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", sh::target_dir().join("thread-sanitizer"));
    command.env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
    command
}
