//! `cargo xtask versus transport`: retick's channel beside other transports, each bar beside its figure.
//!
//! Fed by: lines of figures from `benches/versus/transport`. Yields: a table on the terminal and in
//! `docs/measurements/transport.md`. Never: compares figures of two runs, or fails because of a time.

use super::{build, machine, medians, write};
use crate::sh::{self, Outcome};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Options of `cargo xtask versus transport`.
#[derive(Args)]
pub(crate) struct Options {
    /// Runs of each measurement, interleaved; the table has the median
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// One short run of each, to see that all of it works; writes no report
    #[arg(long)]
    quick: bool,
    /// Only measurements whose name contains this; writes no report
    #[arg(long)]
    only: Option<String>,
}

impl Options {
    /// As a test: all of it works.
    pub(crate) const QUICK: Self = Self { runs: 1, quick: true, only: None };
}

const REPORT: &str = "docs/measurements/transport.md";

/// One call of the harness per library, and the rows that come of it.
struct Measurement {
    name: &'static str,
    words: &'static [&'static str],
    seconds: &'static str,
    libraries: &'static [&'static str],
    rows: &'static [Row],
}

/// A line of the table.
struct Row {
    what: &'static str,
    figure: &'static str,
    /// Which way of driving retick is judged.
    subject: &'static str,
    bar: Bar,
}

enum Bar {
    /// Only told.
    None,
    AtMost(f64),
    /// Times the same figure of that library.
    Times(&'static str, f64),
}

const fn row(what: &'static str, figure: &'static str, bar: Bar) -> Row {
    Row { what, figure, subject: "retick", bar }
}

const ALL: &[&str] = &["retick", "enet", "renet", "raw"];
const RELIABLE: &[&str] = &["retick", "enet", "renet"];
/// The other libraries' columns.
const PEERS: &[&str] = &["enet", "renet", "raw"];

const MEASUREMENTS: &[Measurement] = &[
    Measurement {
        name: "unreliable-overhead",
        words: &["overhead", "reliable=0"],
        seconds: "5",
        libraries: ALL,
        rows: &[
            row(
                "lone unreliable message of 64 bytes: bytes that its packet has besides",
                "lone",
                Bar::AtMost(25.0),
            ),
            row("the same, all packets both ways shared among the messages", "average", Bar::None),
        ],
    },
    Measurement {
        name: "reliable-overhead",
        words: &["overhead", "reliable=1"],
        seconds: "5",
        libraries: RELIABLE,
        rows: &[
            row(
                "lone reliable message of 64 bytes: bytes that its packet has besides",
                "lone",
                Bar::AtMost(31.0),
            ),
            row("the same, all packets both ways shared among the messages", "average", Bar::None),
        ],
    },
    Measurement {
        name: "ping",
        words: &["ping", "reliable=0"],
        seconds: "2",
        libraries: &["retick-turn", "retick", "enet", "renet", "raw"],
        rows: &[
            Row {
                what: "half a round trip on the loopback, driver to driver, µs, median",
                figure: "half_p50_us",
                subject: "retick-turn",
                bar: Bar::Times("raw", 1.15),
            },
            Row {
                what: "the same, p99",
                figure: "half_p99_us",
                subject: "retick-turn",
                bar: Bar::Times("raw", 1.3),
            },
            row(
                "half a round trip, game's thread to game's thread through the IO threads, µs, median",
                "half_p50_us",
                Bar::None,
            ),
            row("the same, p99", "half_p99_us", Bar::None),
        ],
    },
    Measurement {
        name: "steady",
        words: &["steady"],
        seconds: "20",
        libraries: RELIABLE,
        rows: &[
            row(
                "reliable message 20 times a second, 5 % loss: later than one way (50 ms), ms, p99",
                "over_p99_ms",
                Bar::AtMost(25.0),
            ),
            row("the same, p99.9", "over_p999_ms", Bar::None),
        ],
    },
    Measurement {
        name: "burst",
        words: &["burst", "count=10000"],
        seconds: "0",
        libraries: RELIABLE,
        rows: &[
            row(
                "10,000 reliable messages of 64 bytes at once, 5 % loss: until the last is there, ms",
                "took_ms",
                Bar::AtMost(400.0),
            ),
            row("the same: bytes sent per byte of payload", "up_ratio", Bar::AtMost(1.15)),
        ],
    },
    Measurement {
        name: "megabyte",
        words: &["burst", "total=1000000"],
        seconds: "0",
        libraries: RELIABLE,
        rows: &[
            row(
                "1 MB reliable at once, 5 % loss: until the last byte is there, ms",
                "took_ms",
                Bar::AtMost(500.0),
            ),
            row("the same: bytes sent per byte of payload", "up_ratio", Bar::AtMost(1.15)),
        ],
    },
    Measurement {
        name: "narrow-burst",
        words: &["burst", "count=10000", "mbit=10"],
        seconds: "0",
        libraries: RELIABLE,
        rows: &[
            row(
                "10,000 reliable messages of 64 bytes, 5 % loss, through 10 Mbit/s: times of the line's own time",
                "line_ratio",
                Bar::AtMost(1.15),
            ),
            row("the same: bytes sent per byte of payload", "up_ratio", Bar::None),
        ],
    },
    Measurement {
        name: "narrow-megabyte",
        words: &["burst", "total=1000000", "mbit=10"],
        seconds: "0",
        libraries: RELIABLE,
        rows: &[
            row(
                "1 MB reliable, 5 % loss, through 10 Mbit/s: times of the line's own time",
                "line_ratio",
                Bar::AtMost(1.15),
            ),
            row("the same: bytes sent per byte of payload", "up_ratio", Bar::None),
        ],
    },
];

/// Medians by library.
type Figures = BTreeMap<&'static str, BTreeMap<String, f64>>;

/// Runs it.
pub(crate) fn run(options: &Options) -> Outcome {
    let program = build("versus-transport")?;
    let mut table = String::from(HEADER);
    let runs = if options.quick { 1 } else { options.runs };
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| name.contains(only));
    for measurement in MEASUREMENTS.iter().filter(|measurement| wanted(measurement.name)) {
        let seconds = if options.quick { "1" } else { measurement.seconds };
        let figures = measure(&program, measurement, seconds, runs)?;
        for row in measurement.rows {
            table.push_str(&line(row, &figures));
        }
    }
    println!("\n{table}");
    if options.quick || options.only.is_some() {
        return Ok(());
    }
    write(REPORT, &format!("{HEAD}{}\n{table}", machine()))
}

const HEAD: &str = "# Transport: retick beside its peers

Written by `cargo xtask versus transport`; every row is from interleaved runs on one machine, so judge by the ratios. Two processes on the loopback,
between them, where the row says so, a UDP proxy with the seeded conditioner of `src/netem.rs`: 50 ± 10 ms one way, 5 % loss, 10 Mbit/s with a queue of 64 KB.
retick is sealed and runs on its IO thread with real sockets; `driver to driver` makes the same turns on the caller's thread, which leaves out the
hand-over to the game's thread. ENet (`rusty_enet`, in the clear), renet (over netcode, sealed) with their defaults; raw is bare UDP, in the clear, the limit.
Bytes are UDP payload. The line's own time is payload by rate, and one way. Medians of the runs.

";

const HEADER: &str =
    "| | retick | ENet | renet | raw | against the best peer | bar | |\n|--|--:|--:|--:|--:|--:|--:|--|\n";

fn measure(program: &Path, measurement: &Measurement, seconds: &str, runs: u32) -> Result<Figures, String> {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let (row, options) = measurement.words.split_first().ok_or("a measurement without words")?;
    for round in 1..=runs {
        for &library in measurement.libraries {
            let mut command = sh::command(&program.to_string_lossy());
            command.args([row, library]).args(options);
            command.args([format!("seconds={seconds}"), format!("seed={round}")]);
            let line = sh::output(&mut command)?;
            print!("{}: {line}", measurement.name);
            lines.entry(library).or_default().push(line);
        }
    }
    Ok(lines.into_iter().map(|(library, lines)| (library, medians(&lines))).collect())
}

fn line(row: &Row, figures: &Figures) -> String {
    let of = |library: &str| figures.get(library).and_then(|row_of| row_of.get(row.figure)).copied();
    let ours = of(row.subject).unwrap_or(f64::NAN);
    let mut text = format!("| {} | {}", row.what, number(ours));
    for peer in PEERS {
        let _ = write!(text, " | {}", of(peer).map_or("–".into(), number));
    }
    // Bare UDP delivers nothing reliably and adds nothing: it is the limit, not a peer.
    let best =
        PEERS.iter().filter(|peer| **peer != "raw").filter_map(|peer| of(peer)).fold(f64::INFINITY, f64::min);
    let ratio = if best.is_finite() && best > 0.0 { format!("{:.2} ×", ours / best) } else { "–".into() };
    let (bar, reached) = match row.bar {
        Bar::None => (String::new(), None),
        Bar::AtMost(most) => (format!("≤ {most}"), Some(ours <= most)),
        Bar::Times(library, most) => {
            let times = ours / of(library).unwrap_or(f64::NAN);
            (format!("{times:.2} of ≤ {most} × {library}"), Some(times <= most))
        }
    };
    let verdict = match reached {
        None => "",
        Some(true) => "reached",
        Some(false) => "missed",
    };
    let _ = writeln!(text, " | {ratio} | {bar} | {verdict} |");
    text
}

fn number(figure: f64) -> String {
    let digits = if figure.fract() == 0.0 || figure.abs() >= 100.0 { 0 } else { 2 };
    format!("{figure:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ours: f64, raw: f64) -> Figures {
        let row = |value: f64| BTreeMap::from([("x".to_owned(), value)]);
        Figures::from([("retick", row(ours)), ("enet", row(8.0)), ("raw", row(raw))])
    }

    #[test]
    fn a_bar_is_judged_by_the_figure_or_by_the_ratio() {
        let at_most = row("what", "x", Bar::AtMost(25.0));
        assert_eq!(
            line(&at_most, &figures(24.0, 2.0)),
            "| what | 24 | 8 | – | 2 | 3.00 × | ≤ 25 | reached |\n"
        );
        assert!(line(&at_most, &figures(25.5, 2.0)).contains("25.50 | 8 | – | 2 | 3.19 × | ≤ 25 | missed"));
        let times = row("what", "x", Bar::Times("raw", 1.15));
        assert!(line(&times, &figures(11.0, 10.0)).contains("1.10 of ≤ 1.15 × raw | reached"));
        assert!(line(&times, &figures(12.0, 10.0)).contains("missed"));
    }

    #[test]
    fn a_figure_that_was_not_measured_reaches_no_bar() {
        assert!(line(&row("what", "y", Bar::AtMost(25.0)), &figures(1.0, 1.0)).contains("missed"));
    }
}
