//! The receiving end of all transfers of one peer: offers, what the game allowed, and what is held of it.
//!
//! Fed by: parts of the peer, decisions of the game. Yields: answers and events. Never: takes memory for content before
//! `accept`, more than was announced, or remembers more transfers than its bound.

use super::content_hash;
use crate::wire::bulk::{Key, Part, Ranges};
use std::collections::VecDeque;

/// Transfers of one peer that are offered, accepted or just done; further offers are dropped until one ends.
const MAX_TRANSFERS: usize = 4;
/// Events that wait; each transfer has few, and an offer that finds no room is repeated.
const MAX_EVENTS: usize = 32;

/// What the game hears.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// May it come? Answer with `accept` or `refuse`.
    Offered {
        /// Which.
        id: u32,
        /// Its bytes.
        size: u32,
        /// The sending game's note.
        tag: Vec<u8>,
    },
    /// The sender pauses or goes on.
    Paused {
        /// Which.
        id: u32,
        /// Whether it pauses.
        paused: bool,
    },
    /// All of it is here.
    Arrived {
        /// Which.
        id: u32,
        /// The content.
        data: Vec<u8>,
    },
    /// All of it came, but it is not what was offered; it was dropped.
    Corrupt {
        /// Which.
        id: u32,
    },
    /// The sender wants no more of it; what was held is dropped.
    Cancelled {
        /// Which.
        id: u32,
    },
}

/// Why an offer was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptError {
    /// No such offer waits.
    NotOffered,
    /// It is larger than the limit.
    TooLarge,
    /// The system has no memory for it.
    NoMemory,
}

#[derive(Debug)]
enum State {
    Offered,
    Accepted { data: Vec<u8>, held: Vec<u64>, missing: u32 },
    Done { intact: bool },
    Refused,
}

#[derive(Debug)]
struct Transfer {
    key: Key,
    state: State,
    paused: bool,
    /// The peer is to be answered.
    owes: bool,
}

/// All transfers of one peer.
#[derive(Debug, Default)]
pub struct Receiver {
    transfers: Vec<Transfer>,
    events: VecDeque<Event>,
    dropped: u64,
}

impl Receiver {
    /// Takes a part of the peer. What makes no sense is dropped and counted.
    pub fn handle(&mut self, part: &Part<'_>) {
        let taken = match *part {
            Part::Offer { key, tag } => self.handle_offer(key, tag),
            Part::Chunk { id, index, data } => self.handle_chunk(id, index, data),
            Part::Cancel { id } => self.handle_cancel(id),
            Part::Pause { id, paused } => self.handle_pause(id, paused),
            Part::Have { .. } | Part::Done { .. } => false,
        };
        self.dropped += u64::from(!taken);
    }

    fn find(&mut self, id: u32) -> Option<&mut Transfer> {
        self.transfers.iter_mut().find(|transfer| transfer.key.id == id)
    }

    fn handle_offer(&mut self, key: Key, tag: &[u8]) -> bool {
        if let Some(known) = self.find(key.id) {
            known.owes |= known.key == key && !matches!(known.state, State::Offered);
            return known.key == key;
        }
        if self.transfers.len() >= MAX_TRANSFERS {
            // What is over makes room: its sender has most likely heard so.
            let over = |transfer: &Transfer| {
                !transfer.owes && matches!(transfer.state, State::Done { .. } | State::Refused)
            };
            let Some(oldest) = self.transfers.iter().position(over) else { return false };
            self.transfers.remove(oldest);
        }
        if !self.tell(Event::Offered { id: key.id, size: key.size, tag: tag.to_vec() }) {
            return false;
        }
        self.transfers.push(Transfer { key, state: State::Offered, paused: false, owes: false });
        true
    }

    fn handle_chunk(&mut self, id: u32, index: u32, bytes: &[u8]) -> bool {
        let Some(transfer) = self.find(id) else { return false };
        let State::Accepted { data, held, missing } = &mut transfer.state else {
            // Under way when the last one came, or when the game lost interest: that answer was lost where chunks go on.
            let is_over = matches!(transfer.state, State::Done { .. } | State::Refused);
            transfer.owes |= is_over;
            return is_over;
        };
        let Some(range) = transfer.key.range(index).filter(|range| range.len() == bytes.len()) else {
            return false;
        };
        let (word, bit) = ((index / 64) as usize, 1 << (index % 64));
        if held[word] & bit != 0 {
            return true;
        }
        data[range].copy_from_slice(bytes);
        held[word] |= bit;
        *missing -= 1;
        if *missing == 0 {
            let data = std::mem::take(data);
            let intact = content_hash(&data) == transfer.key.hash;
            transfer.state = State::Done { intact };
            transfer.owes = true;
            // Never for want of room: there are no more of these than the game accepted.
            self.events.push_back(if intact { Event::Arrived { id, data } } else { Event::Corrupt { id } });
        }
        true
    }

    fn handle_cancel(&mut self, id: u32) -> bool {
        let Some(at) = self.transfers.iter().position(|transfer| transfer.key.id == id) else { return true };
        if matches!(self.transfers[at].state, State::Offered | State::Accepted { .. })
            && !self.tell(Event::Cancelled { id })
        {
            return false;
        }
        self.transfers.remove(at);
        true
    }

    fn handle_pause(&mut self, id: u32, paused: bool) -> bool {
        let Some(at) = self.transfers.iter().position(|transfer| transfer.key.id == id) else { return false };
        if self.transfers[at].paused == paused {
            return true;
        }
        let told = self.tell(Event::Paused { id, paused });
        if told {
            self.transfers[at].paused = paused;
        }
        told
    }

    fn tell(&mut self, event: Event) -> bool {
        let has_room = self.events.len() < MAX_EVENTS;
        if has_room {
            self.events.push_back(event);
        }
        has_room
    }

    /// The game allows an offer of at most `limit` bytes; only now memory is taken for it.
    pub fn accept(&mut self, id: u32, limit: u32) -> Result<(), AcceptError> {
        let offered = self.find(id).filter(|transfer| matches!(transfer.state, State::Offered));
        let transfer = offered.ok_or(AcceptError::NotOffered)?;
        let key = transfer.key;
        if key.size > limit {
            return Err(AcceptError::TooLarge);
        }
        let mut data = Vec::new();
        data.try_reserve_exact(key.size as usize).map_err(|_| AcceptError::NoMemory)?;
        data.resize(key.size as usize, 0);
        let held = vec![0; key.chunks().div_ceil(64) as usize];
        transfer.state = State::Accepted { data, held, missing: key.chunks() };
        transfer.owes = true;
        Ok(())
    }

    /// The game refuses an offer, or wants no more of what it accepted. Says whether there was one.
    pub fn refuse(&mut self, id: u32) -> bool {
        let Some(transfer) = self.find(id) else { return false };
        if matches!(transfer.state, State::Done { .. } | State::Refused) {
            return false;
        }
        transfer.state = State::Refused;
        transfer.owes = true;
        true
    }

    /// The next answer for the peer; a lost one is asked for again by a repeated offer.
    pub fn next_part(&mut self) -> Option<Part<'static>> {
        let transfer = self.transfers.iter_mut().find(|transfer| transfer.owes)?;
        transfer.owes = false;
        let id = transfer.key.id;
        Some(match &transfer.state {
            State::Offered | State::Refused => Part::Cancel { id },
            State::Accepted { held, .. } => Part::Have { id, ranges: ranges(held, transfer.key.chunks()) },
            State::Done { intact } => Part::Done { id, intact: *intact },
        })
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes taken for content.
    pub fn memory(&self) -> usize {
        let taken = self.transfers.iter().map(|transfer| match &transfer.state {
            State::Accepted { data, .. } => data.capacity(),
            State::Offered | State::Done { .. } | State::Refused => 0,
        });
        taken.sum()
    }

    /// Parts that no honest peer sends, or that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// The first ranges of set bits; more do not fit an answer, and what is not told only comes again.
fn ranges(held: &[u64], chunks: u32) -> Ranges {
    let has = |index: u32| held[(index / 64) as usize] >> (index % 64) & 1 == 1;
    let (mut ranges, mut first) = (Ranges::default(), None);
    for index in 0..=chunks {
        let is_held = index < chunks && has(index);
        match first {
            None if is_held => first = Some(index),
            Some(start) if !is_held => {
                if !ranges.push(start, index) {
                    break;
                }
                first = None;
            }
            _ => {}
        }
    }
    ranges
}
