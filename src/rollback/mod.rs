//! The rollback core: input queues, prediction, saved states, and the list of steps for one frame.
//!
//! Decides what to load, resimulate, save and begin. At most two saves and one load per frame: the first unconfirmed frame
//! during a resimulation, and the newest; a mark's save takes the place of one of them.
//! Fed by: the session. Yields: steps (save, load, advance) and why no new frame was begun.
//! Never: touches the game's memory, the bridge or a clock.

pub mod digests;
pub mod inputs;
pub mod local;
pub mod pace;
pub mod states;
pub mod step;

use crate::base::limits::{MAX_SLOTS, MAX_WINDOW, ROLLBACK_RING};
use crate::base::{Frame, Input, Slot, SlotSet};
use crate::config::Predictor;
use digests::is_mark;
use inputs::{Guess, InputTable};

pub use inputs::PredictFn;
use local::LocalSlots;
use states::States;
use step::{Step, StepKind};

/// A state is saved at least this often even when nothing can roll back, so that an aborted list can be taken back.
const SAVE_AT_LEAST_EVERY: i32 = 60;
/// No frame older than this before the current one is ever simulated again: a full window, the base before it, some to spare.
const OLDEST_BASE: i32 = MAX_WINDOW + SAVE_AT_LEAST_EVERY + 4;
/// Room of the step list: a resimulation from the oldest base, a save before each frame, a load.
const MAX_STEPS: usize = 2 * (MAX_WINDOW + SAVE_AT_LEAST_EVERY) as usize + 8;

/// What a match needs to know.
pub struct RollbackConfig {
    /// Slots that somebody plays.
    pub slots: SlotSet,
    /// Of these, the ones played here.
    pub local: SlotSet,
    /// Bytes of one slot's input at most.
    pub input_max: usize,
    /// Input delay of each local slot at the start.
    pub delays: [i32; MAX_SLOTS],
    /// Frames; 0 = lockstep.
    pub window: i32,
    /// What a missing input is taken to be.
    pub predictor: Predictor,
    /// 0 off, 1 marks, 2 every frame.
    pub desync_level: u8,
    /// Bytes of a state buffer at first; `None` when the game keeps the states itself.
    pub state_room: Option<usize>,
}

/// What `begin` decided about the new frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is among the steps.
    NewFrame,
    /// The window is full: this slot's input is the oldest one missing.
    WindowFull(Slot),
    /// The node does not take our inputs.
    BackedUp,
    /// The caller did not want one.
    NotWanted,
}

/// What one list did; counted when it is closed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListSummary {
    /// Whether a new frame was begun.
    pub new_frame: bool,
    /// Frames simulated again because of a wrong prediction (or an aborted list).
    pub resimulated: i32,
    /// Whether a prediction was wrong.
    pub rolled_back: bool,
    /// Save steps.
    pub saves: u32,
    /// Load steps.
    pub loads: u32,
    /// Frames whose inputs are all confirmed end here, or at the newest frame.
    final_end: Frame,
}

/// The rollback core of one match.
pub struct Rollback {
    config: RollbackConfig,
    /// The inputs of all slots.
    pub table: InputTable,
    /// The local slots' delays and pending samples.
    pub local: LocalSlots,
    /// The saved states.
    pub states: States,
    remote: SlotSet,
    steps: Vec<Step>,
    current: Frame,
    /// The last list was aborted: what the game holds is worth nothing.
    needs_load: bool,
    list: ListSummary,
}

impl Rollback {
    /// At frame 0, with nothing known of the remote slots.
    pub fn new(config: RollbackConfig) -> Self {
        let mut table = InputTable::new(config.slots, config.input_max);
        Self {
            local: LocalSlots::new(config.local, &config.delays, &mut table),
            table,
            states: States::new(config.window, config.state_room),
            remote: config.slots.difference(config.local),
            steps: Vec::with_capacity(MAX_STEPS),
            current: Frame::ZERO,
            needs_load: false,
            list: ListSummary::default(),
            config,
        }
    }

    /// The next frame to be simulated for the first time.
    pub fn current(&self) -> Frame {
        self.current
    }

    /// The same once the open list has been run.
    pub fn next_unsimulated(&self) -> Frame {
        self.current + i32::from(self.list.new_frame && !self.steps.is_empty())
    }

    /// The oldest frame that may have to be simulated again.
    fn oldest(&self) -> Frame {
        let base = self.states.base(self.settled_end());
        debug_assert!(self.current - base <= OLDEST_BASE, "base {base} at frame {}", self.current);
        base
    }

    /// The state of no frame up to here can change any more, once pending corrections are done.
    fn settled_end(&self) -> Frame {
        let wrong = self.table.first_incorrect().unwrap_or(self.current);
        self.table.confirmed_end().min(wrong).min(self.current)
    }

    /// See [`InputTable::push`].
    pub fn push_input(&mut self, slot: Slot, first: Frame, count: i32, input: &Input) -> i32 {
        // The exact bound is dearer than the whole push, and seldom matters.
        let near = self.current - OLDEST_BASE;
        let oldest = if first + count <= near + ROLLBACK_RING as i32 { near } else { self.oldest() };
        self.table.push(slot, first, count, input, oldest, self.current)
    }

    /// See [`InputTable::cut`].
    pub fn cut(&mut self, slot: Slot, end: Frame) -> bool {
        self.table.cut(slot, end, self.current)
    }

    /// Builds the list: what must be corrected, then the new frame if it may be begun. Close it with `end` or `abort`.
    pub fn begin(&mut self, wants_new: bool, predict: &mut Option<PredictFn>) -> Begun {
        self.steps.clear();
        self.states.free_before_base(self.settled_end());
        let begun = self.may_begin(wants_new);
        // In lockstep the others cannot go on before they have this input, so it is stamped at the first attempt.
        if begun == Begun::NewFrame || (self.config.window == 0 && matches!(begun, Begun::WindowFull(_))) {
            let oldest = self.oldest();
            self.local.stamp(self.current, oldest, &mut self.table);
        }
        let new_frame = begun == Begun::NewFrame;
        let confirmed_end = self.table.confirmed_end();
        let simulated_end = self.current + i32::from(new_frame);
        self.list =
            ListSummary { new_frame, final_end: confirmed_end.min(simulated_end), ..ListSummary::default() };
        self.plan_correction(confirmed_end, predict);
        if new_frame {
            if self.saves_newest(confirmed_end) {
                self.push_save(self.current);
            }
            self.push_advance(self.current, false, confirmed_end, predict);
        }
        begun
    }

    fn may_begin(&self, wants_new: bool) -> Begun {
        if !wants_new {
            return Begun::NotWanted;
        }
        if self.local.is_backed_up(&self.table) {
            return Begun::BackedUp;
        }
        match self.table.oldest_missing(self.remote) {
            Some((slot, end)) if self.current.next() - end > self.config.window => Begun::WindowFull(slot),
            _ => Begun::NewFrame,
        }
    }

    fn plan_correction(&mut self, confirmed_end: Frame, predict: &mut Option<PredictFn>) {
        let wrong = self.table.first_incorrect();
        if wrong.is_none() && !self.needs_load {
            return;
        }
        self.table.clear_incorrect();
        let valid_until = wrong.unwrap_or(self.current).min(self.current);
        // Nothing is saved only if the very first list was aborted: then the game begins anew by itself.
        let Some((index, from)) = self.states.best(valid_until) else {
            if wrong.is_some() {
                log::error!(
                    "frame {valid_until} was wrong, but was confirmed before: no state is left to load"
                );
            }
            return;
        };
        self.states.free_after(valid_until);
        self.list.rolled_back = wrong.is_some();
        self.list.resimulated = self.current - from;
        self.list.loads = 1;
        self.steps.push(Step {
            kind: StepKind::Load,
            state_index: index,
            state_size: self.states.size(index),
            ..blank(from)
        });
        let marks = (from.0 + 1..=self.current.0).filter(|&f| self.wants_digest(Frame(f))).count();
        let saves_unconfirmed = self.config.desync_level > 1 || marks < 2;
        let mut frame = from;
        while frame < self.current {
            let is_first_unconfirmed = frame == confirmed_end && saves_unconfirmed;
            if frame > from && (is_first_unconfirmed || self.wants_digest(frame)) {
                self.push_save(frame);
            }
            self.push_advance(frame, true, confirmed_end, predict);
            frame = frame.next();
        }
    }

    /// Whether the state of the new frame is saved: its digest is wanted, or a prediction in it or later may prove wrong
    /// and the list has a save left, or nothing was saved for long.
    fn saves_newest(&self, confirmed_end: Frame) -> bool {
        self.wants_digest(self.current)
            || (confirmed_end <= self.current && self.list.saves < 2)
            || self.states.newest().is_none_or(|newest| self.current - newest >= SAVE_AT_LEAST_EVERY)
    }

    fn wants_digest(&self, frame: Frame) -> bool {
        match self.config.desync_level {
            0 => false,
            1 => is_mark(frame),
            _ => true,
        }
    }

    fn push_save(&mut self, frame: Frame) {
        let wants_checksum = self.wants_digest(frame);
        let Some(index) = self.states.take(frame, wants_checksum) else {
            debug_assert!(false, "the pool is sized for the window");
            return;
        };
        self.list.saves += 1;
        self.steps.push(Step {
            kind: StepKind::Save,
            wants_checksum,
            state_index: index,
            state_size: self.states.size(index),
            ..blank(frame)
        });
    }

    fn push_advance(
        &mut self,
        frame: Frame,
        resimulating: bool,
        confirmed_end: Frame,
        predict: &mut Option<PredictFn>,
    ) {
        let mut guess = match (self.config.predictor, predict) {
            (Predictor::Zero, _) => Guess::Zero,
            (Predictor::Game, Some(predict)) => Guess::Game(predict),
            (Predictor::RepeatLast | Predictor::Game, _) => Guess::RepeatLast,
        };
        let slot_status = self.table.build(frame, &mut guess);
        let confirmed = frame < confirmed_end;
        self.steps.push(Step {
            kind: StepKind::Advance,
            resimulating,
            confirmed,
            slot_status,
            ..blank(frame)
        });
    }

    /// The list.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Gives a save step's buffer, and every later one, at least this room.
    pub fn grow_state(&mut self, step: usize, state_index: u32, size: usize) {
        self.states.grow(state_index, size);
        if let Some(step) = self.steps.get_mut(step) {
            step.state_size = self.states.size(state_index);
        }
    }

    /// The list was run: it counts.
    pub fn end(&mut self) -> ListSummary {
        self.states.complete();
        self.current += i32::from(self.list.new_frame);
        self.needs_load = false;
        self.steps.clear();
        self.list
    }

    /// The list was not run, or only partly: what was simulated is taken back, what was stamped stays.
    pub fn abort(&mut self) {
        self.states.free_incomplete();
        self.needs_load = true;
        self.steps.clear();
    }

    /// The next final digest that has become known; drain after `end`.
    pub fn next_digest(&mut self) -> Option<(Frame, Option<u64>)> {
        self.states.next_digest(self.list.final_end)
    }
}

fn blank(frame: Frame) -> Step {
    Step {
        kind: StepKind::Advance,
        frame,
        resimulating: false,
        confirmed: false,
        wants_checksum: false,
        state_index: 0,
        state_size: 0,
        slot_status: 0,
    }
}
