//! Datagrams that wait for the driver: one byte arena and a list of ranges, both reused.
//!
//! Fed by: the node. Yields: datagrams in order. Never: allocates once it has seen its busiest moment.

use crate::base::Addr;
use crate::base::limits::MAX_PEERS;

/// The queue.
#[derive(Debug)]
pub(super) struct TransmitQueue {
    bytes: Vec<u8>,
    ranges: Vec<(Addr, usize, usize)>,
    next: usize,
}

impl TransmitQueue {
    /// Room for four packets to every member at once.
    pub(super) fn new(max_datagram: usize) -> Self {
        let packets = 4 * MAX_PEERS;
        Self {
            bytes: Vec::with_capacity(packets * max_datagram),
            ranges: Vec::with_capacity(packets),
            next: 0,
        }
    }

    pub(super) fn push(&mut self, to: Addr, datagram: &[u8]) {
        if self.is_empty() {
            self.bytes.clear();
            self.ranges.clear();
            self.next = 0;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.ranges.push((to, start, self.bytes.len()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next == self.ranges.len()
    }

    /// The oldest; the caller checked that there is one.
    pub(super) fn pop(&mut self) -> (Addr, &[u8]) {
        let (to, start, end) = self.ranges[self.next];
        self.next += 1;
        (to, &self.bytes[start..end])
    }
}
