//! One match of one library: who plays, on which network, how long; and what is measured.
//!
//! Decides the order of events, which is the same for every library: each peer has one tick per frame, the peers are
//! out of phase, and whoever has a thread of its own is called when a datagram arrives or a timer fires.
//! Fed by: a library's name and a scenario. Yields: figures. Never: obeys a library's wish to slow down; all step at 60 Hz.

use crate::adapters::{self, Counts, Peer};
use crate::figures::{Figures, Sample};
use crate::game::Game;
use crate::meter::{self, Doer};
use crate::network::{self, Conditions, Socket};

/// Length of a tick.
const TICK_NS: f64 = 1_000_000_000.0 / 60.0;
/// A lobby that takes longer has failed.
const LOBBY_TICKS: u64 = 60 * 120;
/// Frames older than this are confirmed everywhere and must be equal.
const SETTLED_FRAMES: i32 = 40;

/// What is played.
#[derive(Clone)]
pub struct Scenario {
    /// Its letter, or `-`.
    pub name: String,
    /// Players, one per peer.
    pub peers: usize,
    /// Bytes of an input.
    pub input_size: usize,
    /// Bytes of the game's state.
    pub state_size: usize,
    /// Inputs are held and change 3 times a second, instead of changing in every frame.
    pub is_held: bool,
    /// What every link does.
    pub conditions: Conditions,
    /// Prediction window; `None` = the library's default.
    pub window: Option<usize>,
    /// Input delay.
    pub delay: usize,
    /// Compare checksums every so many frames; 0 = off.
    pub desync_every: usize,
    /// Measured ticks.
    pub ticks: u32,
    /// Ticks before those.
    pub warm_up: u32,
    /// Of the network.
    pub seed: u64,
}

/// Plays it.
pub fn play(library: &str, scenario: &Scenario) -> Result<Figures, String> {
    let cycles_per_ns = meter::cycles_per_ns();
    meter::set_now_ns(1_000_000_000);
    let sockets = network::open(scenario.peers, scenario.conditions, scenario.seed);
    let mut table = Table {
        peers: adapters::seat(library, scenario, &sockets)?,
        games: (0..scenario.peers).map(|_| Game::new(scenario.state_size)).collect(),
        counts: vec![Counts::default(); scenario.peers],
        spent: vec![Sample::default(); scenario.peers],
        sockets,
    };
    let lobby_ticks = table.gather(library)?;
    let start_ns = meter::now_ns();
    for tick in 0..u64::from(scenario.warm_up) {
        table.tick(start_ns, tick, |_| {});
    }
    let before = Mark::of(&table);
    let mut samples = Vec::with_capacity(scenario.peers * scenario.ticks as usize);
    meter::start();
    for tick in 0..u64::from(scenario.ticks) {
        table.tick(start_ns, u64::from(scenario.warm_up) + tick, |sample| samples.push(sample));
    }
    meter::stop();
    let after = Mark::of(&table);
    let (settled, diverged) = table.compare();
    Ok(Figures {
        scenario: scenario.clone(),
        cycles_per_ns,
        cycles_per_switch: meter::cycles_per_switch(),
        lobby_ticks,
        samples,
        before,
        after,
        settled,
        diverged,
    })
}

/// Sums over all peers at one instant.
pub struct Mark {
    /// Who did how much.
    pub account: meter::Account,
    /// What was sent.
    pub traffic: network::Traffic,
    /// What the libraries did.
    pub counts: Counts,
    /// What was asked of the games: saves, loads, steps.
    pub asked: [u64; 3],
}

impl Mark {
    fn of(table: &Table) -> Self {
        let sum = |of: fn(&Game) -> u64| table.games.iter().map(of).sum();
        Self {
            account: meter::account(),
            traffic: table.sockets[0].traffic(),
            counts: table.counts.iter().fold(Counts::default(), |sum, counts| sum.plus(counts)),
            asked: [sum(|game| game.saves), sum(|game| game.loads), sum(|game| game.steps)],
        }
    }
}

/// All peers of a match.
struct Table {
    peers: Vec<Box<dyn Peer>>,
    games: Vec<Game>,
    counts: Vec<Counts>,
    /// Since the last tick of each.
    spent: Vec<Sample>,
    sockets: Vec<Socket>,
}

impl Table {
    fn phase_ns(&self, peer: usize) -> f64 {
        TICK_NS * peer as f64 / self.peers.len() as f64
    }

    /// Until all peers say that the match has begun; how many ticks that took.
    fn gather(&mut self, library: &str) -> Result<u64, String> {
        let start_ns = meter::now_ns();
        let mut ready = vec![false; self.peers.len()];
        for tick in 0..LOBBY_TICKS {
            for (peer, is_ready) in ready.iter_mut().enumerate() {
                self.run_until(start_ns + (tick as f64 * TICK_NS + self.phase_ns(peer)) as u64);
                *is_ready |= self.peers[peer].lobby();
            }
            if ready.iter().all(|is_ready| *is_ready) {
                return Ok(tick + 1);
            }
        }
        Err(format!("{library}: the match did not begin; ready: {ready:?}"))
    }

    /// One tick of everybody.
    fn tick(&mut self, start_ns: u64, tick: u64, mut done: impl FnMut(Sample)) {
        for peer in 0..self.peers.len() {
            self.run_until(start_ns + ((tick + 1) as f64 * TICK_NS + self.phase_ns(peer)) as u64);
            let before = meter::account();
            self.peers[peer].tick(&mut self.games[peer], &mut self.counts[peer]);
            self.spent[peer].add(&before, &meter::account());
            done(std::mem::take(&mut self.spent[peer]));
        }
    }

    /// Calls those who have a thread of their own, each when a datagram or a timer is due, until it is `end_ns`.
    fn run_until(&mut self, end_ns: u64) {
        while let Some((due_ns, peer)) = self.next_event().filter(|&(due_ns, _)| due_ns <= end_ns) {
            meter::set_now_ns(due_ns.max(meter::now_ns()));
            let before = meter::account();
            self.peers[peer].wake();
            self.spent[peer].add(&before, &meter::account());
        }
        meter::set_now_ns(end_ns);
    }

    fn next_event(&self) -> Option<(u64, usize)> {
        let driven = self.peers.iter().map(|peer| &**peer).enumerate().filter(|(_, peer)| peer.is_driven());
        let due = |(index, peer): (usize, &dyn Peer)| {
            let due_ns =
                [self.sockets[index].next_due_ns(), peer.wake_at_ns()].into_iter().flatten().min()?;
            Some((due_ns, index))
        };
        driven.filter_map(due).min()
    }

    /// How many frames are old enough to be compared, and in how many of them the peers differ.
    fn compare(&self) -> (i32, i32) {
        let newest = self.peers.iter().map(|peer| peer.frame()).min().unwrap_or(0);
        let settled = (newest - SETTLED_FRAMES).max(0);
        let differs = |frame: &i32| {
            self.games.iter().any(|g| g.history[*frame as usize] != self.games[0].history[*frame as usize])
        };
        (settled, (0..settled).filter(differs).count() as i32)
    }
}

impl Sample {
    /// Adds what was done between two accounts.
    fn add(&mut self, before: &meter::Account, after: &meter::Account) {
        let cycles = |doer: Doer| after.cycles[doer as usize] - before.cycles[doer as usize];
        self.game_half += cycles(Doer::GameHalf);
        self.io_half += cycles(Doer::IoHalf);
        self.state += cycles(Doer::State);
    }
}
