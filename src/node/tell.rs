//! Everything that the node tells: records and news to the session, messages and events to the mesh handle, figures to both.
//!
//! Fed by: the node's state and the log. Yields: news in the bridge's queues. Never: waits for room; what must not be lost
//! stays where it is until there is some.

use super::link::Link;
use super::{Node, OpenSession};
use crate::base::limits::SESSION_NEWS_QUEUE;
use crate::base::{Instant, PeerIndex};
use crate::bridge::{MeshNews, Refused, SessionNews};
use crate::channel::Received;
use crate::mesh::input_log::Record;

impl Node {
    /// Hands application messages to the game while it polls.
    pub(super) fn settle_held(&mut self, peer: PeerIndex) {
        let Some(link) = self.links.get_mut(peer) else { return };
        while link.holds_messages() && self.port.has_room_for_message() {
            let Some(Received { stream, delivery, data }) = link.next_held() else { return };
            // The game gives vectors back; they stand in for the one that leaves.
            if let Some(spare) = self.port.recycled() {
                link.channel.recycle(spare);
            }
            let news = MeshNews::Message { peer, stream: stream - 1, delivery, data };
            if self.port.tell(news).is_err() {
                return;
            }
        }
    }

    /// The game polled: hands over what waited for that.
    pub(super) fn settle_all_held(&mut self) {
        for peer in PeerIndex::all() {
            if self.links.get(peer).is_some_and(Link::holds_messages) {
                self.settle_held(peer);
            }
        }
    }

    /// Hands records of the log to the session while its queue has room.
    pub(super) fn hand_over(&mut self) {
        let Some(play) = self.play.as_mut() else { return };
        let Some(session) = &play.session else { return };
        if play.cut_off_untold && session.try_send(SessionNews::CutOff).is_ok() {
            play.cut_off_untold = false;
        }
        for slot in play.to_hand_over {
            while let Some(record) = play.log.next_record(slot) {
                let news = match record {
                    Record::Inputs { first, count, input } => {
                        SessionNews::Inputs { slot, first, count, input }
                    }
                    Record::Cut { end } => SessionNews::Cut { slot, end },
                };
                // The queue is full: the log keeps the rest until the session has drained it.
                if session.try_send(news).is_err() {
                    return;
                }
                play.log.take_record(slot, &record);
            }
            play.to_hand_over.remove(slot);
        }
    }

    /// What a session can do without: it never crowds out what it cannot, however long the game does not call.
    pub(super) fn tell_session(&mut self, news: SessionNews) {
        if self.session.as_ref().is_some_and(|open| open.port.len() < SESSION_NEWS_QUEUE / 2) {
            self.tell_session_surely(news);
        }
    }

    pub(super) fn tell_session_surely(&mut self, news: SessionNews) {
        let Some(OpenSession { port, .. }) = &self.session else { return };
        if let Err(error) = port.try_send(news).map_err(Refused::from) {
            log::debug!("a session that does not drain its news missed one: {error:?}");
        }
    }

    pub(super) fn tell_clock(&mut self) {
        let model = self.clock.model();
        self.tell_session(SessionNews::Clock(model));
        if !self.port.is_nearly_full() {
            self.tell(MeshNews::Clock(model));
        }
    }

    pub(super) fn note_stall(&mut self, peer: PeerIndex) {
        let Some(link) = self.links.get_mut(peer) else { return };
        let asleep = link.asleep_since.is_some();
        if asleep != link.asleep_told {
            link.asleep_told = asleep;
            self.tell(if asleep { MeshNews::GameStalled { peer } } else { MeshNews::GameResumed { peer } });
        }
    }

    /// Once per [`super::STATS_EVERY`]: what each link looks like.
    pub(super) fn tell_stats(&mut self, now: Instant) {
        self.drop_unreachable(now);
        if self.certify_at.is_some_and(|at| at <= now)
            && let Some(us) = self.lobby.us()
        {
            self.certify_ourselves(us, now);
        }
        if self.clock.coast(now) {
            self.tell_clock();
        }
        for peer in PeerIndex::all() {
            self.settle_held(peer);
            let Some(link) = self.links.get_mut(peer) else { continue };
            let stats = link.channel.stats(now);
            link.adapt_heartbeat(stats.loss_sent_ppm);
            let (sent, received) = self.totals[peer.index()];
            self.totals[peer.index()] = (stats.bytes_sent, stats.bytes_received);
            let per_second = |total: u64, before: u64| total.saturating_sub(before).saturating_mul(10) as u32;
            let news = SessionNews::Link {
                peer,
                rtt_us: stats.rtt_us,
                jitter_us: stats.jitter_us,
                loss_ppm: stats.loss_sent_ppm.max(stats.loss_received_ppm),
                bytes_sent_per_s: per_second(stats.bytes_sent, sent),
                bytes_received_per_s: per_second(stats.bytes_received, received),
            };
            if let Some(stall) = self.config.stall_cut
                && let Some(play) = self.play.as_mut()
                && link.asleep_since.is_some_and(|since| since + stall <= now)
            {
                play.forced.insert(peer);
            }
            self.tell_session(news);
            if !self.port.is_nearly_full() {
                self.tell(MeshNews::Link { peer, stats });
            }
        }
        if !self.port.is_nearly_full() {
            self.tell(MeshNews::Counters {
                dropped_unknown: self.dropped_unknown,
                dropped_unpolled: self.dropped_unpolled,
            });
        }
    }
}

/// What happens in a room, in the log too: a report of a player then tells the story without a debugger.
pub(super) fn log_event(news: &MeshNews) {
    match news {
        MeshNews::Joined { us, .. } => log::info!("in the room, as peer {us}"),
        MeshNews::Refused { address, refusal, us } => {
            let whom = if *us { "we are refused by" } else { "we refuse" };
            log::info!("{whom} {address}: {refusal:?}");
        }
        MeshNews::PeerJoined { peer } => log::info!("peer {peer} joined the room"),
        MeshNews::PeerConnected { peer, address } => log::info!("peer {peer} is connected, at {address}"),
        MeshNews::PeerReady { peer, local_slots } => {
            log::info!("peer {peer} is ready, for {local_slots} slots");
        }
        MeshNews::SettingsDiffer { peer, refusal } => {
            log::warn!("no start, peer {peer} differs: {refusal:?}");
        }
        MeshNews::Starting { at } => log::info!("the match begins at {at} of mesh time"),
        MeshNews::Interrupted { peer } => log::info!("peer {peer} is not heard"),
        MeshNews::Resumed { peer, silence_ms } => {
            log::info!("peer {peer} is heard again after {silence_ms} ms");
        }
        MeshNews::GameStalled { peer } => log::info!("the game of peer {peer} does not call in"),
        MeshNews::GameResumed { peer } => log::info!("the game of peer {peer} calls in again"),
        MeshNews::Left { peer, reason } => log::info!("peer {peer} left: {reason:?}"),
        // Not events of the room, and too many of them.
        MeshNews::Message { .. } | MeshNews::Link { .. } | MeshNews::Counters { .. } | MeshNews::Clock(_) => {
        }
    }
}
