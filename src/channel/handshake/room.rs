//! The room: what its 32 shared bytes give (pre-shared key, mac key, public id), and who may introduce guests to it.
//!
//! The 32 bytes are 16 secret and 16 fingerprint of an Ed25519 room key. Everything symmetric comes from the secret half
//! alone, so that a guest with a wrong fingerprint is told so by its own check, and not left with silence.
//! Fed by: entropy or a room key. Yields: derived keys, certificates, verdicts on chains. Never: leaves the process.

use super::identity::Identity;
use crate::base::Entropy;
use crate::channel::crypto::{SigningKey, verify};
use crate::config::RoomKey;
use crate::wire::control::{Certificate, Identity as MemberIdentity};
use crate::wire::handshake::{MAC_SIZE, MAX_CHAIN};
use blake2::digest::{Digest, FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac256};
use zeroize::Zeroize;

const PROTOCOL: &[u8] = b"retick 1";
const SECRET: usize = 16;

/// A room that we host or were let into.
pub struct Room {
    key: RoomKey,
    psk: [u8; 32],
    mac_key: [u8; 32],
    id: [u8; 8],
    /// The room's Ed25519 key, once it is known: its fingerprint is checked.
    public: Option<[u8; 32]>,
    /// Only at the peer that opened the room.
    signing: Option<SigningKey>,
}

impl Room {
    /// A new room; we hold its signing key.
    pub fn create(entropy: &mut dyn Entropy) -> Self {
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let signing = SigningKey::from_seed(&seed);
        seed.zeroize();
        let public = signing.public();
        let mut key = [0; 32];
        entropy.fill(&mut key[..SECRET]);
        key[SECRET..].copy_from_slice(&fingerprint(&public));
        let mut room = Self::from_key(RoomKey(key));
        key.zeroize();
        room.public = Some(public);
        room.signing = Some(signing);
        room
    }

    /// A room that we were told of.
    pub fn from_key(key: RoomKey) -> Self {
        let secret = &key.0[..SECRET];
        let mut id = [0; 8];
        id.copy_from_slice(&blake2s(&[b"retick room id", secret])[..8]);
        Self {
            key,
            psk: blake2s(&[b"retick channel psk", secret]),
            mac_key: blake2s(&[b"retick handshake mac", secret]),
            id,
            public: None,
            signing: None,
        }
    }

    /// The 32 bytes that others join with.
    pub fn key(&self) -> RoomKey {
        self.key
    }

    /// The public name of the room.
    pub fn id(&self) -> [u8; 8] {
        self.id
    }

    /// The room's Ed25519 key, once known.
    pub fn public(&self) -> Option<[u8; 32]> {
        self.public
    }

    /// Whether we opened this room and sign for it.
    pub fn is_ours(&self) -> bool {
        self.signing.is_some()
    }

    /// First bytes of the fingerprint that we were told, for a refusal.
    pub(super) fn fingerprint_low(&self) -> u64 {
        low(&self.key.0[SECRET..])
    }

    /// Takes the room's Ed25519 key if its fingerprint is the one we were told.
    pub fn learn_public(&mut self, public: [u8; 32]) -> bool {
        if fingerprint(&public) != self.key.0[SECRET..] {
            return false;
        }
        self.public = Some(public);
        true
    }

    /// "This member may introduce", signed by the room key; `None` where that key is not ours.
    pub fn certify(&self, identity: &MemberIdentity, expires_unix_s: u64) -> Option<Certificate> {
        Some(self.sign(self.signing.as_ref()?, identity, expires_unix_s))
    }

    /// The same, signed by a member who may introduce itself.
    pub fn certify_as(
        &self,
        issuer: &Identity,
        identity: &MemberIdentity,
        expires_unix_s: u64,
    ) -> Certificate {
        self.sign(issuer.signing(), identity, expires_unix_s)
    }

    fn sign(&self, with: &SigningKey, identity: &MemberIdentity, expires_unix_s: u64) -> Certificate {
        let signature = with.sign(&self.statement(identity, expires_unix_s));
        Certificate { identity: *identity, expires_unix_s, signature }
    }

    fn statement(&self, identity: &MemberIdentity, expires_unix_s: u64) -> Vec<u8> {
        let expires = expires_unix_s.to_le_bytes();
        [b"retick may_introduce", &self.id[..], &identity.noise, &identity.sign, &expires].concat()
    }

    /// Whom a chain from the room key lets introduce; `None` if it is broken, too long or expired.
    /// `now_unix_s` 0 does not check expiry, and neither does an expiry of 0.
    pub fn verify(&self, chain: &[Certificate], now_unix_s: u64) -> Option<MemberIdentity> {
        if chain.len() > MAX_CHAIN {
            return None;
        }
        let mut issuer = self.public?;
        for certificate in chain {
            let expires = certificate.expires_unix_s;
            if now_unix_s != 0 && expires != 0 && expires < now_unix_s {
                return None;
            }
            let statement = self.statement(&certificate.identity, expires);
            if !verify(&issuer, &statement, &certificate.signature) {
                return None;
            }
            issuer = certificate.identity.sign;
        }
        chain.last().map(|certificate| certificate.identity)
    }

    pub(super) fn psk(&self) -> &[u8; 32] {
        &self.psk
    }

    /// Protocol name and room id, bound into every handshake of the room.
    pub(super) fn prologue(&self) -> Vec<u8> {
        [PROTOCOL, &self.id].concat()
    }

    /// The check at the end of every handshake datagram.
    pub(super) fn mac(&self, covered: &[u8]) -> [u8; MAC_SIZE] {
        let mut mac = Blake2sMac256::new_from_slice(&self.mac_key)
            .expect("BLAKE2s takes keys of up to 32 bytes, and the type says 32");
        Update::update(&mut mac, covered);
        let mut out = [0; MAC_SIZE];
        out.copy_from_slice(&mac.finalize_fixed()[..MAC_SIZE]);
        out
    }

    /// Compares in constant time.
    pub(super) fn is_mac(&self, covered: &[u8], mac: &[u8; MAC_SIZE]) -> bool {
        self.mac(covered).iter().zip(mac).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.key.0.zeroize();
        self.psk.zeroize();
        self.mac_key.zeroize();
    }
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Room({:02x?})", self.id)
    }
}

fn fingerprint(public: &[u8; 32]) -> [u8; 32 - SECRET] {
    let mut out = [0; 32 - SECRET];
    out.copy_from_slice(&blake2s(&[b"retick room key", public])[..32 - SECRET]);
    out
}

/// First bytes of a room key's fingerprint, for a refusal.
pub(super) fn fingerprint_low(public: &[u8; 32]) -> u64 {
    low(&fingerprint(public))
}

fn low(fingerprint: &[u8]) -> u64 {
    fingerprint.iter().take(8).fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Each label is a fixed string and only the last part varies, so joining them is unambiguous.
pub(super) fn blake2s(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Blake2s256::new();
    for part in parts {
        Digest::update(&mut hash, part);
    }
    hash.finalize().into()
}
