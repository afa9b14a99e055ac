//! How much a peer may send that our game has not taken: the receiver's half of push-back.
//!
//! Both ends count the cost of every reliable message of the application from the first one on, so what is granted is one
//! number that only grows, and a repeated or late grant does no harm. Fed by: messages that came and that were taken, packets
//! acknowledged. Yields: the limit, in every packet until one of them arrived. Never: takes a grant back.

use crate::base::limits::LEAST_WINDOW;

/// What one end grants the other.
#[derive(Debug)]
pub(super) struct Grant {
    window: u32,
    /// Cost of all that came, modulo 2^32 like all of these.
    received: u32,
    /// Cost of all that the game took.
    taken: u32,
    limit: u32,
    told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// No packet carried the limit yet.
    No,
    /// Every packet from this one on carried it.
    Since(u64),
    /// The other end knows.
    Yes,
}

impl Default for Grant {
    fn default() -> Self {
        Self { window: LEAST_WINDOW, received: 0, taken: 0, limit: LEAST_WINDOW, told: Told::Yes }
    }
}

impl Grant {
    /// So much may be untaken from now on; what was granted stays granted.
    pub(super) fn set_window(&mut self, window: u32) {
        self.window = window;
        self.raise();
    }

    /// Whether a message of this cost may come; counts it if so.
    pub(super) fn admit(&mut self, cost: u32) -> bool {
        if self.limit.wrapping_sub(self.received) < cost {
            return false;
        }
        self.received = self.received.wrapping_add(cost);
        true
    }

    /// The game took a message of this cost.
    pub(super) fn take(&mut self, cost: u32) {
        self.taken = self.taken.wrapping_add(cost);
        self.raise();
    }

    /// A new limit is told when it is a quarter more: rarely, and long before a sender that is taken from runs dry.
    fn raise(&mut self) {
        let limit = self.taken.wrapping_add(self.window);
        if limit.wrapping_sub(self.limit) as i32 >= (self.window / 4) as i32 {
            self.limit = limit;
            self.told = Told::No;
        }
    }

    /// Whether there is something to tell that no packet carried yet.
    pub(super) fn is_news(&self) -> bool {
        self.told == Told::No
    }

    /// What packet `counter` must say, when `newest_acked` is the newest that arrived.
    pub(super) fn write(&mut self, counter: u64, newest_acked: u64) -> Option<u32> {
        match self.told {
            Told::Yes => return None,
            Told::No => self.told = Told::Since(counter),
            Told::Since(first) if first <= newest_acked => {
                self.told = Told::Yes;
                return None;
            }
            Told::Since(_) => {}
        }
        Some(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_told_in_every_packet_until_one_arrived_and_never_exceeded() {
        let mut grant = Grant::default();
        assert_eq!(grant.write(1, 0), None, "the least is not said");
        grant.set_window(LEAST_WINDOW + 10);
        assert!(!grant.is_news(), "too little to be worth a word");
        grant.set_window(2 * LEAST_WINDOW);
        assert!(grant.is_news());
        for packet in 2..5 {
            assert_eq!(grant.write(packet, 1), Some(2 * LEAST_WINDOW));
            assert!(!grant.is_news());
        }
        assert_eq!(grant.write(5, 3), None, "a packet that carried it arrived");
        assert!(grant.admit(2 * LEAST_WINDOW));
        assert!(!grant.admit(1));
        grant.take(LEAST_WINDOW / 2 - 1);
        assert!(!grant.is_news());
        grant.take(1);
        assert_eq!(grant.write(6, 5), Some(2 * LEAST_WINDOW + LEAST_WINDOW / 2));
        grant.set_window(LEAST_WINDOW);
        assert!(!grant.admit(LEAST_WINDOW / 2 + 1) && grant.admit(LEAST_WINDOW / 2), "nothing is taken back");
    }

    #[test]
    fn counts_may_wrap() {
        let near = u32::MAX - 1_000;
        let mut grant = Grant { received: near, taken: near, limit: near, ..Grant::default() };
        grant.raise();
        for _ in 0..10_000 {
            assert!(grant.admit(100));
            grant.take(100);
        }
        assert!(!grant.admit(LEAST_WINDOW + 1));
    }
}
