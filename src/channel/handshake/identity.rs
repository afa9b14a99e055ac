//! Who we are: an X25519 key for Noise and an Ed25519 key for certificates, made anew in every process.
//!
//! Fed by: entropy. Yields: the public halves, and signatures through the room. Never: lets a private key out.

use crate::base::Entropy;
use crate::wire::control::Identity as MemberIdentity;
use ring::signature::Ed25519KeyPair;
use zeroize::Zeroize;

/// A member's private keys.
pub struct Identity {
    noise: [u8; 32],
    sign: Ed25519KeyPair,
    public: MemberIdentity,
}

impl Identity {
    /// New keys.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut noise = [0; 32];
        entropy.fill(&mut noise);
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let sign = ed25519(&seed);
        seed.zeroize();
        let public =
            MemberIdentity { noise: super::noise::public_key(&noise), sign: super::room::public_key(&sign) };
        Self { noise, sign, public }
    }

    /// What others know of us.
    pub fn public(&self) -> MemberIdentity {
        self.public
    }

    pub(super) fn noise(&self) -> &[u8; 32] {
        &self.noise
    }

    pub(super) fn signing(&self) -> &Ed25519KeyPair {
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

pub(super) fn ed25519(seed: &[u8; 32]) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(seed).expect("an Ed25519 seed is any 32 bytes, and the type says 32")
}
