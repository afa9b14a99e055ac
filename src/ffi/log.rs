//! The log: lines of all threads wait in a bounded queue and are delivered inside calls of the game.
//!
//! Fed by: the `log` facade. Yields: calls of the game's log function, one thread at a time.
//! Never: calls the game from a thread of the library, grows, or keeps a function after `set` or `reset`.

use super::guard::{self, Failure, Outcome};
use super::library::{RETICK_LOG_TRACE, RETICK_OK, retick_log_fn, retick_result};
use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lines that may wait: some seconds of a busy debug log.
const MAX_LINES: usize = 1024;

struct Line {
    level: u32,
    /// NUL-terminated.
    target: Vec<u8>,
    text: Vec<u8>,
}

struct Queue {
    lines: VecDeque<Line>,
    dropped: u32,
}

struct Sink {
    log: retick_log_fn,
    user: *mut c_void,
}

// SAFETY: the pointer is only handed back to the game's function, which by contract may be called on any thread.
unsafe impl Send for Sink {}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { lines: VecDeque::new(), dropped: 0 });
/// How many lines wait, to see without the lock that there are none.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Locked while the game's function runs.
static SINK: Mutex<Sink> = Mutex::new(Sink { log: None, user: std::ptr::null_mut() });

struct Facade;

impl Log for Facade {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("retick")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = Line {
            level: level_number(record.level()),
            target: terminated(record.target().to_owned()),
            text: terminated(record.args().to_string()),
        };
        let mut queue = QUEUE.lock();
        if queue.lines.len() < MAX_LINES {
            queue.lines.push_back(line);
            WAITING.store(queue.lines.len(), Ordering::Release);
        } else {
            queue.dropped += 1;
        }
    }

    fn flush(&self) {}
}

fn level_number(level: Level) -> u32 {
    match level {
        Level::Error => 1,
        Level::Warn => 2,
        Level::Info => 3,
        Level::Debug => 4,
        Level::Trace => 5,
    }
}

fn terminated(text: String) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    bytes.retain(|&byte| byte != 0);
    bytes.push(0);
    bytes
}

/// Where lines go from now on.
pub(super) fn set(log: retick_log_fn, user: *mut c_void, max_level: u32) -> Outcome<retick_result> {
    static INSTALLED: Once = Once::new();
    let level = match max_level {
        0 => LevelFilter::Off,
        1 => LevelFilter::Error,
        2 => LevelFilter::Warn,
        3 => LevelFilter::Info,
        4 => LevelFilter::Debug,
        5 => LevelFilter::Trace,
        _ => {
            return Err(Failure::argument(format!(
                "max_level is {max_level}; use RETICK_LOG_OFF (0) to RETICK_LOG_TRACE ({RETICK_LOG_TRACE})"
            )));
        }
    };
    let Some(mut sink) = SINK.try_lock() else {
        return Err(Failure::busy(
            "the log function is running; change it from outside, when it has returned",
        ));
    };
    // A Rust program that links this library may have a logger of its own: then lines go there, and none comes here.
    INSTALLED.call_once(|| drop(log::set_logger(&Facade)));
    log::set_max_level(if log.is_some() { level } else { LevelFilter::Off });
    *sink = Sink { log, user };
    if log.is_none() {
        clear();
    }
    Ok(RETICK_OK)
}

/// Forgets the function and what waits; waits for a delivery on another thread to end.
pub(super) fn reset() {
    let mut sink = SINK.lock();
    *sink = Sink { log: None, user: std::ptr::null_mut() };
    log::set_max_level(LevelFilter::Off);
    clear();
}

fn clear() {
    let mut queue = QUEUE.lock();
    queue.lines.clear();
    queue.dropped = 0;
    WAITING.store(0, Ordering::Release);
}

fn next() -> Option<Line> {
    let mut queue = QUEUE.lock();
    let line = queue.lines.pop_front();
    WAITING.store(queue.lines.len(), Ordering::Release);
    if line.is_none() && queue.dropped > 0 {
        let dropped = std::mem::take(&mut queue.dropped);
        return Some(Line {
            level: level_number(Level::Warn),
            target: terminated("retick::log".to_owned()),
            text: terminated(format!(
                "{dropped} log lines were dropped because too many came between two polls"
            )),
        });
    }
    line
}

/// Hands waiting lines to the game. Called at the end of an export, with no handle locked.
pub(super) fn deliver() {
    if WAITING.load(Ordering::Acquire) == 0 {
        return;
    }
    // Somebody else delivers, or this is a call from inside the function: the lines wait for that one's loop.
    let Some(sink) = SINK.try_lock() else { return };
    let Some(log) = sink.log else { return };
    // A panic of ours must not reach the caller, and here is nothing to poison.
    drop(guard::catch(|| {
        while let Some(line) = next() {
            guard::with_user_code(|| {
                // SAFETY: the header's contract of the function; both texts are NUL-terminated and outlive the call.
                unsafe { log(sink.user, line.level, line.target.as_ptr().cast(), line.text.as_ptr().cast()) }
            });
        }
    }));
}
