//! What the game half counts, and one sample per frame for a net graph.
//!
//! Fed by: closed lists, verdicts and link news. Yields: plain values.
//! Never: allocates after its creation.

use crate::base::limits::{MAX_PEERS, MAX_SLOTS};
use crate::base::{Frame, Instant};
use crate::session::StallReason;
use std::collections::VecDeque;

/// Frames of samples that are kept.
pub const SAMPLES: usize = 512;

/// What the node last told about the link to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLink {
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Its variation.
    pub jitter_us: u32,
    /// Lost packets, of a million.
    pub loss_ppm: u32,
    /// Last second.
    pub bytes_sent_per_s: u32,
    /// Last second.
    pub bytes_received_per_s: u32,
    /// When this was told; `None` = never.
    pub told_at: Option<Instant>,
    /// How long ago that was at the session's last call; 0 when never.
    pub age_us: u64,
    /// Stalled calls for which this peer's missing input was the reason.
    pub stalls: u64,
    /// Frames for which this peer's input is held beyond the newest simulated one (negative: it is missing).
    pub input_lead: i32,
}

/// Counters since the start of the match, and what holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionStats {
    /// The next frame to be simulated for the first time.
    pub frame: Frame,
    /// The newest frame of which all inputs are confirmed; -1 = none.
    pub confirmed_frame: Frame,
    /// Simulated frames that are not confirmed.
    pub confirmed_lag: i32,
    /// The prediction window.
    pub window: i32,
    /// The input delay of each local slot now.
    pub input_delay: [u8; MAX_SLOTS],
    /// Calls that began a new frame.
    pub advanced: u64,
    /// Calls that only resimulated.
    pub resimulated_only: u64,
    /// Calls that began no new frame because something was missing, those that resimulated included.
    pub stalls: u64,
    /// The reason of the last of them.
    pub last_stall: Option<StallReason>,
    /// Whether the last call began no new frame.
    pub is_stalled: bool,
    /// Calls in a row, up to now, that began no new frame.
    pub stalled_calls: u32,
    /// Lists that corrected a wrong prediction.
    pub rollbacks: u64,
    /// Frames that were simulated again.
    pub resimulated_frames: u64,
    /// Most frames simulated again in one list.
    pub longest_rollback: u32,
    /// Save steps.
    pub saves: u64,
    /// Load steps.
    pub loads: u64,
    /// How far the next frame is ahead of the schedule, in frames; 0 within the normal frame of play.
    pub frames_ahead: f32,
    /// Frames whose digest was compared with nobody's yet or matched are not counted; these differed.
    pub desyncs: u64,
    /// Time between `begin_frame` and `end_frame` of the last list.
    pub sim_us: u32,
    /// The longest of all.
    pub sim_us_max: u32,
    /// Its sum over all lists.
    pub sim_us_total: u64,
    /// Inputs that came too early for the ring and wait.
    pub inputs_waiting: u32,
    /// States kept now.
    pub states_live: u32,
    /// Per peer.
    pub peers: [PeerLink; MAX_PEERS],
}

/// One frame of the net graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The next frame to be simulated, after this call.
    pub frame: Frame,
    /// Frames simulated again.
    pub rollback: u16,
    /// Whether no new frame was begun.
    pub stalled: bool,
    /// The slowest link's.
    pub rtt_ms: u16,
    /// The worst link's lost packets, of a thousand.
    pub lost: u16,
    /// Received per frame, all links together.
    pub bytes_in: u32,
    /// Sent per frame, all links together.
    pub bytes_out: u32,
    /// Time between `begin_frame` and `end_frame`.
    pub sim_us: u32,
}

/// The last samples.
pub(super) struct Samples(VecDeque<Sample>);

impl Samples {
    pub(super) fn new() -> Self {
        Self(VecDeque::with_capacity(SAMPLES))
    }

    pub(super) fn push(&mut self, sample: Sample) {
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.0.iter()
    }
}
