//! `cargo xtask versus rollback`: retick beside its peers in one run, as ratios, each bar beside its figure.
//!
//! Fed by: lines of figures from the harness in `benches/versus`. Yields: tables on the terminal and in
//! `docs/measurements/rollback.md`. Never: compares figures of two runs, or fails because of a time.

use super::{build, machine, medians, write};
use crate::sh::{self, Outcome};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Options of `cargo xtask versus rollback`.
#[derive(Args)]
pub(crate) struct Options {
    /// Runs of each match, interleaved; the table has the median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Only this scenario: A perfect, B 60 ms one way and 2 % loss, C the same with held inputs
    #[arg(long)]
    scenario: Option<String>,
    /// Only so many peers
    #[arg(long)]
    peers: Option<u32>,
    /// Counts no instructions (that needs valgrind and takes most of the time)
    #[arg(long)]
    no_instructions: bool,
}

const LIBRARIES: [&str; 5] = ["ideal", "retick", "retick-manual", "fortress", "ggrs"];
const SCENARIOS: [&str; 3] = ["A", "B", "C"];
const PEERS: [u32; 3] = [2, 4, 10];
/// Measured and earlier ticks under callgrind, which is 50 times slower and counts the same in every run.
const COUNTED_TICKS: u32 = 60;
const REPORT: &str = "docs/measurements/rollback.md";

/// A bar of the issues on a figure of retick; the figure is a ratio where `over` names what it is divided by.
struct Bar {
    scenario: &'static str,
    peers: u32,
    name: &'static str,
    figure: &'static str,
    over: Option<&'static str>,
    most: f64,
}

const BARS: &[Bar] = &[
    bar("B", 10, "CPU per peer-frame against the floor", "lib_ns", Some("ideal"), 4.0),
    bar("B", 10, "instructions per peer-frame against the floor", "instructions", Some("ideal"), 4.0),
    bar("B", 10, "frames that differ between peers", "diverged", None, 0.0),
    bar("B", 10, "heap allocations of 600 frames of all peers", "allocations", None, 0.0),
    bar("B", 2, "heap allocations of 600 frames of all peers", "allocations", None, 0.0),
    bar("B", 10, "ticks without a new frame", "stalls", None, 0.0),
    bar("B", 10, "saves per frame", "saves", None, 2.0),
    bar("B", 10, "loads per frame", "loads", None, 1.0),
];

const fn bar(
    scenario: &'static str,
    peers: u32,
    name: &'static str,
    figure: &'static str,
    over: Option<&'static str>,
    most: f64,
) -> Bar {
    Bar { scenario, peers, name, figure, over, most }
}

/// Medians by scenario, peers and library.
type Figures = BTreeMap<(String, u32, String), BTreeMap<String, f64>>;

/// Runs it.
pub(crate) fn run(options: &Options) -> Outcome {
    let program = build("versus-rollback")?;
    let counts = !options.no_instructions && sh::has("valgrind");
    if !counts && !options.no_instructions {
        println!("note: valgrind is not in PATH; no instructions are counted");
    }
    let mut figures = Figures::new();
    for scenario in SCENARIOS.iter().filter(|s| options.scenario.as_deref().is_none_or(|only| only == **s)) {
        for peers in PEERS.iter().filter(|n| options.peers.is_none_or(|only| only == **n)) {
            println!("{peers} peers, scenario {scenario}");
            measure(&program, scenario, *peers, options.runs, counts, &mut figures)?;
        }
    }
    let report = report(&figures);
    println!("\n{report}");
    if options.scenario.is_some() || options.peers.is_some() {
        return Ok(());
    }
    write(REPORT, &format!("{HEAD}{}\n{report}", machine()))
}

const HEAD: &str = "# Rollback: retick beside its peers

Written by `cargo xtask versus rollback`; every figure of a table is from one run on one machine, so judge by the ratios.
A peer-frame is one peer's work for one frame: the game's thread and the network thread together, without system calls, without the
game's own step and copies of its state. Sealing is left out of the CPU figures, because none of the others encrypts; its 16 bytes a packet
are in the bytes per second and in the last column left out. `ideal` is a floor, not a product: no handshake, no security, no leavers.
`retick` is called when a datagram arrives, as its own thread would be; `retick-manual` once per frame, as a game without that thread does it, and
as the others are. A: perfect network. B: 60 ms one way, 2 % loss, inputs change in every frame. C: like B, inputs are held and change 3 times a
second. Inputs are 4 bytes, the state is 1 KB; fortress has a window of 16, since its default of 8 stalls with three peers. CPU: median of all peer-frames of
600 frames after 200, and of the runs; the instruments' own share is contained. Instructions: callgrind, 60 frames after 60.

";

fn measure(
    program: &Path,
    scenario: &str,
    peers: u32,
    runs: u32,
    counts: bool,
    into: &mut Figures,
) -> Outcome {
    let mut all: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let what = [format!("scenario={scenario}"), format!("n={peers}")];
    for _ in 0..runs {
        for library in LIBRARIES {
            let line = sh::output(
                sh::command(&program.to_string_lossy()).arg(format!("lib={library}")).args(&what),
            )?;
            all.entry(library).or_default().push(line);
        }
    }
    for (library, lines) in all {
        let mut row = medians(&lines);
        if counts {
            row.insert("instructions".into(), instructions(program, library, &what, peers)?);
        }
        into.insert((scenario.to_owned(), peers, library.to_owned()), row);
    }
    Ok(())
}

/// Instructions per peer-frame that callgrind collects.
fn instructions(program: &Path, library: &str, what: &[String], peers: u32) -> Result<f64, String> {
    let file = program.with_file_name(format!("callgrind.{library}"));
    let mut valgrind = sh::command("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind", "--collect-atstart=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", file.display())).arg(program);
    valgrind.arg(format!("lib={library}")).args(what);
    valgrind.args([format!("ticks={COUNTED_TICKS}"), format!("warm={COUNTED_TICKS}")]);
    sh::output(&mut valgrind)?;
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse::<f64>().ok());
    let total = total.ok_or_else(|| format!("{}: no totals", file.display()))?;
    Ok(total / f64::from(peers * COUNTED_TICKS))
}

/// The tables, as Markdown that is also readable on a terminal.
fn report(figures: &Figures) -> String {
    let mut text = String::from("## Bars\n\n| | figure | bar | |\n|--|--:|--:|--|\n");
    for bar in BARS {
        let of = |library: &str, name: &str| {
            figures.get(&(bar.scenario.to_owned(), bar.peers, library.to_owned()))?.get(name).copied()
        };
        let Some(figure) = of("retick", bar.figure) else { continue };
        let (figure, sign) = match bar.over {
            Some(over) => (figure / of(over, bar.figure).unwrap_or(f64::NAN), " ×"),
            None => (figure, ""),
        };
        let verdict = if figure <= bar.most { "reached" } else { "missed" };
        let (scenario, peers, name, most) = (bar.scenario, bar.peers, bar.name, bar.most);
        let digits = if figure.fract() == 0.0 { 0 } else { 2 };
        let _ = writeln!(
            text,
            "| {name}, N = {peers}, {scenario} | {figure:.digits$}{sign} | ≤ {most}{sign} | {verdict} |"
        );
    }
    text.push_str("\n## All figures\n\n");
    text.push_str("| scenario | N | library | µs | × ideal | of it game thread | k instr. | × ideal | packets/s per link | B/s per link with headers | before sealing | allocs | saves | loads | resim. | stalls | diverged |\n");
    text.push_str("|--|--:|--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for ((scenario, peers, library), row) in figures {
        let floor = &figures[&(scenario.clone(), *peers, "ideal".to_owned())];
        let get = |name: &str| row.get(name).copied().unwrap_or(f64::NAN);
        let ratio = |name: &str| get(name) / floor.get(name).copied().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "| {scenario} | {peers} | {library} | {:.2} | {:.1} | {:.2} | {:.1} | {:.1} | {:.1} | {:.0} | {:.0} | {:.1} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
            get("lib_ns") / 1000.0,
            ratio("lib_ns"),
            get("game_half_ns") / 1000.0,
            get("instructions") / 1000.0,
            ratio("instructions"),
            get("packets_s"),
            get("wire_bytes_s"),
            get("wire_bytes_s") - get("tag_bytes_s"),
            get("allocs"),
            get("saves"),
            get("loads"),
            get("resim"),
            get("stalls"),
            get("diverged"),
        );
    }
    text.replace("NaN", "–")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_bar_is_called_missed() {
        let row = |ns: f64| BTreeMap::from([("lib_ns".to_owned(), ns)]);
        let mut figures = Figures::new();
        figures.insert(("B".into(), 10, "ideal".into()), row(100.0));
        figures.insert(("B".into(), 10, "retick".into()), row(500.0));
        assert!(report(&figures).contains("5 × | ≤ 4 × | missed"));
        figures.insert(("B".into(), 10, "retick".into()), row(300.0));
        assert!(report(&figures).contains("3 × | ≤ 4 × | reached"));
    }
}
