//! The allocator of the library: the system's, or the game's functions where it gave some before anything was allocated.
//!
//! Fed by: every allocation. Yields: memory. Never: mixes the two: the choice falls with the first allocation.
//! Not in the library's own unit tests, which may bring an allocator that counts.

use super::guard::{Failure, Outcome};
use super::library::{RETICK_OK, retick_result};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

type Alloc = unsafe extern "C" fn(*mut c_void, u64, u64) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *mut c_void, u64, u64);

/// Nothing was allocated yet.
const OPEN: u8 = 0;
/// The first allocation came from the system, so all do.
const SYSTEM: u8 = 1;
/// The game's functions are being stored.
const SETTING: u8 = 2;
/// The game's functions allocate.
const HOOKED: u8 = 3;

static CHOICE: AtomicU8 = AtomicU8::new(OPEN);
static ALLOC: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static FREE: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static USER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

#[cfg_attr(not(test), global_allocator)]
#[cfg_attr(test, expect(dead_code, reason = "unit tests may bring an allocator of their own"))]
static ALLOCATOR: Hooked = Hooked;

struct Hooked;

/// Stores the game's functions.
pub(super) fn set(alloc: Alloc, free: Free, user: *mut c_void) -> Outcome<retick_result> {
    if CHOICE.compare_exchange(OPEN, SETTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return Err(Failure::busy(
            "the library has allocated already; set the allocator before any other call",
        ));
    }
    ALLOC.store(alloc as *mut (), Ordering::Relaxed);
    FREE.store(free as *mut (), Ordering::Relaxed);
    USER.store(user, Ordering::Relaxed);
    CHOICE.store(HOOKED, Ordering::Release);
    Ok(RETICK_OK)
}

fn is_hooked() -> bool {
    loop {
        match CHOICE.load(Ordering::Acquire) {
            SYSTEM => return false,
            HOOKED => return true,
            OPEN => {
                let _ = CHOICE.compare_exchange(OPEN, SYSTEM, Ordering::AcqRel, Ordering::Acquire);
            }
            // Another thread stores three pointers and is done.
            _ => std::hint::spin_loop(),
        }
    }
}

// SAFETY: either everything goes to the system's allocator, or everything to functions whose contract in the header is
// that of an allocator: thread-safe, aligned, never unwinding.
unsafe impl GlobalAlloc for Hooked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_hooked() {
            // SAFETY: the caller's contract is the system allocator's.
            return unsafe { System.alloc(layout) };
        }
        // SAFETY: stored by `set` before HOOKED, from a function of this very type.
        let alloc = unsafe { std::mem::transmute::<*mut (), Alloc>(ALLOC.load(Ordering::Relaxed)) };
        // SAFETY: the header's contract of the function.
        unsafe { alloc(USER.load(Ordering::Relaxed), layout.size() as u64, layout.align() as u64).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !is_hooked() {
            // SAFETY: the caller's contract is the system allocator's, and the memory came from it.
            return unsafe { System.dealloc(memory, layout) };
        }
        // SAFETY: stored by `set` before HOOKED, from a function of this very type.
        let free = unsafe { std::mem::transmute::<*mut (), Free>(FREE.load(Ordering::Relaxed)) };
        // SAFETY: the header's contract of the function; the memory came from its partner.
        unsafe {
            free(USER.load(Ordering::Relaxed), memory.cast(), layout.size() as u64, layout.align() as u64);
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !is_hooked() {
            // SAFETY: the caller's contract is the system allocator's, and the memory came from it.
            return unsafe { System.realloc(memory, layout, new_size) };
        }
        // SAFETY: the caller guarantees that `new_size` is a valid size for this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: a valid layout of non-zero size, by the caller's contract.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            // SAFETY: both are at least this long and different; the old one came from us with `layout`.
            unsafe {
                std::ptr::copy_nonoverlapping(memory, moved, layout.size().min(new_size));
                self.dealloc(memory, layout);
            }
        }
        moved
    }
}
