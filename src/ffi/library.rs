//! Exports of the library group: versions, results, the last error, the log, the allocator, shutdown.
//!
//! Fed by: any thread of the game. Yields: static texts, codes, and the end of everything.
//! Never: needs a handle.

use super::guard::{self, Failure, call, call_before_use};
use super::{alloc, handle, log, ptr, struct_sizes};
use std::ffi::{c_char, c_void};

/// What a call returned: 0 ok, above 0 ok with information, below 0 an error.
pub type retick_result = i32;

/// Done.
pub const RETICK_OK: i32 = 0;
/// Done; there was nothing to return (an empty queue, a value that is not held).
pub const RETICK_NONE: i32 = 1;
/// No new frame: something is missing (see retick_stats). Run the steps, repeat the last picture.
pub const RETICK_STALL: i32 = 2;
/// No new frame, but corrected ones: run the steps, draw.
pub const RETICK_RESIMULATE_ONLY: i32 = 3;
/// An argument makes no sense; retick_last_error says which and why.
pub const RETICK_ERR_INVALID_ARGUMENT: i32 = -1;
/// The handle is null, destroyed, of another kind, or was never made.
pub const RETICK_ERR_INVALID_HANDLE: i32 = -2;
/// Another thread is in this handle, or the call makes no sense inside a callback or while a step list is open.
pub const RETICK_ERR_BUSY: i32 = -3;
/// The text or list was cut to fit; the full length was reported.
pub const RETICK_ERR_BUFFER_TOO_SMALL: i32 = -4;
/// A callback of the game returned non-zero; the frame was aborted.
pub const RETICK_ERR_CALLBACK: i32 = -5;
/// A bug in retick: this handle is unusable, destroy it. The others go on.
pub const RETICK_ERR_PANIC: i32 = -6;
/// The operating system refused something; retick_last_error has its words.
pub const RETICK_ERR_SYSTEM: i32 = -7;
/// Not available in this build or mode.
pub const RETICK_ERR_UNSUPPORTED: i32 = -8;
/// Header and library do not fit together.
pub const RETICK_ERR_VERSION: i32 = -9;
/// Not now: the call comes too early or too late.
pub const RETICK_ERR_INVALID_STATE: i32 = -10;
/// A queue is full; try again after the next poll.
pub const RETICK_ERR_WOULD_BLOCK: i32 = -11;
/// More bytes than the documented limit.
pub const RETICK_ERR_TOO_LARGE: i32 = -12;
/// retick_shutdown was called while this handle was in use.
pub const RETICK_ERR_SHUT_DOWN: i32 = -13;

/// Version of the binary interface that this header describes.
pub const RETICK_ABI_VERSION: u32 = 1;
/// Version of the library that this header came with.
pub const RETICK_VERSION_MAJOR: u32 = 0;
/// Version of the library that this header came with.
pub const RETICK_VERSION_MINOR: u32 = 1;
/// Version of the library that this header came with.
pub const RETICK_VERSION_PATCH: u32 = 0;

/// retick_struct_size: retick_mesh_config.
pub const RETICK_STRUCT_MESH_CONFIG: u32 = 1;
/// retick_struct_size: retick_link.
pub const RETICK_STRUCT_LINK: u32 = 2;
/// retick_struct_size: retick_peer_stats.
pub const RETICK_STRUCT_PEER_STATS: u32 = 3;
/// retick_struct_size: retick_event.
pub const RETICK_STRUCT_EVENT: u32 = 4;
/// retick_struct_size: retick_session_config.
pub const RETICK_STRUCT_SESSION_CONFIG: u32 = 5;
/// retick_struct_size: retick_start_info.
pub const RETICK_STRUCT_START_INFO: u32 = 6;
/// retick_struct_size: retick_step.
pub const RETICK_STRUCT_STEP: u32 = 7;
/// retick_struct_size: retick_callbacks.
pub const RETICK_STRUCT_CALLBACKS: u32 = 8;
/// retick_struct_size: retick_stats.
pub const RETICK_STRUCT_STATS: u32 = 9;
/// retick_struct_size: retick_sample.
pub const RETICK_STRUCT_SAMPLE: u32 = 10;

/// log level: nothing.
pub const RETICK_LOG_OFF: u32 = 0;
/// log level: something failed.
pub const RETICK_LOG_ERROR: u32 = 1;
/// log level: something is odd.
pub const RETICK_LOG_WARN: u32 = 2;
/// log level: milestones of a match.
pub const RETICK_LOG_INFO: u32 = 3;
/// log level: decisions.
pub const RETICK_LOG_DEBUG: u32 = 4;
/// log level: packets.
pub const RETICK_LOG_TRACE: u32 = 5;

/// Takes one log line; target and message are UTF-8, NUL-terminated, and live until it returns. level is RETICK_LOG_*.
pub type retick_log_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, level: u32, target: *const c_char, message: *const c_char),
>;

/// Gives size bytes at a multiple of align (a power of two), or NULL.
pub type retick_alloc_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, size: u64, align: u64) -> *mut c_void>;

/// Takes memory of a retick_alloc_fn back, with the size and align it was asked for.
pub type retick_free_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void, size: u64, align: u64)>;

/// The binary interface that the loaded library has. Compare it with RETICK_ABI_VERSION at start-up.
///
/// \returns a number that is raised only when an old caller would break.
///
/// Thread: any, at any time.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_abi_version() -> u32 {
    RETICK_ABI_VERSION
}

/// The version of the loaded library, such as "0.1.0".
///
/// \returns a static text.
///
/// Thread: any, at any time.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The name of a result, such as "RETICK_ERR_BUSY".
///
/// \param result any number.
/// \returns a static text; "RETICK_ERR_UNKNOWN" for a number that is none.
///
/// Thread: any, at any time.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_result_name(result: retick_result) -> *const c_char {
    guard::result_name(result).as_ptr()
}

/// Why the newest failed call of this thread failed: a sentence that says which argument, what is wrong, what to do.
///
/// \param buffer where to write the text, UTF-8 and NUL-terminated; may be NULL when capacity is 0.
/// \param capacity bytes at buffer; a longer text is cut.
/// \returns bytes of the whole text without NUL; 0 when no call of this thread has failed yet.
///
/// Thread: any; each thread has its own.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_last_error(buffer: *mut c_char, capacity: u32) -> u32 {
    guard::with_last_error(|text| {
        // SAFETY: the header demands `capacity` writable bytes at a non-null `buffer`.
        unsafe { ptr::copy_bytes_cut(text, buffer, capacity) };
        text.len() as u32
    })
}

/// The size that the loaded library has for a struct, so that a binding can check its own layout.
///
/// \param which RETICK_STRUCT_*.
/// \returns bytes; 0 for a struct that this version does not have.
///
/// Thread: any, at any time.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_struct_size(which: u32) -> u32 {
    struct_sizes(which)
}

/// Where log lines go. They are delivered inside calls of the game: retick_mesh_poll, retick_session_begin_frame,
/// retick_session_advance, retick_simnet_advance and destroy; lines of the IO thread wait for that in a bounded queue.
///
/// \param log the function, or NULL to drop all lines. It may call retick, except retick_set_log and retick_shutdown.
/// \param user handed to log.
/// \param max_level RETICK_LOG_OFF to RETICK_LOG_TRACE.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT; RETICK_ERR_BUSY from inside log, or while another thread is in it.
///
/// Thread: any. log is called by one thread at a time, inside that thread's own calls.
/// Lifetime: log and user are used until the next retick_set_log or retick_shutdown returns.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_set_log(
    log: retick_log_fn,
    user: *mut c_void,
    max_level: u32,
) -> retick_result {
    call("retick_set_log", || log::set(log, user, max_level))
}

/// Makes every allocation of the library go through the game's functions. Only before any other call that can fail.
///
/// \param alloc gives size bytes at a multiple of align (a power of two), or NULL, which ends the process.
/// \param release takes memory of alloc back, with the same size and align.
/// \param user handed to both.
/// \returns RETICK_OK; RETICK_ERR_INVALID_ARGUMENT for a NULL function; RETICK_ERR_BUSY when the library was used before.
///
/// Thread: any. The functions may be called on any thread, several at once: they must be thread-safe and must not call retick.
/// Lifetime: alloc, release and user are used until the process ends; retick_shutdown does not change that.
/// Since: 0.1
#[unsafe(no_mangle)]
pub unsafe extern "C" fn retick_set_allocator(
    alloc: retick_alloc_fn,
    release: retick_free_fn,
    user: *mut c_void,
) -> retick_result {
    call_before_use("retick_set_allocator", || {
        let (Some(alloc), Some(release)) = (alloc, release) else {
            return Err(Failure::argument(
                "alloc and release must both be functions, and one of them is NULL",
            ));
        };
        alloc::set(alloc, release, user)
    })
}

/// Ends everything: every mesh says goodbye, every handle dies, every thread of the library is joined, the log function
/// is forgotten. Call it before the library's code or the game's callbacks go away (hot reload, plug-in unload).
/// May be called twice; afterwards everything works as in a fresh process. Not needed before the process exits.
///
/// \returns RETICK_OK; RETICK_ERR_BUSY from inside a callback.
///
/// Thread: any, outside of callbacks. A call that runs on another thread is waited for.
/// Lifetime: the memory of an open step list stays until it is closed (RETICK_ERR_SHUT_DOWN); all other pointers end here.
/// Since: 0.1
#[unsafe(no_mangle)]
pub extern "C" fn retick_shutdown() -> retick_result {
    call("retick_shutdown", handle::shutdown)
}
