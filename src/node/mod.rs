//! The network half of one mesh: composes channels, handshakes and the mesh cores, and routes between them.
//!
//! Fed by: commands of the bridge, datagrams and time. Yields: datagrams to send and the time of the next call;
//! news go through the bridge. Never: reads a clock, touches a socket, or knows which driver runs it.

mod commands;
mod link;
mod links;
mod play;
mod receive;
mod send;
mod settle;
mod tell;
mod transmit;

use crate::base::limits::MAX_PEERS;
use crate::base::{Addr, Entropy, Instant, PeerIndex, PeerSet};
use crate::bridge::{MeshNews, NewsPort, NodePort, Refused};
use crate::channel::handshake::{Handshakes, Identity};
use crate::config::{SessionSettings, ValidMeshConfig};
use crate::mesh::clock::MeshClock;
use crate::mesh::liveness::{Limits, Liveness};
use crate::mesh::lobby::Lobby;
use crate::wire::control;
use crate::wire::handshake::{Build, Hello};
use crate::wire::header::{Kind, NO_SENDER};
use link::Link;
use links::Links;
use play::Play;
use send::BlockCache;
pub use send::frame_fits;
use std::collections::VecDeque;
use std::time::Duration;
use transmit::TransmitQueue;

/// Stats are told this often.
const STATS_EVERY: Duration = Duration::from_millis(100);
/// News that wait because the game does not poll; beyond, the oldest are dropped with a log line.
const MAX_BACKLOG: usize = 4096;
/// A node with links has a timer at least every 50 ms; a gap so long means that it did not run.
const OWN_PAUSE: Duration = Duration::from_millis(100);

/// What the driver must do next; drain until `Wait`.
#[derive(Debug)]
pub enum Output<'a> {
    /// Send these bytes there.
    Transmit {
        /// Where to.
        to: Addr,
        /// One UDP payload.
        bytes: &'a [u8],
    },
    /// Nothing more now: call `handle_timeout` at this instant, or earlier on a datagram or command.
    Wait {
        /// `None`: nothing is scheduled.
        until: Option<Instant>,
        /// Which part asked for it, for the log.
        reason: &'static str,
    },
    /// The node said goodbye and can be dropped.
    Finished,
}

/// A guest's channel before it has an index: where it is, and whose.
#[derive(Debug)]
struct Joining {
    link: Link,
    introducer: control::Identity,
}

impl std::ops::Deref for Joining {
    type Target = Link;
    fn deref(&self) -> &Link {
        &self.link
    }
}

impl std::ops::DerefMut for Joining {
    fn deref_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The session that plays on this mesh.
#[derive(Debug)]
struct OpenSession {
    number: u32,
    settings: SessionSettings,
    port: NewsPort,
}

/// The network half of one mesh.
pub struct Node {
    config: ValidMeshConfig,
    port: NodePort,
    entropy: Box<dyn Entropy>,
    handshakes: Handshakes,
    lobby: Lobby,
    clock: MeshClock,
    coordinator: Option<PeerIndex>,
    coordinator_since: Instant,
    liveness: Liveness,
    links: Links,
    handshakes_due: Option<Instant>,
    handshakes_changed: bool,
    /// Channels whose keys wait for their first packet before they replace the link's.
    pending: [Option<Box<Link>>; MAX_PEERS],
    joining: Option<Joining>,
    /// Members whose keys we know, so that news of one come once.
    introduced: PeerSet,
    introduced_at: [Instant; MAX_PEERS],
    session: Option<OpenSession>,
    play: Option<Play>,
    codec: control::Codec,
    transmits: TransmitQueue,
    backlog: VecDeque<MeshNews>,
    stats_at: Option<Instant>,
    totals: [(u64, u64); MAX_PEERS],
    finish_at: Option<Instant>,
    ran_at: Instant,
    created_at: Instant,
    certify_at: Option<Instant>,
    is_finished: bool,
    dropped_unknown: u64,
    dropped_unpolled: u64,
    dropped_malformed: u64,
    /// Reused for every packet: the node's sections, the inputs section, the packet itself, the shared block.
    sections: Vec<u8>,
    inputs: Vec<u8>,
    packet: Vec<u8>,
    block: BlockCache,
}

impl Node {
    /// A node that is in no room yet.
    pub fn new(config: ValidMeshConfig, port: NodePort, mut entropy: Box<dyn Entropy>, now: Instant) -> Self {
        let identity = Identity::generate(entropy.as_mut());
        let limits =
            Limits { suspect: config.suspect, expire: config.cut_after, forget: config.forget_after };
        Self {
            lobby: Lobby::new(identity.public(), config.max_peers),
            handshakes: Handshakes::new(
                identity,
                Hello {
                    build: Build { game_id: config.game_id, build_id: config.build_id },
                    has_aes: config.has_aes,
                },
                config.unix_time_s,
                config.max_datagram,
            ),
            clock: MeshClock::new(),
            coordinator: None,
            coordinator_since: now,
            liveness: Liveness::new(limits),
            links: Links::new(),
            handshakes_due: None,
            handshakes_changed: false,
            pending: [const { None }; MAX_PEERS],
            joining: None,
            introduced: PeerSet::EMPTY,
            introduced_at: [now; MAX_PEERS],
            session: None,
            play: None,
            codec: control::Codec::default(),
            transmits: TransmitQueue::new(config.max_datagram),
            backlog: VecDeque::new(),
            stats_at: None,
            totals: [(0, 0); MAX_PEERS],
            finish_at: None,
            ran_at: now,
            created_at: now,
            certify_at: None,
            is_finished: false,
            dropped_unknown: 0,
            dropped_unpolled: 0,
            dropped_malformed: 0,
            sections: Vec::with_capacity(config.max_datagram),
            inputs: Vec::with_capacity(config.max_datagram),
            packet: Vec::with_capacity(config.max_datagram),
            block: BlockCache::with_room(config.max_datagram),
            config,
            port,
            entropy,
        }
    }

    /// A datagram came; `bytes` are opened in place.
    pub fn handle_datagram(&mut self, from: Addr, bytes: &mut [u8], now: Instant) {
        self.note_running(now);
        match bytes.first().and_then(|first| Kind::of(*first)) {
            Some(Kind::Data) => self.route(from, bytes, now),
            Some(Kind::Handshake) => {
                self.handshakes.handle_datagram(from, bytes, now, self.entropy.as_mut());
                self.handshakes_changed = true;
                self.settle(now);
            }
            Some(Kind::Relay | Kind::Replication) | None => self.dropped_unknown += 1,
        }
    }

    /// Finds the link that a data packet is for: by the sender's index, or by address while it has none.
    fn route(&mut self, from: Addr, bytes: &mut [u8], now: Instant) {
        let sender = bytes.get(1).copied().unwrap_or(NO_SENDER);
        let peer = if sender == NO_SENDER {
            PeerIndex::all().find(|p| self.links.get(*p).is_some_and(|link| link.path.addr() == from))
        } else {
            PeerIndex::new(sender)
        };
        if let Some(peer) = peer.filter(|p| self.links.has(*p)) {
            let copy = self.pending[peer.index()].is_some().then(|| bytes.to_vec());
            let mut opened = self.receive(peer, from, bytes, now);
            if !opened && let Some(mut copy) = copy {
                opened = self.receive_pending(peer, from, &mut copy, now);
            }
            if opened {
                self.handle_heard(peer, now);
            }
        } else if let Some(joining) = self.joining.as_mut().filter(|joining| joining.path.addr() == from) {
            if joining.channel.handle_packet(bytes, now, &mut |_| {}).is_ok() {
                self.settle_joining(now);
            }
        } else {
            self.dropped_unknown += 1;
        }
        self.settle(now);
    }

    /// Fires every deadline that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.note_running(now);
        if self.handshakes_due.is_some_and(|at| at <= now) {
            self.handshakes.handle_timeout(now, self.entropy.as_mut());
            self.handshakes_changed = true;
        }
        self.liveness.handle_timeout(now);
        if self.stats_at.is_some_and(|at| at <= now) {
            self.stats_at = Some(now + STATS_EVERY);
            self.tell_stats(now);
        }
        self.settle(now);
        self.write_due(now);
        if self.finish_at.is_some_and(|at| at <= now) {
            self.is_finished = true;
        }
    }

    /// Notes that this node runs, and for how long it did not.
    fn note_running(&mut self, now: Instant) {
        let pause = now.since(self.ran_at);
        self.ran_at = now;
        if pause >= OWN_PAUSE && !self.links.is_empty() {
            // A part counts all the same, or a game that drives us by itself but seldom would never see a peer die.
            self.liveness.handle_own_pause(pause.saturating_sub(OWN_PAUSE / 2));
        }
    }

    /// The next output. `Wait` or `Finished` ends the drain.
    pub fn poll_output(&mut self) -> Output<'_> {
        if self.transmits.is_empty() {
            if self.is_finished {
                return Output::Finished;
            }
            let (until, reason) = self.deadline();
            return Output::Wait { until, reason };
        }
        let (to, bytes) = self.transmits.pop();
        Output::Transmit { to, bytes }
    }

    /// Where packets to a member go.
    #[cfg(test)]
    pub(crate) fn address_of(&self, peer: PeerIndex) -> Option<Addr> {
        self.links.get(peer).map(|link| link.path.addr())
    }

    /// When `handle_timeout` must next be called, and for whom.
    fn deadline(&mut self) -> (Option<Instant>, &'static str) {
        let mut earliest: (Option<Instant>, &'static str) = (None, "idle");
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at
                && earliest.0.is_none_or(|before| at < before)
            {
                earliest = (Some(at), reason);
            }
        };
        consider(self.links.poll_timeout(), "link");
        consider(self.joining.as_ref().and_then(|joining| joining.due_at()), "joining");
        consider(self.handshakes_due, "handshake");
        consider(self.liveness.poll_timeout(), "liveness");
        consider(self.stats_at, "stats");
        consider(self.finish_at, "goodbye");
        earliest
    }

    /// Tells the mesh handle; waits in order while the game does not poll.
    fn tell(&mut self, news: MeshNews) {
        tell::log_event(&news);
        if self.backlog.is_empty() {
            match self.port.tell(news) {
                Ok(()) | Err(Refused::Closed(_)) => return,
                Err(Refused::Full(news)) => self.backlog.push_back(news),
            }
        } else {
            self.backlog.push_back(news);
        }
        if self.backlog.len() > MAX_BACKLOG {
            log::error!("the game does not poll its mesh: an event was dropped");
            self.backlog.pop_front();
        }
    }

    fn tell_backlog(&mut self) {
        while let Some(news) = self.backlog.pop_front() {
            if let Err(Refused::Full(news)) = self.port.tell(news) {
                self.backlog.push_front(news);
                return;
            }
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("us", &self.lobby.us())
            .field("members", &self.lobby.members())
            .finish_non_exhaustive()
    }
}
