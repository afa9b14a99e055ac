//! How a match looks in the terminal: the live lines, the table of figures, and whether all agree.
//!
//! Fed by: the processes' lines. Yields: text, and the verdict. Never: starts or ends a process.

use crate::peers::{Peer, pairs, value};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

/// Draws each process's newest line: in place on a terminal, every 5 seconds elsewhere.
pub(crate) struct Live {
    in_place: bool,
    drawn_at: Option<Instant>,
    drawn_lines: usize,
}

impl Live {
    /// Looks whether there is a terminal.
    pub(crate) fn new() -> Self {
        Self { in_place: std::io::stdout().is_terminal(), drawn_at: None, drawn_lines: 0 }
    }

    /// Draws, if it is time to.
    pub(crate) fn draw(&mut self, peers: &[Peer]) {
        let every = Duration::from_millis(if self.in_place { 200 } else { 5000 });
        if self.drawn_at.is_some_and(|at| at.elapsed() < every) {
            return;
        }
        self.last(peers);
    }

    /// Draws now.
    pub(crate) fn last(&mut self, peers: &[Peer]) {
        self.drawn_at = Some(Instant::now());
        let mut text = String::new();
        if self.in_place && self.drawn_lines > 0 {
            text = format!("\x1b[{}A", self.drawn_lines);
        }
        self.drawn_lines = peers.len();
        for (index, peer) in peers.iter().enumerate() {
            let line = format!("  {index}  {}", state(peer));
            let cut: String = line.chars().take(118).collect();
            text.push_str(if self.in_place { "\x1b[2K" } else { "" });
            text.push_str(&cut);
            text.push('\n');
        }
        if !self.in_place {
            text.push('\n');
        }
        print!("{text}");
        // A closed terminal is no reason to end the match.
        let _ = std::io::stdout().flush();
    }
}

/// What a process is doing, in a few words.
fn state(peer: &Peer) -> String {
    let mut figures: String =
        pairs(&peer.status).map(|(name, value)| format!("{name} {value:<6}")).collect::<Vec<_>>().join(" ");
    if figures.is_empty() {
        figures.clone_from(&peer.status);
    }
    match (peer.killed, &peer.result, peer.exit) {
        (true, ..) => format!("killed    {figures}"),
        (false, Some(_), _) => format!("finished  {figures}"),
        (false, None, Some(exit)) => format!("ended without a result ({exit})"),
        (false, None, None) => format!("          {figures}"),
    }
}

/// The processes' figures as a table, one row each.
pub(crate) fn table(peers: &[Peer]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for result in peers.iter().filter_map(|peer| peer.result.as_deref()) {
        for (name, _) in pairs(result) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
    }
    let mut rows = vec![columns.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()];
    rows[0].insert(0, "process".into());
    for (index, peer) in peers.iter().enumerate() {
        let cell =
            |name: &&str| peer.result.as_deref().and_then(|line| value(line, name)).unwrap_or("-").to_owned();
        let mut row: Vec<String> = columns.iter().map(cell).collect();
        row.insert(0, if peer.killed { format!("{index} (killed)") } else { index.to_string() });
        rows.push(row);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=columns.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:>width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// What the processes must have alike: the last frame, the state there, and the digest of all states on the way.
const ALIKE: [&str; 3] = ["frames", "checksum", "history"];

/// `Ok` with a sentence when every process that was not killed ended well and all have the same figures in [`ALIKE`].
pub(crate) fn verdict(peers: &[Peer]) -> Result<String, String> {
    let mut results = Vec::new();
    for (index, peer) in peers.iter().enumerate().filter(|(_, peer)| !peer.killed) {
        let ended_well = peer.exit.is_some_and(|exit| exit.success());
        match peer.result.as_deref() {
            Some(result) if ended_well => results.push((index, result)),
            _ => {
                return Err(format!(
                    "process {index} did not end well; its last lines:\n{}",
                    last_lines(peer)
                ));
            }
        }
    }
    let Some(((first, expected), others)) = results.split_first().filter(|(_, others)| !others.is_empty())
    else {
        return Err("fewer than two processes finished: nothing to compare".into());
    };
    for name in ALIKE {
        let Some(wanted) = value(expected, name) else {
            return Err(format!("process {first} printed no `{name}`: {expected}"));
        };
        for (index, result) in others {
            let found = value(result, name).unwrap_or("nothing");
            if found != wanted {
                return Err(format!(
                    "processes disagree in `{name}`: {first} has {wanted}, {index} has {found}"
                ));
            }
        }
    }
    let alike = ALIKE.map(|name| format!("{name} {}", value(expected, name).unwrap_or_default())).join(", ");
    Ok(format!("all {} processes agree: {alike}", results.len()))
}

/// The largest value of a figure among the processes that were not killed.
pub(crate) fn largest(peers: &[Peer], name: &str) -> Option<u64> {
    let results = peers.iter().filter(|peer| !peer.killed).filter_map(|peer| peer.result.as_deref());
    results.filter_map(|result| value(result, name)?.parse().ok()).max()
}

fn last_lines(peer: &Peer) -> String {
    let from = peer.lines.len().saturating_sub(12);
    format!("    {}", peer.lines[from..].join("\n    "))
}
