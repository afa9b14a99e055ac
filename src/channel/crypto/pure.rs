//! The primitives in pure Rust, for targets that `ring` lacks: slower, the same bytes.
//!
//! Fed by: keys, nonces, bytes. Yields: ciphertext, verdicts, signatures.
//! Never: keeps a key after it is dropped; the crates wipe theirs.

use super::Cipher;
use crate::base::limits::TAG_SIZE;
use aes_gcm::Aes256Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use ed25519_dalek::{Signature, Signer, VerifyingKey};

/// An expanded key.
pub(super) enum Aead {
    Aes(Box<Aes256Gcm>),
    ChaCha(ChaCha20Poly1305),
}

impl Aead {
    pub(super) fn new(cipher: Cipher, bytes: &[u8; 32]) -> Self {
        match cipher {
            Cipher::Aes256Gcm => Self::Aes(Box::new(Aes256Gcm::new(bytes.into()))),
            Cipher::ChaCha20Poly1305 => Self::ChaCha(ChaCha20Poly1305::new(bytes.into())),
        }
    }

    pub(super) fn seal(&self, nonce: &[u8; 12], aad: &[u8], content: &mut [u8]) -> [u8; TAG_SIZE] {
        let tag = match self {
            Self::Aes(key) => key.encrypt_in_place_detached(nonce.into(), aad, content),
            Self::ChaCha(key) => key.encrypt_in_place_detached(nonce.into(), aad, content),
        };
        tag.expect("only content of 2^36 bytes is refused; packets are bounded by max_datagram").into()
    }

    pub(super) fn open<'a>(
        &self,
        nonce: &[u8; 12],
        aad: &[u8],
        sealed: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        let (content, tag) = sealed.split_last_chunk_mut::<TAG_SIZE>()?;
        match self {
            Self::Aes(key) => key.decrypt_in_place_detached(nonce.into(), aad, content, (&*tag).into()),
            Self::ChaCha(key) => key.decrypt_in_place_detached(nonce.into(), aad, content, (&*tag).into()),
        }
        .ok()?;
        Some(content)
    }
}

/// An Ed25519 key pair.
pub(in crate::channel) struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    pub(in crate::channel) fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    pub(in crate::channel) fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    pub(in crate::channel) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// Whether this key signed this message.
pub(in crate::channel) fn verify(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}
