//! Transfers of many megabytes over one channel: the sending and the receiving end of one.
//!
//! Fed by: BULK parts of the peer, the channel's acks, what the games decide. Yields: parts to send and events.
//! Never: decides when a packet goes, buffers a byte before the game allowed it, or trusts a size or place of the peer.

mod receiver;
mod sender;

#[cfg(test)]
mod tests;

pub use receiver::{AcceptError, Event, Receiver};
pub use sender::{Outcome, Sender};

use crate::wire::bulk::HASH_SIZE;
use blake2::{Blake2s256, Digest};

/// A part that is answered goes again after this long without the answer.
const REPEAT_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

fn content_hash(data: &[u8]) -> [u8; HASH_SIZE] {
    let mut hash = [0; HASH_SIZE];
    hash.copy_from_slice(&Blake2s256::digest(data)[..HASH_SIZE]);
    hash
}
