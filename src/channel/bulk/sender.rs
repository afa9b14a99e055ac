//! The sending end of one transfer: which part goes next.
//!
//! Fed by: the peer's answers, the fate of packets, room in a packet. Yields: one part for that room, and the outcome.
//! Never: sends a chunk before the peer's game accepted, or keeps more chunks under way than its window.

use super::{REPEAT_EVERY, content_hash};
use crate::base::Instant;
use crate::wire::bulk::{CHUNK_OVERHEAD, Key, MAX_CHUNK, MAX_SIZE, MAX_TAG, MIN_CHUNK, Part, Ranges};
use std::collections::VecDeque;
use std::time::Duration;

/// Chunks under way: 4 MB, which is 100 ms of 40 MB/s.
const WINDOW: usize = 4096;
/// A cancel is not answered, so it goes this often; a peer that missed all of them hears of it when it asks for more.
const CANCELS: u8 = 3;

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer holds every byte.
    Arrived,
    /// The peer holds what does not have the hash that was offered.
    Corrupt,
    /// The peer's game refused it, or wants no more of it.
    Refused,
    /// Our game wanted no more of it.
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not answered since the link came up.
    Offering,
    Sending,
    Ended(Outcome),
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    packet: u64,
    index: u32,
    sent_at: Instant,
}

/// One transfer that we send.
#[derive(Debug)]
pub struct Sender {
    key: Key,
    tag: Vec<u8>,
    data: Vec<u8>,
    state: State,
    paused: bool,
    pause_owed: bool,
    /// The packet that told it last.
    pause_packet: u64,
    cancels_left: u8,
    offer_at: Instant,
    /// Bit by chunk: the peer has it.
    held: Vec<u64>,
    held_chunks: u32,
    /// First chunk that was never sent on this link.
    next: u32,
    lost: VecDeque<u32>,
    under_way: VecDeque<UnderWay>,
}

impl Sender {
    /// A transfer to offer. It comes back when it or its tag is too long, when it is empty, or when chunks of `chunk` bytes do not exist.
    pub fn new(id: u32, data: Vec<u8>, tag: &[u8], chunk: u16) -> Result<Self, Vec<u8>> {
        let fits = !data.is_empty() && data.len() <= MAX_SIZE as usize && tag.len() <= MAX_TAG;
        if !fits || !(MIN_CHUNK..=MAX_CHUNK).contains(&chunk) {
            return Err(data);
        }
        let key = Key { id, size: data.len() as u32, chunk, hash: content_hash(&data) };
        Ok(Self {
            key,
            tag: tag.to_vec(),
            data,
            state: State::Offering,
            paused: false,
            pause_owed: false,
            pause_packet: 0,
            cancels_left: 0,
            offer_at: Instant::ZERO,
            held: vec![0; key.chunks().div_ceil(64) as usize],
            held_chunks: 0,
            next: 0,
            lost: VecDeque::new(),
            under_way: VecDeque::new(),
        })
    }

    /// The link was lost and made anew: the peer is asked again, and says what it kept.
    pub fn handle_new_link(&mut self) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        self.state = State::Offering;
        self.offer_at = Instant::ZERO;
        self.pause_owed = self.paused;
        self.held.fill(0);
        (self.held_chunks, self.next) = (0, 0);
        self.lost.clear();
        self.under_way.clear();
    }

    /// Stops or goes on; the peer's game is told.
    pub fn set_paused(&mut self, paused: bool) {
        self.pause_owed |= paused != self.paused;
        self.paused = paused;
    }

    /// Our game wants no more of it; the peer is told while `next_part` is asked.
    pub fn cancel(&mut self) {
        if !matches!(self.state, State::Ended(_)) {
            self.end(Outcome::Cancelled);
            (self.cancels_left, self.offer_at) = (CANCELS, Instant::ZERO);
        }
    }

    /// Takes an answer of the peer. Says whether it makes sense for this transfer.
    pub fn handle(&mut self, part: &Part<'_>) -> bool {
        match *part {
            Part::Have { id, ranges } if id == self.key.id => self.handle_have(&ranges),
            Part::Cancel { id } if id == self.key.id => self.end(Outcome::Refused),
            Part::Done { id, intact } if id == self.key.id => {
                // Who never accepted cannot be done; in a new link's first answer it can.
                self.end(if intact { Outcome::Arrived } else { Outcome::Corrupt })
            }
            _ => false,
        }
    }

    fn end(&mut self, outcome: Outcome) -> bool {
        if !matches!(self.state, State::Ended(_)) {
            self.state = State::Ended(outcome);
            (self.data, self.held) = (Vec::new(), Vec::new());
            (self.lost, self.under_way) = (VecDeque::new(), VecDeque::new());
        }
        true
    }

    fn handle_have(&mut self, ranges: &Ranges) -> bool {
        if ranges.iter().any(|(_, end)| end > self.key.chunks()) {
            return false;
        }
        if let State::Ended(outcome) = self.state {
            self.cancels_left = self.cancels_left.max(u8::from(outcome == Outcome::Cancelled));
            return true;
        }
        self.state = State::Sending;
        for (first, end) in ranges.iter() {
            (first..end).for_each(|index| self.note_held(index));
        }
        true
    }

    fn note_held(&mut self, index: u32) {
        let (word, bit) = ((index / 64) as usize, 1 << (index % 64));
        self.held_chunks += u32::from(self.held[word] & bit == 0);
        self.held[word] |= bit;
    }

    fn has(&self, index: u32) -> bool {
        self.held[(index / 64) as usize] >> (index % 64) & 1 == 1
    }

    /// A packet of ours arrived.
    pub fn handle_acked(&mut self, packet: u64) {
        if let Some(at) = self.place_of(packet)
            && let Some(chunk) = self.under_way.remove(at)
        {
            self.note_held(chunk.index);
        }
    }

    /// A packet of ours is lost.
    pub fn handle_lost(&mut self, packet: u64) {
        self.pause_owed |= packet == self.pause_packet;
        if let Some(at) = self.place_of(packet)
            && let Some(chunk) = self.under_way.remove(at)
        {
            self.lost.push_back(chunk.index);
        }
    }

    /// Packets are written in order, so the list is sorted.
    fn place_of(&self, packet: u64) -> Option<usize> {
        self.under_way.binary_search_by_key(&packet, |chunk| chunk.packet).ok()
    }

    /// The part to put into this packet, if one is due and its section fits into `room` bytes. At most one a packet.
    pub fn next_part(
        &mut self,
        packet: u64,
        room: usize,
        now: Instant,
        timeout: Duration,
    ) -> Option<Part<'_>> {
        let id = self.key.id;
        if room < usize::from(MIN_CHUNK) {
            return None;
        }
        if matches!(self.state, State::Ended(_)) {
            if self.cancels_left == 0 || now < self.offer_at {
                return None;
            }
            self.cancels_left -= 1;
            self.offer_at = now + REPEAT_EVERY;
            return Some(Part::Cancel { id });
        }
        let asks = self.state == State::Offering || self.held_chunks == self.key.chunks();
        if asks {
            // With everything acknowledged, the offer asks whether the peer is done.
            if now < self.offer_at {
                return None;
            }
            self.offer_at = now + REPEAT_EVERY;
            return Some(Part::Offer { key: self.key, tag: &self.tag });
        }
        if std::mem::take(&mut self.pause_owed) {
            self.pause_packet = packet;
            return Some(Part::Pause { id, paused: self.paused });
        }
        while let Some(oldest) = self.under_way.front().filter(|chunk| chunk.sent_at + timeout <= now) {
            self.lost.push_back(oldest.index);
            self.under_way.pop_front();
        }
        if self.paused
            || room < usize::from(self.key.chunk) + CHUNK_OVERHEAD
            || self.under_way.len() >= WINDOW
        {
            return None;
        }
        let index = self.next_chunk()?;
        self.under_way.push_back(UnderWay { packet, index, sent_at: now });
        let range = self.key.range(index).expect("`next_chunk` stays below the count");
        Some(Part::Chunk { id, index, data: &self.data[range] })
    }

    fn next_chunk(&mut self) -> Option<u32> {
        while let Some(index) = self.lost.pop_front() {
            if !self.has(index) {
                return Some(index);
            }
        }
        while self.next < self.key.chunks() {
            self.next += 1;
            if !self.has(self.next - 1) {
                return Some(self.next - 1);
            }
        }
        None
    }

    /// Bytes that the peer is known to have.
    pub fn progress(&self) -> u32 {
        match self.state {
            State::Ended(Outcome::Arrived) => self.key.size,
            _ => (self.held_chunks * u32::from(self.key.chunk)).min(self.key.size),
        }
    }

    /// How it ended, once it did.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.state {
            State::Ended(outcome) => Some(outcome),
            State::Offering | State::Sending => None,
        }
    }
}
