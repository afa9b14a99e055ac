//! Takes one packet of a member apart: inputs into the log, agreement sections into the cut core.
//!
//! Fed by: the node's routing. Yields: changed cores; the node settles afterwards.
//! Never: trusts an index or a count of the packet; what makes no sense is dropped and counted by the channel.

use super::{Node, Play};
use crate::base::{Addr, Frame, Instant, PeerIndex, PeerSet, Slot};
use crate::channel::path::{Came, Step};
use crate::mesh::input_log::Pushed;
use crate::wire::ParseError;
use crate::wire::agreement::{Commit, Cut, Have, parse_needs, parse_suspects};
use crate::wire::inputs::{
    FLAG_ASLEEP, FLAG_LENGTHS, FLAG_PARITY, FillHead, InputsHead, block_count, parse_block,
};
use crate::wire::section::{self, Section};
use std::time::Duration;

/// A need is answered at most this often.
const ANSWER_EVERY: Duration = Duration::from_millis(4);

/// What one packet said beside inputs and agreement.
#[derive(Debug, Default)]
struct Said {
    suspects: PeerSet,
    has_have: bool,
    malformed: bool,
}

impl Node {
    /// A packet for the link of `peer`. Says whether it was authentic.
    pub(super) fn receive(&mut self, peer: PeerIndex, from: Addr, bytes: &mut [u8], now: Instant) -> bool {
        let Some(link) = self.links.get_mut(peer) else { return false };
        let newest = link.channel.newest_received();
        let mut said = Said::default();
        let unheard = self.liveness.suspects();
        let play = &mut self.play;
        let (acked, asleep_since) = (&mut link.acked, &mut link.asleep_since);
        let mut needs = None;
        let opened = link.channel.handle_packet(bytes, now, &mut |part| {
            let Some(play) = play.as_mut() else { return };
            if let Section::Inputs { flags, .. } | Section::Node { flags, .. } = part
                && flags & FLAG_PARITY != play.parity
            {
                return;
            }
            let parsed = match part {
                Section::Inputs { flags, body } => {
                    if flags & FLAG_ASLEEP == 0 {
                        *asleep_since = None;
                    } else {
                        asleep_since.get_or_insert(now);
                    }
                    take_inputs(play, peer, flags, body, acked)
                }
                Section::Node { kind: section::FILL, flags, body } => take_fill(play, unheard, flags, body),
                Section::Node { kind: section::SUSPECT, body, .. } => {
                    parse_suspects(body).map(|suspects| said.suspects = suspects)
                }
                Section::Node { kind: section::CUT, body, .. } => {
                    Cut::parse(body).map(|cut| play.cut.handle_cut(cut, &Play::ends(&play.log)))
                }
                Section::Node { kind: section::HAVE, body, .. } => Have::parse(body).map(|have| {
                    said.has_have = true;
                    play.cut.handle_have(peer, &have);
                }),
                Section::Node { kind: section::COMMIT, body, .. } => {
                    Commit::parse(body).map(|commit| play.cut.handle_commit(&commit))
                }
                Section::Node { kind: section::NEED, body, .. } => parse_needs(body).map(|n| needs = Some(n)),
                Section::Node { .. }
                | Section::Reliable { .. }
                | Section::Next { .. }
                | Section::Unreliable { .. }
                | Section::Timing(_)
                | Section::ExtAck(_)
                | Section::Link(_) => Err(ParseError::Malformed),
            };
            said.malformed |= parsed.is_err();
        });
        if opened.is_err() {
            return false;
        }
        if said.malformed {
            self.dropped_malformed += 1;
        }
        if let Some(needs) = needs {
            link.note_needs(needs, now);
            // Two who need something of each other must not answer at the speed of the path.
            link.want(now.max(link.channel.last_sent() + ANSWER_EVERY));
        }
        self.liveness.handle_packet(peer, now);
        self.follow(peer, from, bytes.len(), newest, now);
        let Some(link) = self.links.get_mut(peer) else { return true };
        if let Some(play) = self.play.as_mut() {
            if !said.has_have {
                play.cut.handle_no_have(peer);
            }
            play.cut.handle_suspects(peer, said.suspects, &Play::ends(&play.log));
            if !play.cut.members().contains(peer) {
                play.cut.handle_gone(peer);
                if play.cut.commit_for(peer).is_some() {
                    link.want(now);
                }
            }
        }
        true
    }

    /// The packet did not open with the link's keys: if it does with newer ones, they replace them.
    pub(super) fn receive_pending(
        &mut self,
        peer: PeerIndex,
        from: Addr,
        bytes: &mut [u8],
        now: Instant,
    ) -> bool {
        let Some(mut link) = self.pending[peer.index()].take() else { return false };
        // What this first packet says is repeated in the next ones.
        if link.channel.handle_packet(bytes, now, &mut |_| {}).is_err() {
            self.pending[peer.index()] = Some(link);
            return false;
        }
        if let Some(old) = self.links.get(peer) {
            link.acked = old.acked;
            link.began = old.began;
        }
        self.set_link(peer, *link, now);
        self.follow(peer, from, bytes.len(), 0, now);
        true
    }

    /// A packet opened that came from there; `newest` is the highest counter before it. Where the peer may have moved to, it
    /// is asked; once it answered, our packets go there.
    fn follow(&mut self, peer: PeerIndex, from: Addr, size: usize, newest: u64, now: Instant) {
        let Some(link) = self.links.get_mut(peer) else { return };
        let response = link.channel.take_path_response();
        let came = Came { from, size, is_newest: link.channel.newest_received() > newest, response };
        match link.path.handle_packet(came, now, self.entropy.as_mut()) {
            Step::Stay => {}
            Step::Challenge(to, token) => {
                link.channel.write_challenge(token, now, &mut self.packet);
                self.transmits.push(to, &self.packet);
            }
            Step::Moved => {
                link.want(now);
                log::info!("peer {peer} is at {from} from now on");
                self.lobby.handle_moved(peer, from);
            }
        }
    }
}

fn take_inputs(
    play: &mut Play,
    peer: PeerIndex,
    flags: u8,
    body: &[u8],
    acked: &mut Frame,
) -> Result<(), ParseError> {
    let (head, block) = InputsHead::parse(body)?;
    let slots = play.log.slots_of(peer);
    let held_end = play.log.common_end(slots);
    let end = Frame::from_low16(head.end_low, held_end);
    let count = block_count(block)? as i32;
    let first = end - count;
    if first < Frame::ZERO {
        return Err(ParseError::Malformed);
    }
    let acknowledged = end + head.ack_ahead;
    if acknowledged > play.our_end() {
        return Err(ParseError::Malformed);
    }
    *acked = (*acked).max(acknowledged);
    let (by_order, slot_count) = slots.to_array();
    let lengths = flags & FLAG_LENGTHS != 0;
    let log = &mut play.log;
    // What is held already is skipped, not compared.
    let skip = (held_end - first).clamp(0, count) as usize;
    let to_hand_over = &mut play.to_hand_over;
    parse_block(block, slot_count, usize::from(play.settings.input_max), lengths, skip, |k, i, input| {
        if log.push(by_order[k], first + i as i32, input) == Pushed::Stored {
            to_hand_over.insert(by_order[k]);
        }
    })
}

/// Inputs of a third member are believed only while its own packets do not come, or a cut left a gap.
fn take_fill(play: &mut Play, unheard: PeerSet, flags: u8, body: &[u8]) -> Result<(), ParseError> {
    let (head, block) = FillHead::parse(body)?;
    let slot = Slot::new(head.slot).ok_or(ParseError::Malformed)?;
    if play.local.contains(slot) || head.first < Frame::ZERO || head.first > Frame(i32::MAX / 2) {
        return Err(ParseError::Malformed);
    }
    let is_unheard = play.log.owner(slot).is_some_and(|owner| unheard.contains(owner));
    if !is_unheard && play.log.missing(slot).is_none() {
        return Ok(());
    }
    let lengths = flags & FLAG_LENGTHS != 0;
    let log = &mut play.log;
    let to_hand_over = &mut play.to_hand_over;
    let skip = (log.end(slot) - head.first).clamp(0, block_count(block)? as i32) as usize;
    parse_block(block, 1, usize::from(play.settings.input_max), lengths, skip, |_, i, input| {
        if log.push(slot, head.first + i as i32, input) == Pushed::Stored {
            to_hand_over.insert(slot);
        }
    })
}
