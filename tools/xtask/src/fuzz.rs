//! `cargo xtask fuzz`: the targets of `tests/fuzz`, each for its share of the time, by libFuzzer on a stable toolchain.
//!
//! Fed by: the command line. Yields: inputs that broke a target, in `target/fuzz/crashes`; with `--minimise` a smaller
//! committed corpus. Never: needs a nightly toolchain: rustc's stable flags instrument, and without a C++ compiler (which
//! libFuzzer is built by) the inputs are mutated blindly.

use crate::sh::{self, Outcome};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct Options {
    /// How long in all; the targets share it
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    minutes: u64,
    /// Only this target; may be given several times
    #[arg(long)]
    target: Vec<String>,
    /// Afterwards replaces the committed corpus by the fewest inputs that reach the same; `found-…` stay
    #[arg(long)]
    minimise: bool,
    /// Mutates blindly even where libFuzzer could be built
    #[arg(long)]
    blind: bool,
    /// Where the mutations begin
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    seed: u64,
}

const MANIFEST: &str = "--manifest-path tests/fuzz/Cargo.toml";

/// What cargo-fuzz passes, as far as it is stable: counters per edge and the operands of comparisons. No sanitizer: what is
/// fuzzed has no unsafe code.
const INSTRUMENT: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The committed inputs and some mutations of them, by whatever toolchain is there.
pub(crate) fn replay() -> Outcome {
    let mut cargo = sh::cargo(&format!("test --quiet --locked {MANIFEST} --target-dir"));
    sh::run(cargo.arg(sh::target_dir().join("fuzz/replay")))
}

/// Fuzzes.
pub(crate) fn run(options: &Options) -> Outcome {
    let all = names()?;
    if let Some(unknown) = options.target.iter().find(|name| !all.contains(name)) {
        return Err(format!("there is no target `{unknown}`; there are {}", all.join(", ")));
    }
    let chosen: Vec<&String> =
        all.iter().filter(|name| options.target.is_empty() || options.target.contains(name)).collect();
    let seconds = (options.minutes * 60 / chosen.len() as u64).max(1);
    let compilers = ["c++", "clang++", "g++"];
    let is_blind = options.blind || !compilers.iter().any(|name| sh::has(name));
    if is_blind && !options.blind {
        println!("note: there is none of {}; inputs are mutated without feedback", compilers.join(", "));
    }
    if is_blind && options.minimise {
        return Err("--minimise needs libFuzzer, and that a C++ compiler".into());
    }
    let plain = build("--bins", None)?;
    let fuzzers = if is_blind {
        PathBuf::new()
    } else {
        // One by one: what is instrumented but links no libFuzzer does not link at all.
        let bins = chosen.iter().map(|name| format!("--bin {name}")).collect::<Vec<_>>().join(" ");
        build(&format!("--features libfuzzer {bins}"), Some(&host()?))?
    };
    let crashes = folder(&sh::target_dir().join("fuzz/crashes"))?;
    let mut broken = Vec::new();
    for name in chosen {
        println!("\n=== {name}, {seconds} s");
        let committed = folder(&sh::root().join("tests/fuzz/corpus").join(name))?;
        let known = folder(&sh::target_dir().join("fuzz/corpus").join(name))?;
        sh::run(program(&plain, "seeds").arg(name).arg(&known))?;
        let outcome = if is_blind {
            let mut blind = program(&plain, "blind");
            blind.args([name, &seconds.to_string(), &options.seed.to_string()]);
            sh::run(blind.args([&crashes, &committed, &known]))
        } else {
            let mut fuzzer = program(&fuzzers, name);
            fuzzer.args([format!("-max_total_time={seconds}"), format!("-seed={}", options.seed)]);
            fuzzer.args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1", "-verbosity=0"]);
            fuzzer
                .arg("-use_value_profile=0")
                .arg("-len_control=20")
                .arg(format!("-max_len={}", longest(&plain, name)?));
            fuzzer.arg(format!("-artifact_prefix={}/{name}-", crashes.display()));
            sh::run(fuzzer.args([&known, &committed]))
        };
        if outcome.is_err() {
            broken.push(name.as_str());
        } else if options.minimise {
            minimise(&program(&fuzzers, name), &committed, &known)?;
        }
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(format!(
        "inputs broke {}; they are in {}. Fix it and commit the input as tests/fuzz/corpus/TARGET/found-WHAT",
        broken.join(", "),
        crashes.display()
    ))
}

/// Keeps of both folders the fewest inputs that reach what all of them reach.
fn minimise(fuzzer: &std::process::Command, committed: &Path, known: &Path) -> Outcome {
    let merged = known.with_extension("merged");
    let _ = fs::remove_dir_all(&merged);
    folder(&merged)?;
    let mut merge = sh::command(&fuzzer.get_program().to_string_lossy());
    // Which edges, not how often each: the files stay few.
    merge.args(["-set_cover_merge=1", "-use_counters=0", "-verbosity=0"]);
    sh::run(merge.args([&merged, known, committed]))?;
    let found =
        |file: &Path| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("found-"));
    for file in list(committed)?.iter().filter(|file| !found(file)) {
        fs::remove_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    for file in list(&merged)? {
        let Some(name) = file.file_name().filter(|_| !found(&file)) else { continue };
        fs::copy(&file, committed.join(name)).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// The targets, as the files of `fuzz_targets` name them.
fn names() -> Result<Vec<String>, String> {
    let files = list(&sh::root().join("tests/fuzz/fuzz_targets"))?;
    Ok(files.iter().filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())).collect())
}

/// Builds what is named; with a `host`, instrumented. Yields where the programs lie.
fn build(what: &str, host: Option<&str>) -> Result<PathBuf, String> {
    let target = sh::target_dir().join(if host.is_some() { "fuzz/instrumented" } else { "fuzz/plain" });
    let mut cargo = sh::cargo(&format!("build --quiet --release --locked {MANIFEST} {what} --target-dir"));
    cargo.arg(&target);
    let Some(host) = host else {
        sh::run(&mut cargo)?;
        return Ok(target.join("release"));
    };
    // Naming the target keeps the flags away from build scripts and macros, which link no libFuzzer.
    cargo.args(["--target", host]).env("CARGO_ENCODED_RUSTFLAGS", INSTRUMENT.join("\u{1f}"));
    sh::run(&mut cargo)?;
    Ok(target.join(host).join("release"))
}

fn host() -> Result<String, String> {
    let text = sh::output(sh::command("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".into())
}

/// The longest input that the target wants.
fn longest(programs: &Path, name: &str) -> Result<String, String> {
    Ok(sh::output(program(programs, "seeds").arg(name))?.trim().to_owned())
}

fn program(folder: &Path, name: &str) -> std::process::Command {
    sh::command(&folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)).to_string_lossy())
}

fn folder(path: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_path_buf())
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    Ok(files)
}
