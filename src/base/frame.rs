//! A frame: one deterministic simulation step, numbered from 0.
//!
//! Ranges of frames are half open everywhere in the code: an `end` is the first frame that is *not* held,
//! so "nothing yet" is `Frame::ZERO` and no sentinel exists.
//! Never: wraps; 2^31 frames are 414 days at 60 Hz.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// The number of a simulation step. The state of frame `f` is the state *before* `f`'s inputs are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(pub i32);

impl Frame {
    /// The first frame of a match.
    pub const ZERO: Self = Self(0);

    /// The frame after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Its place in a ring of `N` frames, `N` a power of two.
    pub const fn ring_index<const N: usize>(self) -> usize {
        const { assert!(N.is_power_of_two()) };
        self.0 as u32 as usize & (N - 1)
    }

    /// Rebuilds a frame from its low 16 bits: the one nearest to `near`.
    pub const fn from_low16(low: u16, near: Self) -> Self {
        Self(near.0.wrapping_add(low.wrapping_sub(near.0 as u16) as i16 as i32))
    }
}

impl Add<i32> for Frame {
    type Output = Self;
    fn add(self, frames: i32) -> Self {
        Self(self.0.wrapping_add(frames))
    }
}

impl Sub<i32> for Frame {
    type Output = Self;
    fn sub(self, frames: i32) -> Self {
        Self(self.0.wrapping_sub(frames))
    }
}

impl Sub for Frame {
    type Output = i32;
    fn sub(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0)
    }
}

impl AddAssign<i32> for Frame {
    fn add_assign(&mut self, frames: i32) {
        *self = *self + frames;
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Frame;

    #[test]
    fn low_bits_rebuild_the_nearest_frame_across_a_wrap() {
        for near in [0, 5, 65_530, 65_540, 1_000_000] {
            for offset in [-30_000, -1, 0, 1, 30_000] {
                let frame = Frame(near + offset);
                assert_eq!(Frame::from_low16(frame.0 as u16, Frame(near)), frame);
            }
        }
    }
}
