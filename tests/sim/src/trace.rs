//! What each player presses: a function of the seed, the slot and the frame in which the key is read.
//!
//! Fed by: a seed. Yields: the sample of each frame, and what a confirmed input must therefore be.
//! Never: asks the library, so that it can judge it.

use retick::base::{Frame, Input, Rng, Slot};

/// A player's habit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// Another input in every frame.
    Every,
    /// Keys are held for about so many frames.
    Hold(u32),
    /// Never changes: predictions are right.
    Constant,
    /// Another length (0 to 4 bytes) in every frame.
    Sizes,
}

impl Trace {
    /// What is pressed in `slot` when frame `read_at` begins.
    pub fn sample(self, seed: u64, slot: Slot, read_at: Frame) -> Input {
        let slot = slot.get();
        let noise = |number: i32| {
            Rng::new(seed ^ (u64::from(slot) << 56) ^ (number as u64).wrapping_mul(0x9E37_79B9)).next_u64()
        };
        let low = read_at.0.to_le_bytes();
        let input = match self {
            Self::Every => Input::new(&[low[0], low[1], slot, noise(read_at.0) as u8]),
            Self::Hold(frames) => {
                let run = read_at.0 / frames.max(1) as i32;
                // Half of the boundaries change nothing, so that holds differ in length.
                let run = if noise(run) & 1 == 0 { run } else { run - 1 };
                Input::new(&[noise(run) as u8, slot, 1, 0])
            }
            Self::Constant => Input::new(&[slot, 1, 2, 3]),
            Self::Sizes => {
                let noise = noise(read_at.0);
                Input::new(&noise.to_le_bytes()[..(noise >> 40) as usize % 5])
            }
        };
        input.expect("at most eight bytes")
    }

    /// The input of `frame` where the delay never changes.
    pub fn expected(self, seed: u64, slot: Slot, frame: Frame, delay: u32) -> Input {
        let read_at = frame - delay as i32;
        if read_at < Frame::ZERO { Input::EMPTY } else { self.sample(seed, slot, read_at) }
    }

    /// The low 16 bits of the frame in which an input of [`Trace::Every`] was read; `None` for the empty one.
    pub fn read_at(input: &Input) -> Option<u16> {
        let bytes = input.as_slice();
        (bytes.len() == 4).then(|| u16::from_le_bytes([bytes[0], bytes[1]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_differ_by_slot_and_frame_as_the_habit_says() {
        let slots: Vec<Slot> = Slot::all().take(2).collect();
        let changes = |trace: Trace| {
            let at = |n| trace.sample(7, slots[0], Frame(n));
            (0..200).filter(|&n| at(n) != at(n + 1)).count()
        };
        assert_eq!(changes(Trace::Every), 200);
        assert_eq!(changes(Trace::Constant), 0);
        assert!((10..=30).contains(&changes(Trace::Hold(8))), "{}", changes(Trace::Hold(8)));
        assert!(changes(Trace::Sizes) > 190);
        let input = |slot: usize| Trace::Every.sample(7, slots[slot], Frame(300));
        assert_ne!(input(0), input(1));
        assert_eq!(Trace::read_at(&input(0)), Some(300));
        assert_eq!(Trace::Every.expected(7, slots[0], Frame(302), 2), input(0));
        assert_eq!(Trace::Every.expected(7, slots[0], Frame(1), 2), Input::EMPTY);
    }
}
