//! retick beside other transports over real sockets: two processes, and one seeded link between them.
//!
//! Fed by: the command line. Yields: one line of figures. Never: compares them; `cargo xtask versus` does.
#![deny(missing_docs)]

mod endpoints;
mod far;
mod message;
mod near;
mod proxy;
mod rows;
mod system;

use endpoints::Patience;
use far::Manner;
use rows::Options;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
usage: versus-transport ROW LIBRARY [option=value…]
  rows       overhead: bytes of a lone message · ping: half a round trip on the loopback
             steady: a small reliable message 20 times a second · burst: many reliable messages at once
  options    reliable (0, 1) [1], seconds [10], seed [1], count [10000], total (bytes of a burst, 0 = 64 each) [0],
             mbit (bottleneck, 0 = none) [0]
  libraries  ";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    system::prepare();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<String, String> {
    let usage = || format!("{USAGE}{}", endpoints::LIBRARIES);
    let (row, library, options) = match words {
        ["far", library, peers, ticks, yields] => {
            let patience =
                if *yields == "1" { Patience::Yields } else { Patience::Sleeps(Duration::from_micros(200)) };
            let peers = peers.parse().map_err(|_| usage())?;
            far::run(library, Manner { peers, ticks: *ticks == "1", patience })?;
            return Ok(String::new());
        }
        [row, library, options @ ..] => (*row, *library, parse(options).ok_or_else(usage)?),
        _ => return Err(usage()),
    };
    let line = match row {
        "overhead" => rows::overhead(library, &options)?,
        "ping" => rows::ping(library, &options)?,
        "steady" => rows::steady(library, &options)?,
        "burst" => rows::burst(library, &options)?,
        _ => return Err(usage()),
    };
    Ok(format!("row={row} lib={library} {line}"))
}

fn parse(words: &[&str]) -> Option<Options> {
    let mut options =
        Options { seed: 1, seconds: 10.0, reliable: true, count: 10_000, total: 0, mbit_s: 0.0 };
    for word in words {
        let (name, value) = word.split_once('=')?;
        match name {
            "seed" => options.seed = value.parse().ok()?,
            "seconds" => options.seconds = value.parse().ok()?,
            "reliable" => options.reliable = value == "1",
            "count" => options.count = value.parse().ok()?,
            "total" => options.total = value.parse().ok()?,
            "mbit" => options.mbit_s = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}
