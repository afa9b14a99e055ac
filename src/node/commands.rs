//! Takes what the game half queued.
//!
//! Fed by: the bridge. Yields: changed cores, messages on links, inputs in the log; then settles.
//! Never: answers; refusals that the game must see come back as news.

use super::link::{Link, Pace};
use super::{Node, OpenSession, Play, STATS_EVERY};
use crate::base::limits::{LINK_WINDOW, MESH_WINDOW};
use crate::base::{Addr, Frame, Input, Instant, PeerIndex, Slot};
use crate::bridge::{Command, Delivery};
use crate::channel::handshake::Room;
use crate::config::RoomKey;
use crate::mesh::input_log::Pushed;
use crate::wire::control::Control;
use std::time::Duration;

/// After a goodbye the node lives on so long, to repeat it.
const LINGER: Duration = Duration::from_millis(300);

impl Node {
    /// Takes what the game half queued.
    pub fn handle_commands(&mut self, now: Instant) {
        self.note_running(now);
        if !self.backlog.is_empty() {
            self.tell_backlog();
        }
        self.settle_all_held();
        let mut flush = None;
        loop {
            match self.port.next_command() {
                Ok(Command::Flush { current }) => flush = Some(current),
                Ok(command) => self.handle_command(command, now),
                Err(is_closed) => {
                    if is_closed {
                        self.leave(now);
                    }
                    break;
                }
            }
        }
        if let Some(current) = flush {
            self.flush(current, now);
        }
        self.settle(now);
        self.write_due(now);
    }

    fn handle_command(&mut self, command: Command, now: Instant) {
        match command {
            Command::Host => self.host(now),
            Command::Join { address, room } => self.join(address, room, now),
            Command::SetReady { local_slots } => self.lobby.set_ready(local_slots),
            Command::Start { countdown_ms } => {
                self.lobby.want_start(Duration::from_millis(u64::from(countdown_ms)));
            }
            Command::Leave => self.leave(now),
            Command::Send { to, stream, delivery, data } => {
                self.send_message(to, stream, delivery, data, now);
            }
            Command::OpenSession { session, settings, port } => {
                if self.session.is_some() {
                    self.close_session(now);
                }
                self.lobby.set_settings(settings.digest());
                self.session = Some(OpenSession { number: session, settings, port });
            }
            Command::CloseSession { session } => {
                if self.session.as_ref().is_some_and(|open| open.number == session) {
                    self.close_session(now);
                }
            }
            Command::Input { slot, frame, input } => self.take_local_input(slot, frame, &input),
            // Coalesced by the caller; alone it means the same.
            Command::Flush { current } => self.flush(current, now),
            Command::Checksum { frame, value } => self.send_checksum(frame, value, now),
        }
    }

    fn host(&mut self, now: Instant) {
        if self.lobby.us().is_some() || self.joining.is_some() {
            log::warn!("host: already in a room");
            return;
        }
        let room = Room::create(self.entropy.as_mut());
        self.handshakes.set_room(room);
        self.lobby.host();
        self.stats_at = Some(now + STATS_EVERY);
    }

    fn join(&mut self, address: Addr, room: RoomKey, now: Instant) {
        if self.lobby.us().is_some() || self.joining.is_some() {
            log::warn!("join: already in a room");
            return;
        }
        self.handshakes.set_room(Room::from_key(room));
        self.handshakes.start_join(address, now, self.entropy.as_mut());
        self.handshakes_changed = true;
        self.stats_at = Some(now + STATS_EVERY);
    }

    fn leave(&mut self, now: Instant) {
        if self.finish_at.is_some() {
            return;
        }
        self.finish_at = Some(now + LINGER);
        self.send_control_to_all(&Control::Bye, now);
        if self.links.is_empty() {
            self.is_finished = true;
        }
    }

    /// Without its session a member plays no more: the others cut its slots at once instead of waiting for them. It stays in
    /// the room, and with a new session it can play the next match there.
    fn close_session(&mut self, now: Instant) {
        self.session = None;
        if self.play.take().is_some() {
            self.send_control_to_all(&Control::EndMatch, now);
            self.links.iter_mut().for_each(|link| link.pace = Pace::Heartbeat);
        }
        self.lobby.end_match();
    }

    fn take_local_input(&mut self, slot: Slot, frame: Frame, input: &Input) {
        let Some(play) = self.play.as_mut().filter(|play| play.local.contains(slot)) else { return };
        match play.log.push(slot, frame, input.as_slice()) {
            Pushed::Stored | Pushed::Ignored => {}
            Pushed::Gap | Pushed::TooFar => {
                log::error!("local input of slot {slot} for frame {frame} does not follow");
            }
        }
        play.log.mark_local(slot);
    }

    fn send_checksum(&mut self, frame: Frame, value: u64, now: Instant) {
        let Some(play) = &self.play else { return };
        for peer in play.cut.members().without(play.us) {
            self.send_control(peer, &Control::Checksum { frame: frame.0, value }, now);
        }
    }

    /// Sends a control message to a member.
    pub(super) fn send_control(&mut self, peer: PeerIndex, control: &Control, now: Instant) {
        let Some(link) = self.links.get_mut(peer) else { return };
        let mut data = link.channel.poll_released().unwrap_or_default();
        data.clear();
        self.codec.encode(control, &mut data);
        link.send(0, Delivery::Reliable, data, now);
    }

    /// Sends a control message to every member that we have a link to.
    pub(super) fn send_control_to_all(&mut self, control: &Control, now: Instant) {
        for peer in PeerIndex::all() {
            self.send_control(peer, control, now);
        }
    }

    fn send_message(
        &mut self,
        to: Option<PeerIndex>,
        stream: u8,
        delivery: Delivery,
        data: Vec<u8>,
        now: Instant,
    ) {
        let targets = match to {
            Some(peer) => [peer].into_iter().collect(),
            None => self.lobby.members(),
        };
        for peer in targets {
            let Some(link) = self.links.get_mut(peer) else { continue };
            let mut copy = link.channel.poll_released().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(&data);
            link.send(stream + 1, delivery, copy, now);
            self.port.budget().set_under_way(peer, link.cost_under_way());
        }
        if delivery == Delivery::Reliable {
            self.port.budget().taken(data.len());
        }
        self.port.recycle(data);
    }

    /// Nothing is under way on a link that is no more.
    pub(super) fn drop_link(&mut self, peer: PeerIndex) {
        self.links.take(peer);
        self.port.budget().set_under_way(peer, 0);
        self.share_window();
        self.liveness.remove(peer);
        self.handshakes.remove_member(peer);
        self.handshakes_changed = true;
        self.introduced.remove(peer);
        self.pending[peer.index()] = None;
    }

    /// Few links may each hold more for a game that does not poll than many.
    fn share_window(&mut self) {
        let links = PeerIndex::all().filter(|peer| self.links.has(*peer)).count() as u32;
        let window = (MESH_WINDOW / links.max(1)).min(LINK_WINDOW);
        self.links.iter_mut().for_each(|link| link.channel.set_receive_window(window));
    }

    /// A new link to a member.
    pub(super) fn set_link(&mut self, peer: PeerIndex, link: Link, now: Instant) {
        self.port.budget().set_under_way(peer, link.cost_under_way());
        self.links.set(peer, Box::new(link));
        self.share_window();
        // A coordinator that was known before its channel: its clock is to be learnt now.
        if self.coordinator == Some(peer)
            && let Some(link) = self.links.get_mut(peer)
        {
            link.channel.set_ping_every(self.clock.ping_every());
        }
        self.liveness.add(peer, now);
    }

    /// Whether a session is open, and with which settings.
    pub(super) fn open_play(&mut self, start: &crate::mesh::lobby::Start, us: PeerIndex, now: Instant) {
        let Some(OpenSession { settings, port, .. }) = &self.session else { return };
        // Nobody is asleep before frame 0.
        let called_at = self.clock.model().local_time(start.frame0_at).max(now);
        // Who plays is what the coordinator said, so that all count the same votes. Who left meanwhile is cut like any other.
        let members = start.slots.iter().flatten().copied().collect();
        let mut play = Play::new(start, us, members, *settings, Some(port.clone()), called_at);
        play.forced = members.difference(self.lobby.members());
        play.left = play.forced;
        self.block.clear();
        self.links.iter_mut().for_each(Link::begin_match);
        self.play = Some(play);
    }
}
