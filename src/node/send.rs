//! Writes packets: which sections, how many frames, when, and to whom.
//!
//! Fed by: the node's state. Yields: datagrams in the transmit queue. Never: changes what was agreed or received.

use super::link::Pace;
use super::{Node, Play};
use crate::base::limits::{MAX_FRAMES_PER_SECTION, TAG_SIZE};
use crate::base::{Frame, Instant, PeerIndex, PeerSet, Slot};
use crate::mesh::input_log::InputLog;
use crate::wire::agreement::{emit_needs, emit_suspects};
use crate::wire::inputs::{FLAG_ASLEEP, FLAG_LENGTHS, FillHead, InputsHead, emit_block, uniform};
use crate::wire::section::{self, node_section_with};

/// Whether one frame of so many slots fits a packet when every input changes: it is never split.
pub const fn frame_fits(slots: usize, input_max: usize, max_datagram: usize) -> bool {
    frame_size(slots, input_max) + RESERVED <= max_datagram
}

/// Most bytes of an INPUTS section of one frame: type, head, count; then for each slot its bit, and a length with each input.
pub(super) const fn frame_size(slots: usize, input_max: usize) -> usize {
    10 + slots * (2 + input_max)
}

/// Room that is left to header, tag, timing and one small message beside the node's sections.
const RESERVED: usize = 10 + TAG_SIZE + 34;
/// Type, length, slot, first frame, count, and the bits of 32 frames.
const FILL_OVERHEAD: usize = 3 + 5 + 1 + 4;
/// A HAVE section of 16 slots.
const HAVE_SIZE: usize = 3 + 4 + 5 * 16;
/// Frames of another peer's slot that a fill repeats of the one before.
const FILL_REPEATS: i32 = 4;
/// Frames of another peer's slot in one packet.
const FILL_FRAMES: i32 = 32;
/// Of a packet with fills, so much is kept for our own newest inputs.
const LEFT_TO_INPUTS: usize = 200;
/// A packet follows so soon after the one before only if our stream moved on.
const STALLED_EVERY_US: u64 = 8_000;

/// The encoded block of our newest frames, shared by all links that need the same ones.
#[derive(Debug, Default)]
pub(super) struct BlockCache {
    first: Frame,
    end: Frame,
    flags: u8,
    bytes: Vec<u8>,
}

impl BlockCache {
    /// An empty one that no packet makes grow.
    pub(super) fn with_room(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Forgets its content and keeps its room.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

impl Node {
    /// The game called `begin_frame`: what it handed in leaves now, by the send policy.
    pub(super) fn flush(&mut self, current: Frame, now: Instant) {
        let Some(play) = self.play.as_mut() else { return };
        play.current = current;
        play.called_at = now;
        let end = play.our_end();
        let before = std::mem::replace(&mut play.sent_end, end);
        let moved = end != before;
        let members = play.cut.members().without(play.us);
        let oldest_ack =
            members.into_iter().filter_map(|p| self.links.get(p)).map(|link| link.acked).min().unwrap_or(end);
        let every = play.sends_every_frame(oldest_ack, end);
        let changed = play.changed_between(before, end);
        for peer in members {
            let Some(link) = self.links.get_mut(peer) else { continue };
            if changed {
                link.repeats = 3;
            }
            let repeat = moved && link.repeats > 0;
            link.repeats = link.repeats.saturating_sub(u8::from(moved));
            let waited = now.0.saturating_sub(link.channel.last_sent().0) >= STALLED_EVERY_US;
            if repeat || every && (moved || waited) {
                self.write_to(peer, now);
            }
        }
    }

    /// Writes every packet that is due.
    pub(super) fn write_due(&mut self, now: Instant) {
        for peer in self.links.due(now) {
            self.write_to(peer, now);
        }
        if let Some(joining) = self.joining.as_mut()
            && joining.due_at().is_some_and(|at| at <= now)
        {
            let mesh_now = self.clock.model().mesh_time(now);
            joining.channel.write_packet(&[], &[], now, mesh_now, &mut self.packet);
            joining.note_sent(Frame::ZERO, now);
            self.transmits.push(joining.path.addr(), &self.packet);
        }
    }

    /// Writes one packet on a link, with everything that belongs into it now.
    pub(super) fn write_to(&mut self, peer: PeerIndex, now: Instant) {
        let Some(link) = self.links.get_mut(peer) else { return };
        self.sections.clear();
        self.inputs.clear();
        let mut sent_end = Frame::ZERO;
        if let Some(play) = self.play.as_mut() {
            let suspects = self.liveness.suspects().union(play.forced).intersection(play.cut.members());
            let gone = link.pace == Pace::Gone;
            let all = self.config.max_datagram.saturating_sub(RESERVED);
            write_agreement(play, peer, suspects, gone, all - LEFT_TO_INPUTS, now, &mut self.sections);
            if !gone && !play.cut.is_cut_off() {
                if let Some(needs) = link.needs(now).copied() {
                    let left = LEFT_TO_INPUTS.max(play.frame_size);
                    let mut slots_left = needs.iter().count();
                    for (slot, from, _) in needs.iter() {
                        let room = all.saturating_sub(left + self.sections.len()) / slots_left;
                        slots_left -= 1;
                        let fit = fill_fit(room, play.settings.input_max);
                        let next = link.next_fill(slot, from, now);
                        // Where there is room the newest frames are repeated, so that one loss costs no round trip.
                        let first =
                            if fit > 2 * FILL_REPEATS { (next - FILL_REPEATS).max(from) } else { next };
                        let end = write_fill(play, slot, first, fit, &mut self.sections);
                        link.note_fill(slot, end);
                    }
                }
                if !self.sections.is_empty() && self.sections.len() + play.frame_size > all {
                    // One frame of large inputs does not fit beside them: they go in a packet of their own.
                    let mesh_now = self.clock.model().mesh_time(now);
                    link.channel.write_packet(&self.sections, &[], now, mesh_now, &mut self.packet);
                    self.transmits.push(link.path.addr(), &self.packet);
                    self.sections.clear();
                }
                let end = play.our_end();
                let is_heard = !suspects.contains(peer);
                let first = link.first_to_send(end, play.period_us, is_heard);
                let room = all - self.sections.len();
                let range = (first, end, is_heard);
                sent_end = write_inputs(play, peer, range, room, now, &mut self.block, &mut self.inputs);
            }
        }
        let mesh_now = self.clock.model().mesh_time(now);
        link.channel.write_packet(&self.sections, &self.inputs, now, mesh_now, &mut self.packet);
        link.note_sent(sent_end, now);
        self.transmits.push(link.path.addr(), &self.packet);
    }
}

fn write_agreement(
    play: &Play,
    peer: PeerIndex,
    suspects: PeerSet,
    gone: bool,
    room: usize,
    now: Instant,
    out: &mut Vec<u8>,
) {
    if let Some(commit) = play.cut.commit_for(peer) {
        node_section_with(out, section::COMMIT, play.parity, |out| commit.emit(out));
    }
    if gone || play.cut.is_cut_off() {
        return;
    }
    if !suspects.is_empty() {
        node_section_with(out, section::SUSPECT, play.parity, |out| emit_suspects(out, suspects));
    }
    if let Some((cut, haves)) = play.cut.open_round() {
        node_section_with(out, section::CUT, play.parity, |out| cut.emit(out));
        // Our own answer is always told, the others' as far as there is room.
        for have in haves {
            if have.member != play.us && out.len() + HAVE_SIZE > room {
                continue;
            }
            node_section_with(out, section::HAVE, play.parity, |out| have.emit(out));
        }
    }
    if let Some(needs) = play.needs_from(peer, suspects, now) {
        node_section_with(out, section::NEED, play.parity, |out| emit_needs(out, &needs));
    }
}

/// As many frames as fit even if every one changed its input.
fn fill_fit(room: usize, input_max: u8) -> i32 {
    let frames = room.saturating_sub(FILL_OVERHEAD) / (usize::from(input_max) + 1);
    (frames as i32).min(FILL_FRAMES)
}

/// Appends so many frames of a slot as are held; returns where it ended.
fn write_fill(play: &Play, slot: Slot, from: Frame, fit: i32, out: &mut Vec<u8>) -> Frame {
    let (log, input_max) = (&play.log, play.settings.input_max);
    let count = (log.end(slot) - from).min(fit);
    let Some(inputs) = held(log, slot, from, count) else { return from };
    let lengths = !uniform(inputs, usize::from(input_max));
    let flags = if lengths { FLAG_LENGTHS } else { 0 };
    node_section_with(out, section::FILL, flags | play.parity, |out| {
        FillHead { slot: slot.get(), first: from }.emit(out);
        emit_block(out, 1, count as usize, usize::from(input_max), lengths, |_, i| {
            log.get(slot, from + i as i32).expect("`held` checked the range")
        });
    });
    from + count
}

/// Inputs of a range that the log holds wholly; `None` when it is empty or partly gone.
fn held(log: &InputLog, slot: Slot, from: Frame, count: i32) -> Option<impl Iterator<Item = &[u8]>> {
    if count <= 0 || log.get(slot, from).is_none() || log.get(slot, from + (count - 1)).is_none() {
        return None;
    }
    Some((0..count).filter_map(move |i| log.get(slot, from + i)))
}

/// Appends the INPUTS section; returns the end of our stream that it carries. The range is its first frame, its end, and
/// whether the oldest frames count most where they do not all fit.
fn write_inputs(
    play: &Play,
    peer: PeerIndex,
    (first, end, oldest_first): (Frame, Frame, bool),
    room: usize,
    now: Instant,
    cache: &mut BlockCache,
    out: &mut Vec<u8>,
) -> Frame {
    let mut count = (end - first).clamp(0, MAX_FRAMES_PER_SECTION);
    loop {
        // Unacknowledged frames go oldest first when they do not all fit: the log of the peer takes no gap.
        let (first, block_end) = if oldest_first { (first, first + count) } else { (end - count, end) };
        encode_block(play, first, block_end, cache);
        if cache.bytes.len() + 8 <= room || count <= 1 {
            let asleep = if play.is_asleep(now) { FLAG_ASLEEP } else { 0 };
            let held = play.log.common_end(play.log.slots_of(peer));
            out.push(section::INPUTS | (cache.flags | asleep | play.parity) << 4);
            InputsHead { end_low: block_end.0 as u16, ack_ahead: held - block_end }.emit(out);
            out.extend_from_slice(&cache.bytes);
            return block_end;
        }
        count /= 2;
    }
}

fn encode_block(play: &Play, first: Frame, end: Frame, cache: &mut BlockCache) {
    if cache.first == first && cache.end == end && !cache.bytes.is_empty() {
        return;
    }
    let input_max = usize::from(play.settings.input_max);
    let count = end - first;
    let (slots, slot_count) = play.local.to_array();
    let slots = &slots[..slot_count];
    let all = |slot: Slot| (0..count).filter_map(move |i| play.log.get(slot, first + i));
    let lengths = slots.iter().any(|slot| !uniform(all(*slot), input_max));
    cache.bytes.clear();
    cache.flags = if lengths { FLAG_LENGTHS } else { 0 };
    emit_block(&mut cache.bytes, slots.len(), count as usize, input_max, lengths, |k, i| {
        play.log
            .get(slots[k], first + i as i32)
            .expect("frames from the oldest unacknowledged on are in the log")
    });
    cache.first = first;
    cache.end = end;
}
