//! Datagrams that wait for the driver: one byte arena and a list of ranges, both reused.
//!
//! Fed by: the node. Yields: datagrams in order. Never: allocates once it has seen its busiest moment.

use crate::base::Addr;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct TransmitQueue {
    bytes: Vec<u8>,
    ranges: Vec<(Addr, usize, usize)>,
    next: usize,
}

impl TransmitQueue {
    pub(super) fn push(&mut self, to: Addr, datagram: &[u8]) {
        if self.next == self.ranges.len() {
            self.bytes.clear();
            self.ranges.clear();
            self.next = 0;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.ranges.push((to, start, self.bytes.len()));
    }

    pub(super) fn pop(&mut self) -> Option<(Addr, &[u8])> {
        let &(to, start, end) = self.ranges.get(self.next)?;
        self.next += 1;
        Some((to, &self.bytes[start..end]))
    }
}
