//! What every layer above stands on: names of peers and slots, frames, time, inputs, limits, randomness.
//!
//! Fed by: nothing. Yields: plain values.
//! Never: knows the network, the game, or a clock.

pub mod addr;
pub mod frame;
pub mod ids;
pub mod input;
pub mod limits;
pub mod rng;
pub mod time;

pub use addr::Addr;
pub use frame::Frame;
pub use ids::{PeerIndex, PeerSet, Slot, SlotSet};
pub use input::Input;
pub use rng::{Entropy, Rng};
pub use time::{ClockModel, Instant};
