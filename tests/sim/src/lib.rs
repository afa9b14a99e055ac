//! Whole meshes by seed: real network and game halves, in virtual time, over a bad network, judged by oracles.
//!
//! `World` runs a mesh from a `Setup` and a script of `Fault`s; `swarm` draws both from a seed; `oracles` judge what every
//! game was told; `seeds` chooses the seeds and prints how to play a failing one again.
//! Fed by: the tests beside it. Yields: failures that repeat. Never: opens a socket or reads a clock.
#![forbid(unsafe_code)]

pub mod game;
pub mod oracles;
pub mod peer;
pub mod seeds;
pub mod setup;
pub mod swarm;
pub mod trace;
pub mod world;

pub use setup::{Fault, Setup, path};
pub use trace::Trace;
pub use world::World;
