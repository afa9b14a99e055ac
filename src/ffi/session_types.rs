//! Structs and constants of the session group, as the header shows them.
//!
//! Fed by: the caller's memory, field by field as far as its `struct_size` says. Yields: nothing by itself.
//! Never: a bool, an enum, a `usize` or a bit-field; padding has a name.

use std::ffi::c_void;

/// predictor: a missing remote input is the slot's newest one. The default.
pub const RETICK_PREDICT_REPEAT: u32 = 0;
/// predictor: a missing remote input is zero bytes.
pub const RETICK_PREDICT_ZERO: u32 = 1;
/// predictor: the game's own function, in the field predict.
pub const RETICK_PREDICT_GAME: u32 = 2;

/// state_mode: the game writes its state as bytes into a buffer of the library. The default.
pub const RETICK_STATE_BYTES: u32 = 0;
/// state_mode: the library copies and hashes memory regions registered with retick_session_add_region.
pub const RETICK_STATE_REGIONS: u32 = 1;
/// state_mode: the game keeps its own copies in numbered slots (retick_session_state_slots).
pub const RETICK_STATE_SLOTS: u32 = 2;

/// step: write the state of `frame` to state (at most state_size bytes) and set saved_size.
pub const RETICK_STEP_SAVE: u32 = 1;
/// step: bring the state of `frame` back from state (state_size bytes).
pub const RETICK_STEP_LOAD: u32 = 2;
/// step: simulate `frame` with inputs.
pub const RETICK_STEP_ADVANCE: u32 = 3;
/// step, numbered slots only: write slot_index as bytes. Not used by this version.
pub const RETICK_STEP_EXPORT: u32 = 4;
/// step, numbered slots only: the bytes become the current state. Not used by this version.
pub const RETICK_STEP_IMPORT: u32 = 5;

/// flag of ADVANCE: the frame was simulated before; play no sounds, spawn no particles.
pub const RETICK_ADVANCE_RESIMULATING: u32 = 1;
/// flag of ADVANCE: every input is confirmed; this result is final.
pub const RETICK_ADVANCE_CONFIRMED: u32 = 2;
/// flag of SAVE and LOAD: call retick_session_run_step for this step instead of doing it yourself (RETICK_STATE_REGIONS).
pub const RETICK_STEP_BY_LIBRARY: u32 = 4;
/// flag of SAVE (RETICK_STATE_SLOTS): set checksum to the game's digest of the state. In the other modes the bytes are hashed.
pub const RETICK_SAVE_CHECKSUM: u32 = 8;

/// slot_status: the input is a guess.
pub const RETICK_SLOT_PREDICTED: u32 = 1;
/// slot_status: the slot's player has left; its input is zero bytes.
pub const RETICK_SLOT_DISCONNECTED: u32 = 2;
/// slot_status: nobody plays this slot.
pub const RETICK_SLOT_UNUSED: u32 = 4;

/// stall_reason: no stall so far.
pub const RETICK_STALL_NONE: u32 = 0;
/// stall_reason: the match has not begun.
pub const RETICK_STALL_NOT_STARTED: u32 = 1;
/// stall_reason: the prediction window is full; stall_peer's input is the oldest one missing.
pub const RETICK_STALL_WINDOW: u32 = 2;
/// stall_reason: the others are agreeing on the last frame of stall_peer, who left.
pub const RETICK_STALL_CUT: u32 = 3;
/// stall_reason: the others went on without us.
pub const RETICK_STALL_CUT_OFF: u32 = 4;

/// The game's own prediction of a missing input: write at most capacity bytes to out and their number to out_size.
/// `last` is the slot's newest input, of the frame before or earlier. Called inside begin_frame and advance, on their
/// thread; must give the same answer for the same arguments, and must not call retick.
pub type retick_predict_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        slot: u32,
        frame: i32,
        last: *const u8,
        last_size: u32,
        out: *mut u8,
        capacity: u32,
        out_size: *mut u32,
    ),
>;

/// How a session is set up. Fill it with retick_session_config_init, then change what you need.
/// input_max, frame_rate, desync_level and game_settings must be equal on all peers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_session_config {
    /// Set by retick_session_config_init.
    pub struct_size: u32,
    /// Most bytes of one slot's input for one frame, 1 to 64; default 4.
    pub input_max: u32,
    /// Frames per second, 1 to 1000; default 60.
    pub frame_rate: u32,
    /// Frames between handing in a local input and using it, 0 to 32; default 2.
    pub input_delay: u32,
    /// Most frames simulated past the confirmed one, 0 to 64; 0 = lockstep; default 16.
    pub prediction_window: u32,
    /// RETICK_PREDICT_REPEAT (default), _ZERO or _GAME.
    pub predictor: u32,
    /// RETICK_STATE_BYTES (default), _REGIONS or _SLOTS.
    pub state_mode: u32,
    /// 0 off; 1 (default) compare digests every 60 frames; 2 every frame (tests, development).
    pub desync_level: u32,
    /// BYTES: room for a saved state in bytes, 0 to 1 GiB; it can grow (retick_session_grow_state); default 65536.
    pub state_capacity: u64,
    /// The game's own digest of its rules, level and the like. Default 0.
    pub game_settings: u64,
    /// Without a mesh: how many slots are played here, 1 to 16; default 1.
    pub local_slots: u32,
    /// 0.
    pub reserved: u32,
    /// RETICK_PREDICT_GAME: the function.
    pub predict: retick_predict_fn,
    /// Handed to predict.
    pub predict_user: *mut c_void,
}

/// The roster of a match that has begun.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_start_info {
    /// Set by the caller: sizeof(retick_start_info).
    pub struct_size: u32,
    /// How many slots are in use: 0 to slot_count - 1.
    pub slot_count: u32,
    /// Our own peer index.
    pub us: u32,
    /// Bit i is set when slot i is played here.
    pub local_slots: u32,
    /// Random, equal on all peers.
    pub seed: u64,
    /// Mesh time of frame 0, in microseconds.
    pub frame0_mesh_time_us: u64,
    /// The peer that plays each slot; 255 = nobody.
    pub slot_peer: [u8; 16],
}

/// One thing that the game must do now, in the order of the list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_step {
    /// RETICK_STEP_SAVE, _LOAD or _ADVANCE.
    pub kind: u32,
    /// Its frame. The state of frame f is the state before f's inputs.
    pub frame: i32,
    /// RETICK_ADVANCE_*, RETICK_STEP_BY_LIBRARY, RETICK_SAVE_CHECKSUM.
    pub flags: u32,
    /// RETICK_STATE_SLOTS: which of the game's numbered copies to write or read.
    pub slot_index: u32,
    /// ADVANCE: bytes at inputs: slot count * input_max.
    pub inputs_size: u32,
    /// ADVANCE: bytes at events; 0 in this version.
    pub events_size: u32,
    /// ADVANCE: 4 bits a slot, slot 0 lowest: RETICK_SLOT_*.
    pub slot_status: u64,
    /// LOAD: bytes of the state. SAVE: room at state.
    pub state_size: u64,
    /// SAVE: set it to the bytes written. More room: retick_session_grow_state.
    pub saved_size: u64,
    /// SAVE with RETICK_SAVE_CHECKSUM: set it to the game's own digest, else it is ignored; 0 is an ordinary value.
    pub checksum: u64,
    /// ADVANCE: input_max bytes for each slot; those past a slot's length are 0.
    pub inputs: *const u8,
    /// ADVANCE: length of each slot's input.
    pub input_sizes: *const u16,
    /// ADVANCE: input events of this frame; NULL in this version.
    pub events: *const u8,
    /// SAVE: write here. LOAD: read here. NULL where the library does the step, and with RETICK_STATE_SLOTS.
    pub state: *mut u8,
}

/// Does one step of the game. 0 = done; anything else aborts the frame. Must not throw, longjmp or unwind out.
pub type retick_step_fn = Option<unsafe extern "C" fn(user: *mut c_void, step: *mut retick_step) -> i32>;

/// The game's three functions for retick_session_advance.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_callbacks {
    /// Set by the caller: sizeof(retick_callbacks).
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Handed to the functions.
    pub user: *mut c_void,
    /// RETICK_STEP_SAVE. May be NULL with RETICK_STATE_REGIONS.
    pub save: retick_step_fn,
    /// RETICK_STEP_LOAD. May be NULL with RETICK_STATE_REGIONS.
    pub load: retick_step_fn,
    /// RETICK_STEP_ADVANCE.
    pub advance: retick_step_fn,
}

/// What a session has done so far, and what holds now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_stats {
    /// Set by the caller: sizeof(retick_stats).
    pub struct_size: u32,
    /// The next frame to simulate for the first time.
    pub frame: i32,
    /// The newest frame whose inputs are all confirmed; -1 = none.
    pub confirmed_frame: i32,
    /// In frames.
    pub prediction_window: u32,
    /// Of the first local slot, in frames.
    pub input_delay: u32,
    /// Most frames simulated again in one list.
    pub longest_rollback: u32,
    /// Why the newest stall happened: RETICK_STALL_*.
    pub stall_reason: u32,
    /// The peer who caused it, or RETICK_NO_PEER.
    pub stall_peer: u32,
    /// 1 when the last call began no new frame.
    pub is_stalled: u32,
    /// Calls in a row, up to now, that began no new frame.
    pub stalled_calls: u32,
    /// How far the next frame is ahead of the mesh's schedule (negative: behind), in frames; 0 in normal play.
    pub frames_ahead: f32,
    /// States kept now.
    pub states_live: u32,
    /// Microseconds between begin_frame and end_frame of the last list.
    pub sim_us: u32,
    /// The most so far.
    pub sim_us_max: u32,
    /// Its sum.
    pub sim_us_total: u64,
    /// Calls that began a new frame.
    pub advanced: u64,
    /// Calls that began no new frame because something was missing.
    pub stalls: u64,
    /// Lists that corrected a wrong prediction.
    pub rollbacks: u64,
    /// Frames simulated again.
    pub resimulated_frames: u64,
    /// SAVE steps.
    pub saves: u64,
    /// LOAD steps.
    pub loads: u64,
    /// Confirmed frames whose digest differed from another peer's.
    pub desyncs: u64,
}

/// One call of begin_frame or advance in the net graph.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct retick_sample {
    /// The next frame to simulate, after this call.
    pub frame: i32,
    /// How many frames were simulated again.
    pub rollback: u16,
    /// 1: no new frame was begun.
    pub stalled: u16,
    /// The slowest link's round trip.
    pub rtt_ms: u16,
    /// The worst link's lost packets, of a thousand.
    pub lost: u16,
    /// Bytes received per frame, all links together.
    pub bytes_in: u32,
    /// Bytes sent per frame, all links together.
    pub bytes_out: u32,
    /// Microseconds between begin_frame and end_frame.
    pub sim_us: u32,
}
