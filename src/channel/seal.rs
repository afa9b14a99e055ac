//! Seals and opens packets: AES-256-GCM by `ring`, one key per direction, the packet counter as nonce.
//!
//! Fed by: a packet's header and content. Yields: ciphertext and tag, or the content, or a refusal.
//! Never: chooses a counter; whoever seals must never use one twice (the channel's only grows).
//! With the feature `bench-unsealed` the tag is zeros and nothing is hidden or checked; the layout is the same.

#[cfg(any(test, feature = "bench-unsealed"))]
use crate::base::limits::TAG_SIZE;
use zeroize::Zeroize;

/// The two keys of a session, ours for sending and the other side's. Wiped on drop.
pub struct SessionKeys {
    /// Seals what we send.
    pub send: [u8; 32],
    /// Opens what we receive.
    pub receive: [u8; 32],
}

impl Drop for SessionKeys {
    fn drop(&mut self) {
        self.send.zeroize();
        self.receive.zeroize();
    }
}

impl std::fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKeys(redacted)")
    }
}

/// Both directions of one session.
pub struct Seal {
    #[cfg(not(feature = "bench-unsealed"))]
    send: ring::aead::LessSafeKey,
    #[cfg(not(feature = "bench-unsealed"))]
    receive: ring::aead::LessSafeKey,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(redacted)")
    }
}

#[cfg(not(feature = "bench-unsealed"))]
impl Seal {
    /// From the keys that a handshake agreed on.
    pub fn new(keys: &SessionKeys) -> Self {
        Self { send: key(&keys.send), receive: key(&keys.receive) }
    }

    /// Encrypts `packet` behind its header and appends the tag; the header is authenticated.
    pub fn seal(&self, counter: u64, header: usize, packet: &mut Vec<u8>) {
        let (aad, content) = packet.split_at_mut(header);
        let tag = self
            .send
            .seal_in_place_separate_tag(nonce(counter), ring::aead::Aad::from(&*aad), content)
            .expect("ring refuses only content of 2^36 bytes; packets are bounded by max_datagram");
        packet.extend_from_slice(tag.as_ref());
    }

    /// Opens `packet` behind its header in place and yields the content; `None` if it is not the other side's.
    pub fn open<'a>(&self, counter: u64, header: usize, packet: &'a mut [u8]) -> Option<&'a [u8]> {
        let (aad, content) = packet.split_at_mut_checked(header)?;
        let opened =
            self.receive.open_in_place(nonce(counter), ring::aead::Aad::from(&*aad), content).ok()?;
        Some(opened)
    }
}

#[cfg(not(feature = "bench-unsealed"))]
fn key(bytes: &[u8; 32]) -> ring::aead::LessSafeKey {
    let key = ring::aead::UnboundKey::new(&ring::aead::AES_256_GCM, bytes)
        .expect("AES-256 takes exactly 32 bytes, and the type says so");
    ring::aead::LessSafeKey::new(key)
}

#[cfg(not(feature = "bench-unsealed"))]
fn nonce(counter: u64) -> ring::aead::Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    ring::aead::Nonce::assume_unique_for_key(nonce)
}

#[cfg(feature = "bench-unsealed")]
impl Seal {
    /// Keeps no key.
    pub fn new(_keys: &SessionKeys) -> Self {
        Self {}
    }

    /// Appends the space of a tag.
    pub fn seal(&self, _counter: u64, _header: usize, packet: &mut Vec<u8>) {
        packet.extend_from_slice(&[0; TAG_SIZE]);
    }

    /// Takes header and tag away.
    pub fn open<'a>(&self, _counter: u64, header: usize, packet: &'a mut [u8]) -> Option<&'a [u8]> {
        let end = packet.len().checked_sub(TAG_SIZE)?;
        packet.get(header..end)
    }
}

#[cfg(all(test, not(feature = "bench-unsealed")))]
mod tests {
    use super::*;

    #[test]
    fn a_packet_opens_only_with_its_own_header_counter_and_bytes() {
        let keys = SessionKeys { send: [1; 32], receive: [1; 32] };
        let seal = Seal::new(&keys);
        let mut packet = b"headercontent".to_vec();
        seal.seal(9, 6, &mut packet);
        assert_eq!(packet.len(), 13 + TAG_SIZE);
        for i in 0..packet.len() {
            let mut forged = packet.clone();
            forged[i] ^= 1;
            assert_eq!(seal.open(9, 6, &mut forged), None, "byte {i}");
        }
        assert_eq!(seal.open(10, 6, &mut packet.clone()), None);
        assert_eq!(seal.open(9, 6, &mut packet), Some(&b"content"[..]));
    }
}
