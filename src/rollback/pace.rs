//! How many frames are due by the schedule "frame F at mesh time T".
//!
//! A game that polls once per frame begins each frame 0 to 1 frames after its time, depending on the phase of its calls;
//! that is on schedule. One missed call is not repaid at once (the picture would jump); half a frame more, or eight
//! calls in a row, is: then up to two extra frames per call until on schedule again.
//! Fed by: how late the next frame is. Yields: a number of frames.
//! Never: asks a peer that leads to repeat or undo a frame; it only waits.

/// A frame in the unit of this file.
pub const FRAME_PPM: i64 = 1_000_000;
/// So late, extra frames begin at once: the frame of this call, and more than half of the next.
const CATCH_UP_FROM: i64 = FRAME_PPM * 3 / 2;
/// So many calls in a row with a further frame due are no jitter.
const CATCH_UP_CALLS: u32 = 8;
/// Most frames per call: one that is due, and two extra.
const MOST_PER_CALL: i64 = 3;

/// The pacing of one session.
#[derive(Debug, Default)]
pub struct Pace {
    catching_up: bool,
    late_calls: u32,
}

impl Pace {
    /// How many frames to begin now; `late_ppm` is how long ago the next frame should have begun, in millionths of a frame.
    pub fn due(&mut self, late_ppm: i64) -> u32 {
        let due = late_ppm.div_euclid(FRAME_PPM) + 1;
        if due <= 1 {
            *self = Self::default();
            return due.max(0) as u32;
        }
        self.late_calls += 1;
        if late_ppm > CATCH_UP_FROM || self.late_calls >= CATCH_UP_CALLS {
            self.catching_up = true;
        }
        if self.catching_up { due.min(MOST_PER_CALL) as u32 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_game_gets_two_extra_frames_a_call_and_an_early_one_waits() {
        let mut pace = Pace::default();
        assert_eq!(pace.due(-1), 0);
        assert_eq!(pace.due(0), 1);
        assert_eq!(pace.due(FRAME_PPM + 10_000), 1, "one missed call is no lateness");
        let mut late = 10 * FRAME_PPM + 300_000;
        let mut calls = 0;
        while late >= FRAME_PPM {
            let frames = pace.due(late);
            assert!(frames <= 3);
            late += FRAME_PPM - i64::from(frames) * FRAME_PPM;
            calls += 1;
        }
        assert_eq!(calls, 5);
        assert_eq!(pace.due(late), 1);
    }

    #[test]
    fn a_lasting_lateness_of_one_frame_is_repaid() {
        let mut pace = Pace::default();
        let frames: u32 = (0..8).map(|_| pace.due(FRAME_PPM + 200_000)).sum();
        assert_eq!(frames, 9);
    }
}
