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
    match (peer.killed, &peer.result, peer.exit) {
        (true, ..) => format!("killed at: {}", peer.status),
        (false, Some(_), _) => format!("finished: {}", peer.status),
        (false, None, Some(exit)) => format!("ended without a result ({exit})"),
        (false, None, None) => peer.status.clone(),
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

/// `Ok` with a sentence when every process that was not killed ended well and all have the same frame and checksum.
pub(crate) fn verdict(peers: &[Peer]) -> Result<String, String> {
    let mut agreed: Option<(usize, &str, &str)> = None;
    let mut survivors = 0;
    for (index, peer) in peers.iter().enumerate().filter(|(_, peer)| !peer.killed) {
        let Some(result) = peer.result.as_deref() else {
            return Err(format!("process {index} gave no result; its last lines:\n{}", last_lines(peer)));
        };
        if peer.exit.is_none_or(|exit| !exit.success()) {
            return Err(format!("process {index} did not end well; its last lines:\n{}", last_lines(peer)));
        }
        let frame = value(result, "frame").or_else(|| value(result, "frames")).unwrap_or("?");
        let checksum = value(result, "checksum").unwrap_or("?");
        survivors += 1;
        match agreed {
            None => agreed = Some((index, frame, checksum)),
            Some((_, f, c)) if (f, c) == (frame, checksum) => {}
            Some((first, f, c)) => {
                return Err(format!(
                    "processes disagree: {first} has checksum {c} at frame {f}, {index} has {checksum} at frame {frame}"
                ));
            }
        }
    }
    match agreed {
        Some((_, frame, checksum)) if survivors > 1 => {
            Ok(format!("all {survivors} processes agree: checksum {checksum} at frame {frame}"))
        }
        _ => Err("fewer than two processes finished: nothing to compare".into()),
    }
}

fn last_lines(peer: &Peer) -> String {
    let from = peer.lines.len().saturating_sub(12);
    format!("    {}", peer.lines[from..].join("\n    "))
}
