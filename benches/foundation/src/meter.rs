//! The instruments: CPU time of this process, and heap allocations by who runs.
//!
//! Fed by: `run`, which brackets a piece of code with its doer. Yields: counts. Never: used by two threads at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Who runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doer {
    /// This program, the game and the simulated network.
    Harness,
    /// The session.
    GameHalf,
    /// The nodes.
    NetworkHalf,
}

static DOER: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Runs `work` on behalf of `doer`; nests.
pub(crate) fn run<R>(doer: Doer, work: impl FnOnce() -> R) -> R {
    let before = DOER.swap(doer as usize, Relaxed);
    let result = work();
    DOER.store(before, Relaxed);
    result
}

/// How often `doer` took memory.
pub(crate) fn allocations(doer: Doer) -> u64 {
    ALLOCATIONS[doer as usize].load(Relaxed)
}

unsafe extern "C" {
    safe fn clock_gettime(clock: i32, time: &mut [i64; 2]) -> i32;
}

/// CPU time of this process, its system calls included.
pub(crate) fn cpu_time() -> Duration {
    const PROCESS_CPU_TIME: i32 = 2;
    let mut time = [0; 2];
    clock_gettime(PROCESS_CPU_TIME, &mut time);
    Duration::new(time[0] as u64, time[1] as u32)
}

/// The system's allocator, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    ALLOCATIONS[DOER.load(Relaxed)].fetch_add(1, Relaxed);
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
