//! How many bytes of messages are under way and unread, counted where both halves can see it.
//!
//! Fed by: both halves. Yields: whether a further reliable message may be accepted, whether a received one may be handed over.
//! Never: blocks, or wakes anybody.

use crate::base::PeerIndex;
use crate::base::limits::{MAX_PEERS, SEND_BUDGET, UNPOLLED_BUDGET, message_cost};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Shared by both ends of a bridge. A count that one half reads a moment late only delays a message.
#[derive(Clone, Debug, Default)]
pub struct Budget(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Accepted, but the node has not taken the command yet.
    queued: AtomicU32,
    /// By member: taken, and not acknowledged yet.
    under_way: [AtomicU32; MAX_PEERS],
    /// Handed over, and not taken by the game yet.
    unpolled: AtomicU32,
    /// The node keeps messages that found no room.
    is_waiting: AtomicBool,
}

impl Budget {
    /// Whether a reliable message to that member, or to all, may be accepted: once accepted it is never dropped.
    pub(super) fn accepts(&self, to: Option<PeerIndex>, size: usize) -> bool {
        let counts = &*self.0;
        let used = |count: &AtomicU32| count.load(Relaxed);
        let under_way = match to {
            Some(peer) => used(&counts.under_way[peer.index()]),
            None => counts.under_way.iter().map(used).max().unwrap_or(0),
        };
        under_way + used(&counts.queued) + message_cost(size) <= SEND_BUDGET
    }

    pub(super) fn queued(&self, size: usize) {
        self.0.queued.fetch_add(message_cost(size), Relaxed);
    }

    /// The node took a reliable message of this size from the command queue.
    pub fn taken(&self, size: usize) {
        self.0.queued.fetch_sub(message_cost(size), Relaxed);
    }

    /// What is not acknowledged by that member now.
    pub fn set_under_way(&self, peer: PeerIndex, cost: u32) {
        self.0.under_way[peer.index()].store(cost, Relaxed);
    }

    pub(super) fn has_room_to_hand_over(&self) -> bool {
        self.0.unpolled.load(Relaxed) < UNPOLLED_BUDGET
    }

    pub(super) fn handed_over(&self, size: usize) {
        self.0.unpolled.fetch_add(message_cost(size), Relaxed);
    }

    pub(super) fn polled(&self, size: usize) {
        self.0.unpolled.fetch_sub(message_cost(size), Relaxed);
    }

    /// The node keeps messages until the game polled.
    pub(super) fn wait(&self) {
        self.0.is_waiting.store(true, Relaxed);
    }

    /// Whether the node waits for room and there is much of it; said once.
    pub(super) fn is_worth_a_wake_up(&self) -> bool {
        self.0.is_waiting.load(Relaxed)
            && self.0.unpolled.load(Relaxed) <= UNPOLLED_BUDGET / 2
            && self.0.is_waiting.swap(false, Relaxed)
    }
}
