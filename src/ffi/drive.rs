//! The callback form of a frame: the very list of the other form, run through the game's functions.
//!
//! Fed by: a session handle and three functions. Yields: the verdict, or why the frame was aborted.
//! Never: holds the handle's lock, or a reference into the session, while a function runs.

use super::guard::{self, Failure, Outcome};
use super::handle::{Need, with_session};
use super::handles::retick_session;
use super::library::retick_result;
use super::session_handle::Open;
use super::session_types::{
    RETICK_STEP_BY_LIBRARY, RETICK_STEP_LOAD, RETICK_STEP_SAVE, retick_callbacks, retick_step, retick_step_fn,
};
use crate::config::StateMode;

/// See `retick_session_advance`.
pub(super) fn advance(session: retick_session, callbacks: &retick_callbacks) -> Outcome<retick_result> {
    let (verdict, steps, count) = with_session(session, Need::NoList, |s| {
        let own_state = s.state_mode() != StateMode::Regions;
        for (name, is_missing) in [
            ("advance", callbacks.advance.is_none()),
            ("save", own_state && callbacks.save.is_none()),
            ("load", own_state && callbacks.load.is_none()),
        ] {
            if is_missing {
                return Err(Failure::argument(format!("callbacks.{name} is NULL; it must be a function")));
            }
        }
        s.begin_frame(size_of::<retick_step>(), Open::ByLibrary)
    })?;
    for index in 0..count {
        // SAFETY: one of `count` records with our own stride, which live until the list is closed: nobody can close it but
        // this function.
        let step = unsafe { steps.add(index as usize) };
        // SAFETY: as above; read before the game may write.
        let (kind, frame, flags) = unsafe { ((*step).kind, (*step).frame, (*step).flags) };
        if flags & RETICK_STEP_BY_LIBRARY != 0 {
            if let Err(failure) = with_session(session, Need::Drive, |s| s.run_step(index)) {
                abort(session);
                return Err(failure);
            }
            continue;
        }
        let (name, function) = match kind {
            RETICK_STEP_SAVE => ("save", callbacks.save),
            RETICK_STEP_LOAD => ("load", callbacks.load),
            _ => ("advance", callbacks.advance),
        };
        let code = call(function, callbacks, step);
        if code != 0 {
            abort(session);
            return Err(Failure::callback(format!(
                "the {name} callback returned {code} for frame {frame}; the frame was aborted, and the next one begins \
                 with a load"
            )));
        }
    }
    if count > 0 {
        with_session(session, Need::Drive, |s| s.end_frame())?;
    }
    Ok(verdict)
}

fn call(function: retick_step_fn, callbacks: &retick_callbacks, step: *mut retick_step) -> i32 {
    // Checked before the list was begun.
    let Some(function) = function else { return -1 };
    // SAFETY: the header's contract of the function; the record lives until the list is closed.
    guard::with_user_code(|| unsafe { function(callbacks.user, step) })
}

fn abort(session: retick_session) {
    // Poisoned or shut down meanwhile: then this has closed the list.
    let _ = with_session(session, Need::Drive, |s| s.abort_frame());
}
