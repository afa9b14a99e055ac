//! Noise by `snow`: the two patterns, with randomness that the caller hands in.
//!
//! Fed by: keys, the room, entropy. Yields: handshake states and, at their end, the session's keys.
//! Never: draws randomness by itself (a simulation must repeat), or seals a packet; `seal` does.

use super::identity::Identity;
use super::room::Room;
use crate::base::Entropy;
use crate::channel::SessionKeys;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroize;

const XX: &str = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2s";
const KK: &str = "Noise_KKpsk0_25519_ChaChaPoly_BLAKE2s";
/// One ephemeral key is all the randomness that a handshake needs.
const DRAWN: usize = 32;

/// Which of the two ends we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Initiator,
    Responder,
}

/// A guest's handshake with its introducer; `None` only if the platform lacks a primitive.
pub(super) fn with_stranger(
    identity: &Identity,
    room: &Room,
    role: Role,
    entropy: &mut dyn Entropy,
) -> Option<HandshakeState> {
    build(XX, identity, room, None, role, entropy)
}

/// The handshake of two members who know each other's key from the roster.
pub(super) fn with_member(
    identity: &Identity,
    room: &Room,
    member: &[u8; 32],
    role: Role,
    entropy: &mut dyn Entropy,
) -> Option<HandshakeState> {
    build(KK, identity, room, Some(member), role, entropy)
}

fn build(
    pattern: &str,
    identity: &Identity,
    room: &Room,
    member: Option<&[u8; 32]>,
    role: Role,
    entropy: &mut dyn Entropy,
) -> Option<HandshakeState> {
    let mut drawn = [0; DRAWN];
    entropy.fill(&mut drawn);
    let prologue = room.prologue();
    let resolver = Box::new(Resolver(drawn));
    drawn.zeroize();
    let mut builder = Builder::with_resolver(pattern.parse().ok()?, resolver)
        .prologue(&prologue)
        .and_then(|builder| builder.psk(0, room.psk()))
        .and_then(|builder| builder.local_private_key(identity.noise()))
        .ok()?;
    if let Some(member) = member {
        builder = builder.remote_public_key(member).ok()?;
    }
    match role {
        Role::Initiator => builder.build_initiator(),
        Role::Responder => builder.build_responder(),
    }
    .ok()
}

/// The keys of a finished handshake.
pub(super) fn keys(state: &mut HandshakeState) -> SessionKeys {
    let initiator = state.is_initiator();
    let (to_responder, to_initiator) = state.dangerously_get_raw_split();
    if initiator {
        SessionKeys { send: to_responder, receive: to_initiator }
    } else {
        SessionKeys { send: to_initiator, receive: to_responder }
    }
}

/// The public half of an X25519 key.
pub(super) fn public_key(private: &[u8; 32]) -> [u8; 32] {
    let mut dh = DefaultResolver
        .resolve_dh(&DHChoice::Curve25519)
        .expect("snow is built with use-curve25519, see Cargo.toml");
    dh.set(private);
    let mut public = [0; 32];
    public.copy_from_slice(dh.pubkey());
    public
}

/// snow's primitives (the cipher from `ring`), with our randomness.
struct Resolver([u8; DRAWN]);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn { bytes: self.0, used: 0 }))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Bytes drawn ahead; each is used once.
struct Drawn {
    bytes: [u8; DRAWN],
    used: usize,
}

impl Random for Drawn {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        let end = self.used + dest.len();
        let source = self.bytes.get_mut(self.used..end).ok_or(snow::Error::Rng)?;
        dest.copy_from_slice(source);
        source.zeroize();
        self.used = end;
        Ok(())
    }
}
