//! Unreliable messages: each goes once; of a "newest" stream, what is older than the newest delivered is dropped.
//!
//! Fed by: messages to send, message sections. Yields: sections, messages, vectors to give back.
//! Never: repeats a message, or delivers one twice (packets are opened once).

use super::STREAMS;
use crate::wire::message::{emit_unreliable, section_size};
use std::collections::VecDeque;

/// Messages that may wait for room; beyond, `send_message` refuses.
const QUEUE: usize = 256;

#[derive(Debug)]
struct Message {
    stream: u8,
    newest: bool,
    data: Vec<u8>,
}

/// Both directions of all streams of one peer.
#[derive(Debug, Default)]
pub(super) struct Unreliable {
    queue: VecDeque<Message>,
    next_seq: [u16; STREAMS],
    newest: [Option<u16>; STREAMS],
}

impl Unreliable {
    /// Queues a message, or gives it back when too many wait. One of a "newest" stream replaces its waiting predecessor.
    pub(super) fn push(
        &mut self,
        stream: u8,
        newest: bool,
        data: Vec<u8>,
        released: &mut Vec<Vec<u8>>,
    ) -> Result<(), Vec<u8>> {
        if usize::from(stream) >= STREAMS {
            return Err(data);
        }
        let mut waiting = self.queue.iter_mut();
        if let Some(older) = waiting.find(|message| newest && message.newest && message.stream == stream) {
            released.push(std::mem::replace(&mut older.data, data));
            return Ok(());
        }
        if self.queue.len() >= QUEUE {
            return Err(data);
        }
        self.queue.push_back(Message { stream, newest, data });
        Ok(())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Writes what waits, as `room` allows. Says whether something found no room.
    pub(super) fn write(&mut self, mut room: usize, out: &mut Vec<u8>, released: &mut Vec<Vec<u8>>) -> bool {
        while let Some(message) = self.queue.front() {
            let size = section_size(message.data.len(), message.newest);
            if size > room {
                return true;
            }
            room -= size;
            let seq = message.newest.then(|| {
                let seq = &mut self.next_seq[usize::from(message.stream)];
                *seq = seq.wrapping_add(1);
                *seq
            });
            emit_unreliable(out, message.stream, seq, &message.data);
            released.extend(self.queue.pop_front().map(|message| message.data));
        }
        false
    }

    /// Whether this message is to be delivered; `None` when it cannot be from an honest sender.
    pub(super) fn admit(&mut self, stream: u8, seq: Option<u16>) -> Option<bool> {
        let newest = self.newest.get_mut(usize::from(stream))?;
        let Some(seq) = seq else {
            return Some(true);
        };
        if newest.is_some_and(|newest| !(1..1 << 15).contains(&seq.wrapping_sub(newest))) {
            return Some(false);
        }
        *newest = Some(seq);
        Some(true)
    }
}
