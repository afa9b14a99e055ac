//! Pure helpers that any core may import: digests today; field tables, random numbers and mathematics later.
//!
//! Fed by: plain values. Yields: plain values.
//! Never: keeps state between calls, other than what the caller holds.

pub mod hash;
