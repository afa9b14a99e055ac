//! X25519 for the handshake.
//!
//! Fed by: private keys that the handshake drew. Yields: public keys and shared secrets.
//! Never: draws a key, or leaves one in memory: private keys are wiped when dropped.

use curve25519_dalek::montgomery::MontgomeryPoint;
use snow::types::{Dh, Random};
use zeroize::Zeroize;

const SIZE: usize = 32;

/// A key pair as `snow` wants it.
#[derive(Default)]
pub(in crate::channel) struct X25519 {
    private: [u8; SIZE],
    public: [u8; SIZE],
}

/// The public half of a key.
pub(in crate::channel) fn public_key(private: &[u8; SIZE]) -> [u8; SIZE] {
    MontgomeryPoint::mul_base_clamped(*private).to_bytes()
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }
    fn pub_len(&self) -> usize {
        SIZE
    }
    fn priv_len(&self) -> usize {
        SIZE
    }
    fn set(&mut self, private: &[u8]) {
        if let Some(private) = private.first_chunk::<SIZE>() {
            self.private = *private;
            self.public = public_key(private);
        }
    }
    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        random.try_fill_bytes(&mut self.private)?;
        self.public = public_key(&self.private);
        Ok(())
    }
    fn pubkey(&self) -> &[u8] {
        &self.public
    }
    fn privkey(&self) -> &[u8] {
        &self.private
    }
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let public = public.first_chunk::<SIZE>().ok_or(snow::Error::Dh)?;
        let mut shared = MontgomeryPoint(*public).mul_clamped(self.private).to_bytes();
        out.get_mut(..SIZE).ok_or(snow::Error::Dh)?.copy_from_slice(&shared);
        shared.zeroize();
        Ok(())
    }
}

impl Drop for X25519 {
    fn drop(&mut self) {
        self.private.zeroize();
    }
}
