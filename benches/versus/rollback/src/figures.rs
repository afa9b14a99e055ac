//! What a match cost, per peer and frame, as one line of `name=value` words.
//!
//! Fed by: the marks before and after the measured ticks, and a sample per peer-tick. Yields: the line. Never: judges.

use crate::match_up::{Mark, Scenario};
use crate::meter::Doer;

/// IPv4 and UDP.
const HEADER_BYTES: f64 = 28.0;

/// Cycles of one peer between two of its ticks.
#[derive(Clone, Copy, Default)]
pub struct Sample {
    /// The library, on the game's thread.
    pub game_half: u64,
    /// The library, on its own.
    pub io_half: u64,
    /// Copies of the state.
    pub state: u64,
}

/// What was measured.
pub struct Figures {
    /// What was played.
    pub scenario: Scenario,
    /// Of this machine.
    pub cycles_per_ns: f64,
    /// What one interruption of a library adds to its own time; it is contained in every figure.
    pub cycles_per_switch: f64,
    /// From nothing to the first frame.
    pub lobby_ticks: u64,
    /// One per peer and measured tick.
    pub samples: Vec<Sample>,
    /// At the first measured tick.
    pub before: Mark,
    /// After the last one.
    pub after: Mark,
    /// Frames that were compared.
    pub settled: i32,
    /// Frames in which peers differ.
    pub diverged: i32,
}

impl Figures {
    /// The line, beginning with the library's name.
    pub fn line(&self, library: &str) -> String {
        let scenario = &self.scenario;
        let peer_ticks = scenario.peers as f64 * f64::from(scenario.ticks);
        let link_seconds = (scenario.peers * (scenario.peers - 1)) as f64 * f64::from(scenario.ticks) / 60.0;
        let per_tick = |after: u64, before: u64| (after - before) as f64 / peer_ticks;
        let (before, after) = (&self.before, &self.after);
        let allocations =
            |doer: Doer| after.account.allocations[doer as usize] - before.account.allocations[doer as usize];
        let library_allocations = allocations(Doer::GameHalf) + allocations(Doer::IoHalf);
        let switches: f64 = [Doer::GameHalf, Doer::IoHalf]
            .map(|doer| {
                per_tick(after.account.switches[doer as usize], before.account.switches[doer as usize])
            })
            .iter()
            .sum();
        let packets = (after.traffic.packets - before.traffic.packets) as f64 / link_seconds;
        let bytes = (after.traffic.bytes - before.traffic.bytes) as f64 / link_seconds;
        let library_cycles = |sample: &Sample| sample.game_half + sample.io_half;
        let words = [
            ("lib", library.to_owned()),
            ("scenario", scenario.name.clone()),
            ("n", scenario.peers.to_string()),
            ("in", scenario.input_size.to_string()),
            ("state", scenario.state_size.to_string()),
            ("ticks", scenario.ticks.to_string()),
            ("lib_ns", self.quantile(0.5, library_cycles)),
            ("lib_p99_ns", self.quantile(0.99, library_cycles)),
            ("game_half_ns", self.quantile(0.5, |sample| sample.game_half)),
            ("game_half_p999_ns", self.quantile(0.999, |sample| sample.game_half)),
            ("io_half_ns", self.quantile(0.5, |sample| sample.io_half)),
            ("state_ns", self.quantile(0.5, |sample| sample.state)),
            ("meter_ns", format!("{:.0}", switches * self.cycles_per_switch / self.cycles_per_ns)),
            ("packets_s", format!("{packets:.1}")),
            ("bytes_s", format!("{bytes:.0}")),
            ("wire_bytes_s", format!("{:.0}", packets.mul_add(HEADER_BYTES, bytes))),
            ("largest", after.traffic.largest.to_string()),
            ("tag_bytes_s", format!("{:.0}", packets * crate::adapters::tag_bytes(library))),
            ("allocations", library_allocations.to_string()),
            ("allocs", format!("{:.1}", library_allocations as f64 / peer_ticks)),
            ("state_allocs", format!("{:.1}", allocations(Doer::State) as f64 / peer_ticks)),
            ("frames", format!("{:.4}", per_tick(after.counts.frames, before.counts.frames))),
            ("stalls", (after.counts.stalls - before.counts.stalls).to_string()),
            ("resim", format!("{:.2}", per_tick(after.counts.resimulated, before.counts.resimulated))),
            ("saves", format!("{:.2}", per_tick(after.asked[0], before.asked[0]))),
            ("loads", format!("{:.2}", per_tick(after.asked[1], before.asked[1]))),
            ("steps", format!("{:.2}", per_tick(after.asked[2], before.asked[2]))),
            ("desyncs", after.counts.desyncs.to_string()),
            ("left", after.counts.left.to_string()),
            ("errors", after.counts.errors.to_string()),
            ("diverged", self.diverged.to_string()),
            ("compared", self.settled.to_string()),
            ("lobby_s", format!("{:.2}", self.lobby_ticks as f64 / 60.0)),
        ];
        words.map(|(name, value)| format!("{name}={value}")).join(" ")
    }

    fn quantile(&self, part: f64, of: impl Fn(&Sample) -> u64) -> String {
        let mut cycles: Vec<u64> = self.samples.iter().map(of).collect();
        cycles.sort_unstable();
        let Some(last) = cycles.len().checked_sub(1) else { return "-".into() };
        format!("{:.0}", cycles[(last as f64 * part) as usize] as f64 / self.cycles_per_ns)
    }
}
