//! retick: deterministic multiplayer for any game engine.
//!
//! The map: `base` and `wire` are what everything stands on; `kit` are pure helpers; `channel`, `mesh` and `rollback`
//! are cores (state machines that take bytes, `now` and a seed); `node` composes the network half, `session` the game
//! half, and `bridge` is all they share; `netem` and `simnet` run the same code over a simulated network in virtual
//! time; `io` drives it on real sockets; `ffi` is the C ABI and, but for one call in `io/poll`, the only place with `unsafe` code.
//!
//! Layers, lowest first; a line imports only lines above it, cores never each other (checked by `tests/tidy.rs`):
//! `base` · `kit` · `config` · `wire` · cores · `bridge` · `node`, `session` · `netem` · `simnet` · `io` · `ffi`.
#![deny(unsafe_code)]

pub mod base;
pub mod bridge;
pub mod channel;
pub mod config;
pub mod kit;
pub mod mesh;
pub mod netem;
pub mod node;
pub mod rollback;
pub mod session;
pub mod simnet;
pub mod wire;

#[cfg(feature = "io")]
pub mod io;

#[cfg(feature = "ffi")]
pub mod ffi;
