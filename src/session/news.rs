//! What the session does with each record of the bridge.
//!
//! Fed by: the port's queue. Yields: inputs, cuts and clock for the core, digests to compare, events.
//! Never: loses an input that comes too early; it waits here, in order per slot.

use super::{Session, SessionEvent};
use crate::base::limits::{MAX_SLOTS, SESSION_NEWS_QUEUE};
use crate::base::{Instant, Slot, SlotSet};
use crate::bridge::{SessionNews, SessionPort, StartInfo};
use crate::config::StateMode;
use crate::rollback::digests::Mismatch;
use crate::rollback::{Rollback, RollbackConfig};

/// Records that may wait for frames to come near; beyond, the queue itself holds them up.
const MAX_EARLY: usize = 4096;

pub(super) fn desync(found: Mismatch) -> SessionEvent {
    SessionEvent::Desync { peer: found.peer, frame: found.frame, ours: found.ours, theirs: found.theirs }
}

impl Session {
    pub(super) fn begin_match(&mut self, start: StartInfo) {
        if self.start.is_some() {
            return;
        }
        let of = |wanted: fn(&StartInfo, crate::base::PeerIndex) -> bool| -> SlotSet {
            Slot::all()
                .filter(|slot| start.slots[slot.index()].is_some_and(|owner| wanted(&start, owner)))
                .collect()
        };
        self.local = of(|start, owner| owner == start.us);
        self.core = Some(Rollback::new(RollbackConfig {
            slots: of(|_, _| true),
            local: self.local,
            input_max: usize::from(self.config.settings.input_max),
            delays: self.delays,
            window: self.config.window,
            predictor: self.config.predictor,
            desync_level: self.config.desync_level,
            state_room: (self.config.state_mode != StateMode::Slots).then_some(self.config.state_capacity),
        }));
        self.start = Some(start);
        self.events.push(SessionEvent::Started);
    }

    /// Takes in what the node has told.
    pub(super) fn drain_news(&mut self, now: Instant) {
        self.retry_early();
        let mut drained = 0;
        while self.early.len() < MAX_EARLY && drained < 2 * SESSION_NEWS_QUEUE {
            let Some(news) = self.port.as_ref().and_then(SessionPort::next_news) else { break };
            drained += 1;
            self.handle_news(news, now);
        }
        if drained >= SESSION_NEWS_QUEUE / 2 {
            // The node may have more behind a full queue.
            if let Some(port) = &self.port {
                port.wake();
            }
        }
    }

    /// Slots of which something waits: whatever comes for them later waits behind it.
    fn retry_early(&mut self) {
        if self.early.is_empty() {
            return;
        }
        let mut held_up = [false; MAX_SLOTS];
        for _ in 0..self.early.len() {
            let Some(news) = self.early.pop_front() else { return };
            let rest = match slot_of(&news) {
                Some(slot) if held_up[slot.index()] => Some(news),
                _ => self.apply(news),
            };
            if let Some(news) = rest {
                if let Some(slot) = slot_of(&news) {
                    held_up[slot.index()] = true;
                }
                self.early.push_back(news);
            }
        }
    }

    fn handle_news(&mut self, news: SessionNews, now: Instant) {
        match news {
            SessionNews::Start(start) => {
                self.begin_match(start);
                self.retry_early();
            }
            SessionNews::Inputs { slot, .. } | SessionNews::Cut { slot, .. } => {
                let waits = self.early.iter().any(|early| slot_of(early) == Some(slot));
                if let Some(rest) = if waits { Some(news) } else { self.apply(news) } {
                    self.early.push_back(rest);
                }
            }
            SessionNews::CutPending { peer } => self.cut_pending = Some(peer),
            SessionNews::Clock(clock) => self.clock = clock,
            // Who is cut off has confirmed frames that the others never had.
            SessionNews::Checksum { .. } if self.cut_off => {}
            SessionNews::Checksum { peer, frame, value } => {
                let (events, stats) = (&mut self.events, &mut self.stats);
                self.digests.set_theirs(peer, frame, value, |found| {
                    stats.desyncs += 1;
                    events.push(desync(found));
                });
            }
            SessionNews::Link {
                peer,
                rtt_us,
                jitter_us,
                loss_ppm,
                bytes_sent_per_s,
                bytes_received_per_s,
            } => {
                let link = &mut self.stats.peers[peer.index()];
                link.rtt_us = rtt_us;
                link.jitter_us = jitter_us;
                link.loss_ppm = loss_ppm;
                link.bytes_sent_per_s = bytes_sent_per_s;
                link.bytes_received_per_s = bytes_received_per_s;
                link.told_at = Some(now);
            }
            SessionNews::CutOff => {
                if !self.cut_off {
                    self.cut_off = true;
                    self.events.push(SessionEvent::CutOff);
                }
            }
        }
    }

    /// Hands a record of a slot to the core; gives back what came too early.
    fn apply(&mut self, news: SessionNews) -> Option<SessionNews> {
        let (Some(core), Some(start)) = (&mut self.core, &self.start) else { return Some(news) };
        if self.cut_off {
            return None;
        }
        match news {
            SessionNews::Inputs { slot, first, count, input } => {
                // A local slot's inputs are stamped here; the log's copy of them is no news.
                if self.local.contains(slot) {
                    return None;
                }
                let taken = core.push_input(slot, first, i32::from(count), &input);
                if self.cut_pending == start.slots[slot.index()] {
                    self.cut_pending = None;
                }
                let rest = count - taken as u16;
                (rest > 0).then_some(SessionNews::Inputs { slot, first: first + taken, count: rest, input })
            }
            SessionNews::Cut { slot, end } => {
                if core.table.held_end(slot) < end && !self.local.contains(slot) {
                    log::warn!("slot {slot} was cut at frame {end}, but its inputs end earlier");
                }
                let owner = start.slots[slot.index()];
                if core.cut(slot, end) {
                    let peer = owner.unwrap_or_default();
                    self.digests.part(peer);
                    self.events.push(SessionEvent::SlotLeft { slot, peer, frame: end });
                }
                if self.cut_pending == owner {
                    self.cut_pending = None;
                }
                None
            }
            _ => None,
        }
    }
}

fn slot_of(news: &SessionNews) -> Option<Slot> {
    match news {
        SessionNews::Inputs { slot, .. } | SessionNews::Cut { slot, .. } => Some(*slot),
        _ => None,
    }
}
