//! Drains every child right after a cause, until none holds an undelivered output, and turns outputs into the next child's
//! input or into news.
//!
//! Fed by: the node after each event. Yields: news, control messages, links. Never: reads a datagram.

use super::link::{Farewell, Link, Pace};
use super::{Joining, Node, Play};
use crate::base::{Addr, Frame, Instant, PeerIndex, PeerSet, SlotSet};
use crate::bridge::{LeaveReason, MeshNews, Refusal, RefuseReason, SessionNews, StartInfo};
use crate::channel::handshake::{self, Room};
use crate::channel::{Channel, SessionKeys};
use crate::mesh::clock::Sample;
use crate::mesh::lobby::NoPlace;
use crate::mesh::{cut, liveness, lobby};
use crate::wire::control::Control;
use std::time::Duration;

/// How long a member may introduce others.
const CERTIFICATE_LIFE_S: u64 = 24 * 3600;
/// A member to whom the coordinator found no path for so long is out, before a match.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(5);
/// The room's owner renews its own certificate this often.
const CERTIFY_EVERY: Duration = Duration::from_hours(6);

impl Node {
    /// After this no child holds an undelivered output.
    pub(super) fn settle(&mut self, now: Instant) {
        self.settle_handshakes(now);
        self.settle_liveness(now);
        // Before the lobby answers anybody: another coordinator means another clock to be in step with.
        self.settle_coordinator(now);
        self.advance_lobby(now);
        self.settle_cut(now);
        self.settle_coordinator(now);
        self.hand_over();
    }

    fn settle_handshakes(&mut self, now: Instant) {
        if !std::mem::take(&mut self.handshakes_changed) {
            return;
        }
        while let Some(output) = self.handshakes.poll_output() {
            match output {
                handshake::Output::Transmit { to, bytes } => self.transmits.push(to, &bytes),
                handshake::Output::Admission { id, from, identity } => self.admit(id, from, identity, now),
                handshake::Output::Joined { from, keys, introducer, .. } => {
                    let channel = Channel::new(keys, self.config.max_datagram, now);
                    self.joining = Some(Joining { link: Link::new(channel, from), introducer });
                }
                handshake::Output::Paired { peer, from, keys } => self.paired(peer, from, keys, now),
                handshake::Output::Refused { from, refusal, us } => {
                    if us {
                        self.joining = None;
                    }
                    self.tell(MeshNews::Refused { address: from, refusal, us });
                }
            }
        }
        self.handshakes_due = self.handshakes.poll_timeout();
    }

    fn paired(&mut self, peer: PeerIndex, from: Addr, keys: SessionKeys, now: Instant) {
        let mut channel = Channel::new(keys, self.config.max_datagram, now);
        channel.set_sender(self.lobby.us().map_or(crate::wire::header::NO_SENDER, PeerIndex::get));
        let mut link = Link::new(channel, from);
        link.want(now);
        let answers = self.lobby.us().is_some_and(|us| us > peer);
        if answers && self.links.has(peer) {
            // The caller may not have our answer: the old keys stay until a packet opens with the new ones.
            self.pending[peer.index()] = Some(Box::new(link));
            return;
        }
        let is_new = !self.links.has(peer);
        self.set_link(peer, link, now);
        self.lobby.handle_paired(peer);
        if is_new {
            self.tell(MeshNews::PeerConnected { peer, address: from });
        }
    }

    fn admit(&mut self, id: u32, from: Addr, identity: crate::wire::control::Identity, now: Instant) {
        self.remove_restarted(from, now);
        let (reason, ours) = match self.lobby.place_for_guest() {
            Ok(place) => {
                let Some(chain) = self.handshakes.chain_for(&identity, self.certificate_end(now)) else {
                    self.handshakes.refuse(id, RefuseReason::NotCoordinator, 0, 0);
                    return;
                };
                let Some(keys) = self.handshakes.accept(id) else { return };
                let mut channel = Channel::new(keys, self.config.max_datagram, now);
                channel.set_sender(self.lobby.us().map_or(crate::wire::header::NO_SENDER, PeerIndex::get));
                self.set_link(place, Link::new(channel, from), now);
                self.lobby.admit(place, identity, from, chain);
                self.tell(MeshNews::PeerConnected { peer: place, address: from });
                return;
            }
            Err(NoPlace::Full) => (RefuseReason::RoomFull, self.config.max_peers as u64),
            Err(NoPlace::Started) => (RefuseReason::AlreadyStarted, 0),
            Err(NoPlace::NotCoordinator) => (RefuseReason::NotCoordinator, 0),
        };
        self.handshakes.refuse(id, reason, ours, 0);
    }

    /// Who knows the room's secret and reads what is sent to a member's address is that member's successor: an address is
    /// one process's. A match goes on with whom it has, until silence ends it for that one.
    fn remove_restarted(&mut self, from: Addr, now: Instant) {
        if !self.lobby.is_coordinator() || self.lobby.is_started() {
            return;
        }
        let peers = self.lobby.members();
        let before =
            peers.into_iter().find(|p| self.links.get(*p).is_some_and(|link| link.path.addr() == from));
        let Some(before) = before else { return };
        if let Some(link) = self.links.get_mut(before) {
            link.farewell = Some(Farewell::Restarted);
        }
        self.lobby.remove(before);
        // Its place may be given again at once: nothing of it may be left by then.
        self.settle_lobby(now);
    }

    /// When a certificate given now ends; 0 = no limit, where there is no wall clock.
    fn certificate_end(&self, now: Instant) -> u64 {
        match self.config.unix_time_s {
            0 => 0,
            created => created + now.since(self.created_at).as_secs() + CERTIFICATE_LIFE_S,
        }
    }

    /// Where the room key is ours, it lets us introduce; renewed long before it ends.
    pub(super) fn certify_ourselves(&mut self, us: PeerIndex, now: Instant) {
        let ourselves = self.handshakes.identity().public();
        if let Some(chain) = self.handshakes.chain_for(&ourselves, self.certificate_end(now)) {
            self.handshakes.set_us(us, chain);
            self.certify_at = Some(now + CERTIFY_EVERY);
        }
    }

    /// The first messages on a guest's channel: its admission.
    pub(super) fn settle_joining(&mut self, now: Instant) {
        while let Some(joining) = self.joining.as_mut() {
            let Some(received) = joining.channel.poll_message() else { return };
            if received.stream != 0 {
                // Streams do not wait for each other: the admission was lost and comes again, this one is told after it.
                self.dropped_unpolled += joining.hold(received);
                continue;
            }
            let Ok(Control::Admit { you, us, chain, started_attempt, .. }) =
                self.codec.decode(&received.data)
            else {
                continue;
            };
            let (Some(you), Some(coordinator)) = (PeerIndex::new(you), PeerIndex::new(us)) else { continue };
            if you == coordinator {
                continue;
            }
            let Some(Joining { mut link, introducer }) = self.joining.take() else { return };
            let from = link.path.addr();
            link.channel.set_sender(you.get());
            link.want(now);
            self.handshakes.confirm_join();
            self.handshakes_changed = true;
            self.handshakes.set_us(you, chain);
            self.set_link(coordinator, link, now);
            self.lobby.handle_admit(started_attempt, you, coordinator, introducer, from);
            self.tell(MeshNews::PeerConnected { peer: coordinator, address: from });
            self.settle_messages(coordinator, now);
        }
    }

    /// A member's packet was opened: take its messages and clock samples.
    pub(super) fn handle_heard(&mut self, peer: PeerIndex, now: Instant) {
        let Some(link) = self.links.get_mut(peer) else { return };
        if !link.confirmed {
            link.confirmed = true;
            self.handshakes.confirm_pair(peer);
            self.handshakes_changed = true;
        }
        self.settle_messages(peer, now);
        let Some(link) = self.links.get_mut(peer) else { return };
        let mut changed = false;
        while let Some(sample) = link.channel.poll_clock_sample() {
            if self.coordinator == Some(peer) {
                let local = Instant(u64::midpoint(sample.sent.0, sample.received.0));
                let rtt_us = sample.received.since(sample.sent).as_micros() as u32;
                let sample = Sample { local, mesh: sample.mesh_at_peer, rtt_us };
                changed |= self.clock.handle_sample(sample, now);
            }
        }
        if changed {
            link.channel.set_ping_every(self.clock.ping_every());
            self.lobby.set_clock_synced(true);
            self.tell_clock();
        }
        self.note_stall(peer);
    }

    fn settle_messages(&mut self, peer: PeerIndex, now: Instant) {
        loop {
            let Some(link) = self.links.get_mut(peer) else { return };
            let Some(received) = link.channel.poll_message() else { break };
            if received.stream == 0 {
                let control = self.codec.decode(&received.data);
                link.channel.recycle(received.data);
                match control {
                    Ok(control) => self.handle_control(peer, control, now),
                    Err(_) => self.dropped_malformed += 1,
                }
            } else {
                self.dropped_unpolled += link.hold(received);
            }
        }
        self.settle_held(peer);
        let Some(link) = self.links.get_mut(peer) else { return };
        link.pump_outbox();
        self.port.budget().set_under_way(peer, link.cost_under_way());
    }

    fn handle_control(&mut self, peer: PeerIndex, control: Control, now: Instant) {
        if let Control::Go { attempt, .. } = control
            && let Some(link) = self.links.get_mut(peer)
        {
            link.began = link.began.max(attempt);
        }
        let began = self.links.get(peer).map_or(0, |link| link.began);
        // A late word about a match that is over says nothing about the next, nor to who plays none.
        let is_current = self.play.as_ref().is_some_and(|play| play.attempt == began);
        match control {
            Control::Checksum { .. } | Control::EndMatch if !is_current => {}
            Control::Checksum { frame, value } => {
                self.tell_session(SessionNews::Checksum { peer, frame: Frame(frame), value });
            }
            Control::Bye => self.handle_bye(peer, now),
            Control::EndMatch => {
                if let Some(link) = self.links.get_mut(peer) {
                    link.farewell = Some(Farewell::EndedMatch);
                }
                if let Some(play) = self.play.as_mut() {
                    play.forced.insert(peer);
                    self.suspicions_changed(now);
                }
            }
            control => self.lobby.handle_control(peer, control),
        }
    }

    fn handle_bye(&mut self, peer: PeerIndex, now: Instant) {
        if let Some(link) = self.links.get_mut(peer) {
            link.farewell = Some(Farewell::Goodbye);
        }
        match self.play.as_mut() {
            Some(play) if play.cut.members().contains(peer) => {
                play.forced.insert(peer);
                self.suspicions_changed(now);
            }
            Some(_) => {}
            None => self.lobby.remove(peer),
        }
    }

    fn advance_lobby(&mut self, now: Instant) {
        if !self.lobby.is_started() || self.play.is_none() {
            let mut random = [0; 8];
            if self.lobby.wants_random() {
                self.entropy.fill(&mut random);
            }
            self.lobby.advance(self.clock.model().mesh_time(now), u64::from_le_bytes(random));
        }
        self.settle_lobby(now);
    }

    fn settle_lobby(&mut self, now: Instant) {
        while let Some(output) = self.lobby.poll_output() {
            match output {
                lobby::Output::Send(peer, control) => self.send_control(peer, &control, now),
                lobby::Output::Introduce { peer, identity, addresses, moved } => {
                    let is_new = !self.introduced.contains(peer);
                    if is_new {
                        self.introduced.insert(peer);
                        self.introduced_at[peer.index()] = now;
                    }
                    self.handshakes.set_member(peer, identity);
                    let is_caller = self.lobby.us().is_some_and(|us| us < peer);
                    let has_call = self.links.has(peer) || self.handshakes.is_calling(peer) && !moved;
                    if is_caller && !has_call {
                        self.handshakes.start_pair(peer, &addresses, now, self.entropy.as_mut());
                    }
                    self.handshakes_changed = true;
                    if is_new {
                        self.tell(MeshNews::PeerJoined { peer });
                    }
                    self.settle_handshakes(now);
                }
                lobby::Output::Joined { us, coordinator } => self.joined(us, coordinator, now),
                lobby::Output::Removed(peer) => {
                    let farewell = self.links.get(peer).and_then(|link| link.farewell);
                    self.tell(MeshNews::Left { peer, reason: Farewell::reason(farewell) });
                    self.drop_link(peer);
                }
                lobby::Output::Ready(peer, local_slots) => {
                    self.tell(MeshNews::PeerReady { peer, local_slots });
                }
                lobby::Output::SettingsDiffer(peer, ours, theirs) => self.tell(MeshNews::SettingsDiffer {
                    peer,
                    refusal: Refusal { reason: RefuseReason::Settings, ours, theirs },
                }),
                lobby::Output::Start(start) => self.start(start, now),
            }
        }
    }

    /// A guest whom a coordinator introduced to some, and then died before it let him in or told him of the others, can never
    /// be reached: the next coordinator must not wait for him, nor the others for him as coordinator.
    pub(super) fn drop_unreachable(&mut self, now: Instant) {
        let Some(us) = self.lobby.us().filter(|_| !self.lobby.is_started()) else { return };
        let suspects = match self.coordinator {
            Some(coordinator) if coordinator != us => PeerSet::EMPTY.with(coordinator),
            _ => self.lobby.members().without(us),
        };
        for peer in suspects {
            let since = self.introduced_at[peer.index()].max(self.coordinator_since);
            if !self.links.has(peer) && now.since(since) >= UNREACHABLE_AFTER {
                log::warn!("peer {peer} cannot be reached and is out of the room");
                self.lobby.remove(peer);
            }
        }
    }

    fn joined(&mut self, us: PeerIndex, coordinator: PeerIndex, now: Instant) {
        if us == coordinator {
            self.certify_ourselves(us, now);
        } else if let Some(address) = self.config.local_address {
            self.send_control(coordinator, &Control::Candidates { addresses: vec![address.into()] }, now);
        }
        let Some(room) = self.handshakes.room().map(Room::key) else { return };
        self.tell(MeshNews::Joined { us, room });
        if us != coordinator {
            self.tell(MeshNews::PeerJoined { peer: coordinator });
        }
    }

    fn start(&mut self, start: lobby::Start, now: Instant) {
        let Some(us) = self.lobby.us() else { return };
        if self.session.is_none() {
            // It was closed after we said that we are prepared: nobody must wait for our inputs.
            self.send_control_to_all(&Control::EndMatch, now);
            self.lobby.end_match();
            return;
        }
        self.tell(MeshNews::Starting { at: start.frame0_at });
        self.open_play(&start, us, now);
        // Who fell silent before the match began is no news any more, but counts.
        self.suspicions_changed(now);
        self.tell_session_surely(SessionNews::Clock(self.clock.model()));
        let info = StartInfo { seed: start.seed, slots: start.slots, us, frame0_at: start.frame0_at };
        self.tell_session_surely(SessionNews::Start(info));
    }

    fn settle_liveness(&mut self, now: Instant) {
        let mut changed = false;
        while let Some(output) = self.liveness.poll_output() {
            changed = true;
            match output {
                liveness::Output::Suspect(peer) => {
                    if self.is_member(peer) {
                        self.tell(MeshNews::Interrupted { peer });
                    }
                }
                liveness::Output::Resumed(peer, silence) => {
                    if self.is_member(peer) {
                        let silence_ms = silence.as_millis() as u32;
                        self.tell(MeshNews::Resumed { peer, silence_ms });
                    }
                }
                liveness::Output::Forget(peer) => match self.play.as_mut() {
                    Some(play) if play.cut.members().contains(peer) => {
                        play.forced.insert(peer);
                    }
                    Some(_) => self.drop_link(peer),
                    None => self.lobby.remove(peer),
                },
            }
        }
        // The longer silence (expiry) has no output of its own; it is read with the suspects.
        if changed || self.play.as_ref().is_some_and(|play| !play.forced.is_empty() || play.watches_expiry) {
            self.suspicions_changed(now);
        }
    }

    fn is_member(&self, peer: PeerIndex) -> bool {
        self.play.as_ref().map_or(self.lobby.members(), |play| play.cut.members()).contains(peer)
    }

    /// Tells the cut core whom we suspect.
    pub(super) fn suspicions_changed(&mut self, now: Instant) {
        let Some(play) = self.play.as_mut() else { return };
        let suspects = self.liveness.suspects().union(play.forced).intersection(play.cut.members());
        let expired = self.liveness.expired(now).union(play.forced).intersection(play.cut.members());
        play.watches_expiry = !suspects.is_empty();
        let is_new = play.cut.handle_own_suspects(suspects, expired, &Play::ends(&play.log));
        if is_new {
            self.set_pace(now, true);
        }
    }

    fn settle_cut(&mut self, now: Instant) {
        let Some(play) = self.play.as_mut() else { return };
        let mut changed = false;
        let mut is_cut_off = false;
        let mut opened = PeerSet::EMPTY;
        let mut lost = PeerSet::EMPTY;
        while let Some(output) = play.cut.poll_output() {
            changed = true;
            match output {
                cut::Output::Freeze(leavers) => {
                    opened = opened.union(leavers);
                    for kept in play.cut.members().difference(leavers) {
                        for slot in play.log.slots_of(kept) {
                            play.log.thaw(slot);
                        }
                    }
                    for leaver in leavers {
                        for slot in play.log.slots_of(leaver) {
                            play.log.freeze(slot);
                        }
                    }
                }
                cut::Output::Commit(commit) => {
                    for (slot, end, _) in commit.ends.iter() {
                        if play.log.owner(slot).is_some_and(|owner| commit.cut.leavers.contains(owner)) {
                            play.log.commit(slot, end);
                        }
                    }
                    lost = lost.union(commit.cut.leavers);
                    play.to_hand_over = SlotSet::from_bits(u16::MAX);
                }
                cut::Output::CutOff => {
                    is_cut_off = true;
                    play.cut_off_untold = true;
                }
                cut::Output::Defected(peers) => {
                    play.forced = play.forced.union(peers);
                    play.watches_expiry = true;
                }
            }
        }
        if !changed {
            return;
        }
        let (us, left) = (play.us, play.left);
        let newly = lost.difference(left);
        play.left = left.union(lost);
        for peer in newly {
            let farewell = self.links.get(peer).and_then(|link| link.farewell);
            if farewell != Some(Farewell::EndedMatch) {
                self.lobby.forget(peer);
                self.tell(MeshNews::Left { peer, reason: Farewell::reason(farewell) });
            }
        }
        for peer in opened.difference(left).difference(lost) {
            self.tell_session(SessionNews::CutPending { peer });
        }
        if is_cut_off {
            // Who is out answers no round: the part of the mesh that put us out knows it, another part may still count on us.
            self.send_control_to_all(&Control::EndMatch, now);
            self.tell(MeshNews::Left { peer: us, reason: LeaveReason::CutOff });
        }
        self.suspicions_changed(now);
        self.set_pace(now, true);
    }

    /// Sets how often packets go, after membership or agreement changed.
    pub(super) fn set_pace(&mut self, now: Instant, at_once: bool) {
        let Some(play) = self.play.as_ref() else { return };
        let members = play.cut.members();
        let agreeing =
            play.cut.is_open() || play.watches_expiry || !play.forced.intersection(members).is_empty();
        for peer in PeerIndex::all() {
            let Some(link) = self.links.get_mut(peer) else { continue };
            link.pace = if play.cut.is_cut_off() {
                Pace::Mute
            } else if !members.contains(peer) {
                Pace::Gone
            } else if agreeing {
                Pace::Agreement
            } else {
                Pace::Heartbeat
            };
            if at_once && !matches!(link.pace, Pace::Gone | Pace::Mute) {
                link.want(now);
            }
        }
    }

    fn settle_coordinator(&mut self, now: Instant) {
        let members = match &self.play {
            Some(play) => play.cut.members(),
            None => self.lobby.members(),
        };
        let coordinator = members.first();
        if coordinator == self.coordinator {
            return;
        }
        self.coordinator = coordinator;
        self.coordinator_since = now;
        if coordinator.is_some() && coordinator == self.lobby.us() {
            self.clock.lead(now);
            self.lobby.set_clock_synced(true);
            self.tell_clock();
        } else {
            if self.play.is_some() {
                self.clock.follow_another();
            } else {
                self.clock.start_over();
                self.lobby.set_clock_synced(false);
            }
            let every = self.clock.ping_every();
            if let Some(link) = coordinator.and_then(|c| self.links.get_mut(c)) {
                link.channel.set_ping_every(every);
            }
        }
    }
}
