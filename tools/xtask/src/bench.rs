//! `cargo xtask bench`: what whole meshes and real processes cost and reach, each bar beside its figure.
//!
//! Fed by: lines of figures from `benches/foundation`, and matches of the sample over UDP. Yields: a table on the terminal
//! and in `docs/measurements/foundation.md`. Never: fails because of a time; a match that goes wrong does fail.

use crate::peers::value;
use crate::sh::{self, Outcome};
use crate::{demo, versus};
use clap::{Args, ValueEnum};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,
    /// Meshes of which a peer dies, per network
    #[arg(long, default_value_t = 300)]
    seeds: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// CPU of a match in virtual time
    Cpu,
    /// Frames that came in time
    Share,
    /// What the survivors of a death lose
    Deaths,
    /// Heap allocations of steady frames
    Allocations,
    /// Ten processes over UDP
    Match,
    /// The same, one of them killed
    Kill,
}

const PARTS: [Part; 6] = [Part::Cpu, Part::Share, Part::Deaths, Part::Allocations, Part::Match, Part::Kill];
const REPORT: &str = "docs/measurements/foundation.md";
/// Whom the killed match loses, and when.
const VICTIM: (usize, u32) = (3, 600);

impl Default for Options {
    /// Everything.
    fn default() -> Self {
        Self { only: Vec::new(), seeds: 300 }
    }
}

/// One line of the report.
struct Row {
    what: String,
    figure: String,
    bar: String,
    reached: bool,
}

/// Runs it.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    for part in PARTS.iter().filter(|part| options.only.is_empty() || options.only.contains(part)) {
        match measure(*part, options.seeds) {
            Ok(found) => rows.extend(found),
            Err(problem) => {
                println!("{problem}");
                problems.push(problem);
            }
        }
    }
    let table = table(&rows);
    println!("\n{table}");
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    if options.only.is_empty() {
        let file = sh::root().join(REPORT);
        let text = format!("{HEAD}{}\n{table}", versus::machine());
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("written to {REPORT}");
    }
    Ok(())
}

const HEAD: &str = "# Foundation: whole meshes and real processes

Written by `cargo xtask bench`. Simulated matches run the real session and node, sealed, with the default configuration (input delay 2, window 16)
over a seeded network in virtual time. A lost frame is a tick in which a frame was due and none could be begun. Processes are those of the C
sample, over UDP on one machine; each sends through 40 ms ± 10 ms, 2 % loss and 1 % duplicates, and compares every frame (desync level 2).

";

fn measure(part: Part, seeds: u32) -> Result<Vec<Row>, String> {
    Ok(match part {
        Part::Cpu => {
            let lines = lines(&["cpu"])?;
            let least = lines.iter().map(|line| number(line, "cpu_s")).fold(f64::INFINITY, f64::min);
            vec![most(
                "CPU of a match of 3,600 frames with 4 peers, without the game's own work, s",
                least,
                0.2,
            )]
        }
        Part::Share => lines(&["share"])?
            .iter()
            .map(|line| Row {
                what: format!("frames in time, {} peers, 60 ms, 2 % loss", text(line, "peers")),
                figure: format!("{:.3} %", number(line, "share")),
                bar: "≥ 99.9 %".into(),
                reached: number(line, "share") >= 99.9,
            })
            .collect(),
        Part::Deaths => {
            lines(&["deaths", &seeds.to_string()])?.iter().flat_map(|line| deaths(line)).collect()
        }
        Part::Allocations => allocations(&lines(&["allocations"])?)?,
        Part::Match => {
            let played = demo::figures(&ten())?;
            vec![
                most(
                    "ten processes, 60 s: longest wait of a player, ms",
                    played.longest_stall_ms as f64,
                    100.0,
                ),
                agreed("ten processes, 60 s: frames on which all agree", played.compared),
            ]
        }
        Part::Kill => {
            let played = demo::figures(&demo::Options { kill: vec![VICTIM], ..ten() })?;
            vec![
                most(
                    "one of ten is killed: longest wait of a survivor, ms",
                    played.longest_stall_ms as f64,
                    500.0,
                ),
                agreed("one of ten is killed: frames on which the survivors agree", played.compared),
            ]
        }
    })
}

fn ten() -> demo::Options {
    demo::Options { peers: 10, frames: 3600, ..demo::Options::default() }
}

fn deaths(line: &str) -> Vec<Row> {
    let (network, median, p99) = match value(line, "network") {
        Some("ordinary") => ("60 ms, 2 % loss", 15.0, 24.0),
        Some("awful") => ("60 ms + 40 ms jitter, 20 % loss", 18.0, 40.0),
        // A mesh that went wrong has a line of its own.
        _ => return Vec::new(),
    };
    if value(line, "figure") == Some("death_failed") {
        return Vec::new();
    }
    let what = format!("one of 4 to 10 peers dies, {network}, {} seeds", text(line, "seeds"));
    let told = |name: &str, median: &str, p99: &str| Row {
        what: format!("{what}: {name}, median / p99"),
        figure: format!("{} / {}", text(line, median), text(line, p99)),
        bar: String::new(),
        reached: true,
    };
    vec![
        most(&format!("{what}: frames that a survivor loses, median"), number(line, "each_median"), median),
        most(&format!("{what}: frames that a survivor loses, p99"), number(line, "each_p99"), p99),
        told("the worst survivor of each mesh", "median", "p99"),
        told("the same when nobody dies", "calm_median", "calm_p99"),
        most(&format!("{what}: divergences, splits, stops"), number(line, "failed"), 0.0),
    ]
}

fn allocations(lines: &[String]) -> Result<Vec<Row>, String> {
    let of = |name: &str| lines.iter().map(|line| number(line, name)).sum::<f64>();
    let control = lines.iter().find(|line| value(line, "figure") == Some("allocations_control"));
    let is_one = |line: &str, name: &str| value(line, name) == Some("1");
    let counted = control.is_some_and(|line| is_one(line, "game_half") && is_one(line, "network_half"));
    if !counted {
        return Err("the counter of allocations does not count".into());
    }
    Ok(vec![
        most(
            "heap allocations of the game half, all networks and sizes, after 600 ticks",
            of("game_half") - 1.0,
            0.0,
        ),
        most("heap allocations of the network half, likewise", of("network_half") - 1.0, 0.0),
    ])
}

fn most(what: &str, figure: f64, bar: f64) -> Row {
    let digits = if figure.fract() == 0.0 { 0 } else { 3 };
    Row {
        what: what.into(),
        figure: format!("{figure:.digits$}"),
        bar: format!("≤ {bar}"),
        reached: figure <= bar,
    }
}

fn agreed(what: &str, compared: usize) -> Row {
    Row { what: what.into(), figure: compared.to_string(), bar: "all 3600".into(), reached: compared >= 3600 }
}

/// The lines of one figure.
fn lines(words: &[&str]) -> Result<Vec<String>, String> {
    let target = sh::target_dir().join("foundation");
    let mut cargo =
        sh::cargo("build --quiet --release --locked --manifest-path benches/foundation/Cargo.toml");
    sh::run(cargo.arg("--target-dir").arg(&target))?;
    let program: PathBuf = target.join("release/bench-foundation");
    let mut command = sh::command(&program.to_string_lossy());
    command.args(words);
    println!("$ {}", sh::text(&command));
    let output = sh::output(&mut command)?;
    print!("{output}");
    Ok(output.lines().map(str::to_owned).collect())
}

fn text<'a>(line: &'a str, name: &str) -> &'a str {
    value(line, name).unwrap_or("?")
}

fn number(line: &str, name: &str) -> f64 {
    text(line, name).parse().unwrap_or(f64::NAN)
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from("| | figure | bar | |\n|--|--:|--:|--|\n");
    for Row { what, figure, bar, reached } in rows {
        let verdict = match (bar.as_str(), reached) {
            ("", _) => "",
            (_, true) => "reached",
            (_, false) => "missed",
        };
        let _ = writeln!(out, "| {what} | {figure} | {bar} | {verdict} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_does_not_count_is_an_error() {
        let line = |control: u32| {
            vec![
                format!("figure=allocations_control game_half={control} network_half={control}"),
                "figure=allocations game_half=0 network_half=2".to_owned(),
            ]
        };
        assert!(allocations(&line(0)).is_err());
        let rows = allocations(&line(1)).expect("it counts");
        assert_eq!(rows.iter().map(|row| row.reached).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn deaths_are_judged_by_their_network() {
        let rows = deaths(
            "figure=deaths network=awful seeds=9 each_median=18 each_p99=41 median=20 p99=50 failed=0",
        );
        assert_eq!(rows.iter().map(|row| row.reached).collect::<Vec<_>>(), [true, false, true, true, true]);
        assert!(deaths("figure=death_failed network=awful seed=3").is_empty());
    }
}
