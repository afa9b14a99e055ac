//! `cargo xtask test`: everything CI runs, in parts, each with its time.
//!
//! Fed by: the command line. Yields: a table against the budget, and as the last line `N passed, N failed`.
//! Never: leaves a part out silently, or fails because of a time.

use crate::sh::{self, Outcome};
use crate::{bench, demo, fuzz, licences, setup, sim, threads, versus};
use clap::Args;
use std::time::{Duration, Instant};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct Options {
    /// Every seed count, matrix and benchmark that the issues name (much longer)
    #[arg(long)]
    full: bool,
    /// Only these parts, for example --only sim,demo
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<String>,
    /// Shows the parts and ends
    #[arg(long)]
    list: bool,
}

/// What a group of parts may take in CI.
struct Group {
    name: &'static str,
    minutes: u64,
}

const BUILD: Group = Group { name: "build", minutes: 15 };
const SIMULATION: Group = Group { name: "simulation", minutes: 8 };
const NAMESPACES: Group = Group { name: "namespaces", minutes: 4 };
const ENGINES: Group = Group { name: "engines and languages", minutes: 8 };
const REST: Group = Group { name: "rest", minutes: 5 };

struct Part {
    name: &'static str,
    about: &'static str,
    group: &'static Group,
    full_only: bool,
    run: fn(full: bool) -> Outcome,
}

const PARTS: &[Part] = &[
    part("setup", "system packages are there", &BUILD, |_| {
        setup::ensure(setup::EVERYTHING)?;
        setup::ensure_components()
    }),
    part("format", "rustfmt has nothing to change", &BUILD, |_| {
        cargo("fmt --all --check")?;
        cargo("fmt --manifest-path tests/fuzz/Cargo.toml --check")
    }),
    part("build", "everything builds, also without the features `ffi` and `io`", &BUILD, |_| build()),
    part("clippy", "no warning in any target", &BUILD, |_| {
        cargo("clippy --quiet --locked --workspace --all-targets -- -D warnings")?;
        // A workspace of its own, because its counting allocator and the C ABI's exclude each other.
        cargo(
            "clippy --quiet --locked --manifest-path benches/foundation/Cargo.toml --target-dir target/benches -- -D warnings",
        )?;
        cargo(
            "clippy --quiet --locked --manifest-path tests/fuzz/Cargo.toml --all-targets --target-dir target/fuzz/replay -- -D warnings",
        )
    }),
    part("header", "the generated files are the committed ones", &BUILD, |_| {
        cargo("run --quiet --locked --package retick-gen -- --check")
    }),
    part("tests", "units, properties, tidy, C API under sanitizers, loopback", &REST, |_| tests()),
    part("fuzz", "the inputs that fuzzing keeps, and mutations of them, break no decoder", &REST, |_| {
        fuzz::replay()
    }),
    part("sim", "whole meshes by seed, with faults", &SIMULATION, |full| {
        sim::seeds(if full { sim::SEEDS_FULL } else { sim::SEEDS }, None, None)
    }),
    part("sample", "the sample's rules give one digest under every compiler", &ENGINES, |_| sample()),
    part("demo", "four processes over UDP agree, also when one is killed", &ENGINES, |full| {
        match_with_kill(full)
    }),
    full_part("long-match", "ten processes, 60 s, a bad network", &ENGINES, |_| long_match()),
    full_part(
        "pure-crypto",
        "channel, simnet and vectors by primitives without ring, and both side by side",
        &REST,
        |_| pure_crypto(),
    ),
    full_part("threads", "no data race between the halves (thread sanitizer)", &REST, |_| threads::run()),
    full_part("bench", "the benchmarks, each bar beside its figure", &REST, |_| {
        bench::run(&bench::Options::default())
    }),
    full_part("versus", "the harnesses beside other libraries build and run", &REST, |_| {
        cargo(
            "clippy --quiet --locked --manifest-path benches/versus/Cargo.toml --target-dir target/versus -- -D warnings",
        )?;
        versus::transport::run(&versus::transport::Options::QUICK)
    }),
    part("licences", "every dependency's licence is on the allow list", &REST, |_| licences()),
    part("docs", "rustdoc has no warning", &REST, |_| docs()),
];

const fn part(
    name: &'static str,
    about: &'static str,
    group: &'static Group,
    run: fn(bool) -> Outcome,
) -> Part {
    Part { name, about, group, full_only: false, run }
}

const fn full_part(
    name: &'static str,
    about: &'static str,
    group: &'static Group,
    run: fn(bool) -> Outcome,
) -> Part {
    Part { name, about, group, full_only: true, run }
}

/// One finished part.
struct Done {
    name: &'static str,
    group: &'static str,
    took: Duration,
    problem: Option<String>,
}

/// Runs the parts one after the other; a failed one does not keep the next from running.
pub(crate) fn run(options: &Options) -> Outcome {
    if options.list {
        for part in PARTS {
            println!("{:<12}{}{}", part.name, part.about, if part.full_only { " (--full)" } else { "" });
        }
        return Ok(());
    }
    if let Some(unknown) = options.only.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
        return Err(format!("there is no part `{unknown}`; --list shows them"));
    }
    let chosen = |part: &&Part| {
        if options.only.is_empty() {
            options.full || !part.full_only
        } else {
            options.only.iter().any(|n| n == part.name)
        }
    };
    let before = tree();
    let mut done = Vec::new();
    for part in PARTS.iter().filter(chosen) {
        println!("\n=== {}: {}", part.name, part.about);
        let start = Instant::now();
        let problem = (part.run)(options.full).err();
        if let Some(problem) = &problem {
            println!("FAILED {}: {problem}", part.name);
        }
        done.push(Done { name: part.name, group: part.group.name, took: start.elapsed(), problem });
    }
    let problem = unchanged(before).err();
    done.push(Done { name: "clean", group: REST.name, took: Duration::ZERO, problem });
    report(&done)
}

fn report(done: &[Done]) -> Outcome {
    println!("\n{:<14}{:>10}  result", "part", "seconds");
    for Done { name, took, problem, .. } in done {
        let result = problem.as_ref().map_or_else(|| "ok".into(), |problem| format!("FAILED: {problem}"));
        println!("{name:<14}{:>10.1}  {}", took.as_secs_f64(), result.lines().next().unwrap_or_default());
    }
    println!("\n{:<24}{:>8}{:>10}", "budget", "minutes", "of");
    for group in [&BUILD, &SIMULATION, &NAMESPACES, &ENGINES, &REST] {
        let took: Duration = done.iter().filter(|part| part.group == group.name).map(|part| part.took).sum();
        let minutes = took.as_secs_f64() / 60.0;
        let over = if minutes > group.minutes as f64 { "  over" } else { "" };
        println!("{:<24}{minutes:>8.1}{:>10}{over}", group.name, group.minutes);
    }
    let failed = done.iter().filter(|part| part.problem.is_some()).count();
    println!("\n{} passed, {failed} failed", done.len() - failed);
    if failed == 0 { Ok(()) } else { Err(String::new()) }
}

fn cargo(words: &str) -> Outcome {
    sh::run(&mut sh::cargo(words))
}

fn build() -> Outcome {
    cargo("build --quiet --locked --workspace --all-targets")?;
    cargo("check --quiet --locked --package retick --no-default-features --features ring")?;
    cargo("check --quiet --locked --package retick --no-default-features --features io,ring")?;
    // For targets that ring lacks: the same wire by other primitives.
    cargo("check --quiet --locked --package retick --no-default-features --features io,ffi,pure-rust-crypto")
}

fn tests() -> Outcome {
    // The simulations are a part of their own, in release; a test with its own allocator is built without the C ABI's.
    const WHICH: &str = "--locked --workspace --exclude retick-sim";
    if sh::has("cargo-nextest") {
        cargo(&format!("nextest run {WHICH} --no-fail-fast"))?;
        cargo(&format!("test --quiet {WHICH} --doc"))?;
    } else {
        cargo(&format!("test {WHICH} --no-fail-fast"))?;
    }
    cargo("test --quiet --locked --no-default-features --features ring --test session_frame")
}

/// The feature `pure-rust-crypto` alone and beside `ring`: what one sealed the other opens.
fn pure_crypto() -> Outcome {
    const ALONE: &str = "--no-default-features --features io,ffi,pure-rust-crypto";
    cargo(&format!("test --quiet --locked --package retick {ALONE} --lib"))?;
    cargo(&format!("test --quiet --locked --package retick {ALONE} --test golden_protocol"))?;
    cargo("test --quiet --locked --package retick --features pure-rust-crypto --lib channel::crypto")
}

/// The sample's simulation by itself, against its golden digest: what differs here would be a desync between players.
fn sample() -> Outcome {
    let folder = sh::target_dir().join("demo");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (compiler, flags) in [
        ("gcc", "-O0"),
        ("gcc", "-O3 -fsanitize=undefined -fno-sanitize-recover"),
        ("clang", "-O0"),
        ("clang", "-O3"),
    ] {
        let program = folder.join("test_sim");
        let mut compile = sh::command(compiler);
        compile.args("-std=c99 -Wall -Wextra -Werror".split(' ')).args(flags.split(' '));
        compile.args(["test_sim", "sim", "bot"].map(|name| format!("samples/c/arena/{name}.c")));
        sh::run(compile.arg("-o").arg(&program))?;
        sh::run(&mut std::process::Command::new(&program))?;
    }
    Ok(())
}

fn match_with_kill(full: bool) -> Outcome {
    demo::run(&demo::Options::default())?;
    let victims = if full { 0..4 } else { 2..3 };
    for victim in victims {
        demo::run(&demo::Options { kill: vec![(victim, 240)], ..demo::Options::default() })?;
    }
    Ok(())
}

fn long_match() -> Outcome {
    demo::run(&demo::Options { peers: 10, frames: 3600, ..demo::Options::default() })
}

fn licences() -> Outcome {
    licences::check()?;
    if sh::has("cargo-deny") {
        // Advisories need a database from the net: only where somebody installed the tool.
        return cargo("deny --locked check bans licenses sources");
    }
    println!("cargo deny is not installed: its checks of bans and sources did not run (1 skipped)");
    Ok(())
}

fn docs() -> Outcome {
    sh::run(sh::cargo("doc --quiet --locked --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))
}

/// What git sees as changed; `None` where there is no repository.
fn tree() -> Option<String> {
    // What the benchmarks of a full run measured is theirs to write.
    sh::output(sh::command("git").args(["status", "--porcelain", "--", ".", ":!docs/measurements"])).ok()
}

/// The run must leave no file behind and change none.
fn unchanged(before: Option<String>) -> Outcome {
    let (Some(before), Some(after)) = (before, tree()) else {
        println!("\nno git repository: whether the run left files behind was not checked");
        return Ok(());
    };
    if before == after { Ok(()) } else { Err(format!("the run changed the work tree:\n{after}")) }
}
