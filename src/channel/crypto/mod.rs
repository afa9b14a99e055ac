//! The primitives: two ciphers that seal packets and handshakes, one signature for certificates, one exchange of keys.
//!
//! By `ring`, or in pure Rust with the feature `pure-rust-crypto` where `ring` is off: the same bytes on the wire.
//! Fed by: keys and bytes. Yields: ciphertext, verdicts, signatures.
//! Never: chooses a nonce or draws randomness. Keys are overwritten when dropped, `ring`'s as far as safe code can.

#[cfg(all(feature = "pure-rust-crypto", any(test, not(feature = "ring"))))]
mod pure;
#[cfg(test)]
pub(super) mod record;
#[cfg(feature = "ring")]
mod with_ring;
mod x25519;

#[cfg(all(feature = "pure-rust-crypto", not(feature = "ring")))]
use pure as backend;
#[cfg(feature = "ring")]
use with_ring as backend;

#[cfg(not(any(feature = "ring", feature = "pure-rust-crypto")))]
compile_error!("enable one of the features `ring` (default) and `pure-rust-crypto`");

use crate::base::limits::TAG_SIZE;
use zeroize::Zeroize;

pub(super) use backend::{SigningKey, verify};
pub(super) use x25519::{X25519, public_key};

/// How packets are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// Where both ends have it in hardware.
    Aes256Gcm,
    /// Everywhere else: fast without any.
    ChaCha20Poly1305,
}

impl Cipher {
    /// What two ends agree on, each having said whether it has AES in hardware.
    pub fn agreed(ours_has_aes: bool, theirs_has_aes: bool) -> Self {
        if ours_has_aes && theirs_has_aes { Self::Aes256Gcm } else { Self::ChaCha20Poly1305 }
    }
}

/// One key of one cipher.
pub(super) struct Key {
    cipher: Cipher,
    aead: backend::Aead,
    #[cfg(test)]
    raw: [u8; 32],
}

impl Key {
    pub(super) fn new(cipher: Cipher, bytes: &[u8; 32]) -> Self {
        Self {
            cipher,
            aead: backend::Aead::new(cipher, bytes),
            #[cfg(test)]
            raw: *bytes,
        }
    }

    /// Encrypts in place and yields the tag. A nonce is used once.
    pub(super) fn seal(&self, nonce: u64, aad: &[u8], content: &mut [u8]) -> [u8; TAG_SIZE] {
        #[cfg(test)]
        record::note(&self.raw, nonce);
        self.aead.seal(&bytes_of(nonce), aad, content)
    }

    /// Opens content and the tag behind it in place; what does not open is left in no particular state.
    pub(super) fn open<'a>(&self, nonce: u64, aad: &[u8], sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        self.aead.open(&bytes_of(nonce), aad, sealed)
    }

    /// The next key of the chain: Noise's REKEY, which is what the cipher makes of 32 zeros with the last nonce. No packet
    /// has that nonce, and no one finds a key from the one after it.
    #[cfg_attr(feature = "bench-unsealed", expect(dead_code, reason = "packets have no keys there"))]
    pub(super) fn next(&self) -> Self {
        let mut bytes = [0; 32];
        self.seal(u64::MAX, &[], &mut bytes);
        let next = Self::new(self.cipher, &bytes);
        bytes.zeroize();
        next
    }
}

#[cfg(test)]
impl Drop for Key {
    fn drop(&mut self) {
        self.raw.zeroize();
    }
}

fn bytes_of(nonce: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&nonce.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
