//! Exports of the session group: the game's timeline.
//!
//! Fed by: the game's thread. Yields: step lists, events, stats.
//! Never: holds a handle's lock while a step of the game runs.

use super::event_types::retick_event;
use super::guard::{Failure, call};
use super::handle::{self, Need, with_session};
use super::handles::{retick_mesh, retick_session};
use super::library::{RETICK_NONE, RETICK_OK, retick_result};
use super::session_handle::Open;
use super::session_types::{
    retick_callbacks, retick_sample, retick_session_config, retick_start_info, retick_stats, retick_step,
};
use super::{convert, drive, log, ptr};
use std::ffi::c_void;

/// Fills a session configuration with the defaults.
///
/// \param config what to fill.
/// \param struct_size sizeof(retick_session_config).
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT.
///
/// Thread: any, at any time.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_config_init(
    config: *mut retick_session_config,
    struct_size: u32,
) -> retick_result {
    call("retick_session_config_init", || {
        // SAFETY: the header demands `struct_size` writable bytes at a non-null `config`.
        unsafe { ptr::init_struct::<retick_session_config>("config", config, struct_size) }
    })
}

/// Opens the timeline of a match. Create it before retick_mesh_set_ready, so that the settings can be compared.
///
/// \param config filled by retick_session_config_init first. Copied.
/// \param mesh the mesh whose members play, or null for a local session that starts at once. One session for one mesh.
/// \param out_session the new session.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_INVALID_STATE
///   when the mesh has a session; RETICK_ERR_WOULD_BLOCK.
///
/// Thread: any. From then on one thread at a time.
/// Lifetime: until retick_session_destroy or retick_shutdown.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_create(
    config: *const retick_session_config,
    mesh: retick_mesh,
    out_session: *mut retick_session,
) -> retick_result {
    call("retick_session_create", || {
        ptr::check("out_session", out_session)?;
        // SAFETY: the header demands `struct_size` readable bytes at a non-null `config`.
        let config = unsafe { ptr::read_struct::<retick_session_config>("config", config) }?;
        let id = handle::create_session(&config, mesh)?;
        // SAFETY: not null, and the header demands a writable `retick_session` there.
        unsafe { out_session.write_unaligned(retick_session { id }) };
        Ok(RETICK_OK)
    })
}

/// RETICK_STATE_REGIONS: registers memory that is part of the state. The library saves, loads and hashes it, inside
/// retick_session_run_step and retick_session_advance only. The same regions in the same order on all peers.
///
/// \param session the session.
/// \param memory where it is.
/// \param size bytes; all regions together at most 1 GiB.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_STATE after the first frame or in another state
///   mode; RETICK_ERR_TOO_LARGE; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Lifetime: memory must stay valid until the session is destroyed or retick_shutdown returns.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_add_region(
    session: retick_session,
    memory: *mut c_void,
    size: u64,
) -> retick_result {
    call("retick_session_add_region", || {
        ptr::check("memory", memory)?;
        if size == 0 {
            return Err(Failure::argument("size is 0; a region has at least one byte"));
        }
        with_session(session, Need::NoList, |s| s.add_region(memory.cast(), size))
    })
}

/// RETICK_STATE_SLOTS: how many numbered copies of its state the game must keep; slot_index is below it.
///
/// \param session the session.
/// \param out_count how many; 0 in the other state modes.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_state_slots(
    session: retick_session,
    out_count: *mut u32,
) -> retick_result {
    call("retick_session_state_slots", || {
        ptr::check("out_count", out_count)?;
        with_session(session, Need::Any, |s| {
            // SAFETY: not null, and the header demands a writable `uint32_t` there.
            unsafe { out_count.write_unaligned(s.state_slots()) };
            Ok(RETICK_OK)
        })
    })
}

/// The roster, the shared random seed and the time of frame 0 of a match that has begun.
///
/// \param session the session.
/// \param out_info where to write it; set its struct_size first.
/// \returns RETICK_OK; RETICK_ERR_INVALID_STATE before the event RETICK_EVENT_STARTED; RETICK_ERR_INVALID_ARGUMENT;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session. Allowed while a step list is open.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_start_info(
    session: retick_session,
    out_info: *mut retick_start_info,
) -> retick_result {
    call("retick_session_start_info", || {
        // SAFETY: the header demands `struct_size` writable bytes at a non-null `out_info`.
        let size = unsafe { ptr::out_struct_size("out_info", out_info) }?;
        with_session(session, Need::Any, |s| {
            let info = s.start_info()?;
            // SAFETY: `size` bytes as just read.
            unsafe { ptr::write_struct(out_info, size, info) };
            Ok(RETICK_OK)
        })
    })
}

/// How many frames should begin now by the mesh's clock (usually 0 or 1), and how far the next one is. Call begin_frame
/// or advance that often; more than one catches up.
///
/// \param session the session.
/// \param out_frames frames that are due.
/// \param out_alpha 0.0 to 1.0: the part of the next frame that has passed, for interpolation; may be NULL.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_frames_due(
    session: retick_session,
    out_frames: *mut u32,
    out_alpha: *mut f32,
) -> retick_result {
    call("retick_session_frames_due", || {
        ptr::check("out_frames", out_frames)?;
        with_session(session, Need::NoList, |s| {
            let (frames, alpha) = s.frames_due()?;
            // SAFETY: not null, and the header demands writable values of these types there.
            unsafe {
                out_frames.write_unaligned(frames);
                if !out_alpha.is_null() {
                    out_alpha.write_unaligned(alpha);
                }
            }
            Ok(RETICK_OK)
        })
    })
}

/// Hands in the input of a slot that is played here. It overwrites the slot's earlier one; the begin_frame (or advance)
/// that starts a new frame stamps and sends it, and it takes effect input_delay frames later. Without a new one, the
/// last is used again.
///
/// \param session the session.
/// \param slot a slot of local_slots (retick_start_info), 0 to 15.
/// \param input its bytes; may be NULL when size is 0. Copied.
/// \param size 0 to input_max.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT for a slot that is not played here; RETICK_ERR_TOO_LARGE;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_add_local_input(
    session: retick_session,
    slot: u32,
    input: *const c_void,
    size: u32,
) -> retick_result {
    call("retick_session_add_local_input", || {
        let slot = convert::slot(slot)?;
        // SAFETY: the header demands `size` readable bytes at `input`.
        let input = unsafe { ptr::bytes("input", input.cast(), size) }?;
        with_session(session, Need::NoList, |s| s.add_local_input(slot, input))
    })
}

/// Runs one frame through the game's functions: the same steps in the same order as retick_session_begin_frame lists
/// them. Steps with RETICK_STEP_BY_LIBRARY are done by the library. Inside a function only retick_session_grow_state,
/// _stats, _samples, _start_info and _state_slots may be called for this session; everything else is RETICK_ERR_BUSY.
///
/// \param session the session.
/// \param callbacks the functions; set its struct_size. Copied.
/// \returns RETICK_OK, RETICK_RESIMULATE_ONLY or RETICK_STALL as retick_session_begin_frame; RETICK_ERR_CALLBACK when a
///   function returned non-zero (the frame is aborted, the next one begins with a load); RETICK_ERR_INVALID_ARGUMENT;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_SHUT_DOWN.
///
/// Thread: any; one thread at a time for one session. The functions are called on this thread, before it returns.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_advance(
    session: retick_session,
    callbacks: *const retick_callbacks,
) -> retick_result {
    let result = call("retick_session_advance", || {
        // SAFETY: the header demands `struct_size` readable bytes at a non-null `callbacks`.
        let callbacks = unsafe { ptr::read_struct::<retick_callbacks>("callbacks", callbacks) }?;
        drive::advance(session, &callbacks)
    });
    log::deliver();
    result
}

/// Begins a frame: lists what the game must do now. Do the steps in order, then retick_session_end_frame. While the list
/// is open only retick_session_run_step, _grow_state, _end_frame, _abort_frame, _stats, _samples, _start_info and
/// _state_slots may be called for this session; everything else is RETICK_ERR_BUSY. The call that learns of the match's
/// start is a RETICK_STALL, so that frame 0 has the inputs of slots that the game knows only now.
///
/// \param session the session.
/// \param step_size sizeof(retick_step); step i begins at (char *)*out_steps + i * step_size.
/// \param out_steps the list.
/// \param out_count how many steps.
/// \returns RETICK_OK: a new frame is among the steps; RETICK_RESIMULATE_ONLY: no new frame, but corrected ones;
///   RETICK_STALL: no new frame, repeat the last picture. A list with steps must be run and closed in each case; closing
///   an empty one is allowed. RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Lifetime: the list and what it points to live until end_frame or abort_frame, also through retick_shutdown.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_begin_frame(
    session: retick_session,
    step_size: u32,
    out_steps: *mut *mut retick_step,
    out_count: *mut u32,
) -> retick_result {
    let result = call("retick_session_begin_frame", || {
        ptr::check("out_steps", out_steps)?;
        ptr::check("out_count", out_count)?;
        let stride = convert::stride("step_size", step_size, size_of::<retick_step>())?;
        with_session(session, Need::NoList, |s| {
            let (verdict, steps, count) = s.begin_frame(stride, Open::ByGame)?;
            // SAFETY: not null, and the header demands writable values of these types there.
            unsafe {
                out_steps.write_unaligned(steps);
                out_count.write_unaligned(count);
            }
            Ok(verdict)
        })
    });
    log::deliver();
    result
}

/// Does a step with RETICK_STEP_BY_LIBRARY: copies the registered regions out or back.
///
/// \param session the session.
/// \param index which step of the open list.
/// \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list; RETICK_ERR_INVALID_ARGUMENT for a step that is not
///   by the library; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_SHUT_DOWN.
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_session_run_step(session: retick_session, index: u32) -> retick_result {
    call("retick_session_run_step", || with_session(session, Need::List, |s| s.run_step(index)))
}

/// Makes more room for a SAVE step: its state moves (its content is kept) and its state_size grows.
///
/// \param session the session.
/// \param index which step of the open list.
/// \param size bytes that are needed, at most 1 GiB.
/// \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list; RETICK_ERR_INVALID_ARGUMENT for another kind of
///   step; RETICK_ERR_TOO_LARGE; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_SHUT_DOWN.
///
/// Thread: any; one thread at a time for one session. Also from inside the save function of retick_session_advance.
/// Lifetime: the step's old state pointer ends here.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_session_grow_state(session: retick_session, index: u32, size: u64) -> retick_result {
    call("retick_session_grow_state", || with_session(session, Need::AnyList, |s| s.grow_state(index, size)))
}

/// Closes the list: every step was done. saved_size and checksum are read from the steps now.
///
/// \param session the session.
/// \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list, or when a step by the library was not run;
///   RETICK_ERR_INVALID_ARGUMENT when a saved_size is 0 or larger than its state_size (in both cases the list is aborted); RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY; RETICK_ERR_PANIC or
///   RETICK_ERR_SHUT_DOWN (the list is closed and its memory freed).
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_session_end_frame(session: retick_session) -> retick_result {
    call("retick_session_end_frame", || with_session(session, Need::Close, |s| s.end_frame()))
}

/// Closes the list without having done its steps, also after doing some: the next list begins with a load.
///
/// \param session the session.
/// \returns RETICK_OK; RETICK_ERR_INVALID_STATE without an open list; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY;
///   RETICK_ERR_PANIC or RETICK_ERR_SHUT_DOWN (the list is closed and its memory freed).
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_session_abort_frame(session: retick_session) -> retick_result {
    call("retick_session_abort_frame", || with_session(session, Need::Close, |s| s.abort_frame()))
}

/// The next event of this session. Read until RETICK_NONE once a frame.
///
/// \param session the session.
/// \param out_event where to write it; set its struct_size first.
/// \returns RETICK_OK; RETICK_NONE when there is none; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE;
///   RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Lifetime: text lives until the next retick_session_begin_frame or retick_session_advance of this session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_next_event(
    session: retick_session,
    out_event: *mut retick_event,
) -> retick_result {
    call("retick_session_next_event", || {
        // SAFETY: the header demands `struct_size` writable bytes at a non-null `out_event`.
        let size = unsafe { ptr::out_struct_size("out_event", out_event) }?;
        with_session(session, Need::NoList, |s| {
            let Some(event) = s.next_event() else { return Ok(RETICK_NONE) };
            // SAFETY: `size` bytes as just read.
            unsafe { ptr::write_struct(out_event, size, event) };
            Ok(RETICK_OK)
        })
    })
}

/// What the session has done so far.
///
/// \param session the session.
/// \param out_stats where to write it; set its struct_size first.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session. Allowed while a step list is open.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_stats(
    session: retick_session,
    out_stats: *mut retick_stats,
) -> retick_result {
    call("retick_session_stats", || {
        // SAFETY: the header demands `struct_size` writable bytes at a non-null `out_stats`.
        let size = unsafe { ptr::out_struct_size("out_stats", out_stats) }?;
        with_session(session, Need::Any, |s| {
            // SAFETY: `size` bytes as just read.
            unsafe { ptr::write_struct(out_stats, size, s.stats()) };
            Ok(RETICK_OK)
        })
    })
}

/// The newest frames of the net graph, oldest first.
///
/// \param session the session.
/// \param out_samples where to write them.
/// \param sample_size sizeof(retick_sample); sample i is written to (char *)out_samples + i * sample_size.
/// \param capacity how many fit; the last 512 frames are held.
/// \param out_count how many were written.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session. Allowed while a step list is open.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_samples(
    session: retick_session,
    out_samples: *mut retick_sample,
    sample_size: u32,
    capacity: u32,
    out_count: *mut u32,
) -> retick_result {
    call("retick_session_samples", || {
        ptr::check("out_count", out_count)?;
        if capacity > 0 {
            ptr::check("out_samples", out_samples)?;
        }
        let stride = convert::stride("sample_size", sample_size, size_of::<retick_sample>())?;
        with_session(session, Need::Any, |s| {
            let mut count = 0;
            s.samples(capacity, |sample| {
                // SAFETY: below `capacity`, and the header demands that many strides of writable bytes.
                unsafe {
                    let at = out_samples.cast::<u8>().add(count as usize * stride);
                    ptr::write_padded(at, stride, sample);
                }
                count += 1;
            });
            // SAFETY: not null, and the header demands a writable `uint32_t` there.
            unsafe { out_count.write_unaligned(count) };
            Ok(RETICK_OK)
        })
    })
}

/// Changes the input delay of a local slot in play, one frame per change, at least 15 frames apart, until it is reached.
///
/// \param session the session.
/// \param slot a slot that is played here, 0 to 15.
/// \param frames 0 to 32.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_session_set_input_delay(
    session: retick_session,
    slot: u32,
    frames: u32,
) -> retick_result {
    call("retick_session_set_input_delay", || {
        let slot = convert::slot(slot)?;
        with_session(session, Need::NoList, |s| s.set_input_delay(slot, frames))
    })
}

/// The digest of a confirmed frame's state, for tests and reports: two peers that have the same one agree.
///
/// \param session the session.
/// \param frame which frame. desync_level 2 holds the last 600 frames, level 1 the last multiples of 60.
/// \param out_checksum its digest.
/// \returns RETICK_OK; RETICK_NONE when it is not confirmed or not held; RETICK_ERR_INVALID_ARGUMENT;
///   RETICK_ERR_INVALID_HANDLE; RETICK_ERR_BUSY.
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_session_confirmed_checksum(
    session: retick_session,
    frame: i32,
    out_checksum: *mut u64,
) -> retick_result {
    call("retick_session_confirmed_checksum", || {
        ptr::check("out_checksum", out_checksum)?;
        if frame < 0 {
            return Err(Failure::argument(format!("frame is {frame}; frames are numbered from 0")));
        }
        with_session(session, Need::NoList, |s| {
            let Some(checksum) = s.confirmed_checksum(frame) else { return Ok(RETICK_NONE) };
            // SAFETY: not null, and the header demands a writable `uint64_t` there.
            unsafe { out_checksum.write_unaligned(checksum) };
            Ok(RETICK_OK)
        })
    })
}

/// Ends the timeline. The member stays in the room: with another session and retick_mesh_set_ready it can play the next
/// match there.
///
/// \param session the session; null is ok.
/// \returns RETICK_OK; RETICK_ERR_BUSY while a step list is open; RETICK_ERR_INVALID_HANDLE.
///
/// Thread: any; one thread at a time for one session.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_session_destroy(session: retick_session) -> retick_result {
    let result = call("retick_session_destroy", || handle::destroy_session(session));
    log::deliver();
    result
}
