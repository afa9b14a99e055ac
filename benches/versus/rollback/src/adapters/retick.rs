//! retick: a real session and a real node per peer, joined by the bridge; nothing is taken off but the encryption.
//!
//! Fed by: ticks, and for `retick` datagrams and timers at their own time, as its IO thread would be; `retick-manual`
//! makes one turn of the network half per tick, as a game without that thread would.
//! Yields: saves, loads and steps of the game. Never: counts what happens before frame 0.

use super::{Counts, Peer, address, peer_at};
use crate::game::{self, Game};
use crate::match_up::Scenario;
use crate::meter::{self, Doer, run};
use crate::network::Socket;
use retick::base::rng::Rng;
use retick::base::{Addr, Instant};
use retick::bridge::{self, Command, MeshNews, MeshPort};
use retick::config::{MeshConfig, RoomKey, SessionConfig, ValidSessionConfig};
use retick::node::{Node, Output};
use retick::session::{Session, SessionEvent, StepKind, Verdict};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// From the barrier to frame 0.
const COUNTDOWN_MS: u32 = 300;
/// A timer that fires in vain is asked again no sooner.
const LEAST_WAIT_NS: u64 = 100_000;

/// How far a peer is on its way into the match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Outside,
    Joining,
    Ready,
}

struct Retick {
    us: usize,
    peers: usize,
    is_driven: bool,
    is_held: bool,
    size: usize,
    socket: Socket,
    node: Node,
    port: MeshPort,
    session: Session,
    room: Rc<Cell<Option<RoomKey>>>,
    stage: Stage,
    connected: usize,
    ready: usize,
    wake_at_ns: Option<u64>,
    buffer: Vec<u8>,
}

/// All peers of a match.
pub fn seat(
    sockets: impl Iterator<Item = (usize, Socket)>,
    scenario: &Scenario,
    is_driven: bool,
) -> Vec<Box<dyn Peer>> {
    let room = Rc::new(Cell::new(None));
    let peer = |(us, socket)| -> Box<dyn Peer> {
        let mesh = MeshConfig {
            max_peers: scenario.peers as u32,
            local_address: Some(Addr::ip(address(us))),
            ..MeshConfig::default()
        };
        let session = SessionConfig {
            input_max: scenario.input_size as u32,
            input_delay: scenario.delay as u32,
            prediction_window: scenario
                .window
                .map_or(SessionConfig::default().prediction_window, |w| w as u32),
            state_capacity: scenario.state_size as u64,
            desync_level: u32::from(scenario.desync_every > 0),
            ..SessionConfig::default()
        };
        let session: ValidSessionConfig = session.try_into().expect("the scenario makes sense");
        let (port, node_port) = bridge::open(Arc::new(|| {}));
        let entropy = Box::new(Rng::new(scenario.seed << 32 | us as u64));
        let node = Node::new(mesh.try_into().expect("it makes sense"), node_port, entropy, now());
        let session_port =
            port.open_session(session.settings).unwrap_or_else(|_| unreachable!("the queue is empty"));
        Box::new(Retick {
            us,
            peers: scenario.peers,
            is_driven,
            is_held: scenario.is_held,
            size: scenario.input_size,
            socket,
            node,
            port,
            session: Session::new(session, Some(session_port), now()),
            room: Rc::clone(&room),
            stage: Stage::Outside,
            connected: 0,
            ready: 0,
            wake_at_ns: None,
            buffer: vec![0; 1500],
        })
    };
    sockets.map(peer).collect()
}

fn now() -> Instant {
    Instant(meter::now_ns() / 1000)
}

impl Retick {
    /// One turn of the driver, as `io/turn.rs` makes it.
    fn turn(&mut self, has_commands: bool) {
        let now = now();
        if has_commands {
            self.node.handle_commands(now);
        }
        while let Some((length, from)) = self.socket.receive(&mut self.buffer) {
            self.node.handle_datagram(Addr::ip(address(from)), &mut self.buffer[..length], now);
        }
        self.drain();
        if self.wake_at_ns.is_some_and(|at| at <= meter::now_ns()) {
            self.node.handle_timeout(now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        loop {
            match self.node.poll_output() {
                Output::Transmit { to: Addr::Ip(to), bytes } => self.socket.send(peer_at(&to), bytes),
                Output::Wait { until, .. } => {
                    self.wake_at_ns = until.map(|until| until.0 * 1000);
                    return;
                }
                Output::Transmit { .. } | Output::Finished => return,
            }
        }
    }

    fn say(&self, command: Command) {
        self.port.send(command).expect("the queue is empty before the match");
    }

    /// One step on the way into the match.
    fn gather(&mut self) {
        while let Some(news) = self.port.next_news() {
            match news {
                MeshNews::Joined { room, .. } => self.room.set(Some(room)),
                MeshNews::PeerConnected { .. } => self.connected += 1,
                MeshNews::PeerReady { .. } => self.ready += 1,
                _ => {}
            }
        }
        match (self.stage, self.room.get()) {
            (Stage::Outside, None) if self.us == 0 => {
                self.say(Command::Host);
                self.stage = Stage::Joining;
            }
            (Stage::Outside, Some(room)) => {
                self.say(Command::Join { address: Addr::ip(address(0)), room });
                self.stage = Stage::Joining;
            }
            (Stage::Joining, Some(_)) if self.connected >= self.peers - 1 => {
                self.say(Command::SetReady { local_slots: 1 });
                if self.us == 0 {
                    self.say(Command::Start { countdown_ms: COUNTDOWN_MS });
                }
                self.stage = Stage::Ready;
            }
            _ => {}
        }
    }

    /// The game's thread: news, input, steps.
    fn play(&mut self, game: &mut Game, counts: &mut Counts) {
        let now = now();
        while let Some(news) = self.port.next_news() {
            counts.left += u64::from(matches!(news, MeshNews::Left { .. }));
        }
        // Asked as every game does, and not obeyed: all libraries step once a tick.
        let _ = self.session.frames_due(now);
        let mut input = [0; 16];
        run(Doer::Harness, || {
            game::input(self.us, self.session.current().0, self.is_held, &mut input[..self.size]);
        });
        let slot = self.session.local_slots().into_iter().next().unwrap_or_default();
        let was_taken = self.session.add_local_input(slot, &input[..self.size]).is_ok();
        counts.errors += u64::from(!was_taken);
        match self.session.begin_frame(now) {
            Ok(Verdict::Advance) => counts.frames += 1,
            Ok(Verdict::ResimulateOnly | Verdict::Stall(_)) => counts.stalls += 1,
            Err(_) => counts.errors += 1,
        }
        for index in 0..self.session.step_count() {
            self.run_step(index, game, counts);
        }
        counts.errors += u64::from(self.session.end_frame(now).is_err());
        while let Some(event) = self.session.next_event() {
            counts.desyncs += u64::from(matches!(event, SessionEvent::Desync { .. }));
        }
    }

    fn run_step(&mut self, index: usize, game: &mut Game, counts: &mut Counts) {
        let Some(step) = self.session.step(index).copied() else { return };
        match step.kind {
            StepKind::Save => {
                let size = game.state.len();
                let _ = self.session.grow_state(index, size as u64);
                if let Some(state) = self.session.state(index) {
                    run(Doer::State, || game.save(&mut state[..size]));
                }
                let checksum = step.wants_checksum.then(|| game.hash());
                counts.errors += u64::from(self.session.set_saved(index, size as u64, checksum).is_err());
            }
            StepKind::Load => {
                if let Some(state) = self.session.state(index) {
                    run(Doer::State, || game.load(&state[..game.state.len()]));
                }
            }
            StepKind::Advance => {
                let (inputs, _) = self.session.inputs(index);
                run(Doer::Game, || game.step(inputs));
                counts.resimulated += u64::from(step.resimulating);
            }
        }
    }
}

impl Peer for Retick {
    fn lobby(&mut self) -> bool {
        self.gather();
        let _ = self.session.frames_due(now());
        self.turn(true);
        self.session
            .start_info()
            .is_some_and(|start| self.session.clock().local_time(start.frame0_at) <= now())
    }

    fn tick(&mut self, game: &mut Game, counts: &mut Counts) {
        if !self.is_driven {
            run(Doer::IoHalf, || self.turn(false));
        }
        run(Doer::GameHalf, || self.play(game, counts));
        run(Doer::IoHalf, || self.turn(true));
    }

    fn frame(&self) -> i32 {
        self.session.current().0
    }

    fn is_driven(&self) -> bool {
        self.is_driven
    }

    fn wake_at_ns(&self) -> Option<u64> {
        // A node that asks again for a time that has passed must not stop the world.
        self.wake_at_ns.map(|at| if at > meter::now_ns() { at } else { meter::now_ns() + LEAST_WAIT_NS })
    }

    fn wake(&mut self) {
        run(Doer::IoHalf, || self.turn(false));
    }
}
