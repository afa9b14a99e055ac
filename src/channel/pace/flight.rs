//! What is under way: every packet that was sent and neither arrived nor is lost, with its size and its place in all that was sent.
//!
//! Fed by: packets sent, acknowledged and lost. Yields: the bytes in flight, and what an arrival says about rates.
//! Never: decides what is lost; the acknowledgements do.

use crate::base::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Packets that are remembered: a sender keeps fewer than that unacknowledged, or 16 bits would not tell them apart for long.
const MAX_PACKETS: usize = 4096;
/// A packet is forgotten after so long: a peer whose acknowledgements are not heard costs no more than that.
const FORGET_AFTER: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Settled,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Instant,
    /// All bytes sent up to its end, modulo 2^32.
    end: u32,
    size: u16,
    fate: Fate,
}

/// A packet of ours of which it is known what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) sent_at: Instant,
    /// All bytes sent up to its end, modulo 2^32.
    pub(super) end: u32,
    pub(super) size: u16,
}

/// The ledger.
#[derive(Debug)]
pub(super) struct Flight {
    /// Counter of the oldest packet remembered.
    first: u64,
    packets: VecDeque<Packet>,
    total: u32,
    bytes: u32,
}

impl Flight {
    pub(super) fn new() -> Self {
        Self { first: 1, packets: VecDeque::with_capacity(64), total: 0, bytes: 0 }
    }

    /// Bytes under way.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// All bytes sent, modulo 2^32.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn handle_sent(&mut self, counter: u64, size: usize, now: Instant) {
        while self.packets.front().is_some_and(|oldest| {
            oldest.fate != Fate::InFlight
                || oldest.at + FORGET_AFTER <= now
                || self.packets.len() >= MAX_PACKETS
        }) {
            self.forget_oldest();
        }
        if self.packets.is_empty() {
            self.first = counter;
        }
        let size = size.min(usize::from(u16::MAX)) as u16;
        // A counter that is never used stands between two that are.
        while self.first + (self.packets.len() as u64) < counter {
            self.packets.push_back(Packet { at: now, end: self.total, size: 0, fate: Fate::Settled });
        }
        self.total = self.total.wrapping_add(u32::from(size));
        self.bytes += u32::from(size);
        self.packets.push_back(Packet { at: now, end: self.total, size, fate: Fate::InFlight });
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.packets.pop_front() {
            self.first += 1;
            if oldest.fate == Fate::InFlight {
                self.bytes -= u32::from(oldest.size);
            }
        }
    }

    fn get(&mut self, counter: u64) -> Option<&mut Packet> {
        self.packets.get_mut(counter.checked_sub(self.first)? as usize)
    }

    /// `None`: it is not remembered, or that it arrived is no news.
    pub(super) fn handle_arrived(&mut self, counter: u64) -> Option<Settled> {
        let packet = self.get(counter).filter(|packet| packet.fate != Fate::Settled)?;
        let was = std::mem::replace(&mut packet.fate, Fate::Settled);
        let Packet { at, end, size, .. } = *packet;
        if was == Fate::InFlight {
            self.bytes -= u32::from(size);
        }
        Some(Settled { sent_at: at, end, size })
    }

    /// `None`: that it is lost is no news.
    pub(super) fn handle_lost(&mut self, counter: u64) -> Option<Settled> {
        let packet = self.get(counter).filter(|packet| packet.fate == Fate::InFlight)?;
        packet.fate = Fate::Lost;
        let Packet { at, end, size, .. } = *packet;
        self.bytes -= u32::from(size);
        Some(Settled { sent_at: at, end, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn each_packet_is_in_flight_until_it_arrived_or_is_lost_and_counted_once() {
        let mut flight = Flight::new();
        for (counter, size) in [(65_534, 100), (65_535, 200), (65_537, 300)] {
            flight.handle_sent(counter, size, at(1));
        }
        assert_eq!(flight.bytes(), 600);
        assert_eq!(flight.handle_arrived(65_535), Some(Settled { sent_at: at(1), end: 300, size: 200 }));
        assert_eq!(flight.handle_arrived(65_535), None);
        assert_eq!(flight.handle_arrived(65_536), None, "never used");
        assert_eq!(flight.handle_arrived(65_538), None, "never sent");
        assert!(flight.handle_lost(65_534).is_some() && flight.handle_lost(65_534).is_none());
        assert_eq!(flight.bytes(), 300);
        assert!(flight.handle_arrived(65_534).is_some(), "it was late, not lost");
        assert_eq!(flight.bytes(), 300);
    }

    #[test]
    fn a_peer_that_is_not_heard_costs_a_bounded_memory() {
        let mut flight = Flight::new();
        for counter in 1..20_000 {
            flight.handle_sent(counter, 1000, at(counter * 10));
        }
        assert_eq!(flight.packets.len(), 400);
        assert_eq!(flight.bytes(), 400_000);
        for counter in 20_000..40_000 {
            flight.handle_sent(counter, 1000, at(200_000));
        }
        assert_eq!(flight.packets.len(), MAX_PACKETS);
    }
}
