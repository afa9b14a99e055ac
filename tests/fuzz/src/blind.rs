//! Mutation without feedback, for machines without libFuzzer and for a few seeded inputs beside each replay.
//!
//! Fed by: known inputs and a seed. Yields: inputs near them. Never: looks at what an input reached.

use retick::base::Rng;

/// The next input near one of `known`.
pub fn mutate(known: &[Vec<u8>], max_len: usize, rng: &mut Rng) -> Vec<u8> {
    let pick =
        |rng: &mut Rng| known.get(rng.below(known.len().max(1) as u64) as usize).cloned().unwrap_or_default();
    let mut input = pick(rng);
    for _ in 0..=rng.below(4) {
        let at = rng.below(input.len() as u64 + 1) as usize;
        match rng.below(7) {
            0 => input.truncate(at),
            1 => input.insert(at, rng.below(256) as u8),
            2 if at < input.len() => drop(input.remove(at)),
            3 => {
                // Two inputs crossed.
                let other = pick(rng);
                let from = rng.below(other.len() as u64 + 1) as usize;
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            4 => {
                const EDGES: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
                if let Some(byte) = input.get_mut(at) {
                    *byte = EDGES[rng.below(6) as usize];
                }
            }
            5 => input.extend((0..rng.below(32)).map(|_| 0)),
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
    }
    input.truncate(max_len);
    input
}
