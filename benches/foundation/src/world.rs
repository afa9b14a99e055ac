//! Whole meshes in virtual time: real sessions and nodes over the simulated network, each with a small game.
//!
//! Fed by: a seed, how many peers, what the links do. Yields: peers that play, one tick after the other, and what they
//! lost. Never: looks at a clock.

use crate::meter::{Doer, run};
use retick::base::{Addr, Entropy, Frame, Instant};
use retick::bridge::{Command, MeshNews, MeshPort, NodePort};
use retick::config::{ConfigError, MeshConfig, RoomKey, SessionConfig, ValidMeshConfig};
use retick::kit::hash;
use retick::netem::Link;
use retick::node::{Node, Output};
use retick::session::{Session, SessionEvent, StepKind, Verdict};
use retick::simnet::{Drive, Simnet};
use std::time::Duration;

/// A tick, in which a frame is due.
pub(crate) const TICK: Duration = Duration::from_micros(16_667);
/// A lobby that takes longer has failed.
const LOBBY_TICKS: u32 = 60 * 20;
const STATE: usize = 1024;

/// A game of 1 KB, of which a step rewrites one line.
#[derive(Clone)]
pub(crate) struct Game {
    state: [u8; STATE],
}

/// What was asked of all games together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asked {
    pub(crate) steps: u64,
    pub(crate) copies: u64,
}

/// One peer.
pub(crate) struct Peer {
    port: MeshPort,
    pub(crate) session: Session,
    game: Game,
    pub(crate) asked: Asked,
    /// Ticks in which a frame was due and none was begun.
    pub(crate) lost: u32,
    /// The others went on without us, or states differed.
    pub(crate) failed: Option<String>,
    connected: usize,
    is_alive: bool,
}

/// A node whose work is told from that of the network which it is tested on.
struct Counted(Node);

impl Drive for Counted {
    fn new(config: ValidMeshConfig, port: NodePort, entropy: Box<dyn Entropy>, now: Instant) -> Self {
        Self(run(Doer::NetworkHalf, || Node::new(config, port, entropy, now)))
    }
    fn handle_commands(&mut self, now: Instant) {
        run(Doer::NetworkHalf, || self.0.handle_commands(now));
    }
    fn handle_datagram(&mut self, from: Addr, bytes: &mut [u8], now: Instant) {
        run(Doer::NetworkHalf, || self.0.handle_datagram(from, bytes, now));
    }
    fn handle_timeout(&mut self, now: Instant) {
        run(Doer::NetworkHalf, || self.0.handle_timeout(now));
    }
    fn poll_output(&mut self) -> Output<'_> {
        run(Doer::NetworkHalf, || self.0.poll_output())
    }
}

/// A mesh.
pub(crate) struct World {
    net: Simnet<Counted>,
    pub(crate) peers: Vec<Peer>,
}

impl Game {
    pub(crate) fn new() -> Self {
        Self { state: [0; STATE] }
    }

    pub(crate) fn step(&mut self, frame: Frame, inputs: &[u8]) {
        let (before, _) = self.state.split_first_chunk().expect("a state is longer than a word");
        let mut word = hash::digest(inputs) ^ u64::from_le_bytes(*before);
        word = word.wrapping_mul(0x9FB2_1C65_1E98_DF25) ^ frame.0 as u64;
        let line = frame.0 as usize % (STATE / 64) * 64;
        self.state[line..line + 8].copy_from_slice(&word.to_le_bytes());
        self.state[..8].copy_from_slice(&word.to_le_bytes());
    }

    pub(crate) fn save(&self, to: &mut [u8]) {
        to[..STATE].copy_from_slice(&self.state);
    }

    pub(crate) fn load(&mut self, from: &[u8]) {
        self.state.copy_from_slice(&from[..STATE]);
    }
}

impl World {
    /// A mesh at frame 0 of its match; `Err` when it did not come together.
    pub(crate) fn start(seed: u64, peers: u32, link: Link, session: &SessionConfig) -> Result<Self, String> {
        let mut net = Simnet::with_nodes(seed);
        net.set_default_link(link);
        let peers: Result<Vec<Peer>, ConfigError> =
            (0..peers).map(|_| Peer::new(&mut net, session.clone())).collect();
        let mut world = Self { net, peers: peers.map_err(|error| error.to_string())? };
        world.gather()?;
        Ok(world)
    }

    fn gather(&mut self) -> Result<(), String> {
        let count = self.peers.len();
        self.peers[0].say(Command::Host);
        let mut room = None;
        let mut are_ready = false;
        for _ in 0..LOBBY_TICKS {
            self.net.advance(TICK);
            for (index, peer) in self.peers.iter_mut().enumerate() {
                if let Some(found) = peer.poll().filter(|_| index == 0) {
                    room = Some(found);
                }
                let _ = peer.session.frames_due(self.net.local_now(index as u32));
            }
            if let Some(room) = room.take() {
                let address = Simnet::address(0);
                self.peers[1..].iter().for_each(|peer| peer.say(Command::Join { address, room }));
            }
            if !are_ready && self.peers.iter().all(|peer| peer.connected >= count - 1) {
                are_ready = true;
                self.peers.iter().for_each(|peer| peer.say(Command::SetReady { local_slots: 1 }));
                self.peers[0].say(Command::Start { countdown_ms: 500 });
            }
            if self.peers.iter().all(|peer| peer.session.start_info().is_some()) {
                return Ok(());
            }
        }
        Err("the match did not begin".into())
    }

    /// Lets a tick pass, in which everybody begins the frames that are due.
    pub(crate) fn tick(&mut self) {
        self.net.advance(TICK);
        for (index, peer) in self.peers.iter_mut().enumerate().filter(|(_, peer)| peer.is_alive) {
            let now = self.net.local_now(index as u32);
            run(Doer::GameHalf, || peer.tick(now, index));
        }
    }

    /// The process of a peer dies.
    pub(crate) fn kill(&mut self, index: usize) {
        self.net.detach(index as u32);
        self.peers[index].is_alive = false;
    }

    /// Whoever did not die.
    pub(crate) fn alive(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.is_alive)
    }

    /// Compares the newest `frames` confirmed frames; yields how many were compared.
    pub(crate) fn compare(&self, frames: i32) -> Result<i32, String> {
        if let Some(problem) = self.alive().find_map(|peer| peer.failed.as_ref()) {
            return Err(problem.clone());
        }
        let end = self.alive().map(|peer| peer.session.confirmed_end()).min().unwrap_or(Frame::ZERO);
        // Inputs may be confirmed a moment before the frame is simulated with them; older than the window it is.
        let end = end - 16;
        for frame in (end.0 - frames).max(0)..end.0 {
            let digests: Vec<_> =
                self.alive().map(|peer| peer.session.confirmed_checksum(Frame(frame))).collect();
            if digests.contains(&None) {
                return Err(format!("frame {frame} has no digest at some peer: {digests:x?}"));
            }
            if digests.iter().any(|digest| *digest != digests[0]) {
                return Err(format!("frame {frame} differs: {digests:x?}"));
            }
        }
        Ok(frames.min(end.0))
    }
}

impl Peer {
    fn new(net: &mut Simnet<Counted>, session: SessionConfig) -> Result<Self, ConfigError> {
        let (_, port) = net.attach(MeshConfig { max_peers: 16, ..MeshConfig::default() }.try_into()?);
        let config: retick::config::ValidSessionConfig = session.try_into()?;
        let session_port =
            port.open_session(config.settings).unwrap_or_else(|_| unreachable!("the queue is empty"));
        let session = Session::new(config, Some(session_port), net.now());
        let (game, asked) = (Game::new(), Asked::default());
        Ok(Self { port, session, game, asked, lost: 0, failed: None, connected: 0, is_alive: true })
    }

    fn say(&self, command: Command) {
        self.port.send(command).unwrap_or_else(|_| unreachable!("the queue is empty before the match"));
    }

    /// Takes the news; the room, once we are in one.
    fn poll(&mut self) -> Option<RoomKey> {
        let mut joined = None;
        while let Some(news) = self.port.next_news() {
            match news {
                MeshNews::Joined { room, .. } => joined = Some(room),
                MeshNews::PeerConnected { .. } => self.connected += 1,
                _ => {}
            }
        }
        joined
    }

    fn tick(&mut self, now: Instant, index: usize) {
        self.poll();
        let (due, _) = self.session.frames_due(now);
        for _ in 0..due {
            if !self.frame(now, index) {
                self.lost += 1;
                break;
            }
        }
        while let Some(event) = self.session.next_event() {
            if matches!(event, SessionEvent::Desync { .. } | SessionEvent::CutOff) {
                self.failed.get_or_insert_with(|| format!("{event:?}"));
            }
        }
    }

    /// Whether a new frame was begun.
    fn frame(&mut self, now: Instant, index: usize) -> bool {
        let frame = self.session.current().0 as u64;
        let input = (frame << 8 | index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        for slot in self.session.local_slots() {
            // Refused only for a slot that is not ours.
            let _ = self.session.add_local_input(slot, &input[..4]);
        }
        let is_new = matches!(self.session.begin_frame(now), Ok(Verdict::Advance));
        for step in 0..self.session.step_count() {
            self.run_step(step);
        }
        // An empty list needs no end.
        let _ = self.session.end_frame(now);
        is_new
    }

    fn run_step(&mut self, index: usize) {
        let Self { session, game, asked, .. } = self;
        let Some(step) = session.step(index).copied() else { return };
        match step.kind {
            StepKind::Save => {
                // A state of 1 KB is never refused.
                let _ = session.grow_state(index, STATE as u64);
                if let Some(state) = session.state(index) {
                    run(Doer::Harness, || game.save(state));
                }
                let _ = session.set_saved(index, STATE as u64, None);
                asked.copies += 1;
            }
            StepKind::Load => {
                if let Some(state) = session.state(index) {
                    run(Doer::Harness, || game.load(state));
                }
                asked.copies += 1;
            }
            StepKind::Advance => {
                let (inputs, _) = session.inputs(index);
                run(Doer::Harness, || game.step(step.frame, inputs));
                asked.steps += 1;
            }
        }
    }
}
