//! What the harness asks the operating system for: time, CPU time, waiting for a socket, heap in use.
//!
//! Fed by: nothing. Yields: numbers. Never: part of what is measured, but for waiting, which every endpoint does alike.

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` may be written; the clocks asked for exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The same for all processes of the machine.
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of this process, its system calls included.
pub fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Waits until one of the sockets can be read, at most so long.
pub fn wait_readable(sockets: &[RawFd], at_most: Duration) {
    let mut polled: Vec<libc::pollfd> =
        sockets.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let time = libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(at_most.subsec_nanos()),
    };
    // SAFETY: the array and the time live through the call; no signal mask is handed in.
    unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, &time, std::ptr::null()) };
}

/// Timers of this thread and its children fire within a µs, and enough sockets may be open.
pub fn prepare() {
    let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
    // SAFETY: both calls only read what is handed in; a refusal leaves the defaults, which most rows do not exceed.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1000_u64, 0, 0, 0);
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

static HEAP: AtomicI64 = AtomicI64::new(0);

/// Bytes of the heap that are in use.
pub fn heap() -> i64 {
    HEAP.load(Relaxed)
}

/// The system's allocator, counting what is in use.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HEAP.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        HEAP.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HEAP.fetch_add(size as i64 - layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}
