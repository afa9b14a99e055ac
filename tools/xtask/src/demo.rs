//! `cargo xtask demo`: a real match of real processes over UDP on this machine.
//!
//! Fed by: the command line. Yields: a match that can be watched, a table, and whether all processes agree.
//! Never: a result that was not computed by separate processes through the C API.

use crate::peers::{Peers, frame_of, wait_for};
use crate::setup;
use crate::sh::{self, Outcome};
use crate::status::{self, Live};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Options of `cargo xtask demo`.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Processes, each with one bot
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=16))]
    pub(crate) peers: u32,
    /// Length of the match at 60 frames a second
    #[arg(long, default_value_t = 1800)]
    pub(crate) frames: u32,
    /// Length in seconds, instead of --frames
    #[arg(long, conflicts_with = "frames")]
    pub(crate) seconds: Option<u32>,
    /// Seed of the bots and of the bad network
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Packets lost on the way out of each process, in percent
    #[arg(long, default_value_t = 2.0)]
    pub(crate) loss: f64,
    /// One-way delay, in ms
    #[arg(long, default_value_t = 40)]
    pub(crate) latency: u32,
    /// Extra delay from 0 to this, in ms
    #[arg(long, default_value_t = 10)]
    pub(crate) jitter: u32,
    /// Packets that arrive twice, in percent
    #[arg(long, default_value_t = 1.0)]
    pub(crate) dup: f64,
    /// Kills a process without warning when it reaches a frame, for example 2@600; may be given more than once
    #[arg(long, value_name = "PROCESS@FRAME", value_parser = parse_kill)]
    pub(crate) kill: Vec<(usize, u32)>,
    /// More options for every process (samples/c/arena/README.md names them), for example -- --busy --window 8
    #[arg(last = true, value_name = "ARENA OPTIONS")]
    pub(crate) more: Vec<String>,
}

impl Default for Options {
    /// The match of the tests: short, over a bad network.
    fn default() -> Self {
        Self {
            peers: 4,
            frames: 600,
            seconds: None,
            seed: 1,
            loss: 2.0,
            latency: 40,
            jitter: 10,
            dup: 1.0,
            kill: Vec::new(),
            more: Vec::new(),
        }
    }
}

/// Time for the lobby: start, handshakes, clock sync, countdown.
const LOBBY: Duration = Duration::from_secs(30);

/// What a match showed, for those who judge it.
pub(crate) struct Played {
    /// The longest wait of a player who was not killed.
    pub(crate) longest_stall_ms: u64,
    /// Frames that all survivors traced, and that are the same.
    pub(crate) compared: usize,
}

/// Builds everything and plays.
pub(crate) fn run(options: &Options) -> Outcome {
    figures(options).map(drop)
}

/// The same, for its figures. Processes that disagree, end badly or lose a reliable message are an error.
pub(crate) fn figures(options: &Options) -> Result<Played, String> {
    setup::ensure(setup::BUILD)?;
    for &(process, frame) in &options.kill {
        if process >= options.peers as usize || frame >= options.length() {
            return Err(format!(
                "--kill {process}@{frame}: there is no such process, or the match ends before"
            ));
        }
    }
    let program = build()?;
    play(&program, options)
}

impl Options {
    fn length(&self) -> u32 {
        self.seconds.map_or(self.frames, |seconds| seconds * 60)
    }
}

/// The release library and the sample; the path of the sample.
fn build() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        println!("note: this demo is tested on Linux only");
    }
    // One kind alone: with several, cargo ignores `lto`.
    sh::run(&mut sh::cargo("rustc --quiet --locked --release --package retick --lib --crate-type cdylib"))?;
    let library = sh::target_dir().join("release");
    link_soname(&library)?;
    let folder = sh::target_dir().join("demo");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program = folder.join("arena");
    let sources = sh::root().join("samples/c/arena");
    let mut files: Vec<PathBuf> = fs::read_dir(&sources)
        .map_err(|error| format!("{}: {error}", sources.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c") && !is_test(path))
        .collect();
    files.sort();
    let mut cc = sh::command("cc");
    cc.args(["-std=c99", "-O2", "-Wall", "-Wextra", "-Iinclude"]);
    for file in &files {
        cc.arg(file.strip_prefix(sh::root()).unwrap_or(file));
    }
    cc.arg("-o").arg(&program).arg("-L").arg(&library);
    cc.arg(format!("-Wl,-rpath,{}", library.display())).args(["-lretick", "-lm"]);
    sh::run(&mut cc)?;
    Ok(program)
}

/// `test_*.c` are programs of their own.
fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test_"))
}

/// The program looks for the library by its soname, which has a version; cargo writes the plain name.
fn link_soname(library: &Path) -> Outcome {
    let file = library.join("libretick.so");
    let Ok(headers) = sh::output(sh::command("readelf").arg("-d").arg(&file)) else { return Ok(()) };
    let name =
        headers.lines().find(|line| line.contains("(SONAME)")).and_then(|line| line.split(['[', ']']).nth(1));
    let Some(link) = name.filter(|&name| name != "libretick.so").map(|name| library.join(name)) else {
        return Ok(());
    };
    let _ = fs::remove_file(&link);
    fs::copy(&file, &link).map(drop).map_err(|error| format!("{}: {error}", link.display()))
}

/// Plays one match.
fn play(program: &Path, options: &Options) -> Result<Played, String> {
    let frames = options.length();
    println!(
        "\n{} processes, {frames} frames; each sends through {} ms ± {} ms, {} % loss, {} % duplicates",
        options.peers, options.latency, options.jitter, options.loss, options.dup
    );
    let traces: Vec<PathBuf> =
        (0..options.peers).map(|index| program.with_file_name(format!("trace-{index}.txt"))).collect();
    let mut peers = Peers::new();
    let mut host = process(program, options, &traces, 0);
    host.args(["--host", "--port", "0"]);
    peers.start(host)?;
    let Some((room, port)) = wait_for(&mut peers, Instant::now() + LOBBY, room_of) else {
        let lines = peers.list[0].lines.join("\n    ");
        return Err(format!("the host opened no room; its lines:\n    {lines}"));
    };
    for index in 1..options.peers {
        let mut command = process(program, options, &traces, index);
        command.arg("--join").arg(format!("127.0.0.1:{port}")).arg("--room").arg(&room);
        peers.start(command)?;
    }
    let missed = watch(&mut peers, options);
    println!("\n{}", status::table(&peers.list));
    let sentence = status::verdict(&peers.list)?;
    if let Some((victim, frame)) = missed.first() {
        return Err(format!("process {victim} was not killed: it never told that it reached frame {frame}"));
    }
    let compared = compare_traces(&peers, &traces)?;
    if compared < frames as usize {
        return Err(format!("only {compared} of {frames} frames were traced by everybody"));
    }
    let stall = status::largest(&peers.list, "longest_stall_ms").unwrap_or_default();
    let bar = if options.kill.is_empty() { 100 } else { 500 };
    println!("longest wait of a player: {stall} ms (bar: {bar} ms)");
    println!("{sentence}; {compared} frames compared one by one");
    Ok(Played { longest_stall_ms: stall, compared })
}

/// Shows the match until it ends, killing whom the options name; yields the kills that never came about.
fn watch(peers: &mut Peers, options: &Options) -> Vec<(usize, u32)> {
    let mut picture = Live::new();
    let mut kills = options.kill.clone();
    let length = Duration::from_secs(u64::from(options.length()) / 60);
    let deadline = Instant::now() + LOBBY + length * 2;
    while Instant::now() < deadline {
        let line = peers.next_line(Duration::from_millis(50));
        if let Some((index, line)) = &line {
            let frame = frame_of(line);
            kills.retain(|&(victim, at)| {
                let now = victim == *index && frame.is_some_and(|frame| frame >= at);
                if now {
                    peers.kill(victim);
                    println!("  killed process {victim}: {line}");
                }
                !now
            });
        }
        picture.draw(&peers.list);
        if line.is_none() && peers.all_ended() {
            picture.last(&peers.list);
            return kills;
        }
    }
    println!("  the match took too long: stopped");
    kills
}

/// A process of the match, without the options that make it host or guest.
fn process(program: &Path, options: &Options, traces: &[PathBuf], index: u32) -> Command {
    let mut command = Command::new(program);
    let _ = fs::remove_file(&traces[index as usize]);
    // Level 2: the library compares every frame, not only marks.
    command.args(["--bot", "--desync-level", "2", "--peers", &options.peers.to_string()]);
    command.args(["--frames", &options.length().to_string()]);
    command.args(["--seed", &(options.seed + u64::from(index)).to_string()]);
    command.args(["--loss", &options.loss.to_string(), "--dup", &options.dup.to_string()]);
    command.args(["--latency", &options.latency.to_string(), "--jitter", &options.jitter.to_string()]);
    command.arg("--trace").arg(&traces[index as usize]).args(&options.more);
    command
}

/// `room <hex> port <n>`.
fn room_of(line: &str) -> Option<(String, u16)> {
    let mut words = line.split_whitespace().skip_while(|&word| word != "room");
    let room = words.nth(1).filter(|room| room.len() == 64)?;
    let port = words.skip_while(|&word| word != "port").nth(1)?.parse().ok()?;
    Some((room.to_owned(), port))
}

/// Every frame that survivors traced must be the same; yields how many were compared.
fn compare_traces(peers: &Peers, traces: &[PathBuf]) -> Result<usize, String> {
    let mut first: Option<(usize, Vec<String>)> = None;
    let mut compared = usize::MAX;
    for (index, path) in traces.iter().enumerate().filter(|&(index, _)| !peers.list[index].killed) {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let Some((other, expected)) = &first else {
            first = Some((index, lines));
            continue;
        };
        if let Some((a, b)) = expected.iter().zip(&lines).find(|(a, b)| a != b) {
            return Err(format!("processes {other} and {index} differ first at `{a}` and `{b}`"));
        }
        compared = compared.min(expected.len()).min(lines.len());
    }
    Ok(compared)
}

fn parse_kill(text: &str) -> Result<(usize, u32), String> {
    let parts =
        text.split_once('@').and_then(|(peer, frame)| Some((peer.parse().ok()?, frame.parse().ok()?)));
    parts.ok_or_else(|| "use PROCESS@FRAME, for example 2@600".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_line_is_understood_and_nothing_else() {
        let hex = "ab".repeat(32);
        assert_eq!(room_of(&format!("room {hex} port 51234")), Some((hex.clone(), 51234)));
        assert_eq!(room_of("room abc port 51234"), None);
        assert_eq!(room_of(&format!("room {hex}")), None);
    }

    #[test]
    fn a_kill_names_a_process_and_a_frame() {
        assert_eq!(parse_kill("2@600"), Ok((2, 600)));
        assert!(parse_kill("2").is_err());
    }
}
