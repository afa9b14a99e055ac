//! The lobby: who is a member, who is ready, and the barrier before frame 0.
//!
//! The coordinator (lowest live index; the host at first) admits, introduces and starts. Control messages travel on reliable
//! ordered streams, so the lobby needs no timers of its own.
//! Fed by: admissions, pairings, control messages, the game's wishes. Yields: control messages to send and news.
//! Never: opens a channel or reads a key; it only carries identities from message to owner.

use crate::base::limits::{MAX_CANDIDATES, MAX_PEERS, MAX_SLOTS};
use crate::base::{Addr, Instant, PeerIndex, PeerSet};
use crate::wire::control::{Certificate, Control, Identity, SlotOwners, WireAddr};
use std::collections::VecDeque;
use std::time::Duration;

/// Frame 0 lies at least this far behind the barrier, so that the news of it outruns it: a few round trips of a bad path.
const GO_MARGIN: Duration = Duration::from_millis(250);

/// What the owner must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a control message on the channel to this member.
    Send(PeerIndex, Control),
    /// A member exists: learn its keys, and call it if its index is above ours.
    Introduce {
        /// Its index.
        peer: PeerIndex,
        /// Its keys.
        identity: Identity,
        /// Where to try.
        addresses: Vec<Addr>,
        /// Whether it was known, but not at all of these addresses.
        moved: bool,
    },
    /// We are in.
    Joined {
        /// Ourselves.
        us: PeerIndex,
        /// Who let us in.
        coordinator: PeerIndex,
    },
    /// A member is no more.
    Removed(PeerIndex),
    /// A member is ready with so many slots.
    Ready(PeerIndex, u8),
    /// A member's session settings differ from the coordinator's: (member, coordinator's, member's).
    SettingsDiffer(PeerIndex, u64, u64),
    /// The barrier is passed.
    Start(Start),
}

/// The line-up and the time of frame 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The attempt that passed; its parity tells this match's sections from those of the one before.
    pub attempt: u32,
    /// Shared seed.
    pub seed: u64,
    /// Owner of each slot.
    pub slots: [Option<PeerIndex>; MAX_SLOTS],
    /// Mesh time of frame 0.
    pub frame0_at: Instant,
}

#[derive(Clone, Debug)]
struct Member {
    identity: Identity,
    addresses: Vec<WireAddr>,
    local_slots: u8,
    settings: u64,
    connected: PeerSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    /// The coordinator waits for everybody's `Prepared`.
    Preparing {
        attempt: u32,
        seed: u64,
        slots: SlotOwners,
        prepared: PeerSet,
    },
    Started,
}

/// What a member answers `Prepare` with, once it can.
#[derive(Clone, Copy, Debug)]
struct Asked {
    by: PeerIndex,
    attempt: u32,
    /// Who plays: the coordinator's word, which may have dropped somebody whom nobody can reach.
    players: PeerSet,
}

/// The lobby of one node.
#[derive(Debug)]
pub struct Lobby {
    us: Option<PeerIndex>,
    identity: Identity,
    max_peers: usize,
    members: [Option<Member>; MAX_PEERS],
    connected: PeerSet,
    local_slots: u8,
    settings: u64,
    phase: Phase,
    start_wanted: Option<Duration>,
    attempts: u32,
    /// The attempt that the newest match began with.
    started_attempt: u32,
    asked: Option<Asked>,
    clock_synced: bool,
    outputs: VecDeque<Output>,
}

impl Lobby {
    /// In no room.
    pub fn new(identity: Identity, max_peers: usize) -> Self {
        Self {
            us: None,
            identity,
            max_peers,
            members: [const { None }; MAX_PEERS],
            connected: PeerSet::EMPTY,
            local_slots: 0,
            settings: 0,
            phase: Phase::Gathering,
            start_wanted: None,
            attempts: 0,
            started_attempt: 0,
            asked: None,
            clock_synced: false,
            outputs: VecDeque::new(),
        }
    }

    /// Ourselves, once we are in.
    pub fn us(&self) -> Option<PeerIndex> {
        self.us
    }

    /// Every member, ourselves included.
    pub fn members(&self) -> PeerSet {
        PeerIndex::all().filter(|p| self.members[p.index()].is_some()).collect()
    }

    /// The member that admits and starts: the lowest index.
    pub fn coordinator(&self) -> Option<PeerIndex> {
        self.members().first()
    }

    /// Whether that is us.
    pub fn is_coordinator(&self) -> bool {
        self.us.is_some() && self.us == self.coordinator()
    }

    /// Whether the barrier is passed.
    pub fn is_started(&self) -> bool {
        self.phase == Phase::Started
    }

    /// Opens a room: we are its first member.
    pub fn host(&mut self) {
        let us = PeerIndex::default();
        self.us = Some(us);
        self.members[us.index()] = Some(self.ourselves());
        self.outputs.push_back(Output::Joined { us, coordinator: us });
    }

    fn ourselves(&self) -> Member {
        Member {
            identity: self.identity,
            addresses: Vec::new(),
            local_slots: self.local_slots,
            settings: self.settings,
            connected: self.connected,
        }
    }

    /// Whether a guest can be let in now; `Err` says why not.
    pub fn place_for_guest(&self) -> Result<PeerIndex, NoPlace> {
        if !self.is_coordinator() {
            return Err(NoPlace::NotCoordinator);
        }
        if self.phase != Phase::Gathering {
            return Err(NoPlace::Started);
        }
        if self.members().len() >= self.max_peers {
            return Err(NoPlace::Full);
        }
        // Behind us: the lowest index coordinates, and a newcomer knows neither the room's clock nor its matches.
        PeerIndex::all()
            .find(|p| Some(*p) > self.us && self.members[p.index()].is_none())
            .ok_or(NoPlace::Full)
    }

    /// Lets a guest in at the place that [`Lobby::place_for_guest`] gave; its channel must exist already.
    pub fn admit(&mut self, guest: PeerIndex, identity: Identity, from: Addr, chain: Vec<Certificate>) {
        let Some(us) = self.us else { return };
        self.send(
            guest,
            Control::Admit {
                you: guest.get(),
                us: us.get(),
                max_peers: self.max_peers as u8,
                started_attempt: self.started_attempt,
                chain,
            },
        );
        for (peer, member) in self.others(us) {
            if peer != guest {
                self.send(guest, introduction(peer, &member));
            }
        }
        self.members[guest.index()] = Some(Member {
            identity,
            addresses: vec![from.into()],
            local_slots: 0,
            settings: 0,
            connected: PeerSet::EMPTY.with(us),
        });
        self.connected.insert(guest);
        self.introduce_to_all(guest);
        self.outputs.push_back(Output::Introduce {
            peer: guest,
            identity,
            addresses: vec![from],
            moved: false,
        });
        self.tell_status();
    }

    fn introduce_to_all(&mut self, newcomer: PeerIndex) {
        let (Some(us), Some(member)) = (self.us, self.members[newcomer.index()].clone()) else { return };
        for (peer, _) in self.others(us) {
            if peer != newcomer {
                self.send(peer, introduction(newcomer, &member));
            }
        }
    }

    fn others(&self, us: PeerIndex) -> Vec<(PeerIndex, Member)> {
        let members = self.members().without(us);
        members.into_iter().filter_map(|p| Some((p, self.members[p.index()].clone()?))).collect()
    }

    /// A direct channel to a member is up.
    pub fn handle_paired(&mut self, peer: PeerIndex) {
        if !self.connected.insert(peer) {
            return;
        }
        // Our own guests came with their introductions; this one is another coordinator's, who may not have got that far.
        if self.is_coordinator()
            && let Some(us) = self.us
        {
            for (other, member) in self.others(us) {
                if other != peer {
                    self.send(peer, introduction(other, &member));
                }
            }
            self.introduce_to_all(peer);
        }
        self.tell_status();
    }

    /// The game is ready.
    pub fn set_ready(&mut self, local_slots: u8) {
        if self.local_slots != local_slots && matches!(self.phase, Phase::Preparing { .. }) {
            self.phase = Phase::Gathering;
        }
        self.local_slots = local_slots;
        if let Some(us) = self.us {
            self.outputs.push_back(Output::Ready(us, local_slots));
        }
        self.tell_status();
    }

    /// A session opened (its settings' digest) or closed (0).
    pub fn set_settings(&mut self, settings: u64) {
        self.settings = settings;
        self.tell_status();
    }

    /// Our match is over: back to the lobby, not ready, for a rematch.
    pub fn end_match(&mut self) {
        self.phase = Phase::Gathering;
        self.start_wanted = None;
        self.asked = None;
        self.local_slots = 0;
        self.settings = 0;
        self.tell_status();
    }

    /// The mesh clock is in step.
    pub fn set_clock_synced(&mut self, synced: bool) {
        self.clock_synced = synced;
    }

    /// The game wants to begin; the barrier goes up as soon as all are ready and connected.
    pub fn want_start(&mut self, countdown: Duration) {
        self.start_wanted = Some(countdown);
    }

    /// A member is gone.
    pub fn remove(&mut self, peer: PeerIndex) {
        if self.members[peer.index()].take().is_none() {
            return;
        }
        let was_coordinator = self.coordinator().is_none_or(|coordinator| peer < coordinator);
        self.connected.remove(peer);
        if self.phase != Phase::Started {
            self.phase = Phase::Gathering;
            if self.is_coordinator()
                && let Some(us) = self.us
            {
                for (other, _) in self.others(us) {
                    self.send(other, Control::Removed { index: peer.get() });
                }
            }
            if was_coordinator {
                self.repair_introductions();
            }
        }
        self.outputs.push_back(Output::Removed(peer));
        self.tell_status();
    }

    /// A coordinator that dies may have introduced a guest to some and not to others: everybody tells the next one whom it
    /// knows and all others of it, and that one introduces all to all.
    fn repair_introductions(&mut self) {
        let (Some(us), Some(coordinator)) = (self.us, self.coordinator()) else { return };
        if us != coordinator {
            self.introduce_to_all(coordinator);
        }
        for (peer, member) in self.others(us) {
            if us == coordinator {
                self.introduce_to_all(peer);
            } else if peer != coordinator {
                self.send(coordinator, introduction(peer, &member));
            }
        }
    }

    /// A member left by the cut: it is in no later match, and nobody needs to be told.
    pub fn forget(&mut self, peer: PeerIndex) {
        self.members[peer.index()] = None;
        self.connected.remove(peer);
    }

    fn tell_status(&mut self) {
        let Some(us) = self.us else { return };
        let ourselves = Member { addresses: Vec::new(), ..self.ourselves() };
        if let Some(member) = self.members[us.index()].as_mut() {
            *member = ourselves;
        }
        let status = Control::Status {
            local_slots: self.local_slots,
            settings: self.settings,
            connected: self.connected.bits(),
        };
        for peer in self.connected {
            self.send(peer, status.clone());
        }
    }

    fn send(&mut self, to: PeerIndex, control: Control) {
        self.outputs.push_back(Output::Send(to, control));
    }

    /// A member is at another address than before; later guests must find it there.
    pub fn handle_moved(&mut self, peer: PeerIndex, to: Addr) {
        let Some(member) = self.members[peer.index()].as_mut() else { return };
        // The first is where it was seen, the others are what it said of itself.
        match member.addresses.first_mut() {
            Some(seen) => *seen = to.into(),
            None => member.addresses.push(to.into()),
        }
        if self.is_coordinator() {
            self.introduce_to_all(peer);
        }
    }

    /// A control message came from a member; `from` of an admission is the coordinator itself.
    pub fn handle_control(&mut self, from: PeerIndex, control: Control) {
        match control {
            Control::Admit { .. } | Control::Checksum { .. } | Control::Bye | Control::EndMatch => {}
            Control::Candidates { addresses } => {
                let Some(member) = self.members[from.index()].as_mut() else { return };
                let room = MAX_CANDIDATES.saturating_sub(member.addresses.len());
                let before = member.addresses.len();
                for address in addresses.into_iter().filter(|a| a.parse().is_some()).take(room) {
                    if !member.addresses.contains(&address) {
                        member.addresses.push(address);
                    }
                }
                if member.addresses.len() == before {
                    return;
                }
                if self.is_coordinator() {
                    self.introduce_to_all(from);
                }
            }
            Control::Member { index, identity, addresses } => {
                if let Some(peer) = PeerIndex::new(index).filter(|p| Some(*p) != self.us)
                    && Some(from) == self.coordinator()
                    && self.members[peer.index()].as_ref().is_some_and(|known| known.identity != identity)
                {
                    // Another one has its place by now: that it left had not reached us.
                    self.remove(peer);
                }
                self.handle_member(index, identity, addresses);
            }
            Control::Removed { index } => {
                if Some(from) == self.coordinator()
                    && let Some(peer) = PeerIndex::new(index).filter(|p| Some(*p) != self.us)
                    && self.phase != Phase::Started
                {
                    self.remove(peer);
                }
            }
            Control::Status { local_slots, settings, connected } => {
                let Some(member) = self.members[from.index()].as_mut() else { return };
                let was = std::mem::replace(&mut member.local_slots, local_slots.min(MAX_SLOTS as u8));
                let other_settings = std::mem::replace(&mut member.settings, settings) != settings;
                if (was != member.local_slots || other_settings)
                    && matches!(self.phase, Phase::Preparing { .. })
                {
                    // The line-up was made of what it said before: it may have been in the last match still.
                    self.phase = Phase::Gathering;
                }
                member.connected = PeerSet::from_bits(connected);
                if was != member.local_slots && member.local_slots > 0 {
                    let slots = member.local_slots;
                    self.outputs.push_back(Output::Ready(from, slots));
                }
            }
            Control::Prepare { attempt, slots, .. } => {
                self.attempts = self.attempts.max(attempt);
                let players = slots.into_iter().filter_map(PeerIndex::new).collect();
                self.asked = Some(Asked { by: from, attempt, players });
            }
            Control::Prepared { attempt } => self.handle_prepared(from, attempt),
            Control::Go { attempt, seed, slots, frame0_at } => {
                self.go(attempt, seed, slots, Instant(frame0_at));
            }
            Control::SettingsDiffer { coordinator } => {
                if let Some(us) = self.us {
                    self.outputs.push_back(Output::SettingsDiffer(us, coordinator, self.settings));
                }
            }
        }
    }

    /// The coordinator let us in: the first message on the guest's channel.
    pub fn handle_admit(
        &mut self,
        started_attempt: u32,
        you: PeerIndex,
        coordinator: PeerIndex,
        identity: Identity,
        from: Addr,
    ) {
        if self.us.is_some() || you == coordinator {
            return;
        }
        self.us = Some(you);
        self.started_attempt = started_attempt;
        self.attempts = self.attempts.max(started_attempt);
        self.members[you.index()] = Some(self.ourselves());
        self.connected.insert(coordinator);
        self.members[coordinator.index()] = Some(Member {
            identity,
            addresses: vec![from.into()],
            local_slots: 0,
            settings: 0,
            connected: PeerSet::EMPTY.with(you),
        });
        self.outputs.push_back(Output::Joined { us: you, coordinator });
        self.tell_status();
    }

    fn handle_member(&mut self, index: u8, identity: Identity, addresses: Vec<WireAddr>) {
        let Some(peer) = PeerIndex::new(index).filter(|p| Some(*p) != self.us) else { return };
        let candidates: Vec<Addr> = addresses.iter().filter_map(WireAddr::parse).collect();
        let mut moved = false;
        match self.members[peer.index()].as_mut() {
            Some(known) if known.identity != identity => return,
            Some(known) => {
                moved = known.addresses != addresses;
                known.addresses = addresses;
            }
            None => {
                self.members[peer.index()] = Some(Member {
                    identity,
                    addresses,
                    local_slots: 0,
                    settings: 0,
                    connected: PeerSet::EMPTY,
                });
            }
        }
        self.outputs.push_back(Output::Introduce { peer, identity, addresses: candidates, moved });
    }

    fn handle_prepared(&mut self, from: PeerIndex, of: u32) {
        if let Phase::Preparing { attempt, prepared, .. } = &mut self.phase
            && *attempt == of
        {
            prepared.insert(from);
        }
    }

    /// Whether [`Lobby::advance`] may draw the match's seed.
    pub fn wants_random(&self) -> bool {
        self.start_wanted.is_some() && self.phase == Phase::Gathering
    }

    /// Moves the barrier on as far as it can go; `mesh_now` is read only when it is passed.
    pub fn advance(&mut self, mesh_now: Instant, random: u64) {
        let Some(us) = self.us else { return };
        let members = self.members();
        // Who asks must be the coordinator for us too: the clock follows the one that we believe in.
        if let Some(asked) = self.asked
            && self.coordinator() == Some(asked.by)
            && self.clock_synced
            && self.settings != 0
            && asked.players.without(us).is_subset(self.connected)
        {
            self.asked = None;
            self.send(asked.by, Control::Prepared { attempt: asked.attempt });
        }
        let Some(countdown) = self.start_wanted.filter(|_| self.is_coordinator()) else { return };
        match self.phase {
            Phase::Gathering => {
                if self.everybody_can_start(members) {
                    self.prepare(members, random);
                }
            }
            Phase::Preparing { attempt, seed, slots, prepared }
                if members.without(us).is_subset(prepared) =>
            {
                let frame0_at = mesh_now + countdown.max(GO_MARGIN);
                self.go(attempt, seed, slots, frame0_at);
            }
            Phase::Preparing { .. } | Phase::Started => {}
        }
    }

    fn everybody_can_start(&mut self, members: PeerSet) -> bool {
        let ours = self.settings;
        if ours == 0 {
            return false; // our own session is not open yet
        }
        let mut slots = 0;
        for peer in members {
            let Some(member) = &self.members[peer.index()] else { return false };
            slots += usize::from(member.local_slots);
            if member.local_slots == 0 || !members.without(peer).is_subset(member.connected) {
                return false;
            }
            if member.settings != ours {
                let theirs = member.settings;
                if theirs != 0 {
                    self.start_wanted = None;
                    self.outputs.push_back(Output::SettingsDiffer(peer, ours, theirs));
                    self.send(peer, Control::SettingsDiffer { coordinator: ours });
                }
                return false;
            }
        }
        slots <= MAX_SLOTS
    }

    fn prepare(&mut self, members: PeerSet, random: u64) {
        let mut owners: SlotOwners = [255; MAX_SLOTS];
        let mut next = owners.iter_mut();
        for peer in members {
            let count = self.members[peer.index()].as_ref().map_or(0, |m| m.local_slots);
            for owner in next.by_ref().take(usize::from(count)) {
                *owner = peer.get();
            }
        }
        self.attempts = self.attempts.saturating_add(1);
        // Two matches in a row never share a parity.
        if self.started_attempt > 0 && self.attempts.abs_diff(self.started_attempt).is_multiple_of(2) {
            self.attempts = self.attempts.saturating_add(1);
        }
        let attempt = self.attempts;
        self.phase = Phase::Preparing { attempt, seed: random, slots: owners, prepared: PeerSet::EMPTY };
        for peer in members.without(self.us.unwrap_or_default()) {
            self.send(peer, Control::Prepare { attempt, seed: random, slots: owners });
        }
    }

    /// The barrier is passed: tell everybody once (each member does, so that a coordinator's death splits nobody), and begin.
    fn go(&mut self, attempt: u32, seed: u64, slots: SlotOwners, frame0_at: Instant) {
        // A late repeat, perhaps of a match that is over here, begins nothing.
        if self.phase == Phase::Started || attempt <= self.started_attempt {
            return;
        }
        self.phase = Phase::Started;
        self.started_attempt = attempt;
        self.attempts = self.attempts.max(attempt);
        for peer in self.connected {
            self.send(peer, Control::Go { attempt, seed, slots, frame0_at: frame0_at.0 });
        }
        self.outputs.push_back(Output::Start(Start {
            attempt,
            seed,
            slots: slots.map(PeerIndex::new),
            frame0_at,
        }));
    }

    /// The next output; `None` once drained.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

/// Why a guest cannot be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// All places are taken.
    Full,
    /// The match runs, or its barrier is up.
    Started,
    /// Only the coordinator admits.
    NotCoordinator,
}

fn introduction(peer: PeerIndex, member: &Member) -> Control {
    Control::Member { index: peer.get(), identity: member.identity, addresses: member.addresses.clone() }
}

#[cfg(test)]
mod tests;
