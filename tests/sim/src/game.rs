//! The toy game: deterministic, about 1 KB of state, and a digest of every frame it ever simulated.
//!
//! Fed by: the steps of a session. Yields: states, and the digest of the state before each frame.
//! Never: depends on whether an input was predicted, only on its bytes, its length, and who has left.

use retick::base::Frame;
use retick::kit::hash::{combine, digest};
use retick::session::{SLOT_DISCONNECTED, SLOT_UNUSED, Session, StepKind};

/// Bytes of the state unless a test wants another.
pub const STATE_SIZE: usize = 1024;

/// What the steps cost, for tests about cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Save steps.
    pub saves: u64,
    /// Load steps.
    pub loads: u64,
    /// Frames simulated, resimulations included.
    pub advances: u64,
    /// Frames simulated again.
    pub resimulated: u64,
    /// Bytes copied by saves and loads.
    pub copied: u64,
}

/// One peer's game.
pub struct Game {
    state: Vec<u8>,
    /// By frame: the state before it.
    digests: Vec<u64>,
    /// A planted bug: one bit is wrong from this frame on.
    flip_at: Option<Frame>,
    /// Digesting 16 MB each frame would be all that a test about copies does.
    digests_wanted: bool,
    /// What it cost so far.
    pub cost: Cost,
}

impl Game {
    /// Before frame 0; all peers begin alike by the shared seed.
    pub fn new(seed: u64, size: usize) -> Self {
        let mut state = vec![0; size.max(16)];
        state[..8].copy_from_slice(&seed.to_le_bytes());
        let digests_wanted = size <= 64 * 1024;
        let first = if digests_wanted { digest(&state) } else { 0 };
        Self { state, digests: vec![first], flip_at: None, digests_wanted, cost: Cost::default() }
    }

    /// From this frame on the state differs from everybody else's by one bit.
    pub fn plant_bit_flip(&mut self, at: Frame) {
        self.flip_at = Some(at);
    }

    /// The digest of the state before `frame`, as last simulated.
    pub fn digest_before(&self, frame: Frame) -> Option<u64> {
        self.digests.get(usize::try_from(frame.0).ok()?).copied()
    }

    /// Runs the open list.
    pub fn run(&mut self, session: &mut Session) {
        for index in 0..session.step_count() {
            let Some(step) = session.step(index).copied() else { return };
            match step.kind {
                StepKind::Save => {
                    self.cost.saves += 1;
                    self.cost.copied += self.state.len() as u64;
                    let size = self.state.len() as u64;
                    if step.state_size < size {
                        session.grow_state(index, size).expect("a save step of the open list");
                    }
                    let room = session.state(index).expect("the library keeps the states");
                    room[..self.state.len()].copy_from_slice(&self.state);
                    session.set_saved(index, size, None).expect("a save step of the open list");
                }
                StepKind::Load => {
                    self.cost.loads += 1;
                    self.cost.copied += self.state.len() as u64;
                    let saved = session.state(index).expect("the library keeps the states");
                    let size = self.state.len();
                    self.state.copy_from_slice(&saved[..size]);
                }
                StepKind::Advance => {
                    self.cost.resimulated += u64::from(step.resimulating);
                    let (inputs, sizes) = session.inputs(index);
                    self.advance(step.frame, inputs, sizes, step.slot_status);
                }
            }
        }
    }

    fn advance(&mut self, frame: Frame, inputs: &[u8], sizes: &[u16], status: u64) {
        self.cost.advances += 1;
        let gone = (0..16).map(|slot| status & (SLOT_DISCONNECTED | SLOT_UNUSED) << (4 * slot));
        let sizes = sizes.iter().enumerate().map(|(slot, &size)| u64::from(size) << (4 * (slot % 12)));
        let mut before = [0; 8];
        before.copy_from_slice(&self.state[..8]);
        let after = combine([
            u64::from_le_bytes(before),
            digest(inputs),
            gone.fold(0, |all, bits| all | bits),
            sizes.fold(0, u64::wrapping_add),
            frame.0 as u64,
        ]);
        self.state[..8].copy_from_slice(&after.to_le_bytes());
        let words = self.state.len() / 8;
        let at = 8 * (frame.0 as usize * 7 % words);
        self.state[at..at + 8].copy_from_slice(&after.rotate_left(17).to_le_bytes());
        if self.flip_at.is_some_and(|from| frame >= from) {
            self.state[8] ^= 1 << (frame.0 % 8);
        }
        if self.digests_wanted {
            let place = frame.0 as usize + 1;
            self.digests.truncate(place);
            if self.digests.len() == place {
                self.digests.push(digest(&self.state));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_input_changes_the_state() {
        let after = |inputs: &[u8], sizes: &[u16], status: u64| {
            let mut game = Game::new(1, STATE_SIZE);
            game.advance(Frame::ZERO, inputs, sizes, status);
            game.digest_before(Frame(1)).expect("simulated")
        };
        let plain = after(&[1, 2], &[1, 1], 0);
        assert_eq!(plain, after(&[1, 2], &[1, 1], 1), "that an input was a guess is no part of the game");
        assert_ne!(plain, after(&[1, 3], &[1, 1], 0));
        assert_ne!(plain, after(&[1, 2], &[1, 0], 0));
        assert_ne!(plain, after(&[1, 2], &[1, 1], SLOT_DISCONNECTED << 4));
    }
}
