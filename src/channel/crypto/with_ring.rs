//! The primitives by `ring`.
//!
//! Fed by: keys, nonces, bytes. Yields: ciphertext, verdicts, signatures.
//! Never: keeps a raw key; `ring` keeps expanded ones, which are overwritten in place when dropped.

use super::Cipher;
use crate::base::limits::TAG_SIZE;
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// An expanded key.
pub(super) struct Aead(LessSafeKey);

fn expand(algorithm: &'static Algorithm, bytes: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(algorithm, bytes).expect("both ciphers take 32 bytes, and the type says so");
    LessSafeKey::new(key)
}

impl Aead {
    pub(super) fn new(cipher: Cipher, bytes: &[u8; 32]) -> Self {
        let algorithm = match cipher {
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        Self(expand(algorithm, bytes))
    }

    #[inline]
    pub(super) fn seal(&self, nonce: &[u8; 12], aad: &[u8], content: &mut [u8]) -> [u8; TAG_SIZE] {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(aad), content)
            .expect("ring refuses only content of 2^36 bytes; packets are bounded by max_datagram");
        let mut out = [0; TAG_SIZE];
        out.copy_from_slice(tag.as_ref());
        out
    }

    #[inline]
    pub(super) fn open<'a>(
        &self,
        nonce: &[u8; 12],
        aad: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        self.0.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(aad), sealed).ok()
    }
}

impl Drop for Aead {
    /// `ring` wipes nothing: another key is written over this one.
    fn drop(&mut self) {
        self.0 = expand(self.0.algorithm(), &[0; 32]);
        std::hint::black_box(&self.0);
    }
}

/// An Ed25519 key pair. `ring` does not let its private half be overwritten.
pub(in crate::channel) struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    pub(in crate::channel) fn from_seed(seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        Self(pair.expect("an Ed25519 seed is any 32 bytes, and the type says 32"))
    }

    pub(in crate::channel) fn public(&self) -> [u8; 32] {
        let mut public = [0; 32];
        public.copy_from_slice(self.0.public_key().as_ref());
        public
    }

    pub(in crate::channel) fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.0.sign(message).as_ref());
        signature
    }
}

/// Whether this key signed this message.
pub(in crate::channel) fn verify(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    UnparsedPublicKey::new(&ED25519, public).verify(message, signature).is_ok()
}
