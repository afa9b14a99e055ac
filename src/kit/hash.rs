//! The digest of game states and settings: rapidhash v3 with a fixed seed, the same on every platform.
//!
//! Source: Nicolas De Carli's rapidhash, through the `rapidhash` crate's portable v3 function.
//! Never: used where an attacker chooses the bytes; it is no MAC.

/// 64-bit digest of `bytes`.
pub fn digest(bytes: &[u8]) -> u64 {
    rapidhash::v3::rapidhash_v3(bytes)
}

/// Digest of several pieces, order and boundaries included.
pub fn combine(digests: impl IntoIterator<Item = u64>) -> u64 {
    digests.into_iter().fold(0x5265_7469_636b_2131, |all, one| {
        let mut pair = [0; 16];
        pair[..8].copy_from_slice(&u64::to_le_bytes(all));
        pair[8..].copy_from_slice(&one.to_le_bytes());
        digest(&pair)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_digest_of_known_bytes_never_changes() {
        assert_eq!(super::digest(b""), super::digest(&[]));
        assert_ne!(super::digest(b"retick"), super::digest(b"retock"));
        assert_ne!(super::combine([1, 2]), super::combine([2, 1]));
    }
}
