//! The guard around every export: no panic gets out, and every failure leaves a sentence.
//!
//! Fed by: the exports' bodies. Yields: result codes, the thread's last error, the mark "user code is running".
//! Never: allocates on success, prints, or hides a panic of anyone else's code.

use super::library::{
    RETICK_ERR_BUFFER_TOO_SMALL, RETICK_ERR_BUSY, RETICK_ERR_CALLBACK, RETICK_ERR_INVALID_ARGUMENT,
    RETICK_ERR_INVALID_HANDLE, RETICK_ERR_INVALID_STATE, RETICK_ERR_PANIC, RETICK_ERR_SHUT_DOWN,
    RETICK_ERR_SYSTEM, RETICK_ERR_TOO_LARGE, RETICK_ERR_UNSUPPORTED, RETICK_ERR_VERSION,
    RETICK_ERR_WOULD_BLOCK, RETICK_NONE, RETICK_OK, RETICK_RESIMULATE_ONLY, RETICK_STALL, retick_result,
};
use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fmt::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Why a call failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: retick_result,
    /// Which argument, what is wrong, what to do.
    pub(super) text: Cow<'static, str>,
}

/// What a call comes to.
pub(super) type Outcome<T = retick_result> = Result<T, Failure>;

macro_rules! failures {
    ($($name:ident $code:ident;)+) => {$(
        pub(super) fn $name(text: impl Into<Cow<'static, str>>) -> Self {
            Self { code: $code, text: text.into() }
        }
    )+};
}

impl Failure {
    failures! {
        argument RETICK_ERR_INVALID_ARGUMENT;
        handle RETICK_ERR_INVALID_HANDLE;
        busy RETICK_ERR_BUSY;
        small RETICK_ERR_BUFFER_TOO_SMALL;
        callback RETICK_ERR_CALLBACK;
        panic RETICK_ERR_PANIC;
        system RETICK_ERR_SYSTEM;
        unsupported RETICK_ERR_UNSUPPORTED;
        state RETICK_ERR_INVALID_STATE;
        full RETICK_ERR_WOULD_BLOCK;
        large RETICK_ERR_TOO_LARGE;
        shut_down RETICK_ERR_SHUT_DOWN;
    }
}

/// The constant's name, NUL-terminated.
pub(super) fn result_name(result: retick_result) -> &'static CStr {
    match result {
        RETICK_OK => c"RETICK_OK",
        RETICK_NONE => c"RETICK_NONE",
        RETICK_STALL => c"RETICK_STALL",
        RETICK_RESIMULATE_ONLY => c"RETICK_RESIMULATE_ONLY",
        RETICK_ERR_INVALID_ARGUMENT => c"RETICK_ERR_INVALID_ARGUMENT",
        RETICK_ERR_INVALID_HANDLE => c"RETICK_ERR_INVALID_HANDLE",
        RETICK_ERR_BUSY => c"RETICK_ERR_BUSY",
        RETICK_ERR_BUFFER_TOO_SMALL => c"RETICK_ERR_BUFFER_TOO_SMALL",
        RETICK_ERR_CALLBACK => c"RETICK_ERR_CALLBACK",
        RETICK_ERR_PANIC => c"RETICK_ERR_PANIC",
        RETICK_ERR_SYSTEM => c"RETICK_ERR_SYSTEM",
        RETICK_ERR_UNSUPPORTED => c"RETICK_ERR_UNSUPPORTED",
        RETICK_ERR_VERSION => c"RETICK_ERR_VERSION",
        RETICK_ERR_INVALID_STATE => c"RETICK_ERR_INVALID_STATE",
        RETICK_ERR_WOULD_BLOCK => c"RETICK_ERR_WOULD_BLOCK",
        RETICK_ERR_TOO_LARGE => c"RETICK_ERR_TOO_LARGE",
        RETICK_ERR_SHUT_DOWN => c"RETICK_ERR_SHUT_DOWN",
        _ => c"RETICK_ERR_UNKNOWN",
    }
}

/// A text of bounded length that needs no destructor, so that it may live in a thread local at any time.
struct Text {
    len: usize,
    bytes: [u8; 512],
}

impl Text {
    const fn new() -> Self {
        Self { len: 0, bytes: [0; 512] }
    }

    fn set(&mut self, arguments: fmt::Arguments<'_>) {
        self.len = 0;
        // A text that does not fit is cut; that is no error.
        let _ = self.write_fmt(arguments);
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or("")
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - self.len;
        let mut fits = text.len().min(room);
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        self.bytes[self.len..self.len + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.len += fits;
        if fits < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

thread_local! {
    static LAST_ERROR: RefCell<Text> = const { RefCell::new(Text::new()) };
    static PANIC: RefCell<Text> = const { RefCell::new(Text::new()) };
    /// Library code of an export is running on this thread (and no user code inside it).
    static IN_LIBRARY: Cell<bool> = const { Cell::new(false) };
    /// How deep user code is nested in calls of this thread.
    static USER_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Reads this thread's last error.
pub(super) fn with_last_error<T>(read: impl FnOnce(&[u8]) -> T) -> T {
    LAST_ERROR.with_borrow(|text| read(text.as_bytes()))
}

/// Runs an export's body.
pub(super) fn call(name: &'static str, body: impl FnOnce() -> Outcome) -> retick_result {
    install_hook();
    call_before_use(name, body)
}

/// The same without preparing anything: nothing is allocated before the allocator is chosen.
pub(super) fn call_before_use(name: &'static str, body: impl FnOnce() -> Outcome) -> retick_result {
    match catch(body).and_then(|outcome| outcome) {
        Ok(code) => code,
        Err(failure) => {
            LAST_ERROR.with_borrow_mut(|last| last.set(format_args!("{name}: {}.", failure.text)));
            failure.code
        }
    }
}

/// Runs library code; a panic becomes a failure with its text.
pub(super) fn catch<T>(body: impl FnOnce() -> T) -> Outcome<T> {
    let before = IN_LIBRARY.replace(true);
    let result = catch_unwind(AssertUnwindSafe(body));
    IN_LIBRARY.set(before);
    result.map_err(|payload| {
        let text = PANIC.with_borrow(|text| text.as_str().to_owned());
        forget(payload);
        log::error!("a bug in retick: {text}");
        Failure::panic(format!("a bug in retick: {text}; this handle is unusable now, destroy it"))
    })
}

/// A payload's destructor may panic again, so it is not run.
fn forget(payload: Box<dyn Any + Send>) {
    std::mem::forget(payload);
}

/// Runs the game's code inside one of our calls.
pub(super) fn with_user_code<T>(code: impl FnOnce() -> T) -> T {
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            IN_LIBRARY.set(self.0);
            USER_DEPTH.set(USER_DEPTH.get() - 1);
        }
    }
    let _leave = Leave(IN_LIBRARY.replace(false));
    USER_DEPTH.set(USER_DEPTH.get() + 1);
    code()
}

/// Whether this thread is inside the game's code inside one of our calls.
pub(super) fn is_in_user_code() -> bool {
    USER_DEPTH.get() > 0
}

/// Silences the panics of our exports and of our thread; all others go to the hook that was there before.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_ours = IN_LIBRARY.try_with(Cell::get).unwrap_or(false);
            if is_ours {
                PANIC.with_borrow_mut(|text| text.set(format_args!("{}", Panic(info))));
            } else if std::thread::current().name() == Some("retick-io") {
                log::error!("a bug in retick, on the IO thread: {}", Panic(info));
            } else {
                previous(info);
            }
        }));
    });
}

/// A panic on one line.
struct Panic<'a>(&'a std::panic::PanicHookInfo<'a>);

impl fmt::Display for Panic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.payload_as_str().unwrap_or("no text"))?;
        match self.0.location() {
            Some(at) => write!(f, " ({}:{})", at.file(), at.line()),
            None => Ok(()),
        }
    }
}
