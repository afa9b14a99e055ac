//! Seals and opens packets: one chain of keys per direction, the packet counter as nonce.
//!
//! A direction's key is replaced after 2^20 packets or an hour by the next of its chain, which flips the epoch bit; counters
//! go on. The other side needs no word of it: it tries the next key when the bit says so, and keeps the one before for a while.
//! Fed by: a packet's header and content, time. Yields: ciphertext and tag, or the content, or a refusal.
//! Never: chooses a counter (whoever seals must never use one twice; the channel's only grows), or moves on for a packet that
//! did not open. With the feature `bench-unsealed` the tag is zeros and nothing is hidden or checked; the layout is the same.

use super::crypto::Cipher;
#[cfg(not(feature = "bench-unsealed"))]
use super::crypto::Key;
use crate::base::Instant;
#[cfg(any(test, feature = "bench-unsealed"))]
use crate::base::limits::TAG_SIZE;
#[cfg(not(feature = "bench-unsealed"))]
use std::time::Duration;
use zeroize::Zeroize;

/// Packets under one key: far below what either cipher bears (2^32 and more), so that little is lost with one key.
#[cfg(not(feature = "bench-unsealed"))]
const REKEY_AFTER_PACKETS: u64 = 1 << 20;
/// The same by time: 2^20 packets at 60 Hz take five hours.
#[cfg(not(feature = "bench-unsealed"))]
const REKEY_AFTER: Duration = Duration::from_hours(1);
/// Packets of the key before are late by less than this, or nobody waits for them.
#[cfg(not(feature = "bench-unsealed"))]
const KEEP_PREVIOUS: Duration = Duration::from_secs(10);

/// The two keys of a session, ours for sending and the other side's. Wiped on drop.
pub struct SessionKeys {
    /// Seals what we send.
    pub send: [u8; 32],
    /// Opens what we receive.
    pub receive: [u8; 32],
    /// How.
    pub cipher: Cipher,
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

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(redacted)")
    }
}

/// Both directions of one session.
#[cfg(not(feature = "bench-unsealed"))]
pub struct Seal {
    send: Key,
    send_epoch: bool,
    /// The first counter of this key, and when it was sent.
    send_first: u64,
    send_since: Instant,
    receive: Key,
    receive_epoch: bool,
    /// The lowest counter that opened with this key: what is older has the key before, what is newer the next.
    receive_first: u64,
    /// Worked out once it may be needed; seals nothing.
    next: Option<Key>,
    previous: Option<(Key, Instant)>,
}

#[cfg(not(feature = "bench-unsealed"))]
impl Seal {
    /// From the keys that a handshake agreed on.
    pub fn new(keys: &SessionKeys, now: Instant) -> Self {
        Self {
            send: Key::new(keys.cipher, &keys.send),
            send_epoch: false,
            send_first: 0,
            send_since: now,
            receive: Key::new(keys.cipher, &keys.receive),
            receive_epoch: false,
            receive_first: 0,
            next: None,
            previous: None,
        }
    }

    /// Before a packet with this counter: takes the next key if it is time to. Yields the packet's epoch bit. The other side
    /// can follow one step only, so no step is taken before it has acknowledged a packet (`acked`, the newest) of this key.
    pub fn turn(&mut self, counter: u64, acked: u64, now: Instant) -> bool {
        let is_due =
            counter - self.send_first >= REKEY_AFTER_PACKETS || now.since(self.send_since) >= REKEY_AFTER;
        if is_due && acked >= self.send_first.max(1) {
            self.send = self.send.next();
            self.send_epoch = !self.send_epoch;
            self.send_first = counter;
            self.send_since = now;
        }
        if self.previous.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.previous = None;
        }
        self.send_epoch
    }

    /// Encrypts `packet` behind its header and appends the tag; the header is authenticated.
    pub fn seal(&self, counter: u64, header: usize, packet: &mut Vec<u8>) {
        let (aad, content) = packet.split_at_mut(header);
        let tag = self.send.seal(counter, aad, content);
        packet.extend_from_slice(&tag);
    }

    /// Opens `packet` behind its header in place and yields the content; `None` if it is not the other side's. Only one key is
    /// tried, since epoch bit and counter say which.
    pub fn open<'a>(
        &mut self,
        epoch: bool,
        counter: u64,
        header: usize,
        packet: &'a mut [u8],
        now: Instant,
    ) -> Option<&'a [u8]> {
        let (aad, content) = packet.split_at_mut_checked(header)?;
        if epoch == self.receive_epoch {
            let opened = self.receive.open(counter, aad, content)?;
            self.receive_first = self.receive_first.min(counter);
            return Some(opened);
        }
        if counter < self.receive_first {
            let (key, _) = self.previous.as_ref().filter(|(_, until)| now < *until)?;
            return key.open(counter, aad, content).map(|opened| &*opened);
        }
        let receive = &self.receive;
        let opened = self.next.get_or_insert_with(|| receive.next()).open(counter, aad, content)?;
        let next = self.next.take()?;
        let before = std::mem::replace(&mut self.receive, next);
        self.previous = Some((before, now + KEEP_PREVIOUS));
        self.receive_epoch = epoch;
        self.receive_first = counter;
        Some(opened)
    }
}

/// Both directions of one session: no keys.
#[cfg(feature = "bench-unsealed")]
pub struct Seal {}

#[cfg(feature = "bench-unsealed")]
impl Seal {
    /// Keeps no key.
    pub fn new(_keys: &SessionKeys, _now: Instant) -> Self {
        Self {}
    }

    /// There is one epoch.
    pub fn turn(&mut self, _counter: u64, _acked: u64, _now: Instant) -> bool {
        false
    }

    /// Appends the space of a tag.
    pub fn seal(&self, _counter: u64, _header: usize, packet: &mut Vec<u8>) {
        packet.extend_from_slice(&[0; TAG_SIZE]);
    }

    /// Takes header and tag away.
    pub fn open<'a>(
        &mut self,
        _epoch: bool,
        _counter: u64,
        header: usize,
        packet: &'a mut [u8],
        _now: Instant,
    ) -> Option<&'a [u8]> {
        let end = packet.len().checked_sub(TAG_SIZE)?;
        packet.get(header..end)
    }
}

#[cfg(all(test, not(feature = "bench-unsealed")))]
#[path = "seal_tests.rs"]
mod tests;
