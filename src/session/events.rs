//! News for the game, in order, bounded.
//!
//! Fed by: the session. Yields: events.
//! Never: grows; what the game does not poll is dropped, newest first, and counted.

use crate::base::{Frame, PeerIndex, Slot};
use std::collections::VecDeque;

/// Events that wait: every slot may leave, and every peer may differ at a few marks.
const MAX_EVENTS: usize = 128;

/// News for the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The match begins; read the roster with `start_info`.
    Started,
    /// From this frame on the slot uses the disconnect input, on every peer alike.
    SlotLeft {
        /// Whose.
        slot: Slot,
        /// Who played it.
        peer: PeerIndex,
        /// First frame with the disconnect input.
        frame: Frame,
    },
    /// Two digests of one confirmed frame differ.
    Desync {
        /// Whose digest differs from ours.
        peer: PeerIndex,
        /// The mark.
        frame: Frame,
        /// Our digest.
        ours: u64,
        /// Theirs.
        theirs: u64,
    },
    /// The others went on without us; nothing will be confirmed any more.
    CutOff,
    /// So many events were dropped because the game did not poll.
    Overflow {
        /// How many.
        dropped: u32,
    },
}

/// The events that the game did not poll yet.
pub(super) struct Events {
    waiting: VecDeque<SessionEvent>,
    dropped: u32,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::with_capacity(MAX_EVENTS), dropped: 0 }
    }

    pub(super) fn push(&mut self, event: SessionEvent) {
        if self.waiting.len() < MAX_EVENTS {
            self.waiting.push_back(event);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    pub(super) fn next(&mut self) -> Option<SessionEvent> {
        self.waiting.pop_front().or_else(|| {
            let dropped = std::mem::take(&mut self.dropped);
            (dropped > 0).then_some(SessionEvent::Overflow { dropped })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_nobody_polls_are_dropped_and_counted() {
        let mut events = Events::new();
        (0..MAX_EVENTS + 3).for_each(|_| events.push(SessionEvent::CutOff));
        assert_eq!(
            (0..MAX_EVENTS).filter(|_| events.next() == Some(SessionEvent::CutOff)).count(),
            MAX_EVENTS
        );
        assert_eq!(events.next(), Some(SessionEvent::Overflow { dropped: 3 }));
        assert_eq!(events.next(), None);
    }
}
