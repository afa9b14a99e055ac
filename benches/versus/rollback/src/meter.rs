//! The instruments: a virtual clock, CPU time and heap allocations by who runs, and marks for callgrind.
//!
//! Decides what counts as the library's own work. Fed by: `run`, which brackets a piece of code with its doer.
//! Yields: cycles and allocations per doer. Never: measured from two threads; this process has one.
//!
//! `clock_gettime` is defined here, so whatever clock a library reads shows virtual time; real time is read from the
//! processor's counter only. Under valgrind, instructions are collected while the library runs between `start` and `stop`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

/// Who runs.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Doer {
    /// This program.
    Harness,
    /// A library, on what would be the game's thread.
    GameHalf,
    /// A library, on what would be its own thread.
    IoHalf,
    /// The game's step.
    Game,
    /// Copies of the game's state.
    State,
    /// The network between the peers.
    Network,
}

/// How many kinds of doer there are.
pub const DOERS: usize = 6;

/// What each doer did so far.
#[derive(Clone, Copy, Default)]
pub struct Account {
    /// Cycles of the time stamp counter.
    pub cycles: [u64; DOERS],
    /// How often it was interrupted or done.
    pub switches: [u64; DOERS],
    /// Heap allocations.
    pub allocations: [u64; DOERS],
}

static DOER: AtomicU8 = AtomicU8::new(0);
static SINCE: AtomicU64 = AtomicU64::new(0);
static CYCLES: [AtomicU64; DOERS] = [const { AtomicU64::new(0) }; DOERS];
static SWITCHES: [AtomicU64; DOERS] = [const { AtomicU64::new(0) }; DOERS];
static ALLOCATIONS: [AtomicU64; DOERS] = [const { AtomicU64::new(0) }; DOERS];
static IS_MEASURING: AtomicBool = AtomicBool::new(false);
static NOW_NS: AtomicU64 = AtomicU64::new(0);

fn is_library(doer: u8) -> bool {
    doer == Doer::GameHalf as u8 || doer == Doer::IoHalf as u8
}

/// Runs `work` on behalf of `doer`; nests.
#[inline(always)]
pub fn run<R>(doer: Doer, work: impl FnOnce() -> R) -> R {
    let before = switch(doer as u8);
    let result = work();
    switch(before);
    result
}

#[inline(always)]
fn switch(to: u8) -> u8 {
    let from = DOER.load(Relaxed);
    // The bookkeeping is never the library's: its time ends before, or begins after.
    if is_library(from) {
        if !is_library(to) && IS_MEASURING.load(Relaxed) {
            toggle_callgrind();
        }
        note(from, to, counter());
    } else {
        note(from, to, counter());
        if is_library(to) {
            if IS_MEASURING.load(Relaxed) {
                toggle_callgrind();
            }
            SINCE.store(counter(), Relaxed);
        }
    }
    from
}

#[inline(always)]
fn note(from: u8, to: u8, now: u64) {
    // Plain loads and stores: there is one thread, and a locked instruction would be measured.
    let add = |to: &AtomicU64, what| to.store(to.load(Relaxed) + what, Relaxed);
    add(&CYCLES[from as usize], now.wrapping_sub(SINCE.load(Relaxed)));
    add(&SWITCHES[from as usize], 1);
    SINCE.store(now, Relaxed);
    DOER.store(to, Relaxed);
}

/// Cycles that one switch away from a library costs it: half a reading of the counter at either end.
pub fn cycles_per_switch() -> f64 {
    const SWITCHES_PER_ROUND: u64 = 10_000;
    let round = |_| {
        let before = account();
        run(Doer::GameHalf, || (0..SWITCHES_PER_ROUND).for_each(|_| run(Doer::Network, || ())));
        account().cycles[Doer::GameHalf as usize] - before.cycles[Doer::GameHalf as usize]
    };
    // The least of many rounds: whatever disturbs a round makes it longer.
    (0..100).map(round).min().unwrap_or(0) as f64 / SWITCHES_PER_ROUND as f64
}

/// From here on callgrind collects what a library does.
pub fn start() {
    IS_MEASURING.store(true, Relaxed);
}

/// No longer.
pub fn stop() {
    IS_MEASURING.store(false, Relaxed);
}

/// What was done up to now.
pub fn account() -> Account {
    Account {
        cycles: std::array::from_fn(|i| CYCLES[i].load(Relaxed)),
        switches: std::array::from_fn(|i| SWITCHES[i].load(Relaxed)),
        allocations: std::array::from_fn(|i| ALLOCATIONS[i].load(Relaxed)),
    }
}

/// Virtual time, in ns.
pub fn now_ns() -> u64 {
    NOW_NS.load(Relaxed)
}

/// Moves virtual time.
pub fn set_now_ns(now: u64) {
    NOW_NS.store(now, Relaxed);
}

#[inline(always)]
fn counter() -> u64 {
    // SAFETY: reads a register; every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Cycles per ns of real time, measured for 50 ms.
pub fn cycles_per_ns() -> f64 {
    let (start_ns, start) = (real_ns(), counter());
    let mut end_ns = start_ns;
    while end_ns - start_ns < 50_000_000 {
        end_ns = real_ns();
    }
    (counter() - start) as f64 / (end_ns - start_ns) as f64
}

/// Valgrind's client request `CALLGRIND_TOGGLE_COLLECT`; without valgrind these instructions do nothing.
#[inline(always)]
fn toggle_callgrind() {
    const TOGGLE_COLLECT: u64 = 0x4354_0002;
    let request = [TOGGLE_COLLECT, 0, 0, 0, 0, 0];
    // SAFETY: the sequence of valgrind.h for amd64: rotations that cancel out and an exchange of a register with itself.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") request.as_ptr(), inout("rdx") 0_u64 => _,
        );
    }
}

unsafe extern "C" {
    safe fn syscall(number: i64, clock: i64, time: &mut [i64; 2]) -> i64;
}

/// The kernel's monotonic clock, which nobody but this file sees.
fn real_ns() -> u64 {
    const CLOCK_GETTIME: i64 = 228;
    let mut time = [0; 2];
    syscall(CLOCK_GETTIME, 1, &mut time);
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}

/// Every clock of the C library, and so of Rust's, shows virtual time.
///
/// # Safety
/// `time` points to a `timespec` that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_clock: i32, time: *mut [i64; 2]) -> i32 {
    // Not at zero: a library may subtract from its first instant.
    let now = 1_000_000_000_000 + now_ns();
    // SAFETY: the caller hands in a timespec: two i64 on x86-64.
    unsafe { *time = [(now / 1_000_000_000) as i64, (now % 1_000_000_000) as i64] };
    0
}

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    let counter = &ALLOCATIONS[DOER.load(Relaxed) as usize];
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}
