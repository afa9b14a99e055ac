//! Which frames' states are kept, in which buffer, and which buffer the next save takes.
//!
//! Buffers are recycled, most recently freed first: cycling through all of them costs five times as much at 1 MB, for
//! the caches (research/rollback.md §5.4c).
//! Fed by: the plan, and what the game reports about a save. Yields: indices of buffers.
//! Never: frees the newest state at or before the first unconfirmed frame, nor a state whose digest is still wanted.

use crate::base::Frame;

/// Buffers beyond the window: the base, the two that one list may save before older ones are freed, marks that wait
/// for their digest, and one to spare.
const SPARE_STATES: i32 = 8;
/// Buffers are allocated ahead as long as all of them together take no more than this.
const ALLOCATE_AHEAD: usize = 64 << 20;

/// How many states exist at most for a window.
pub const fn state_count(window: i32) -> u32 {
    (window + SPARE_STATES) as u32
}

/// One buffer and what is in it.
#[derive(Default)]
struct Saved {
    frame: Frame,
    size: u64,
    checksum: Option<u64>,
    buffer: Vec<u8>,
    /// The list that saves it was closed by `end_frame`.
    complete: bool,
    /// Its digest is wanted once the frame is confirmed.
    awaits_digest: bool,
}

/// The saved states of a session.
pub struct States {
    all: Vec<Saved>,
    /// Stack: the last one was freed last.
    free: Vec<u32>,
    /// Ascending by frame; no frame twice.
    live: Vec<u32>,
    /// Room that every buffer has when it is handed out; `None` when the game keeps the states itself.
    room: Option<usize>,
}

impl States {
    /// `room`: bytes of a buffer at first, `None` when the game keeps the states itself.
    pub fn new(window: i32, room: Option<usize>) -> Self {
        let count = state_count(window);
        let ahead = room.filter(|room| room.saturating_mul(count as usize) <= ALLOCATE_AHEAD).unwrap_or(0);
        Self {
            all: (0..count).map(|_| Saved { buffer: vec![0; ahead], ..Saved::default() }).collect(),
            free: (0..count).rev().collect(),
            live: Vec::with_capacity(count as usize),
            room,
        }
    }

    fn get(&self, index: u32) -> &Saved {
        &self.all[index as usize]
    }

    /// The newest state at or before `frame`.
    pub fn best(&self, frame: Frame) -> Option<(u32, Frame)> {
        let at = self.live.partition_point(|&index| self.get(index).frame <= frame);
        let index = *self.live.get(at.checked_sub(1)?)?;
        Some((index, self.get(index).frame))
    }

    /// The oldest frame that could be loaded once everything before `frame` is confirmed.
    pub fn base(&self, frame: Frame) -> Frame {
        self.best(frame).map_or(Frame::ZERO, |(_, base)| base)
    }

    /// Takes the most recently freed buffer for the state of `frame`, newer than all others. `None`: every buffer is
    /// in use, and the save must be left out.
    pub fn take(&mut self, frame: Frame, awaits_digest: bool) -> Option<u32> {
        let index = self.free.pop()?;
        let room = self.room;
        let saved = &mut self.all[index as usize];
        if let Some(room) = room.filter(|&room| saved.buffer.len() < room) {
            saved.buffer.resize(room, 0);
        }
        saved.frame = frame;
        saved.size = saved.buffer.len() as u64;
        saved.checksum = None;
        saved.complete = false;
        saved.awaits_digest = awaits_digest;
        let at = self.live.partition_point(|&live| self.all[live as usize].frame < frame);
        self.live.insert(at, index);
        Some(index)
    }

    /// Frees what no rollback to `frame` or later can need.
    pub fn free_before_base(&mut self, frame: Frame) {
        let base = self.base(frame);
        self.free_where(|saved| saved.frame < base && !saved.awaits_digest);
    }

    /// Frees the states that contain a wrong prediction: those after `frame`.
    pub fn free_after(&mut self, frame: Frame) {
        self.free_where(|saved| saved.frame > frame);
    }

    /// Frees what an aborted list began.
    pub fn free_incomplete(&mut self) {
        self.free_where(|saved| !saved.complete);
    }

    /// The list was closed: its saves count.
    pub fn complete(&mut self) {
        for &index in &self.live {
            self.all[index as usize].complete = true;
        }
    }

    fn free_where(&mut self, doomed: impl Fn(&Saved) -> bool) {
        let (all, free) = (&self.all, &mut self.free);
        self.live.retain(|&index| {
            let goes = doomed(&all[index as usize]);
            if goes {
                free.push(index);
            }
            !goes
        });
    }

    /// Bytes of a state, or the room of its buffer while it is being saved.
    pub fn size(&self, index: u32) -> u64 {
        self.get(index).size
    }

    /// The content of a buffer: `size` bytes.
    pub fn buffer(&mut self, index: u32) -> &mut [u8] {
        let saved = &mut self.all[index as usize];
        let size = saved.buffer.len().min(saved.size as usize);
        &mut saved.buffer[..size]
    }

    /// Gives a buffer, and every later one, at least this room; its content stays.
    pub fn grow(&mut self, index: u32, size: usize) {
        let Some(room) = self.room.map(|room| room.max(size)) else { return };
        self.room = Some(room);
        let saved = &mut self.all[index as usize];
        if saved.buffer.len() < room {
            saved.buffer.resize(room, 0);
        }
        saved.size = saved.buffer.len() as u64;
    }

    /// The room of a buffer; `None` when the game keeps the states itself.
    pub fn room(&self, index: u32) -> Option<u64> {
        self.room.map(|_| self.get(index).buffer.len() as u64)
    }

    /// Notes what the game saved.
    pub fn set_saved(&mut self, index: u32, size: u64, checksum: Option<u64>) {
        let saved = &mut self.all[index as usize];
        saved.size = size;
        saved.checksum = checksum;
    }

    /// The oldest state before `end` whose digest is wanted, with its digest: the game's, else of the bytes, else
    /// (the game keeps them and told none) nothing. It is handed out once.
    pub fn next_digest(&mut self, end: Frame) -> Option<(Frame, Option<u64>)> {
        let &index =
            self.live.iter().find(|&&index| self.get(index).awaits_digest && self.get(index).complete)?;
        let hashes = self.room.is_some();
        let saved = &mut self.all[index as usize];
        if saved.frame > end {
            return None;
        }
        saved.awaits_digest = false;
        let digest = match saved.checksum {
            None if hashes => Some(crate::kit::hash::digest(&saved.buffer[..saved.size as usize])),
            given => given,
        };
        Some((saved.frame, digest))
    }

    /// How many buffers hold a state.
    pub fn live_count(&self) -> usize {
        self.live.len()
    }

    /// The newest frame whose state is kept.
    pub fn newest(&self) -> Option<Frame> {
        self.live.last().map(|&index| self.get(index).frame)
    }
}
