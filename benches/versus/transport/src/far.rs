//! The far end, a process of its own: answers what wants an answer, and notes when the rest came.
//!
//! Fed by: messages; and lines on its input: `clear`, `tell`. Yields: a line of figures for each `tell`.
//! Never: measures anything by a clock of its own, which all processes share.

use crate::endpoints::{self, Listening, Patience};
use crate::message::{Kind, SIZE, message, read};
use crate::system;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// Between two frames of a game.
pub const TICK: Duration = Duration::from_nanos(16_666_667);
/// Most samples that are kept.
const SAMPLES: usize = 1 << 20;

/// How a far end is run.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Most peers.
    pub peers: usize,
    /// Looks at its network once per frame, as a game does; otherwise at once.
    pub ticks: bool,
    /// Where the library cannot wait.
    pub patience: Patience,
}

#[derive(Default)]
struct Notes {
    late_ns: Vec<u64>,
    messages: u64,
    bytes: u64,
    first_sent: u64,
    last_came: u64,
}

impl Notes {
    fn take(&mut self, kind: Kind, sent: u64, size: usize) {
        let now = system::now_ns();
        if self.messages == 0 {
            self.first_sent = sent;
        }
        self.messages += 1;
        self.bytes += size as u64;
        self.last_came = now;
        if kind == Kind::Note && self.late_ns.len() < SAMPLES {
            self.late_ns.push(now.saturating_sub(sent));
        }
    }

    fn line(&mut self) -> String {
        let [p50, p99, p999] = quantiles(&mut self.late_ns, [0.5, 0.99, 0.999]);
        format!(
            "messages={} bytes={} took_ms={:.1} late_p50_ms={p50:.2} late_p99_ms={p99:.2} late_p999_ms={p999:.2}",
            self.messages,
            self.bytes,
            self.last_came.saturating_sub(self.first_sent) as f64 / 1e6,
            p50 = p50 / 1e6,
            p99 = p99 / 1e6,
            p999 = p999 / 1e6,
        )
    }
}

/// Parts of the values, by size.
pub fn quantiles<const N: usize>(values: &mut [u64], parts: [f64; N]) -> [f64; N] {
    values.sort_unstable();
    let last = values.len().saturating_sub(1) as f64;
    parts.map(|part| values.get((last * part) as usize).map_or(f64::NAN, |value| *value as f64))
}

/// Runs as the far end until the input ends.
pub fn run(library: &str, manner: Manner) -> Result<(), String> {
    let heap_before = system::heap();
    let (mut end, at) = endpoints::listen(library, manner.peers, manner.patience)?;
    let lines = lines();
    say(&format!("address={} room={}", at.address, at.room));
    let mut notes = Notes { late_ns: Vec::with_capacity(SAMPLES), ..Notes::default() };
    let heap_noting = (SAMPLES * size_of::<u64>()) as i64;
    let (mut cpu_before, mut answers) = (system::cpu_ns(), Vec::new());
    let mut next = Instant::now();
    loop {
        match lines.try_recv() {
            Ok(line) if line == "clear" => {
                notes.late_ns.clear();
                notes = Notes { late_ns: notes.late_ns, ..Notes::default() };
                cpu_before = system::cpu_ns();
            }
            Ok(_) => {
                let cpu_us = (system::cpu_ns() - cpu_before) as f64 / 1e3;
                let heap = system::heap() - heap_before - heap_noting;
                say(&format!("{} cpu_us={cpu_us:.0} heap={heap} peers={}", notes.line(), end.peers()));
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        let mut came = false;
        end.turn(&mut |peer, bytes| {
            came = true;
            let Some((kind, sent, number)) = read(bytes) else { return };
            let reliable = bytes[1] != 0;
            match kind {
                Kind::Hello => answers.push((peer, reliable, message(Kind::Welcome, number))),
                Kind::Note | Kind::Bulk => notes.take(kind, sent, bytes.len()),
                Kind::Ping => {
                    notes.take(kind, sent, bytes.len());
                    let mut answer: [u8; SIZE] = bytes.try_into().unwrap_or([0; SIZE]);
                    answer[0] = Kind::Pong as u8;
                    answers.push((peer, reliable, answer));
                }
                Kind::Welcome | Kind::Pong => {}
            }
        });
        for (peer, reliable, answer) in answers.drain(..) {
            end.send(peer, reliable, &answer);
        }
        end.flush();
        if manner.ticks {
            next += TICK;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        } else if !came {
            end.wait(Duration::from_millis(5));
        }
    }
}

fn say(line: &str) {
    println!("{line}");
    // A parent that is gone ends us by the end of our input.
    let _ = std::io::stdout().flush();
}

fn lines() -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// A far end that runs; it ends when dropped.
pub struct Far {
    /// Where it listens.
    pub at: Listening,
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Far {
    /// Starts this program once more, as the far end.
    pub fn start(library: &str, manner: Manner) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let yields = manner.patience == Patience::Yields;
        let mut child = Command::new(program)
            .args(["far", library, &manner.peers.to_string()])
            .args([u8::from(manner.ticks).to_string(), u8::from(yields).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the far end: {error}"))?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("the far end has no output")?);
        let at = Listening { address: ([127, 0, 0, 1], 0).into(), room: String::new() };
        let mut far = Self { at, child, orders, answers };
        let line = far.answer()?;
        let address = value(&line, "address").and_then(|address| address.parse().ok());
        far.at = Listening {
            address: address.ok_or_else(|| format!("the far end said: {line}"))?,
            room: value(&line, "room").unwrap_or_default().to_owned(),
        };
        Ok(far)
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => Ok(line.trim_end().to_owned()),
            _ => Err("the far end ended".into()),
        }
    }

    fn order(&mut self, order: &str) -> Result<(), String> {
        let orders = self.orders.as_mut().ok_or("the far end ended")?;
        writeln!(orders, "{order}").map_err(|error| format!("the far end: {error}"))
    }

    /// Forgets what it noted.
    pub fn clear(&mut self) -> Result<(), String> {
        self.order("clear")
    }

    /// What it noted since, as a line of `name=value` words.
    pub fn tell(&mut self) -> Result<String, String> {
        self.order("tell")?;
        self.answer()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.orders = None;
        // It ends with its input; whatever it says now is of no use.
        let _ = self.child.wait();
    }
}

/// A word of a line.
pub fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ')
        .find_map(|word| word.split_once('=').filter(|(key, _)| *key == name))
        .map(|(_, value)| value)
}

/// A word of a line, as a number.
pub fn number(line: &str, name: &str) -> f64 {
    value(line, name).and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
}
