//! The game that all play: a state of any size whose head is a running hash of all inputs, and the trace of inputs.
//!
//! Fed by: the inputs of all players. Yields: a hash per frame, by which the peers are compared. Never: costs much.

/// Frames whose hash is kept.
const HISTORY: usize = 1 << 16;
/// A step rewrites one line of the state.
const LINE: usize = 64;

/// One peer's game.
pub struct Game {
    /// The state: hash, frame number, then lines.
    pub state: Vec<u8>,
    /// Hash after each frame.
    pub history: Vec<u64>,
    /// What was asked of it.
    pub saves: u64,
    /// Likewise.
    pub loads: u64,
    /// Steps, resimulated ones included.
    pub steps: u64,
}

impl Game {
    /// At frame 0.
    pub fn new(size: usize) -> Self {
        Self { state: vec![0; size.max(2 * LINE)], history: vec![0; HISTORY], saves: 0, loads: 0, steps: 0 }
    }

    /// The running hash.
    pub fn hash(&self) -> u64 {
        read_u64(&self.state[..8])
    }

    /// One step with the inputs of all players, one after the other.
    pub fn step(&mut self, inputs: &[u8]) {
        let frame = read_u64(&self.state[8..16]);
        let hash =
            inputs.chunks_exact(4).fold(self.hash(), |hash, word| mix(hash, u64::from(read_u32(word)) + 1));
        let lines = self.state.len() / LINE - 1;
        let line = LINE + (frame as usize % lines) * LINE;
        for (i, word) in self.state[line..line + LINE].chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&hash.rotate_left(i as u32 * 7).to_le_bytes());
        }
        self.state[..8].copy_from_slice(&hash.to_le_bytes());
        self.state[8..16].copy_from_slice(&(frame + 1).to_le_bytes());
        self.history[frame as usize % HISTORY] = hash;
        self.steps += 1;
    }

    /// Writes the state into `to`.
    pub fn save(&mut self, to: &mut [u8]) {
        self.saves += 1;
        to.copy_from_slice(&self.state);
    }

    /// Takes the state from `from`.
    pub fn load(&mut self, from: &[u8]) {
        self.loads += 1;
        self.state.copy_from_slice(from);
    }
}

/// A player's input in a frame: a new random value in every frame, or one that is held and changes 3 times a second.
pub fn input(player: usize, frame: i32, is_held: bool, out: &mut [u8]) {
    let changes = |frame: u64| mix(mix(77, player as u64 + 1), frame).is_multiple_of(20);
    let mut since = frame as u64;
    while is_held && since > 0 && !changes(since) {
        since -= 1;
    }
    for (i, word) in out.chunks_exact_mut(4).enumerate() {
        let value = mix(mix(mix(1234, player as u64 + 1), since + 1), i as u64 + 1) as u32;
        word.copy_from_slice(&value.to_le_bytes());
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    let hash = (hash ^ value).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    hash ^ (hash >> 29)
}

fn read_u64(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes were cut out"))
}

fn read_u32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("4 bytes were cut out"))
}
