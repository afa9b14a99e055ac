//! Unit tests of the handle table: panics, and what survives shutdown.
