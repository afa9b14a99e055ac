//! `cargo xtask test --only threads`: the tests with real threads under a thread sanitizer, which sees a data race even where
//! nothing went wrong.
//!
//! Fed by: a nightly toolchain, where one is installed; no other has the sanitizer. Yields: pass or fail.
//! Never: installs a toolchain, or trusts a run whose control (a planted race) was not seen.

use crate::sh::{self, Outcome};
use std::path::PathBuf;
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
    sh::run(&mut test(host, "t20_asleep"))?;
    c_edge(host)
}

fn test(host: &str, name: &str) -> Command {
    let mut command = cargo("test", host);
    command.args(["--no-default-features", "--features", "io,ring", "--test", name]);
    command.env("TSAN_OPTIONS", options());
    command
}

/// The handle table is read without locks: two threads in every handle, and many meshes at once, from C.
fn c_edge(host: &str) -> Outcome {
    if !sh::has("clang") {
        println!("no clang is installed: the C edge did not run under the sanitizer (1 skipped)");
        return Ok(());
    }
    sh::run(cargo("rustc", host).args(["--lib", "--crate-type", "staticlib"]))?;
    let sysroot = sh::output(sh::command("rustup").args(["run", "nightly", "rustc", "--print", "sysroot"]))?;
    // Rust's own: the one of clang may be older than the code that Rust makes.
    let runtime = format!("{}/lib/rustlib/{host}/lib/librustc-nightly_rt.tsan.a", sysroot.trim());
    let built = folder().join(host).join("debug");
    // As `tests/c_abi.rs` runs them.
    let interfaces = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let custom: &[&str] = if interfaces.contains(" lo") { &[] } else { &["no-ipv6"] };
    for (name, arguments) in [("threads", &[] as &[&str]), ("custom", custom)] {
        let (object, program) = (built.join(format!("{name}.o")), built.join(name));
        let mut compile = sh::command("clang");
        compile.args(["-fsanitize=thread", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-DRETICK_STATIC"]);
        compile.args(["-g", "-O1", "-Iinclude", "-c", "-o"]).arg(&object).arg(format!("tests/c/{name}.c"));
        sh::run(&mut compile)?;
        let mut link = sh::command("clang");
        link.arg("-o").arg(&program).arg(&object).arg(built.join("libretick.a"));
        link.args(["-Wl,--whole-archive", &runtime, "-Wl,--no-whole-archive", "-rdynamic"]);
        sh::run(link.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]))?;
        sh::run(Command::new(&program).args(arguments).env("TSAN_OPTIONS", options()))?;
    }
    Ok(())
}

fn cargo(verb: &str, host: &str) -> Command {
    let mut command = sh::command("rustup");
    command.args(["run", "nightly", "cargo", verb, "--quiet", "--locked", "--package", "retick"]);
    command.args(["--target", host]).env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", folder());
    command
}

fn folder() -> PathBuf {
    sh::target_dir().join("thread-sanitizer")
}

fn options() -> String {
    format!("suppressions={}", sh::root().join("tests/thread_sanitizer.supp").display())
}
