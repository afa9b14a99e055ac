//! retick beside other rollback libraries, all in one process on one virtual clock and one network.
//!
//! Fed by: the command line. Yields: one line of figures per match. Never: compares them; `cargo xtask versus` does.
#![deny(missing_docs)]

mod adapters;
mod figures;
mod game;
mod match_up;
mod meter;
mod network;

use match_up::Scenario;
use network::Conditions;
use std::process::ExitCode;

const USAGE: &str = "\
usage: versus-rollback lib=NAME[,NAME…] [option=value…]
  lib        ideal, retick, retick-manual, ggrs, fortress
  scenario   A perfect; B 60 ms one way, 2 % loss; C the same, inputs held        [B]
  n          peers                                                                [2]
  in         bytes of an input, 4 or 16                                           [4]
  state      bytes of the game's state                                            [1024]
  window, delay, desync   prediction window [the library's own, ggrs and ideal 8, fortress 16],
             input delay [0], checksums every so many frames [0 = off]
  ticks, warm   measured ticks and those before [600, 200]
  latency, jitter (ms), loss, dup (%), held (0, 1), seed   override the scenario";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = parse(&words).and_then(|(libraries, scenario)| {
        for library in libraries {
            println!("{}", match_up::play(&library, &scenario)?.line(&library));
        }
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Result<(Vec<String>, Scenario), String> {
    let mut libraries = Vec::new();
    let mut scenario = Scenario {
        name: "B".into(),
        peers: 2,
        input_size: 4,
        state_size: 1024,
        is_held: false,
        conditions: Conditions { latency_ns: 60_000_000, loss_ppm: 20_000, ..Conditions::default() },
        window: None,
        delay: 0,
        desync_every: 0,
        ticks: 600,
        warm_up: 200,
        seed: 1,
    };
    for word in words {
        let (name, value) = word.split_once('=').ok_or(USAGE)?;
        let number = || value.parse::<f64>().map_err(|_| format!("{word}: not a number\n{USAGE}"));
        let conditions = &mut scenario.conditions;
        match name {
            "lib" => libraries = value.split(',').map(str::to_owned).collect(),
            "scenario" => {
                if value == "A" {
                    *conditions = Conditions::default();
                }
                scenario.is_held = value == "C";
                scenario.name = value.to_owned();
            }
            "n" => scenario.peers = number()? as usize,
            "in" => scenario.input_size = number()? as usize,
            "state" => scenario.state_size = number()? as usize,
            "held" => scenario.is_held = number()? != 0.0,
            "latency" => conditions.latency_ns = (number()? * 1e6) as u64,
            "jitter" => conditions.jitter_ns = (number()? * 1e6) as u64,
            "loss" => conditions.loss_ppm = (number()? * 1e4) as u64,
            "dup" => conditions.duplicate_ppm = (number()? * 1e4) as u64,
            "window" => scenario.window = Some(number()? as usize),
            "delay" => scenario.delay = number()? as usize,
            "desync" => scenario.desync_every = number()? as usize,
            "ticks" => scenario.ticks = number()? as u32,
            "warm" => scenario.warm_up = number()? as u32,
            "seed" => scenario.seed = number()? as u64,
            _ => return Err(format!("{name}: no such option\n{USAGE}")),
        }
    }
    let sensible =
        (2..=16).contains(&scenario.peers) && [4, 16].contains(&scenario.input_size) && scenario.ticks > 0;
    if libraries.is_empty() || !sensible { Err(USAGE.into()) } else { Ok((libraries, scenario)) }
}
