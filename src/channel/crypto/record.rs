//! Tests only: every (key, nonce) pair that sealed something on this thread; a pair used twice fails the test.
//!
//! Fed by: `Key::seal`. Yields: the pairs. Never: part of the library.

use std::cell::RefCell;
use std::collections::BTreeSet;

type Pairs = BTreeSet<([u8; 32], u64)>;

thread_local! {
    static PAIRS: RefCell<Option<Pairs>> = const { RefCell::new(None) };
}

/// From now on pairs are kept.
pub(in crate::channel) fn begin() {
    PAIRS.set(Some(BTreeSet::new()));
}

/// Ends it, and says which there were.
pub(in crate::channel) fn end() -> Pairs {
    PAIRS.take().unwrap_or_default()
}

pub(super) fn note(key: &[u8; 32], nonce: u64) {
    PAIRS.with_borrow_mut(|pairs| {
        if let Some(pairs) = pairs {
            // The next key of a chain may be worked out by both ends, and again: it seals nothing.
            assert!(
                pairs.insert((*key, nonce)) || nonce == u64::MAX,
                "nonce {nonce} was used twice with one key"
            );
        }
    });
}
