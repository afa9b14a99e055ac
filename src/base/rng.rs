//! Seeded randomness for what must repeat, and the door to entropy for what must not.
//!
//! `Rng` is `xoshiro256**` (Blackman and Vigna, 2018) seeded through `SplitMix64`: fast, portable, *not* secret.
//! Keys come from an [`Entropy`], which the driver (operating system) or the simulation (its seed) hands in.
//! Never: opens a source of entropy itself.

/// A source of secret bytes: the operating system's, or a simulation's seed.
pub trait Entropy: Send {
    /// Fills `bytes` with unpredictable ones.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// A seeded generator; the same seed gives the same numbers on every platform.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// From any seed, zero included.
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut x)) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound` (multiply-shift, Lemire 2019; bias below 2^-32 for the bounds used here); 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True in `ppm` of a million cases.
    pub fn chance_ppm(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }
}

/// A simulation's stand-in for entropy: repeatable, never to be used for a real key.
impl Entropy for Rng {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

fn split_mix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_sequence_of_a_seed_never_changes() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.next_u64(), 0x99EC_5F36_CB75_F2B4);
        let mut rng = Rng::new(7);
        let first: Vec<_> = (0..4).map(|_| rng.below(100)).collect();
        let mut again = Rng::new(7);
        assert_eq!(first, (0..4).map(|_| again.below(100)).collect::<Vec<_>>());
    }
}
