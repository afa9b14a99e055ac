//! One process: a mesh handle, a session and a game, used the way a game uses them.
//!
//! Fed by: the world, which calls it when its frame is due on its own clock. Yields: what the game was told.
//! Never: knows the other peers but through its handle.

use crate::game::Game;
use crate::setup::{PeerSetup, Setup};
use crate::trace::Trace;
use retick::base::{Frame, Instant, PeerIndex, PeerSet};
use retick::bridge::{Command, MeshNews, MeshPort};
use retick::config::{RoomKey, SessionConfig, ValidSessionConfig};
use retick::session::{Session, SessionEvent, StallReason, Verdict};
use std::collections::BTreeMap;
use std::time::Duration;

/// What one call of the game did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// Frames that the schedule asked for.
    pub due: u32,
    /// New frames.
    pub begun: u32,
    /// Why no (further) new frame was begun.
    pub stall: Option<StallReason>,
}

/// One process.
#[expect(clippy::struct_excessive_bools, reason = "what a player has done so far; each is told on its own")]
pub struct Peer {
    /// The mesh handle.
    pub port: MeshPort,
    /// The session.
    pub session: Session,
    /// The game.
    pub game: Game,
    setup: PeerSetup,
    trace: Trace,
    seed: u64,
    state_size: usize,
    /// Our place in the roster.
    pub us: Option<PeerIndex>,
    /// The room, once we are in.
    pub room: Option<RoomKey>,
    /// Members that we know of, ourselves included.
    pub members: PeerSet,
    /// Of these, the ones with a channel.
    pub connected: PeerSet,
    /// Of these, the ones that are ready.
    pub ready: BTreeMap<PeerIndex, u8>,
    /// Whether we said that we are ready.
    pub said_ready: bool,
    /// Whether the match began here.
    pub started: bool,
    /// Network time of the next call.
    pub next_call: Instant,
    /// Calls that were due a frame and began none, by reason.
    pub stalled: u64,
    /// Of these, the longest run.
    pub longest_stall: u64,
    /// Calls in a row, up to now, that were due a frame and began none.
    pub stall_run: u64,
    /// Calls so far.
    pub calls: u64,
    /// Until then (network time) the game's thread stands still.
    pub hung_until: Instant,
    /// Until then the whole process stands still.
    pub paused_until: Instant,
    /// Until then only every second call is made.
    pub slow_until: Instant,
    /// How fast its clock runs.
    pub skew_ppm: i32,
    /// Processes that ended are not called.
    pub is_running: bool,
    /// A planted bug: the state goes wrong from this frame on.
    pub flip_at: Option<Frame>,
    /// Network time at which the world lets it join (again).
    pub join_at: Option<Instant>,
    /// It asked for the start.
    pub said_start: bool,
    /// It was turned away for good.
    pub is_out: bool,
}

impl Peer {
    /// A process that just opened its mesh and session.
    pub fn new(port: MeshPort, setup: &Setup, index: usize, seed: u64, now: Instant) -> Self {
        let config = ValidSessionConfig::try_from(SessionConfig {
            input_delay: setup.peers[index].delay,
            prediction_window: setup.window,
            desync_level: setup.desync_level,
            state_capacity: setup.state_size as u64,
            ..SessionConfig::default()
        })
        .expect("setups stay in range");
        let session_port = port.open_session(config.settings).expect("the queue is empty at first");
        Self {
            port,
            session: Session::new(config, Some(session_port), now),
            game: Game::new(0, setup.state_size),
            setup: setup.peers[index],
            trace: setup.trace,
            seed,
            state_size: setup.state_size,
            us: None,
            room: None,
            members: PeerSet::EMPTY,
            connected: PeerSet::EMPTY,
            ready: BTreeMap::new(),
            said_ready: false,
            started: false,
            next_call: now,
            stalled: 0,
            longest_stall: 0,
            stall_run: 0,
            calls: 0,
            hung_until: Instant::ZERO,
            paused_until: Instant::ZERO,
            slow_until: Instant::ZERO,
            skew_ppm: setup.peers[index].skew_ppm,
            is_running: true,
            flip_at: None,
            join_at: None,
            said_start: false,
            is_out: false,
        }
    }

    /// From one call to the next, in network time: a frame of our clock.
    pub fn period(&self, now: Instant) -> Duration {
        let frame = 16_667 * 1_000_000 / (1_000_000 + i64::from(self.skew_ppm));
        Duration::from_micros(frame as u64 * if now < self.slow_until { 2 } else { 1 })
    }

    /// The next piece of news of the mesh, noted.
    pub fn next_news(&mut self) -> Option<MeshNews> {
        let news = self.port.next_news()?;
        match &news {
            MeshNews::Joined { us, room } => {
                self.us = Some(*us);
                self.room = Some(*room);
                self.members.insert(*us);
            }
            MeshNews::PeerJoined { peer } => {
                self.members.insert(*peer);
            }
            MeshNews::PeerConnected { peer, .. } => {
                self.members.insert(*peer);
                self.connected.insert(*peer);
            }
            MeshNews::PeerReady { peer, local_slots } => {
                self.ready.insert(*peer, *local_slots);
            }
            MeshNews::Left { peer, .. } => {
                self.members.remove(*peer);
                self.connected.remove(*peer);
                self.ready.remove(peer);
            }
            _ => {}
        }
        Some(news)
    }

    /// Hands a command in; a full queue would be a failure of the library in these worlds.
    pub fn command(&self, command: Command) -> bool {
        self.port.send(command).is_ok()
    }

    /// Whether we are the one who starts the match, and all the `expected` others are there and ready.
    pub fn may_start(&self, expected: usize) -> bool {
        self.us.is_some()
            && self.members.first() == self.us
            && self.members.len() >= expected.max(2)
            && self.members.into_iter().all(|member| {
                Some(member) == self.us
                    || (self.ready.contains_key(&member) && self.connected.contains(member))
            })
    }

    /// How many slots we play.
    pub fn slots(&self) -> u8 {
        self.setup.slots
    }

    /// One call of the game: as many frames as are due.
    pub fn frames(&mut self, local_now: Instant) -> Call {
        self.calls += 1;
        let (due, _) = self.session.frames_due(local_now);
        self.notice_start();
        let mut call = Call { due, ..Call::default() };
        for _ in 0..due {
            let current = self.session.current();
            for slot in self.session.local_slots() {
                let sample = self.trace.sample(self.seed, slot, current);
                self.session
                    .add_local_input(slot, sample.as_slice())
                    .expect("a local slot and a short input");
            }
            let verdict = self.session.begin_frame(local_now).expect("no list is open");
            self.game.run(&mut self.session);
            self.session.end_frame(local_now).expect("a list, or an empty one");
            match verdict {
                Verdict::Advance => call.begun += 1,
                Verdict::ResimulateOnly => {
                    call.stall = self.session.stats().last_stall;
                    break;
                }
                Verdict::Stall(reason) => {
                    call.stall = Some(reason);
                    break;
                }
            }
        }
        if due > 0 && call.begun == 0 {
            self.stalled += 1;
            self.stall_run += 1;
            self.longest_stall = self.longest_stall.max(self.stall_run);
        } else if call.begun > 0 {
            self.stall_run = 0;
        }
        call
    }

    /// The match begins: the game is set up by the shared seed.
    fn notice_start(&mut self) {
        if self.started {
            return;
        }
        let Some(start) = self.session.start_info() else { return };
        self.started = true;
        self.game = Game::new(start.seed, self.state_size);
        if let Some(at) = self.flip_at {
            self.game.plant_bit_flip(at);
        }
    }

    /// The next event of the session.
    pub fn next_event(&mut self) -> Option<SessionEvent> {
        self.session.next_event()
    }

    /// The next frame to be simulated for the first time.
    pub fn current(&self) -> Frame {
        self.session.current()
    }
}
