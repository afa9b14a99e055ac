//! Noise by `snow`: the two patterns, with randomness that the caller hands in, and with ciphers and keys of ours, which are
//! wiped when dropped.
//!
//! Fed by: keys, the room, entropy. Yields: handshake states and, at their end, the session's keys.
//! Never: draws randomness by itself (a simulation must repeat), or seals a packet; `seal` does.

use super::identity::Identity;
use super::room::Room;
use crate::base::Entropy;
use crate::base::limits::TAG_SIZE;
use crate::channel::SessionKeys;
use crate::channel::crypto::{self, X25519};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
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
pub(super) fn keys(state: &mut HandshakeState, cipher: crypto::Cipher) -> SessionKeys {
    let initiator = state.is_initiator();
    let (mut to_responder, mut to_initiator) = state.dangerously_get_raw_split();
    let keys = if initiator {
        SessionKeys { send: to_responder, receive: to_initiator, cipher }
    } else {
        SessionKeys { send: to_initiator, receive: to_responder, cipher }
    };
    to_responder.zeroize();
    to_initiator.zeroize();
    keys
}

/// snow's hash and our ciphers, keys and randomness.
struct Resolver([u8; DRAWN]);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Drawn { bytes: self.0, used: 0 }))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| Box::<X25519>::default() as Box<dyn Dh>)
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::ChaChaPoly).then(|| Box::<ChaChaPoly>::default() as Box<dyn Cipher>)
    }
}

/// The cipher of the handshake itself; `None` before a key is set.
#[derive(Default)]
struct ChaChaPoly(Option<crypto::Key>);

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }
    fn set(&mut self, key: &[u8; 32]) {
        self.0 = Some(crypto::Key::new(crypto::Cipher::ChaCha20Poly1305, key));
    }
    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let key = self.0.as_ref().expect("snow sets a key before it seals with one");
        let (content, tag) = out.split_at_mut(plaintext.len());
        content.copy_from_slice(plaintext);
        tag[..TAG_SIZE].copy_from_slice(&key.seal(nonce, authtext, content));
        plaintext.len() + TAG_SIZE
    }
    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, snow::Error> {
        let key = self.0.as_ref().ok_or(snow::Error::Decrypt)?;
        let mut sealed = ciphertext.to_vec();
        let opened = key.open(nonce, authtext, &mut sealed).ok_or(snow::Error::Decrypt)?;
        let size = opened.len();
        out.get_mut(..size).ok_or(snow::Error::Decrypt)?.copy_from_slice(opened);
        Ok(size)
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
