//! Waiting for sockets, and being woken: by one call of `poll` on Unix, by the crate `polling` elsewhere.
//!
//! Fed by: sockets that are watched. Yields: the keys of those that can be read. Never: reads a datagram.
//! The one folder of the driver with `unsafe`: who waits for a socket promises that it stays open, and Windows wants two
//! switches set (`windows`).
#![expect(unsafe_code, reason = "whoever waits for a socket promises that it stays open")]

#[cfg(any(not(unix), test))]
mod polled;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(unix))]
pub(super) use polled::{Bell, Waiter, Watched};
#[cfg(unix)]
pub(super) use unix::{Bell, Waiter, Watched};
#[cfg(windows)]
pub(super) use windows::hide_resets;

#[cfg(test)]
mod tests;
