//! Who we are: an X25519 key for Noise and an Ed25519 key for certificates, made anew in every process.
//!
//! Fed by: entropy. Yields: the public halves, and signatures through the room. Never: lets a private key out.

use crate::base::Entropy;
use crate::channel::crypto::{self, SigningKey};
use crate::wire::control::Identity as MemberIdentity;
use zeroize::Zeroize;

/// A member's private keys.
pub struct Identity {
    noise: [u8; 32],
    sign: SigningKey,
    public: MemberIdentity,
}

impl Identity {
    /// New keys.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut noise = [0; 32];
        entropy.fill(&mut noise);
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let sign = SigningKey::from_seed(&seed);
        seed.zeroize();
        let public = MemberIdentity { noise: crypto::public_key(&noise), sign: sign.public() };
        let identity = Self { noise, sign, public };
        noise.zeroize();
        identity
    }

    /// What others know of us.
    pub fn public(&self) -> MemberIdentity {
        self.public
    }

    /// A secret of this process for another purpose.
    pub(super) fn secret_for(&self, purpose: &[u8]) -> [u8; 32] {
        super::room::blake2s(&[purpose, &self.noise])
    }

    pub(super) fn noise(&self) -> &[u8; 32] {
        &self.noise
    }

    pub(super) fn signing(&self) -> &SigningKey {
        &self.sign
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        self.noise.zeroize();
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(redacted)")
    }
}
