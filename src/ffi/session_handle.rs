//! What a session handle holds: the session, the records of its step list, and the regions that the game registered.
//!
//! Fed by: checked arguments, the records that the game wrote. Yields: records whose memory stays until the list closes.
//! Never: runs steps of the game, or touches a region outside of `run_step`.

use super::event_types::retick_event;
use super::events::EventStore;
use super::guard::{self, Failure, Outcome};
use super::library::{RETICK_OK, RETICK_RESIMULATE_ONLY, RETICK_STALL, retick_result};
use super::mesh_types::RETICK_NO_PEER;
use super::session_types::*;
use crate::base::limits::MAX_INPUT;
use crate::base::{Frame, Input, Instant, PeerIndex, Slot};
use crate::bridge::SessionPort;
use crate::config::{MAX_STATE, Predictor, StateMode, ValidSessionConfig};
use crate::session::{Session, SessionError, StallReason, Step, StepKind, Verdict};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a session lives by.
#[derive(Clone)]
pub(super) enum Clock {
    /// The monotonic clock of the machine.
    Os,
    /// A node's clock on a simulated network.
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    pub(super) fn now(&self) -> Instant {
        match self {
            Self::Os => crate::io::now(),
            Self::Virtual(time) => Instant(time.load(Ordering::Acquire)),
        }
    }
}

/// Who runs the open step list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    No,
    ByGame,
    ByLibrary,
}

/// Memory of the game that is part of the state.
struct Region {
    memory: *mut u8,
    size: usize,
}

// SAFETY: the memory is the game's, valid until the session is destroyed by the header's contract, and it is touched only
// inside `run_step`, on the thread that calls, while this handle is locked.
unsafe impl Send for Region {}

/// The game's predictor.
struct Predict {
    function: unsafe extern "C" fn(*mut c_void, u32, i32, *const u8, u32, *mut u8, u32, *mut u32),
    user: *mut c_void,
    capacity: usize,
}

// SAFETY: called only inside `begin_frame`, on the thread that calls; the pointer is only handed back.
unsafe impl Send for Predict {}

impl Predict {
    fn call(&self, slot: Slot, frame: Frame, last: &Input) -> Input {
        let mut out = [0; MAX_INPUT];
        let mut size = 0;
        let last = last.as_slice();
        guard::with_user_code(|| {
            // SAFETY: the header's contract of the function; the buffers are as long as they say.
            unsafe {
                (self.function)(
                    self.user,
                    u32::from(slot.get()),
                    frame.0,
                    last.as_ptr(),
                    last.len() as u32,
                    out.as_mut_ptr(),
                    self.capacity as u32,
                    &raw mut size,
                );
            }
        });
        Input::new(&out[..self.capacity.min(size as usize)]).unwrap_or_default()
    }
}

pub(super) struct SessionHandle {
    session: Session,
    clock: Clock,
    mode: StateMode,
    open: Open,
    /// The records: memory that the game reads and writes between calls, so it is only touched by pointer.
    records: Vec<u64>,
    stride: usize,
    count: usize,
    regions: Vec<Region>,
    regions_size: usize,
    events: EventStore,
    begun: bool,
    /// Dropped after the session, so that its mesh can have another one.
    _marker: Option<Arc<()>>,
}

impl SessionHandle {
    pub(super) fn new(
        valid: ValidSessionConfig,
        config: &retick_session_config,
        port: Option<SessionPort>,
        clock: Clock,
        marker: Option<Arc<()>>,
    ) -> Self {
        let (mode, predictor, capacity) =
            (valid.state_mode, valid.predictor, usize::from(valid.settings.input_max));
        let mut session = Session::new(valid, port, clock.now());
        if let (Predictor::Game, Some(function)) = (predictor, config.predict) {
            let predict = Predict { function, user: config.predict_user, capacity };
            session.set_predictor(Box::new(move |slot, frame, last| predict.call(slot, frame, last)));
        }
        Self {
            session,
            clock,
            mode,
            open: Open::No,
            records: Vec::new(),
            stride: size_of::<retick_step>(),
            count: 0,
            regions: Vec::new(),
            regions_size: 0,
            events: EventStore::new(),
            begun: false,
            _marker: marker,
        }
    }

    pub(super) fn open(&self) -> Open {
        self.open
    }

    /// The list of a poisoned session is closed: its memory may go.
    pub(super) fn forget_list(&mut self) {
        self.open = Open::No;
    }

    pub(super) fn state_mode(&self) -> StateMode {
        self.mode
    }

    pub(super) fn add_region(&mut self, memory: *mut u8, size: u64) -> Outcome<retick_result> {
        if self.mode != StateMode::Regions {
            return Err(Failure::state("the session was not created with RETICK_STATE_REGIONS"));
        }
        if self.begun {
            return Err(Failure::state("the first frame has begun; register regions before"));
        }
        let left = MAX_STATE - self.regions_size as u64;
        if size > left {
            return Err(Failure::large(format!("size is {size}, and {left} bytes of 1 GiB are left")));
        }
        self.regions.push(Region { memory, size: size as usize });
        self.regions_size += size as usize;
        Ok(RETICK_OK)
    }

    pub(super) fn state_slots(&self) -> u32 {
        if self.mode == StateMode::Slots { self.session.state_count() } else { 0 }
    }

    pub(super) fn start_info(&self) -> Outcome<retick_start_info> {
        let Some(start) = self.session.start_info() else {
            return Err(Failure::state("the match has not begun; wait for RETICK_EVENT_STARTED"));
        };
        Ok(retick_start_info {
            struct_size: 0,
            slot_count: self.session.slot_count() as u32,
            us: u32::from(start.us.get()),
            local_slots: u32::from(self.session.local_slots().bits()),
            seed: start.seed,
            frame0_mesh_time_us: start.frame0_at.as_micros(),
            slot_peer: start.slots.map(|peer| peer.map_or(255, PeerIndex::get)),
        })
    }

    pub(super) fn frames_due(&mut self) -> Outcome<(u32, f32)> {
        Ok(self.session.frames_due(self.clock.now()))
    }

    pub(super) fn add_local_input(&mut self, slot: Slot, bytes: &[u8]) -> Outcome<retick_result> {
        self.session.add_local_input(slot, bytes).map_err(|error| match error {
            SessionError::NotLocalSlot => Failure::argument(format!(
                "slot is {slot}, which is not played here (or the match has not begun); see retick_session_start_info"
            )),
            SessionError::InputTooLong => Failure::large(format!(
                "size is {}; input_max is {}",
                bytes.len(),
                self.session.config().settings.input_max
            )),
            other => failure(other),
        })?;
        Ok(RETICK_OK)
    }

    pub(super) fn set_input_delay(&mut self, slot: Slot, frames: u32) -> Outcome<retick_result> {
        self.session.set_input_delay(slot, frames).map_err(|error| match error {
            SessionError::BadDelay => Failure::argument(format!("frames is {frames}; use 0 to 32")),
            SessionError::NotLocalSlot => {
                Failure::argument(format!("slot is {slot}, which is not played here"))
            }
            other => failure(other),
        })?;
        Ok(RETICK_OK)
    }

    pub(super) fn confirmed_checksum(&self, frame: i32) -> Option<u64> {
        self.session.confirmed_checksum(Frame(frame))
    }

    /// Begins a list and lays it out with the caller's stride. Verdict, records, count.
    pub(super) fn begin_frame(
        &mut self,
        stride: usize,
        open: Open,
    ) -> Outcome<(retick_result, *mut retick_step, u32)> {
        if self.mode == StateMode::Regions && self.regions.is_empty() {
            return Err(Failure::state("no region is registered; call retick_session_add_region first"));
        }
        self.events.recycle(drop);
        let verdict = self.session.begin_frame(self.clock.now()).map_err(failure)?;
        self.begun = true;
        self.stride = stride;
        self.count = self.session.step_count();
        let words = self.count * stride / size_of::<u64>();
        if self.records.len() < words {
            self.records.resize(words, 0);
        }
        if self.mode == StateMode::Regions {
            for index in 0..self.count {
                let is_small =
                    |step: &Step| step.kind == StepKind::Save && step.state_size < self.regions_size as u64;
                if self.session.step(index).is_some_and(is_small) {
                    self.session.grow_state(index, self.regions_size as u64).map_err(failure)?;
                }
            }
        }
        for index in 0..self.count {
            self.write_record(index);
        }
        if self.session.is_list_open() {
            self.open = open;
        }
        let verdict = match verdict {
            Verdict::Advance => RETICK_OK,
            Verdict::ResimulateOnly => RETICK_RESIMULATE_ONLY,
            Verdict::Stall(_) => RETICK_STALL,
        };
        Ok((verdict, self.record(0), self.count as u32))
    }

    fn record(&mut self, index: usize) -> *mut retick_step {
        // A record of an empty list is never touched.
        self.records.as_mut_ptr().cast::<u8>().wrapping_add(index * self.stride).cast()
    }

    fn write_record(&mut self, index: usize) {
        let Some(&step) = self.session.step(index) else { return };
        let (state, state_size) = self.state_of(index, &step);
        let (inputs, sizes) = self.session.inputs(index);
        let by_library = self.mode == StateMode::Regions && step.kind != StepKind::Advance;
        let wants_checksum = self.mode == StateMode::Slots && step.wants_checksum;
        let value = retick_step {
            kind: match step.kind {
                StepKind::Save => RETICK_STEP_SAVE,
                StepKind::Load => RETICK_STEP_LOAD,
                StepKind::Advance => RETICK_STEP_ADVANCE,
            },
            frame: step.frame.0,
            flags: [
                (step.kind == StepKind::Advance && step.resimulating, RETICK_ADVANCE_RESIMULATING),
                (step.kind == StepKind::Advance && step.confirmed, RETICK_ADVANCE_CONFIRMED),
                (by_library, RETICK_STEP_BY_LIBRARY),
                (wants_checksum, RETICK_SAVE_CHECKSUM),
            ]
            .iter()
            .fold(0, |flags, &(is_set, flag)| if is_set { flags | flag } else { flags }),
            slot_index: if self.mode == StateMode::Slots { step.state_index } else { 0 },
            inputs_size: inputs.len() as u32,
            events_size: 0,
            slot_status: step.slot_status,
            state_size,
            saved_size: 0,
            checksum: 0,
            inputs: if inputs.is_empty() { null() } else { inputs.as_ptr() },
            input_sizes: if sizes.is_empty() { null() } else { sizes.as_ptr() },
            events: null(),
            state,
        };
        let stride = self.stride;
        let record = self.record(index).cast::<u8>();
        // SAFETY: `begin_frame` made room for `count` strides, and `index` is below it; the struct has no padding.
        unsafe { super::ptr::write_padded(record, stride, value) };
    }

    /// The buffer that the game writes or reads, and its size.
    fn state_of(&mut self, index: usize, step: &Step) -> (*mut u8, u64) {
        match self.mode {
            _ if step.kind == StepKind::Advance => (null_mut(), 0),
            StateMode::Bytes => self
                .session
                .state(index)
                .map_or((null_mut(), 0), |buffer| (buffer.as_mut_ptr(), buffer.len() as u64)),
            StateMode::Regions => (null_mut(), self.regions_size as u64),
            StateMode::Slots => (null_mut(), step.state_size),
        }
    }

    pub(super) fn grow_state(&mut self, index: u32, size: u64) -> Outcome<retick_result> {
        if self.mode != StateMode::Bytes {
            return Err(Failure::state("the session was not created with RETICK_STATE_BYTES"));
        }
        let index = index as usize;
        self.session.grow_state(index, size).map_err(|error| match error {
            SessionError::NoSuchStep => Failure::argument(format!("index is {index}, which is no SAVE step")),
            SessionError::StateTooLarge => {
                Failure::large(format!("size is {size}; a state has at most 1 GiB"))
            }
            other => failure(other),
        })?;
        // Several steps may share a buffer.
        for other in 0..self.count {
            let Some(&step) = self.session.step(other) else { continue };
            if step.kind == StepKind::Advance {
                continue;
            }
            let (state, state_size) = self.state_of(other, &step);
            let record = self.record(other);
            // SAFETY: a record of the open list, which only the thread inside this call touches now.
            unsafe {
                (*record).state = state;
                (*record).state_size = state_size;
            }
        }
        Ok(RETICK_OK)
    }

    pub(super) fn run_step(&mut self, index: u32) -> Outcome<retick_result> {
        let index = index as usize;
        let step = self.session.step(index).copied().filter(|step| step.kind != StepKind::Advance);
        let Some(step) = step.filter(|_| self.mode == StateMode::Regions && index < self.count) else {
            return Err(Failure::argument(format!(
                "index is {index}, which is no step with RETICK_STEP_BY_LIBRARY; do it yourself"
            )));
        };
        let total = self.regions_size;
        let Some(buffer) = self.session.state(index).filter(|buffer| buffer.len() >= total) else {
            return Err(Failure::state(format!("step {index} has no saved state of {total} bytes")));
        };
        let mut at = 0;
        for region in &self.regions {
            let part = &mut buffer[at..at + region.size];
            at += region.size;
            // SAFETY: the region is valid for its size until the session is destroyed (contract of add_region), the game
            // does not touch it during this call, and our buffer is not part of it.
            unsafe {
                if step.kind == StepKind::Save {
                    std::ptr::copy_nonoverlapping(region.memory, part.as_mut_ptr(), region.size);
                } else {
                    std::ptr::copy_nonoverlapping(part.as_ptr(), region.memory, region.size);
                }
            }
        }
        if step.kind == StepKind::Save {
            self.session.set_saved(index, total as u64, None).map_err(failure)?;
        }
        let record = self.record(index);
        // SAFETY: a record of the open list; the mark that it was run.
        unsafe { (*record).saved_size = total as u64 };
        Ok(RETICK_OK)
    }

    pub(super) fn end_frame(&mut self) -> Outcome<retick_result> {
        if self.session.is_list_open()
            && let Err(failure) = self.take_saves()
        {
            self.abort_frame()?;
            return Err(failure);
        }
        self.open = Open::No;
        self.session.end_frame(self.clock.now()).map_err(failure)?;
        Ok(RETICK_OK)
    }

    /// Reads what the game wrote into the records of its saves.
    fn take_saves(&mut self) -> Outcome<()> {
        for index in 0..self.count {
            let Some(&step) = self.session.step(index) else { continue };
            let record = self.record(index);
            // SAFETY: a record of the open list, which only the thread inside this call touches now.
            let (saved_size, checksum) = unsafe { ((*record).saved_size, (*record).checksum) };
            match (self.mode, step.kind) {
                (_, StepKind::Advance) | (StateMode::Bytes | StateMode::Slots, StepKind::Load) => {}
                (StateMode::Regions, _) if saved_size != self.regions_size as u64 => {
                    return Err(Failure::state(format!(
                        "step {index} is marked RETICK_STEP_BY_LIBRARY and was not run; call retick_session_run_step \
                         for it (the frame was aborted)"
                    )));
                }
                (StateMode::Regions, _) => {}
                (StateMode::Bytes, StepKind::Save) if saved_size == 0 => {
                    return Err(Failure::argument(format!(
                        "saved_size of step {index} is 0; set it to the bytes written (the frame was aborted)"
                    )));
                }
                (StateMode::Bytes, StepKind::Save) => {
                    self.session.set_saved(index, saved_size, None).map_err(|error| match error {
                        SessionError::StateTooLarge => Failure::argument(format!(
                            "saved_size of step {index} is {saved_size}, more than its room; grow it first with \
                             retick_session_grow_state (the frame was aborted)"
                        )),
                        other => failure(other),
                    })?;
                }
                (StateMode::Slots, StepKind::Save) => {
                    // The bytes are the game's; their number is not needed, and any is fine.
                    let size = saved_size.min(MAX_STATE);
                    self.session.set_saved(index, size, Some(checksum)).map_err(failure)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn abort_frame(&mut self) -> Outcome<retick_result> {
        self.open = Open::No;
        self.session.abort_frame().map_err(failure)?;
        Ok(RETICK_OK)
    }

    pub(super) fn next_event(&mut self) -> Option<retick_event> {
        self.session.poll(self.clock.now());
        while !self.events.is_full() {
            let Some(event) = self.session.next_event() else { break };
            self.events.push_session(event);
        }
        self.events.next()
    }

    pub(super) fn stats(&self) -> retick_stats {
        let stats = self.session.stats();
        let (stall_reason, stall_peer) = match stats.last_stall {
            None => (RETICK_STALL_NONE, None),
            Some(StallReason::NotStarted) => (RETICK_STALL_NOT_STARTED, None),
            Some(StallReason::Window(peer)) => (RETICK_STALL_WINDOW, Some(peer)),
            Some(StallReason::Cut(peer)) => (RETICK_STALL_CUT, Some(peer)),
            Some(StallReason::CutOff) => (RETICK_STALL_CUT_OFF, None),
        };
        let first_slot = self.session.local_slots().first();
        retick_stats {
            struct_size: 0,
            frame: stats.frame.0,
            confirmed_frame: stats.confirmed_frame.0,
            prediction_window: stats.window as u32,
            input_delay: first_slot.map_or(0, |slot| u32::from(stats.input_delay[slot.index()])),
            longest_rollback: stats.longest_rollback,
            stall_reason,
            stall_peer: stall_peer.map_or(RETICK_NO_PEER, |peer| u32::from(peer.get())),
            is_stalled: u32::from(stats.is_stalled),
            stalled_calls: stats.stalled_calls,
            frames_ahead: stats.frames_ahead,
            states_live: stats.states_live,
            sim_us: stats.sim_us,
            sim_us_max: stats.sim_us_max,
            sim_us_total: stats.sim_us_total,
            advanced: stats.advanced,
            stalls: stats.stalls,
            rollbacks: stats.rollbacks,
            resimulated_frames: stats.resimulated_frames,
            saves: stats.saves,
            loads: stats.loads,
            desyncs: stats.desyncs,
        }
    }

    /// The newest samples, oldest first, at most `capacity`.
    pub(super) fn samples(&self, capacity: u32, mut take: impl FnMut(retick_sample)) {
        let skip = self.session.samples().count().saturating_sub(capacity as usize);
        for sample in self.session.samples().skip(skip) {
            take(retick_sample {
                frame: sample.frame.0,
                rollback: sample.rollback,
                stalled: u16::from(sample.stalled),
                rtt_ms: sample.rtt_ms,
                lost: sample.lost,
                bytes_in: sample.bytes_in,
                bytes_out: sample.bytes_out,
                sim_us: sample.sim_us,
            });
        }
    }
}

/// What a session's error is to the caller.
fn failure(error: SessionError) -> Failure {
    match error {
        SessionError::ListOpen => Failure::busy("a step list is open; close it first"),
        SessionError::NoListOpen => Failure::state("no step list is open; begin one first"),
        SessionError::NotLocalSlot => Failure::argument("slot is not played here"),
        SessionError::InputTooLong => Failure::large("the input is longer than input_max"),
        SessionError::NoSuchStep => Failure::argument("index is no such step"),
        SessionError::StateTooLarge => Failure::large("a state has at most 1 GiB"),
        SessionError::BadDelay => Failure::argument("frames is out of range; use 0 to 32"),
        SessionError::Closed => {
            Failure::shut_down("the network half of this session's mesh is gone; destroy the session")
        }
    }
}
