//! The last datagrams of a simulated network, for the message of a failed test.
//!
//! Fed by: every datagram sent, lost, delivered or dropped. Yields: lines of text, oldest first.
//! Never: keeps payloads; the first byte (the packet's kind) and the size are enough to follow a conversation.

use crate::base::Instant;
use std::collections::VecDeque;
use std::fmt;

/// Datagrams remembered: a second of four peers at 20 packets per link would be 240.
const KEPT: usize = 256;

/// What happened to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Entered its link.
    Sent,
    /// Entered its link and got lost there.
    Lost,
    /// Was the one that `drop_exactly` names.
    Picked,
    /// Was handed to its receiver.
    Delivered,
    /// Waits in the socket of a paused receiver.
    Held,
    /// Its receiver does not exist (any more), or its socket is full.
    Dropped,
}

/// One datagram at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Network time.
    pub at: Instant,
    /// What happened.
    pub what: What,
    /// Sender.
    pub from: u32,
    /// Receiver; `None` when the address named nobody.
    pub to: Option<u32>,
    /// UDP payload bytes.
    pub size: usize,
    /// First byte, 0 for an empty datagram.
    pub first: u8,
}

/// The newest entries.
#[derive(Debug)]
pub struct Trace {
    entries: VecDeque<Entry>,
    pushed: u64,
}

impl Trace {
    /// An empty one; it never grows beyond what it takes now.
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::with_capacity(KEPT), pushed: 0 }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.pushed += 1;
    }

    /// How many entries there ever were.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The last `count` of those that are remembered, oldest first.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = &Entry> {
        self.entries.range(self.entries.len().saturating_sub(count)..)
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, what, from, to, size, first } = *self;
        let what = match what {
            What::Sent => "sent",
            What::Lost => "lost",
            What::Picked => "picked",
            What::Delivered => "delivered",
            What::Held => "held",
            What::Dropped => "dropped",
        };
        write!(f, "{at} {what:9} {size:4} bytes, first {first:02x}, {from} > ")?;
        match to {
            Some(to) => to.fmt(f),
            None => f.write_str("nobody"),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}
