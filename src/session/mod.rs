//! The game half: composes the rollback core with the bridge. This is the Rust API that the C ABI wraps.
//!
//! Fed by: the game's calls and the news of the bridge. Yields: steps to run, events, stats and samples.
//! Never: blocks, starts a thread, or runs user code (but the predictor, inside `begin_frame`).

mod events;
mod news;
mod stats;
#[cfg(test)]
mod tests;

use crate::base::limits::{MAX_INPUT_DELAY, MAX_SLOTS};
use crate::base::{Frame, Input, Instant, PeerIndex, Slot, SlotSet};
use crate::bridge::{ClockModel, Command, Refused, SessionNews, SessionPort, StartInfo};
use crate::config::{MAX_STATE, ValidSessionConfig};
use crate::rollback::digests::Digests;
use crate::rollback::pace::{FRAME_PPM, Pace};
use crate::rollback::{Begun, ListSummary, PredictFn, Rollback, states};
use events::Events;
use stats::Samples;
use std::collections::VecDeque;

pub use crate::rollback::step::{SLOT_DISCONNECTED, SLOT_PREDICTED, SLOT_UNUSED, Step, StepKind};
pub use events::SessionEvent;
pub use stats::{PeerLink, SAMPLES, Sample, SessionStats};

/// What a `begin_frame` decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A new frame is among the steps.
    Advance,
    /// No new frame, but corrected ones: draw the new picture. Where the window is full as well, the stats have the reason.
    ResimulateOnly,
    /// No new frame because something is missing, and no steps: repeat the last picture.
    Stall(StallReason),
}

/// Why no new frame was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// The match has not begun.
    NotStarted,
    /// The prediction window is full; this peer's input is the oldest one missing. Ourselves: the node takes no inputs.
    Window(PeerIndex),
    /// The survivors are agreeing on a leaver's last frame; the window is full meanwhile.
    Cut(PeerIndex),
    /// The others went on without us.
    CutOff,
}

/// Why a call was refused; the session stays usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// A step list is open (or none is, for calls that need one).
    ListOpen,
    /// No step list is open.
    NoListOpen,
    /// The slot belongs to another peer, or to nobody.
    NotLocalSlot,
    /// The input is longer than `input_max`.
    InputTooLong,
    /// No such step, or not one of that kind.
    NoSuchStep,
    /// A state larger than 1 GiB, or than the room of its buffer.
    StateTooLarge,
    /// Input delay out of range.
    BadDelay,
    /// The node is gone (shutdown).
    Closed,
}

/// Final digests of marks that may wait for the node: more than the news of a full window.
const MAX_UNSENT_MARKS: usize = 16;

/// Whether a step list is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Closed,
    /// `begin_frame` gave no steps: there is nothing to close, but `end_frame` is welcome.
    Empty,
    Open,
}

/// The game's timeline.
///
/// Per rendered frame: `add_local_input` per local slot, `begin_frame`, run every step in order (`set_saved` for each
/// save), `end_frame`. A list without steps need not be closed. An aborted list counts as not begun: the next one
/// begins with a load of the newest valid state (but the very first list of a match, when no state exists yet).
pub struct Session {
    config: ValidSessionConfig,
    port: Option<SessionPort>,
    closed: bool,
    start: Option<StartInfo>,
    local: SlotSet,
    core: Option<Rollback>,
    predict: Option<PredictFn>,
    delays: [i32; MAX_SLOTS],
    clock: ClockModel,
    pace: Pace,
    digests: Digests,
    /// Final digests of marks that the command queue had no room for.
    unsent_marks: VecDeque<(Frame, u64)>,
    /// News that came too early, in order per slot.
    early: VecDeque<SessionNews>,
    cut_pending: Option<PeerIndex>,
    cut_off: bool,
    list: List,
    begun_at: Instant,
    stalled: bool,
    events: Events,
    stats: SessionStats,
    samples: Samples,
}

impl Session {
    /// A session on a mesh (`port`), or a local one, which begins at once with all its slots played here.
    pub fn new(config: ValidSessionConfig, port: Option<SessionPort>, now: Instant) -> Self {
        let is_local = port.is_none();
        let mut session = Self {
            port,
            closed: false,
            start: None,
            local: SlotSet::EMPTY,
            core: None,
            predict: None,
            delays: [config.input_delay; MAX_SLOTS],
            clock: ClockModel::IDENTITY,
            pace: Pace::default(),
            digests: Digests::new(config.desync_level > 1),
            unsent_marks: VecDeque::with_capacity(MAX_UNSENT_MARKS),
            early: VecDeque::new(),
            cut_pending: None,
            cut_off: false,
            list: List::Closed,
            begun_at: now,
            stalled: false,
            events: Events::new(),
            stats: SessionStats::default(),
            samples: Samples::new(),
            config,
        };
        if is_local {
            let us = PeerIndex::default();
            let mut slots = [None; MAX_SLOTS];
            slots[..session.config.local_slots].fill(Some(us));
            session.begin_match(StartInfo { seed: 0, slots, us, frame0_at: now });
        }
        session
    }

    /// The game's own predictor, for `Predictor::Game`; called only inside `begin_frame`.
    pub fn set_predictor(&mut self, predict: PredictFn) {
        self.predict = Some(predict);
    }

    /// How many states exist at most: in `StateMode::Slots`, the slots that the game must keep.
    pub fn state_count(&self) -> u32 {
        states::state_count(self.config.window)
    }

    /// Who plays what, once the match has begun.
    pub fn start_info(&self) -> Option<&StartInfo> {
        self.start.as_ref()
    }

    /// The slots played here; none before the match begins.
    pub fn local_slots(&self) -> SlotSet {
        self.local
    }

    /// Slots of an input block: the highest one in use and all below it; 0 before the match begins.
    pub fn slot_count(&self) -> usize {
        self.core.as_ref().map_or(0, |core| core.table.slot_count())
    }

    /// The configuration.
    pub fn config(&self) -> &ValidSessionConfig {
        &self.config
    }

    /// The mesh clock as last told.
    pub fn clock(&self) -> &ClockModel {
        &self.clock
    }

    /// How long ago the next frame should have begun, in millionths of a frame.
    fn late_ppm(&self, now: Instant) -> Option<i64> {
        let (start, core) = (self.start.as_ref()?, self.core.as_ref()?);
        let passed_us = (self.clock.mesh_time(now).0 as i64).wrapping_sub(start.frame0_at.0 as i64);
        let due_ppm = passed_us.saturating_mul(i64::from(self.config.settings.frame_rate));
        Some(due_ppm.saturating_sub(i64::from(core.current().0) * FRAME_PPM))
    }

    /// How many frames to begin now, and how far into the next one we are (0..=1, to interpolate the picture).
    pub fn frames_due(&mut self, now: Instant) -> (u32, f32) {
        self.poll(now);
        let Some(late_ppm) = self.late_ppm(now) else { return (0, 0.0) };
        let frames = self.pace.due(late_ppm);
        // The last call began nothing: one more try tells whether it goes on, more would only repeat the answer.
        let frames = if self.stalled { frames.min(1) } else { frames };
        let rest = late_ppm.saturating_sub(i64::from(frames) * FRAME_PPM);
        (frames, (rest.saturating_add(FRAME_PPM) as f32 / FRAME_PPM as f32).clamp(0.0, 1.0))
    }

    /// Takes in what the node told, for a game that only waits for events: the start, above all.
    pub fn poll(&mut self, now: Instant) {
        if self.list != List::Open {
            self.drain_news(now);
        }
    }

    fn writable(&self) -> Result<(), SessionError> {
        if self.list == List::Open { Err(SessionError::ListOpen) } else { Ok(()) }
    }

    /// Overwrites a local slot's pending sample. The next `begin_frame` that begins a new frame stamps and sends it; it
    /// is repeated for later frames until another one comes. Never refused because of a full window.
    pub fn add_local_input(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), SessionError> {
        self.writable()?;
        let core =
            self.core.as_mut().filter(|_| self.local.contains(slot)).ok_or(SessionError::NotLocalSlot)?;
        if bytes.len() > usize::from(self.config.settings.input_max) {
            return Err(SessionError::InputTooLong);
        }
        core.local.set_sample(slot, Input::new(bytes).ok_or(SessionError::InputTooLong)?);
        Ok(())
    }

    /// Moves a local slot's input delay towards `frames`, one frame at a time, at least 15 frames apart. Before the match
    /// begins it holds at once, for any slot that turns out to be local.
    pub fn set_input_delay(&mut self, slot: Slot, frames: u32) -> Result<(), SessionError> {
        self.writable()?;
        if frames > MAX_INPUT_DELAY as u32 {
            return Err(SessionError::BadDelay);
        }
        match &mut self.core {
            None => self.delays[slot.index()] = frames as i32,
            Some(_) if !self.local.contains(slot) => return Err(SessionError::NotLocalSlot),
            Some(core) => core.local.set_delay(slot, frames as i32),
        }
        Ok(())
    }

    /// Takes the news in and builds the list of steps, which must be run in order and closed. A call that learns of the
    /// start begins nothing yet: only now does the game know its slots, and frame 0 must not be stamped without its inputs.
    pub fn begin_frame(&mut self, now: Instant) -> Result<Verdict, SessionError> {
        self.writable()?;
        if self.closed {
            return Err(SessionError::Closed);
        }
        let had_begun = self.core.is_some();
        self.drain_news(now);
        self.begun_at = now;
        self.list = List::Empty;
        let stall = if self.cut_off {
            Some(StallReason::CutOff)
        } else {
            match self.core.as_mut().filter(|_| had_begun).map(|core| core.begin(true, &mut self.predict)) {
                None => Some(StallReason::NotStarted),
                Some(Begun::NewFrame | Begun::NotWanted) => None,
                Some(Begun::WindowFull(slot)) => Some(self.window_stall(slot)),
                Some(Begun::BackedUp) => self.start.map(|start| StallReason::Window(start.us)),
            }
        };
        self.send_commands();
        self.stalled = stall.is_some();
        if let Some(reason) = stall {
            self.count_stall(reason);
        }
        if self.step_count() > 0 {
            self.list = List::Open;
        } else if !self.cut_off && had_begun {
            // Nothing to run: what has become final by the news alone is final now.
            self.close_list(now);
            self.list = List::Empty;
        }
        match stall {
            None => {
                self.stats.advanced += 1;
                Ok(Verdict::Advance)
            }
            Some(_) if self.list == List::Open => {
                self.stats.resimulated_only += 1;
                Ok(Verdict::ResimulateOnly)
            }
            Some(reason) => Ok(Verdict::Stall(reason)),
        }
    }

    fn window_stall(&self, slot: Slot) -> StallReason {
        let owner = self.start.and_then(|start| start.slots[slot.index()]).unwrap_or_default();
        if self.cut_pending == Some(owner) { StallReason::Cut(owner) } else { StallReason::Window(owner) }
    }

    fn count_stall(&mut self, reason: StallReason) {
        self.stats.last_stall = Some(reason);
        match reason {
            StallReason::NotStarted => return,
            StallReason::Window(peer) | StallReason::Cut(peer) => self.stats.peers[peer.index()].stalls += 1,
            StallReason::CutOff => {}
        }
        self.stats.stalls += 1;
    }

    /// Hands stamped inputs, digests of marks and a sign of life to the node; what does not fit waits for the next call.
    fn send_commands(&mut self) {
        let Some(port) = &self.port else {
            if let Some(core) = &mut self.core {
                while let Some((slot, ..)) = core.local.next_unsent(&core.table) {
                    core.local.mark_sent(slot);
                }
            }
            self.unsent_marks.clear();
            return;
        };
        let mut full = false;
        let mut closed = false;
        let mut queue = |command| match port.queue(command) {
            Ok(()) => true,
            Err(Refused::Full(_)) => {
                full = true;
                false
            }
            Err(Refused::Closed(_)) => {
                closed = true;
                false
            }
        };
        let mut current = Frame::ZERO;
        if let Some(core) = &mut self.core {
            while let Some((slot, frame, input)) = core.local.next_unsent(&core.table) {
                if !queue(Command::Input { slot, frame, input }) {
                    break;
                }
                core.local.mark_sent(slot);
            }
            current = core.next_unsimulated();
        }
        while let Some(&(frame, value)) = self.unsent_marks.front() {
            if !queue(Command::Checksum { frame, value }) {
                break;
            }
            self.unsent_marks.pop_front();
        }
        queue(Command::Flush { current });
        self.closed |= closed;
        if full {
            log::debug!("the command queue is full at frame {current}; what did not fit is kept");
        }
        port.wake();
    }

    /// How many steps the open list has.
    pub fn step_count(&self) -> usize {
        self.core.as_ref().map_or(0, |core| core.steps().len())
    }

    /// One step of the open list.
    pub fn step(&self, index: usize) -> Option<&Step> {
        self.core.as_ref()?.steps().get(index)
    }

    fn step_of(&self, index: usize, kinds: &[StepKind]) -> Option<Step> {
        self.step(index).copied().filter(|step| kinds.contains(&step.kind))
    }

    /// The inputs of an advance step: `slot_count() * input_max` bytes, slot by slot, padded with zeros, and the sizes.
    /// Both are empty for any other step.
    pub fn inputs(&self, index: usize) -> (&[u8], &[u16]) {
        match (self.step_of(index, &[StepKind::Advance]), &self.core) {
            (Some(step), Some(core)) => core.table.row(step.frame),
            _ => (&[], &[]),
        }
    }

    /// The buffer of a save (its room) or load step (the saved bytes); nothing in `StateMode::Slots`.
    pub fn state(&mut self, index: usize) -> Option<&mut [u8]> {
        let step = self.step_of(index, &[StepKind::Save, StepKind::Load])?;
        let core = self.core.as_mut()?;
        core.states.room(step.state_index)?;
        Some(core.states.buffer(step.state_index))
    }

    /// Gives the buffer of a save step, and all later ones, at least this room. The buffer may move; its content stays.
    pub fn grow_state(&mut self, index: usize, size: u64) -> Result<(), SessionError> {
        let step = self.open_save(index)?;
        if size > MAX_STATE {
            return Err(SessionError::StateTooLarge);
        }
        if let Some(core) = &mut self.core {
            core.grow_state(index, step.state_index, size as usize);
        }
        Ok(())
    }

    fn open_save(&self, index: usize) -> Result<Step, SessionError> {
        if self.list != List::Open {
            return Err(SessionError::NoListOpen);
        }
        self.step_of(index, &[StepKind::Save]).ok_or(SessionError::NoSuchStep)
    }

    /// What a save step wrote: its size, and the game's own checksum if it has one (read only where `wants_checksum`).
    /// Without this call a save counts as its whole buffer.
    pub fn set_saved(&mut self, index: usize, size: u64, checksum: Option<u64>) -> Result<(), SessionError> {
        let step = self.open_save(index)?;
        let Some(core) = &mut self.core else { return Err(SessionError::NoListOpen) };
        if size > core.states.room(step.state_index).unwrap_or(MAX_STATE) {
            return Err(SessionError::StateTooLarge);
        }
        core.states.set_saved(step.state_index, size, checksum.filter(|_| step.wants_checksum));
        Ok(())
    }

    /// Every step was run.
    pub fn end_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        match self.list {
            List::Closed => return Err(SessionError::NoListOpen),
            List::Empty => {}
            List::Open => self.close_list(now),
        }
        self.list = List::Closed;
        Ok(())
    }

    fn close_list(&mut self, now: Instant) {
        let Some(core) = &mut self.core else { return };
        let summary = core.end();
        while let Some((frame, digest)) = core.next_digest() {
            let Some(value) = digest else { continue };
            let (events, stats) = (&mut self.events, &mut self.stats);
            self.digests.set_ours(frame, value, |found| {
                stats.desyncs += 1;
                events.push(news::desync(found));
            });
            if crate::rollback::digests::is_mark(frame) {
                if self.unsent_marks.len() == MAX_UNSENT_MARKS {
                    self.unsent_marks.pop_front();
                }
                self.unsent_marks.push_back((frame, value));
            }
        }
        self.count_list(summary, now);
    }

    fn count_list(&mut self, list: ListSummary, now: Instant) {
        let sim_us = now.since(self.begun_at).as_micros() as u32;
        let late_ppm = self.late_ppm(now).unwrap_or(0);
        let stats = &mut self.stats;
        stats.rollbacks += u64::from(list.rolled_back);
        stats.resimulated_frames += list.resimulated as u64;
        stats.longest_rollback = stats.longest_rollback.max(list.resimulated as u32);
        stats.saves += u64::from(list.saves);
        stats.loads += u64::from(list.loads);
        stats.sim_us = sim_us;
        stats.sim_us_max = stats.sim_us_max.max(sim_us);
        stats.sim_us_total += u64::from(sim_us);
        stats.stalled_calls = if self.stalled { stats.stalled_calls + 1 } else { 0 };
        stats.frames_ahead = match late_ppm {
            late if late >= FRAME_PPM => -(late - FRAME_PPM) as f32 / FRAME_PPM as f32,
            late if late < -FRAME_PPM => -(late + FRAME_PPM) as f32 / FRAME_PPM as f32,
            _ => 0.0,
        };
        let rate = u32::from(self.config.settings.frame_rate);
        let peers = &stats.peers;
        let most = |of: fn(&PeerLink) -> u32| peers.iter().map(of).max().unwrap_or(0);
        let sum = |of: fn(&PeerLink) -> u32| peers.iter().map(of).fold(0, u32::saturating_add) / rate;
        self.samples.push(Sample {
            frame: self.core.as_ref().map_or(Frame::ZERO, Rollback::current),
            rollback: list.resimulated as u16,
            stalled: self.stalled,
            rtt_ms: (most(|link| link.rtt_us) / 1000).min(u32::from(u16::MAX)) as u16,
            lost: (most(|link| link.loss_ppm) / 1000).min(1000) as u16,
            bytes_in: sum(|link| link.bytes_received_per_s),
            bytes_out: sum(|link| link.bytes_sent_per_s),
            sim_us,
        });
    }

    /// The steps were not run, or only some of them: the list counts as not begun, and the next one begins with a load.
    pub fn abort_frame(&mut self) -> Result<(), SessionError> {
        match self.list {
            List::Closed => return Err(SessionError::NoListOpen),
            List::Empty => {}
            List::Open => {
                if let Some(core) = &mut self.core {
                    core.abort();
                }
            }
        }
        self.list = List::Closed;
        Ok(())
    }

    /// Whether a list with steps waits for `end_frame` or `abort_frame`.
    pub fn is_list_open(&self) -> bool {
        self.list == List::Open
    }

    /// The next event; `None` when there is none now.
    pub fn next_event(&mut self) -> Option<SessionEvent> {
        self.events.next()
    }

    /// What was counted, and what holds now.
    pub fn stats(&self) -> SessionStats {
        let mut stats = self.stats;
        stats.window = self.config.window;
        stats.confirmed_frame = self.confirmed_end() - 1;
        stats.is_stalled = self.stalled;
        stats.inputs_waiting = self.early.len() as u32;
        for link in &mut stats.peers {
            link.age_us = link.told_at.map_or(0, |at| self.begun_at.since(at).as_micros() as u64);
        }
        let (Some(core), Some(start)) = (&self.core, &self.start) else { return stats };
        stats.frame = core.current();
        stats.confirmed_lag = (core.current() - self.confirmed_end()).max(0);
        stats.states_live = core.states.live_count() as u32;
        for slot in self.local {
            stats.input_delay[slot.index()] = core.local.delay(slot) as u8;
        }
        for (slot, owner) in Slot::all().zip(start.slots) {
            let Some(owner) = owner.filter(|&owner| owner != start.us) else { continue };
            let lead = core.table.held_end(slot) - core.current();
            let link = &mut stats.peers[owner.index()];
            let is_first =
                Slot::all().zip(start.slots).find(|&(_, of)| of == Some(owner)).map(|(s, _)| s) == Some(slot);
            link.input_lead = if is_first { lead } else { link.input_lead.min(lead) };
        }
        stats
    }

    /// The last 512 samples, newest last.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter()
    }

    /// The digest of a confirmed frame's state. Level 2: the last 600 confirmed frames; level 1: the last marks.
    pub fn confirmed_checksum(&self, frame: Frame) -> Option<u64> {
        self.digests.ours(frame)
    }

    /// A slot's confirmed input, as long as the ring has it (at least the last 64 frames).
    pub fn confirmed_input(&self, slot: Slot, frame: Frame) -> Option<Input> {
        self.core.as_ref()?.table.confirmed_input(slot, frame)
    }

    /// The next frame to be simulated for the first time.
    pub fn current(&self) -> Frame {
        self.core.as_ref().map_or(Frame::ZERO, Rollback::current)
    }

    /// First frame of which some input is not confirmed; never later than the inputs that are held for all slots.
    pub fn confirmed_end(&self) -> Frame {
        let Some(core) = &self.core else { return Frame::ZERO };
        match core.table.confirmed_end() {
            crate::rollback::inputs::FOREVER => core.current(),
            end => end,
        }
    }
}
