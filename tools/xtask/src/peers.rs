//! The processes of a match: starts them, collects their lines, kills them.
//!
//! Fed by: commands to start. Yields: each process's lines in order of arrival. Never: leaves a process behind.

use std::io::{BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines kept of each process, to be shown when it fails.
const KEPT_LINES: usize = 40;

/// One process of the match.
pub(crate) struct Peer {
    child: Child,
    /// Its newest lines.
    pub(crate) lines: Vec<String>,
    /// Its newest status line.
    pub(crate) status: String,
    /// Its line of figures, once it printed one.
    pub(crate) result: Option<String>,
    /// How it ended.
    pub(crate) exit: Option<ExitStatus>,
    /// We killed it on purpose.
    pub(crate) killed: bool,
}

/// All processes, killed on drop.
pub(crate) struct Peers {
    /// By number, the host first.
    pub(crate) list: Vec<Peer>,
    sender: Sender<(usize, String)>,
    receiver: Receiver<(usize, String)>,
}

impl Peers {
    /// None yet.
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { list: Vec::new(), sender, receiver }
    }

    /// Starts the next one.
    pub(crate) fn start(&mut self, mut command: Command) -> Result<(), String> {
        let shown = crate::sh::text(&command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`{shown}` could not be started: {error}"))?;
        let index = self.list.len();
        if let Some(pipe) = child.stdout.take() {
            self.read(index, pipe);
        }
        if let Some(pipe) = child.stderr.take() {
            self.read(index, pipe);
        }
        let (lines, status) = (Vec::new(), "starting".into());
        self.list.push(Peer { child, lines, status, result: None, exit: None, killed: false });
        Ok(())
    }

    /// The next line of any process, if one comes in time; it is noted with its process already.
    pub(crate) fn next_line(&mut self, timeout: Duration) -> Option<(usize, String)> {
        let (index, line) = match self.receiver.recv_timeout(timeout) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        let peer = &mut self.list[index];
        if line.starts_with("arena ") && value(&line, "checksum").is_some() {
            peer.result = Some(line.clone());
        } else if frame_of(&line).is_some() {
            peer.status.clone_from(&line);
        }
        if peer.lines.len() == KEPT_LINES {
            peer.lines.remove(0);
        }
        peer.lines.push(line.clone());
        Some((index, line))
    }

    /// Notes who ended; true when all have.
    pub(crate) fn all_ended(&mut self) -> bool {
        for peer in self.list.iter_mut().filter(|peer| peer.exit.is_none()) {
            peer.exit = peer.child.try_wait().ok().flatten();
        }
        self.list.iter().all(|peer| peer.exit.is_some())
    }

    /// SIGKILL: the process cannot say goodbye.
    pub(crate) fn kill(&mut self, index: usize) {
        let peer = &mut self.list[index];
        peer.killed = true;
        // It may have ended by itself just now; then there is nothing to kill.
        let _ = peer.child.kill();
    }

    fn read(&self, index: usize, pipe: impl Read + Send + 'static) {
        let sender = self.sender.clone();
        // A status line may end with "erase to the end of the line" or a carriage return.
        thread::spawn(move || {
            let mut line = Vec::new();
            for byte in BufReader::new(pipe).bytes().map_while(Result::ok) {
                if byte != b'\n' && byte != b'\r' {
                    line.push(byte);
                    if !line.ends_with(b"\x1b[K") {
                        continue;
                    }
                }
                let text = plain(&line);
                line.clear();
                if !text.is_empty() && sender.send((index, text)).is_err() {
                    return;
                }
            }
            // The last line may have no end, and the receiver may be gone by then.
            if !line.is_empty() {
                let _ = sender.send((index, plain(&line)));
            }
        });
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        for peer in &mut self.list {
            if peer.exit.is_none() {
                let _ = peer.child.kill();
                let _ = peer.child.wait();
            }
        }
    }
}

/// Waits for a line until `deadline`, and gives it to `take` until that returns something.
pub(crate) fn wait_for<T>(
    peers: &mut Peers,
    deadline: Instant,
    mut take: impl FnMut(&str) -> Option<T>,
) -> Option<T> {
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        if let Some((_, line)) = peers.next_line(left.min(Duration::from_millis(100))) {
            if let Some(found) = take(&line) {
                return Some(found);
            }
        } else if peers.all_ended() {
            return None;
        }
    }
}

/// The value of `key=value` among the words of a line.
pub(crate) fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    pairs(line).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The frame that a status line (`frame=120 lag=3 …`) tells.
pub(crate) fn frame_of(line: &str) -> Option<u32> {
    value(line, "frame")?.parse().ok()
}

/// Every `key=value` of a line.
pub(crate) fn pairs(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split_whitespace().filter_map(|word| word.split_once('='))
}

/// Text without terminal control sequences.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else if !c.is_control() {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name() {
        let line = "arena peer=2 frames=1800 checksum=00ff";
        assert_eq!(value(line, "frames"), Some("1800"));
        assert_eq!(value(line, "checksum"), Some("00ff"));
        assert_eq!(value(line, "rames"), None);
        assert_eq!(frame_of("frame=120 lag=3"), Some(120));
        assert_eq!(frame_of(line), None);
    }

    #[test]
    fn control_sequences_are_taken_out() {
        assert_eq!(plain(b"\x1b[2K\x1b[31mred\x1b[0m frame=3 "), "red frame=3");
    }
}
