//! How much memory a piece of code takes: live bytes of this thread, at their highest.
//!
//! Fed by: every allocation. Yields: the peak above what was live before. Never: counts another thread's, so that tests may run side by side.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread holds.
pub fn live() -> isize {
    LIVE.get()
}

/// Runs `work` and yields, with its result, by how many bytes it exceeded what was live before it.
pub fn peak<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let (before, outer) = (LIVE.get(), PEAK.get());
    PEAK.set(before);
    let result = work();
    let peak = PEAK.get();
    PEAK.set(outer.max(peak));
    (result, (peak - before).max(0) as usize)
}

fn count(bytes: isize) {
    // A thread that ends frees after its counters are gone.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}
