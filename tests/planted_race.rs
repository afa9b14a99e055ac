//! The control of `cargo xtask test --only threads`: a data race that a thread sanitizer must see. Nothing else runs it.
#![expect(clippy::disallowed_methods, reason = "the race of two threads is what it is for")]

use std::cell::UnsafeCell;
use std::thread;

struct Unguarded(UnsafeCell<u64>);

// SAFETY: there is none. That it is shared without a guard is what the sanitizer must find; nobody reads the value.
unsafe impl Sync for Unguarded {}

impl Unguarded {
    fn add(&self) {
        // SAFETY: none, as above.
        unsafe { *self.0.get() += 1 };
    }
}

#[test]
#[ignore = "a data race on purpose: only for a run under a thread sanitizer"]
fn two_threads_write_the_same_place() {
    let place = Unguarded(UnsafeCell::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..1_000).for_each(|_| place.add()));
        }
    });
}
